"""Copies over one hop or several, and deletion with the item referred to.

Invariant: a path that cannot be followed to its end makes no rule at all.

- a path of several hops becomes a chain: each item on the way holds a copy of the next hop's value;
- `references: cascade` becomes a copy of the source's identity with `on_delete: delete`. It is always a rule of its
  own: `delete` on the copies themselves would keep a stale value on a target that points to a missing source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sync_rules.model.values import Path
from tests.peers.builder import Builder, Target, UnsupportedError, path_of

Hop = Mapping[str, Any]


def copy(builder: Builder, into: Target, path: Sequence[Hop], attribute: Path, **default: Any) -> None:
    """A copy along a path, perhaps with a value for what is missing at its end. Raises UnsupportedError, before any rule is made of it."""
    table = into[0]
    for hop in path:
        _check(builder, table, hop)
        table = hop["to"]
    _follow(builder, into, path, attribute, **default)


def cascade(builder: Builder, table: str, by: str, to: str) -> None:
    """Delete items with what they refer to."""
    hop = {"to": to, "by": by}
    _check(builder, table, hop)
    helper = builder.helper(table, ("cascade", by, to), (*path_of(by), "owner"))
    link = builder.link(table, path_of(by), to)
    builder.copy((table, helper), (to, (builder.id_of(to),)), link, on_delete="delete")


def _check(builder: Builder, table: str, hop: Hop) -> None:
    if "from" in hop:
        raise UnsupportedError("copy from many items")
    if "where" in hop:
        raise UnsupportedError("copy with `where` on a hop")
    builder.id_of(hop["to"])
    if any(isinstance(value, list) for value in builder.values(table, path_of(hop["by"]))):
        raise UnsupportedError("copy through a list of references")


def _follow(builder: Builder, into: Target, path: Sequence[Hop], attribute: Path, **default: Any) -> None:
    hop, *rest = path
    if rest:
        attribute = _on_the_way(builder, hop["to"], rest, attribute)
    link = builder.link(into[0], path_of(hop["by"]), hop["to"])
    builder.copy(into, (hop["to"], attribute), link, on_delete="clear", **default)


def _on_the_way(builder: Builder, table: str, path: Sequence[Hop], attribute: Path) -> Path:
    """The attribute by which an item in the middle of a path hands on what comes after it."""
    key = ("chain", tuple(str(sorted(hop.items())) for hop in path), attribute)
    known = (table, *key) in builder.made
    helper = builder.helper(table, key, (*path_of(path[0]["by"]), *attribute, "copy"))
    if not known:
        _follow(builder, (table, helper), path, attribute)
    return helper
