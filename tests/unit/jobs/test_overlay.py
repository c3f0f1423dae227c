"""The overlay: the newest image of an item, by what its key says, and which items the store behind does not have."""

from __future__ import annotations

from sync_rules.jobs.dryrun.overlay import ASKED_MAX_KEYS, Overlay
from tests.support.builders import key, n, s, table

TABLE = table("t", {"p": "S", "k": "N"})


def at(k: str):
    return key(TABLE, "a", k)


def test_overlay_holds_the_newest_image_however_its_number_is_spelt():
    """An item is one, whether its key says 1 or 1.0; deleted is not the same as never heard of."""
    overlay = Overlay({"t": TABLE})
    overlay.put(at("1"), {"p": s("a"), "k": n("1"), "blob": {"B": b"\x00\xff"}}, added=True)
    overlay.put(at("1.0"), {"p": s("a"), "k": n("1"), "blob": {"B": b"\x01"}}, added=False)
    overlay.put(at("2"), None, added=False)
    found = overlay.find([at("1e0"), at("1"), at("2"), at("3")])
    assert found == {at(k): {"p": s("a"), "k": n("1"), "blob": {"B": b"\x01"}} for k in ("1e0", "1")} | {at("2"): None}
    assert len(overlay) == 2


def test_overlay_tells_what_was_added_in_the_order_in_which_it_came():
    """An item that the store behind has is never added, and one that it lacks is, for as long as it is there."""
    overlay = Overlay({"t": TABLE})
    for k, added in (("3", True), ("1", False), ("2", True)):
        overlay.put(at(k), {"p": s("a"), "k": n(k)}, added=added)
    overlay.put(at("1"), {"p": s("a"), "k": n("1"), "more": s("x")}, added=True)
    (first, item), *others = overlay.added("t", 0, 10)
    assert [item["k"], *(one["k"] for _, one in others)] == [n("3"), n("2")]
    assert [one["k"] for _, one in overlay.added("t", first, 10)] == [n("2")]
    assert len(overlay.added("t", 0, 1)) == 1
    overlay.put(at("3"), None, added=True)
    assert [one["k"] for _, one in overlay.added("t", 0, 10)] == [n("2")]


def test_overlay_finds_more_than_one_statement_may_ask_for():
    """Keys are asked for in pieces."""
    overlay = Overlay({"t": TABLE})
    keys = [at(str(number)) for number in range(ASKED_MAX_KEYS + 1)]
    for one in keys:
        overlay.put(one, {**one.attributes()}, added=True)
    assert overlay.find(keys).keys() == {*keys}
