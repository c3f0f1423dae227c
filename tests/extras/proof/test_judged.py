"""The judgement on deliveries, which no emulator can be made to show: true and false."""

from __future__ import annotations

import pytest

from sync_rules.extras.proof.probes.mapping_facts import (
    LoggedRecord,
    explain_missing_batch,
    explain_missing_rest,
    is_in_order,
)


def given(*batches: str) -> list[LoggedRecord]:
    """Batches of records, each a digit that is its sequence number."""
    return [
        LoggedRecord(str(name), {"dynamodb": {"SequenceNumber": number}})
        for name, batch in enumerate(batches)
        for number in batch
    ]


@pytest.mark.parametrize("well", [("12345", "345"), ("12345", "3", "45"), ("12", "345", "345"), ("12345", "12345")])
@pytest.mark.parametrize(
    "missing", [("12345",), ("12345", "3"), ("12345", "34"), ("12345", "45"), ("12345", "12"), ("12",)]
)
def test_from_failed_on_all_records_come_again(well, missing):
    """Everything from the reported record on comes again, in one batch or several; a record that does not is missed."""
    assert explain_missing_rest(given(*well), 3) == ""
    assert explain_missing_rest(given(*missing), 3)


@pytest.mark.parametrize("well", [("123", "123"), ("123", "12", "3"), ("1", "23", "23")])
@pytest.mark.parametrize("missing", [("123",), ("123", "3"), ("123", "23"), ("12",)])
def test_whole_again_is_the_whole_batch(well, missing):
    """The whole batch comes again, also in halves; a part is not enough."""
    assert explain_missing_batch(given(*well), 3) == ""
    assert explain_missing_batch(given(*missing), 3)


@pytest.mark.parametrize(
    ("numbers", "well"), [("1234", True), ("1212334", True), ("132", False), ("1243", False), ("", True)]
)
def test_in_order_takes_repetitions_and_no_older_news(numbers, well):
    """A record may come again; one that is new must be newer than all before."""
    assert is_in_order(map(int, numbers)) is well
