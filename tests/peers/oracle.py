"""The neutral rules' meaning, computed from plain items and from nothing of ours: what a scenario may expect.

Everything derived is thrown away and made again, rule by rule, until nothing changes.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.peers.scenarios import ABSENT

Items = dict[str, dict[str, dict[str, Any]]]  # table -> key as a text -> item
ROUNDS_MAX: Final = 30
COMPARE: Final = {
    "gt": lambda a, b: a > b,
    "gte": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "lte": lambda a, b: a <= b,
}
NATURAL: Final = {"count": 0, "sum": 0, "map": {}, "list": []}
FORMAT: Final = {"upper": str.upper, "lower": str.lower, "nospace": lambda text: text.replace(" ", "")}


def derived(
    tables: Mapping[str, Sequence[str]], rules: Sequence[Mapping[str, Any]], items: Items
) -> dict[str, dict[str, dict[str, Any]]]:
    """The derived attributes of every item: table -> key -> attribute -> value or ABSENT."""
    world = {table: {key: copy.deepcopy(item) for key, item in rows.items()} for table, rows in items.items()}
    for rule in rules:
        for item in world.get(rule["table"], {}).values():
            item.pop(rule["attr"], None)
    for _ in range(ROUNDS_MAX):
        changed = False
        for rule in rules:
            for item in world.get(rule["table"], {}).values():
                value = _value(tables, world, rule, item)
                if value != item.get(rule["attr"], ABSENT):
                    changed = True
                    item.pop(rule["attr"], None)
                    if value != ABSENT:
                        item[rule["attr"]] = value
        if not changed:
            break
    return {
        table: {
            key: {rule["attr"]: item.get(rule["attr"], ABSENT) for rule in rules if rule["table"] == table}
            for key, item in rows.items()
        }
        for table, rows in world.items()
        if any(rule["table"] == table for rule in rules)
    }


def _value(tables: Any, world: Items, rule: Mapping[str, Any], item: Mapping[str, Any]) -> Any:
    if "copy" in rule:
        found = [
            row.get(rule["copy"]["attr"], ABSENT)
            for row in _walk(tables, world, rule["table"], item, rule["copy"]["path"])
        ]
        return found[0] if found and found[0] != ABSENT else rule.get("missing", ABSENT)
    if "agg" in rule:
        return _gathered(tables, world, rule, item)
    if "text" in rule:
        parts = [_part(tables, world, rule, item, part) for part in rule["text"]]
        return (rule.get("sep") or "").join(part for part in parts if part) or ABSENT
    if "key" in rule:
        fields = re.findall(r"\{(\w+)((?:\|\w+)*)\}", rule["key"])
        text = rule["key"]
        for name, formats in fields:
            if item.get(name) in (None, ""):
                return ABSENT
            value = str(item[name])
            for one in formats.split("|")[1:]:
                value = FORMAT[one](value)
            text = text.replace("{" + name + formats + "}", value, 1)
        return text
    return _tree(tables, world, rule, item)


def _tree(tables: Any, world: Items, rule: Mapping[str, Any], item: Mapping[str, Any]) -> Any:
    said, (key,) = rule["tree"], tables[rule["table"]]
    name = said.get("name", key)
    names: list[str] = []
    at: Mapping[str, Any] | None = item
    while at is not None:
        names[:0] = [str(at[name])] if at.get(name) is not None else []
        parent = at.get(said["parent"])
        if parent is None:
            return ABSENT if not names else said.get("lead", "") + said["sep"].join(names) + said.get("tail", "")
        at = world[rule["table"]].get(str(parent))
    return ABSENT


def _part(tables: Any, world: Items, rule: Mapping[str, Any], item: Mapping[str, Any], part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    if "agg" in part:
        found = _gathered(tables, world, {"table": rule["table"], **part}, item)
    elif "path" in part:
        rows = sorted(_walk(tables, world, rule["table"], item, part["path"]), key=lambda row: str(row["id"]))
        return (rule.get("sep") or "").join(str(row[part["attr"]]) for row in rows if row.get(part["attr"]))
    else:
        found = item.get(part["attr"], ABSENT)
    return "" if found in (ABSENT, None) else str(found)


def _gathered(tables: Any, world: Items, rule: Mapping[str, Any], item: Mapping[str, Any]) -> Any:
    kind = rule["agg"]
    rows = list(_walk(tables, world, rule["table"], item, rule["path"]))
    rows = [row for row in rows if _holds(row, rule.get("where") or {})]
    empty = rule.get("empty", NATURAL.get(kind, ABSENT))
    if not rows:
        return empty
    if kind == "count":
        return sum(_weight(rule, row) for row in rows)
    if kind == "list" and "of" in rule:
        rows = sorted(rows, key=lambda row: str(row["id"]))
        return [row[rule["of"]] for row in rows if row.get(rule["of"]) is not None]
    if kind in ("map", "list"):
        shown = {
            str(row["id"]): {name: row[name] for name in rule["fields"] if name in row}
            for row in sorted(rows, key=lambda row: str(row["id"]))
        }
        return shown if kind == "map" else list(shown.values())
    values = [row[rule["of"]] for row in rows if row.get(rule["of"]) is not None]
    if kind == "sum":
        return round(sum(values), 6)
    if not values:
        return empty
    return {"min": min, "max": max, "set": lambda found: sorted(set(found))}[kind](values)


def _weight(rule: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    if "weight_map" in rule:
        return rule["weight_map"].get(row.get(rule["weight"]), 1)
    return rule.get("weight", 1)


def _walk(
    tables: Any, world: Items, table: str, item: Mapping[str, Any], path: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    if not path:
        yield item
        return
    hop, *rest = path
    if "to" in hop:
        ids = item.get(hop["by"])
        for one in dict.fromkeys(map(str, ids if isinstance(ids, list) else [] if ids is None else [ids])):
            if (row := world.get(hop["to"], {}).get(one)) is not None:
                yield from _walk(tables, world, hop["to"], row, rest)
        return
    own = str(item[tables[table][0]])
    for row in list(world.get(hop["from"], {}).values()):
        held = row.get(hop["on"])
        if own in map(str, held if isinstance(held, list) else [held]) and _holds(row, hop.get("where") or {}):
            yield from _walk(tables, world, hop["from"], row, rest)


def _holds(row: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    for name, wanted in where.items():
        value = row.get(name)
        if isinstance(wanted, Mapping):
            for operator, operand in wanted.items():
                if operator == "ne":
                    if value == operand:
                        return False
                elif operator == "in":
                    if value not in operand:
                        return False
                elif value is None or not COMPARE[operator](value, operand):
                    return False
        elif value != wanted:
            return False
    return True
