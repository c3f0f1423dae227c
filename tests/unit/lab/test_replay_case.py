"""Shrinking: what is kept has been seen to fail, it is little, and it takes no more tries than it may."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recording import Recorded
from sync_rules.lab.replay_case import fewest, shrink_recording
from sync_rules.model.items import Change, ItemKey

LAST = VARIANTS[-1]


def record(number: int, item: int) -> Recorded:
    change = Change(ItemKey("t", (("id", "S", str(item)),)), None, {})
    return Recorded(number, change, {}, str(number))


RECORDS = tuple(record(number, number % 10) for number in range(100))


def needs(*numbers: int):
    """Fails while these records are there, in this order."""

    def fails(records, _delivery) -> bool:
        return [one.number for one in records if one.number in numbers] == list(numbers)

    return fails


@given(st.sets(st.integers(0, 40)), st.integers(1, 41))
def test_fewest_leaves_what_is_needed_and_nothing_else(needed, size):
    """Shrinking leaves exactly the elements that the failure needs, in their order."""
    things = range(size)
    needed &= set(things)
    assert list(fewest(things, lambda some: needed <= set(some))) == sorted(needed)


def test_shrunk_leaves_the_records_and_the_delivery_that_it_takes():
    """Two of a hundred records are left, the two needed for the failure, under the simplest delivery."""
    least = shrink_recording(RECORDS, LAST, needs(13, 58), 500)
    assert [one.number for one in least.records] == [13, 58]
    assert least.delivery == VARIANTS[0]
    assert least.tries < 200


def test_shrunk_keeps_the_delivery_that_a_failure_needs():
    """A failure under duplicates alone stays one under duplicates; with whichever seed shows it."""

    def fails(records, delivery) -> bool:
        return needs(13)(records, delivery) and delivery.duplicated and delivery.seed == 2

    assert shrink_recording(RECORDS, replace(LAST, seed=2), fails, 500).delivery == replace(VARIANTS[3], seed=2)
    other = shrink_recording(RECORDS, LAST, lambda records, delivery: delivery == LAST or fails(records, delivery), 500)
    assert (other.delivery, len(other.records)) == (replace(VARIANTS[3], seed=2), 1)


@pytest.mark.parametrize("tries_max", [0, 1, 7, 30])
def test_shrunk_ends_with_its_tries(tries_max):
    """Shrinking ends when its tries are used up, with a recording that still fails."""
    tried = []

    def fails(records, delivery) -> bool:
        tried.append(1)
        return needs(13, 58)(records, delivery)

    least = shrink_recording(RECORDS, LAST, fails, tries_max)
    assert len(tried) == least.tries == tries_max
    assert needs(13, 58)(least.records, least.delivery)
