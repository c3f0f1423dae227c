"""Attributes made of many items: maps of entries, counts, sums, extremes.

Each becomes one rule of ours over the items that point to their parent, which are at the end of backward hops. What is
wanted of items behind forward hops is copied onto the items that point to the parent, and the key too, without which
there is nothing at the end.

All but maps keep their books in a ledger, one table per scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sync_rules.model.values import Path, show_path
from tests.peers import conditions, ways
from tests.peers.builder import Builder, Target, path_of
from tests.peers.ways import ELEMENT, OWNER, Hop, Way

ENTRIES_MAX: Final = 1000
NEEDS: Final = {"map": {"fields"}, "count": set(), "sum": {"of"}, "min": {"of"}, "max": {"of"}}


def gather(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """Translate `agg`."""
    kind = rule["agg"]
    words = {"table", "attr", "agg", "path", *NEEDS[kind]}
    assert words <= rule.keys() <= words | {"where"}, rule
    way = ways.read(builder, into[0], rule["path"], rule.get("where"))
    back = _run(way.hops, forward=False)
    assert back
    assert back + _run(way.hops[back:], forward=True) == len(way.hops), rule
    if kind == "map":
        _entries(builder, into, way, rule["fields"])
    else:
        _booked(builder, into, way, kind, path_of(rule["of"]) if "of" in rule else None)


def _run(hops: Sequence[Hop], *, forward: bool) -> int:
    """How many hops in a row go this way."""
    return next((n for n, hop in enumerate(hops) if hop.forward is not forward), len(hops))


# ---------------------------------------------------------------- the rules
def _booked(builder: Builder, into: Target, way: Way, kind: str, of: Path | None) -> None:
    """A number of the items that the backward hops reach."""
    back = _run(way.hops, forward=False)
    entity, onward = way.table(back), way.hops[back:]
    counted = () if of is None else ways.bring(builder, entity, onward, of)
    rule: dict[str, Any] = {
        kind: show_path((entity, *counted)),
        "into": show_path((into[0], *into[1])),
        "link": ways.single(builder, entity, way.back(back)),
        **_where(_tests(builder, way, back)),
    }
    builder.rule(into, {**rule, "ledger": builder.table(("ledger",), {"PK": "S", "SK": "S"})})


def _entries(builder: Builder, into: Target, way: Way, fields: Sequence[str]) -> None:
    """A map of the items at the end."""
    assert len(way.hops) == 1 or _is_edge(way), way
    back = _run(way.hops, forward=False)
    entity, onward = way.table(back), way.hops[back:]
    shown = {show_path(ways.bring(builder, entity, onward, path_of(name))): name for name in fields}
    rule: dict[str, Any] = {
        "embed": entity,
        "into": show_path((into[0], *into[1])),
        "link": ways.single(builder, entity, way.back(back)),
        "by": f"{{{ELEMENT}}}" if onward else "|".join(f"{{{key}}}" for key in builder.keys_of(entity)),
        "fields": shown,
        "limit": {"items": ENTRIES_MAX},
        **_where(_tests(builder, way, back)),
    }
    builder.rule(into, rule)


def _is_edge(way: Way) -> bool:
    """True if the way is over a table of edges and ends at their far end."""
    return len(way.hops) == 2 and way.hops[0].refs == ((OWNER,),) and way.hops[1].refs == ((ELEMENT,),)


def _tests(builder: Builder, way: Way, back: int) -> list[str]:
    """Conditions on an item that points to the parent: those of the way, and that there is something at its end."""
    entity, onward = way.table(back), way.hops[back:]
    found = []
    if onward and not (entity in builder.carried and len(onward) == 1):
        end = builder.keys_of(onward[-1].table)[0]
        found.append(f"{conditions.name_of(ways.bring(builder, entity, onward, (end,)))} != `null`")
    for condition in way.conditions:
        if condition.after <= back:
            path = ways.bring(builder, entity, way.back(back, condition.after), condition.path)
        else:
            path = ways.bring(builder, entity, way.hops[back : condition.after], condition.path)
        found.append(condition.test(conditions.name_of(path)))
    return found


def _where(tests: Sequence[str]) -> dict[str, str]:
    return {"where": " && ".join(f"({test})" for test in tests)} if tests else {}
