"""The argument of a user's function: plain values, exact numbers, an id that stays the same for a change."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from decimal import Decimal

import pytest

from sync_rules.model.item_change import make_change_id, make_item_change
from sync_rules.model.items import Call, Change
from sync_rules.model.json_bytes import format_canonical_json
from tests.support.builders import key, n, s, table

TABLE = table("things", {"PK": "S", "n": "N"})
AT = key(TABLE, "a", "1")
ITEM = {"PK": s("a"), "n": n(1), "v": s("x")}
CHANGE = Change(AT, ITEM, None, "100", 5, expired=True)


def test_changes_tell_all_of_a_change():
    """Rule, table, key, both images, expiry, what happened, an id."""
    told = make_item_change(Call("r", "f.g", CHANGE))
    assert (told.rule, told.table, told.key) == ("r", "things", {"PK": "a", "n": Decimal(1)})
    assert (told.old, told.new) == ({"PK": "a", "n": Decimal(1), "v": "x"}, None)
    assert (told.expired, told.when) == (True, "deleted")
    assert make_item_change(Call("r", "f.g", replace(CHANGE, old=None, new=ITEM))).when == "created"
    assert make_item_change(Call("r", "f.g", replace(CHANGE, new=ITEM))).when == "changed"
    with pytest.raises(FrozenInstanceError):
        told.rule = "other"


def test_changes_have_an_id_of_their_own():
    """The id of a call is the same at each try, and differs by rule, table, record and item."""
    first = Call("r", "f.g", CHANGE)
    others = [
        replace(first, rule="r2"),
        replace(first, change=replace(CHANGE, position="101")),
        replace(first, change=replace(CHANGE, key=key(TABLE, "b", "1"))),
        replace(first, change=replace(CHANGE, key=AT._replace(table="more"))),
    ]
    assert make_item_change(first).id == make_item_change(replace(first, attempt=3)).id
    assert len({make_item_change(call).id for call in (first, *others)}) == 5


def test_changes_without_a_number_are_known_by_what_they_say():
    """A change from Kinesis is identified by its content, whatever its sequence number."""
    wrapped = replace(CHANGE, in_order=False)
    assert (
        make_change_id(wrapped)
        == make_change_id(replace(wrapped, position="7"))
        == make_change_id(replace(wrapped, position=""))
    )
    others = [replace(wrapped, new=ITEM), replace(wrapped, old=None), replace(wrapped, created_ms=6)]
    assert len({make_change_id(one) for one in (wrapped, *others)}) == 4


def test_changes_as_json_holds_anything_a_record_can():
    """Binaries are base64, and text that is no Unicode does not fail."""
    assert (
        format_canonical_json({"b": {"B": b"\x00"}, "a": {"S": "\ud800"}}) == '{"a":{"S":"\\ud800"},"b":{"B":"AA=="}}'
    )
    with pytest.raises(TypeError):
        format_canonical_json({1, 2})
