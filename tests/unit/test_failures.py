"""The one form of a failure record."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from sync_rules.commands.verify import parse_key
from sync_rules.failures import failure_record, plain_key
from sync_rules.model import Failure, ItemKey
from tests.builders import shop, table

AT = datetime(2026, 11, 21, 12, 0, 0, 1000, UTC)
KEY_VALUES = st.one_of(
    st.tuples(st.just("S"), st.text(min_size=1)),
    st.tuples(st.just("N"), st.one_of(st.integers(), st.decimals(allow_nan=False, allow_infinity=False)).map(str)),
    st.tuples(st.just("B"), st.binary(min_size=1)),
)


def test_failure_record_without_a_key():
    """A record that was not understood has none."""
    record = failure_record(Failure("", None, "NotARecord", "7"), AT)
    assert (record["table"], record["key"], record["position"]) == (None, None, "7")


def test_failure_record_names_the_member_that_does_not_fit():
    """Of an item that is made of several, such as a parent of its children, the one that did not fit."""
    parent, child = (ItemKey("shop", (("PK", "S", text),)) for text in ("USER#1", "ORDER#1"))
    record = failure_record(Failure("orders", parent, "TooManyItems", member=child), AT)
    assert record["member"] == {"table": "shop", "key": {"PK": "ORDER#1"}}
    assert failure_record(Failure("orders", parent, "TooManyItems"), AT)["member"] is None


def test_failure_record_bears_its_time_in_utc():
    """Whatever the clock's zone."""
    there = AT.astimezone(timezone(timedelta(hours=5)))
    assert failure_record(Failure("", None, ""), there)["at"] == "2026-11-21T12:00:00.001+00:00"


@given(values=st.tuples(KEY_VALUES, KEY_VALUES))
def test_failure_record_names_a_key_as_verify_takes_it(values):
    """The key of a failure record, copied to `sync-rules verify --key`, is the key of the item, whatever its types."""
    named = tuple((name, kind, value) for name, (kind, value) in zip(("PK", "SK"), values, strict=True))
    key = ItemKey("shop", named)
    rules = shop()
    rules.tables["shop"] = table("shop", {name: kind for name, kind, _ in named})
    record = json.loads(json.dumps(failure_record(Failure("names", key, "ItemTooLarge"), AT)))
    assert record["key"] == plain_key(key)
    assert parse_key(json.dumps(record["key"]), record["table"], rules) == key
