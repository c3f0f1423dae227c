"""A value that a rule keeps, explained: the lines of `sync-rules explain`, with the values of its sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sync_rules.adapters.memory import MemoryStore
from sync_rules.audit.compare import Drift
from sync_rules.audit.standings import Standing, list_standings
from sync_rules.cli.show.item_rows import make_standing_row
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item, Path, get, show_path
from sync_rules.pipeline.requests import NULL_PORTS, Read, World, run_work
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

LINES_MAX: Final = 12  # a set has a line for each of its elements
WHY: Final = {
    Drift.WRONG: "it differs from what the rule makes of its source",
    Drift.MISSING: "its source has a value for it",
    Drift.EXTRA: "its source has no such value",
    Drift.ORPHAN: "its source does not exist",
    Drift.STUCK: "no write of the rule can make it right",
}


def explain_value(key: ItemKey, item: Item, name: str, rules: Rules, store: MemoryStore) -> list[dict[str, Any]]:
    """Explain an attribute of an item: for each rule that keeps it the line, why it is not right, and what the rule
    reads of its sources, None for a source that does not exist. Values that are not right come first.
    """
    world = World(store, NULL_PORTS, NULL_PORTS)
    standings = run_work(list_standings(key, item, rules), world)
    found = [_narrow(one, name) for one in standings if _covers(one.rule.copies, name)]
    found.sort(key=lambda one: not isinstance(one.state, Drift))
    return [
        {
            "line": "".join(make_standing_row(one)[1]).strip(),
            "why": WHY[one.state] if isinstance(one.state, Drift) and not one.reason else "",
            "sources": [{"key": str(source), "item": _read_source(one.rule, source, world)} for source in one.sources],
        }
        for one in found[:LINES_MAX]
    ]


def _covers(paths: tuple[Path, ...], name: str) -> bool:
    """True if one of the paths is in this attribute. A rule without paths keeps the whole item."""
    return not paths or any(path[0] == name for path in paths)


def _narrow(one: Standing, name: str) -> Standing:
    """The standing of the rule's paths in this attribute: they are right if only others are not."""
    if isinstance(one.state, Drift) and not _covers(one.paths, name):
        return replace(one, paths=tuple(path for path in one.rule.copies if path[0] == name), state="right", reason="")
    return one


def _read_source(rule: Rule, source: ItemKey, world: World) -> Item | None:
    """Read what a rule reads of a source, by path; the whole source if the rule does not say."""
    (item,) = world.store.read(Read((source,)))
    drawing = rule.draw()
    paths = drawing.reads if drawing is not None and item is not None else ()
    read = {show_path(path): value for path in paths if path and item and (value := get(item, path)) is not None}
    return read or item
