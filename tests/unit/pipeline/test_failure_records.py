"""The one form of a failure record."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import RecordError
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.numbers import parse_number
from sync_rules.pipeline.failure_records import make_failure_record, read_failure_record, restore_key
from sync_rules.rules.key_json import parse_key
from tests.support.builders import shop, table


def holdable_number(number: int | Decimal) -> bool:
    """True for a number that DynamoDB can hold in a key: 38 digits, of a size."""
    return parse_number(str(number)) is not None


AT = datetime(2026, 11, 21, 12, 0, 0, 1000, UTC)
KEY_VALUES = st.one_of(
    st.tuples(st.just("S"), st.text(min_size=1)),
    st.tuples(
        st.just("N"),
        st.one_of(st.integers(), st.decimals(allow_nan=False, allow_infinity=False)).filter(holdable_number).map(str),
    ),
    st.tuples(st.just("B"), st.binary(min_size=1)),
)


# ---------------------------------------------------------------- read again
def tables(**keys):
    """The table shop with a key of these types."""
    return {"shop": table("shop", keys)}


def told(**fields):
    """A failure record with these fields changed; None leaves one out."""
    key = ItemKey("shop", (("PK", "S", "USER#1"),))
    record = {**make_failure_record(Failure("names", key, "ItemTooLarge"), AT), **fields}
    return {name: value for name, value in record.items() if value is not ...}


@given(
    values=st.tuples(KEY_VALUES, KEY_VALUES),
    of_member=st.booleans(),
    element=st.none() | st.text(),
    position=st.text(max_size=3),
)
def test_failure_record_is_read_as_it_was_written(values, of_member, element, position):
    """Rule, member, element, reason and position come back; and keys of every type, which `verify --key` takes too."""
    named = tuple((name, kind, value) for name, (kind, value) in zip(("PK", "SK"), values, strict=True))
    key = ItemKey("shop", named)
    failure = Failure("names", key, "ItemTooLarge", position, key if of_member else None, element=element)
    written = json.loads(json.dumps(make_failure_record(failure, AT)))
    record, rules = read_failure_record(written), shop()
    rules.tables.update(tables(**{name: kind for name, kind, _ in named}))
    found = record.failure(rules.tables)
    assert parse_key(json.dumps(written["key"]), written["table"], rules) == key
    assert (found, found.element) == (failure, element)
    assert record.first == record.last == AT


def test_failure_record_of_an_older_version_is_read():
    """A failure record without member, position and element, from an older version, can be read."""
    old = told(element=..., member=..., position=...)
    record = read_failure_record(old)
    assert (record.element, record.member, record.position) == (None, None, "")
    assert record.failure(tables(PK="S")).key == ItemKey("shop", (("PK", "S", "USER#1"),))


@pytest.mark.parametrize(
    "fields",
    [
        {"rule": ...}, {"rule": 7}, {"reason": None}, {"at": ...}, {"at": "yesterday"}, {"at": 5}, {"last": "soon"},
        {"table": 7}, {"key": "USER#1"}, {"key": {"PK": 1}}, {"member": {"key": {}}}, {"member": {"table": "shop"}},
        {"member": {"table": "shop", "key": {"PK": None}}}, {"element": 1}, {"position": 1},
    ],
    ids=lambda fields: f"{next(iter(fields))}-{type(next(iter(fields.values()))).__name__}",
)  # fmt: skip
def test_failure_record_that_is_none_is_said_to_be(fields):
    """A field that is missing or of another kind is named, and not what stands there."""
    with pytest.raises(RecordError, match=next(iter(fields))) as caught:
        read_failure_record(told(**fields))
    assert "USER#1" not in str(caught.value)


@pytest.mark.parametrize(
    ("plain", "of"),
    [
        ({}, {"PK": "S"}),
        ({"PK": "1", "SK": "2"}, {"PK": "S"}),
        ({"PK": "1"}, {"PK": "S", "SK": "S"}),
        ({"PK": "one"}, {"PK": "N"}),
        ({"PK": "NaN"}, {"PK": "N"}),
        ({"PK": "xyz"}, {"PK": "B"}),
    ],
    ids=["none", "too-many", "too-few", "no-number", "not-finite", "no-hex"],
)
def test_typed_key_of_another_schema_is_refused(plain, of):
    """A key that the table cannot have is refused with the expected schema, without its values."""
    with pytest.raises(RecordError, match=r"table shop does not have: expected PK") as caught:
        restore_key("shop", plain, tables(**of))
    assert "xyz" not in str(caught.value)
    with pytest.raises(RecordError, match="no table 'shops'"):
        restore_key("shops", plain, tables(**of))
