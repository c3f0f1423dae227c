"""Copies along a path, and deletion with the item referred to.

- a path of references becomes a chain of copies;
- a path that goes backward must end at one item at most, as a one-to-one relation does: what it holds is embedded under
  one name, and copied from there;
- `references: cascade` becomes a copy of the source's identity with `on_delete: delete`. It is always a rule of its
  own: `delete` on the copies themselves would keep a stale value on a target that points to a missing source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sync_rules.model.values import Path, show_path
from tests.peers import conditions, ways
from tests.peers.builder import Builder, Target, UnsupportedError, path_of
from tests.peers.ways import Hop, Way

Raw = Mapping[str, Any]
ONE: Final = "only"  # the name under which the one item at the end of a path is embedded
ENTRIES_MAX: Final = 1000


def copy(
    builder: Builder, into: Target, path: Sequence[Raw], attribute: Path, where: Any = None, **default: Any
) -> None:
    """A copy along a path, perhaps with a value for what is missing at its end. Raises UnsupportedError."""
    for table, hop in zip([into[0], *(_table(hop) for hop in path)], path, strict=False):
        if "to" in hop and isinstance(hop["by"], str) and builder.is_list(table, path_of(hop["by"])):
            raise UnsupportedError("copy through a list of references")
    follow(builder, into, ways.read(builder, into[0], path, where), attribute, **default)


def cascade(builder: Builder, table: str, by: Any, to: str) -> None:
    """Delete items with what they refer to."""
    if isinstance(by, str) and builder.is_list(table, path_of(by)):
        raise UnsupportedError("references: a list of references")
    (hop,) = ways.read(builder, table, [{"to": to, "by": by}]).hops
    helper = builder.helper(table, ("cascade", hop), (*hop.refs[0], "owner"))
    key = builder.keys_of(to)[0]
    builder.copy((table, helper), (to, (key,)), ways.single(builder, table, [hop]), on_delete="delete")


def follow(builder: Builder, into: Target, way: Way, attribute: Path, **default: Any) -> None:
    """A copy along hops that each lead to one item at most."""
    table = into[0]
    forward = next((n for n, hop in enumerate(way.hops) if not hop.forward), len(way.hops))
    rest = way.part(forward)
    if rest.hops:
        attribute = _only(builder, rest, attribute)
    tests = [
        condition.test(conditions.name_of(ways.bring(builder, table, way.hops[: condition.after], condition.path)))
        for condition in way.conditions
        if condition.after <= forward
    ]
    where = {"where": " && ".join(f"({test})" for test in tests)} if tests else {}
    ways.copy(builder, into, way.hops[:forward], attribute, **where, **default)


def _only(builder: Builder, way: Way, attribute: Path) -> Path:
    """The path, on items that one item at most points to, of an attribute at the end of the way from them."""
    first, *_ = way.hops
    table, key = way.start, ("only", way.hops, repr(way.conditions), attribute)
    known = (table, *key) in builder.made
    helper = builder.helper(table, key, (first.table, *attribute, ONE))
    shown = _end(builder, way.part(1), attribute)
    if not known:
        _embed_only(builder, (table, helper), way, shown)
    return (*helper, ONE, shown[-1])


def _end(builder: Builder, way: Way, attribute: Path) -> Path:
    """The attribute by which the item after the first hop holds what the rest of the way leads to."""
    if not way.hops:
        return attribute
    helper = builder.helper(way.start, ("end", way.hops, attribute), (*way.hops[0].refs[0], *attribute, "end"))
    follow(builder, (way.start, helper), way, attribute)
    return helper


def _embed_only(builder: Builder, into: Target, way: Way, shown: Path) -> None:
    hop = way.hops[0]
    name = builder.helper(hop.table, ("only name",), ("only", "name"))
    builder.rule((hop.table, name), {"derive": show_path((hop.table, *name)), "as": ONE})
    tests = [condition for condition in way.conditions if condition.after == 1]
    builder.rule(
        into,
        {
            "embed": hop.table,
            "into": show_path((into[0], *into[1])),
            "link": ways.single(builder, hop.table, [Hop(way.start, hop.refs)]),
            "by": f"{{{name[0]}}}",
            "fields": {show_path(shown): shown[-1]} | {key: key for key in builder.keys_of(hop.table)},
            "limit": {"items": ENTRIES_MAX},
            "where": " && ".join([name[0], *(f"({one.test(conditions.name_of(one.path))})" for one in tests)]),
        },
    )


def _table(hop: Raw) -> str:
    return str(hop["to"] if "to" in hop else hop["from"])
