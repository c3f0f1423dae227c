"""The overlay: the newest image of an item, by what its key says, and which items the store behind does not have."""

from __future__ import annotations

from sync_rules.jobs.dryrun.overlay import ASKED_MAX_KEYS, Overlay
from tests.support.builders import key, table

TABLE = table("t", {"p": "S", "k": "N"})


def at(k: str):
    return key(TABLE, "a", k)


def test_overlay_finds_more_than_one_statement_may_ask_for():
    """Keys are asked for in pieces."""
    overlay = Overlay({"t": TABLE})
    keys = [at(str(number)) for number in range(ASKED_MAX_KEYS + 1)]
    for one in keys:
        overlay.put(one, {**one.attributes()}, added=True)
    assert overlay.find(keys).keys() == {*keys}
