"""Copies along a path, and deletion with the item referred to.

- a path of references becomes a chain of copies;
- `references: cascade` becomes a copy of the source's identity with `on_delete: delete`. It is always a rule of its
  own: `delete` on the copies themselves would keep a stale value on a target that points to a missing source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sync_rules.model.values import Path
from tests.peers import ways
from tests.peers.builder import Builder, Target

Raw = Mapping[str, Any]


def copy(builder: Builder, into: Target, path: Sequence[Raw], attribute: Path, **default: Any) -> None:
    """A copy along a path, perhaps with a value for what is missing at its end."""
    way = ways.read(builder, into[0], path)
    assert all(hop.forward for hop in way.hops)
    assert not way.conditions
    ways.copy(builder, into, way.hops, attribute, **default)


def cascade(builder: Builder, table: str, by: str, to: str) -> None:
    """Delete items with what they refer to."""
    (hop,) = ways.read(builder, table, [{"to": to, "by": by}]).hops
    helper = builder.helper(table, ("cascade", hop), (*hop.refs[0], "owner"))
    key = builder.keys_of(to)[0]
    builder.copy((table, helper), (to, (key,)), ways.single(builder, table, [hop]), on_delete="delete")
