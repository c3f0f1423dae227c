"""The rows of `explain`: the origin of an item's values and whether they are right, and every item that holds a value
of an item. The playground shows them too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sync_rules.audit.compare import Drift
from sync_rules.audit.standings import Standing, list_standings
from sync_rules.audit.where_used import UsePlace, find_uses
from sync_rules.cli.show.text import Row, format_count
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.values import show_path
from sync_rules.pipeline.failure_records import format_key, show_key
from sync_rules.pipeline.requests import Read, World, run_work
from sync_rules.rules.families import PartRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules


# ---------------------------------------------------------------- an item
def list_item_rows(key: ItemKey, rules: Rules, world: World) -> Iterator[Row]:
    """List the derived values of an item, then the rules that copy from it. Raises UserError if the item does not
    exist.
    """
    (item,) = world.store.read(Read((key,)))
    if item is None:
        raise UserError(f"item {format_key(key)} does not exist: correct the key, --region or --endpoint-url")
    entity = rules.entity_of(key)
    if entity is None:
        yield {"item": _make_key(key), "entity": None}, f"{format_key(key)} matches no entity, so no rule applies to it"
        return
    yield {"item": _make_key(key), "entity": entity.name}, f"{format_key(key)}: entity {entity.name}"
    found = run_work(list_standings(key, item, rules), world)
    for one in found:
        yield make_standing_row(one)
    if not found:
        yield {"standing": None}, "  no rule writes to it"
    for rule in rules.from_source(entity):
        into = _describe_target(rule)
        yield {"source_of": rule.name, "kind": rule.kind, "into": into}, f"  source of {into} · rule {rule.title}"


def make_standing_row(one: Standing) -> Row:
    """Return the row of one rule on an item."""
    paths = [show_path(path) for path in one.paths]
    state = one.state.value if isinstance(one.state, Drift) else one.state
    row = {
        "rule": one.rule.name,
        "kind": one.rule.kind,
        "paths": paths,
        "element": one.element or None,
        "sources": [_make_key(source) for source in one.sources],
        "is": state,
        "reason": one.reason or None,
    }
    what = _format_part(one.element, paths)
    made_of = ", ".join(map(format_key, one.sources)) or _describe_origin(one.rule)
    why = f" ({one.reason})" if one.reason else ""
    return row, f"  {what}: {SAID.get(state, state)}{why} · from {made_of} · rule {one.rule.title}"


SAID = {
    "right": "right",
    "kept": "left as it is: the rule does not apply to it now",
    "waiting": "left as it is: the rule waits for a backfill",
    "nothing": "absent, as it should be",
}


def _describe_origin(rule: Rule) -> str:
    """Describe the origin of a value on an item that names no source."""
    if rule.source is rule.target:
        return "the item itself"
    return f"its {rule.source.name} items" if rule.find is not None else f"no {rule.source.name}: the item names none"


# ---------------------------------------------------------------- where it is used
def list_use_rows(key: ItemKey, rules: Rules, world: World) -> Iterator[Row]:
    """List every item that holds a value of an item, then the rules whose items cannot be listed."""
    count = 0
    for use in find_uses(key, rules, world.store):
        count += 1
        yield _make_use_row(use, key)
    for rule in rules.rules.values():
        if rule.pull_only and rule.source is rules.entity_of(key):
            line = f"perhaps on items of {rule.target.name}, which nothing lists · rule {rule.title}"
            yield {"rule": rule.name, "kind": rule.kind, "unlisted": rule.target.name}, line
    yield (
        {"places": count},
        f"{format_count(count, 'item')} {'holds' if count == 1 else 'hold'} a value of {format_key(key)}",
    )


def _make_use_row(use: UsePlace, asked: ItemKey) -> Row:
    paths = [show_path(path) for path in use.paths]
    row = {
        "rule": use.rule.name,
        "kind": use.rule.kind,
        "target": _make_key(use.target),
        "paths": paths,
        "element": use.element or None,
        "through": None if use.through == asked else _make_key(use.through),
    }
    what = _format_part(use.element, paths)
    through = "" if use.through == asked else f" · through {format_key(use.through)}"
    return row, f"{format_key(use.target)} {what}{through} · rule {use.rule.title}"


def _format_part(element: str, paths: list[str]) -> str:
    return f"element {element} of {', '.join(paths)}" if element else ", ".join(paths) or "the whole item"


def _describe_target(rule: Rule) -> str:
    if rule.copies:
        return ", ".join(f"{rule.target.name}.{show_path(path)}" for path in rule.copies)
    return f"{rule.target.name} items" if isinstance(rule, PartRule) else f"what rule {rule.title} does"


def _make_key(key: ItemKey) -> dict[str, Any]:
    return {"table": key.table, "key": show_key(key)}
