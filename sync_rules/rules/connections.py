"""A rule's link as data: the items that point, the items that they name, and the attributes that the rule reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Link
from sync_rules.model.values import Item, Path


@dataclass(frozen=True)
class Connection:
    """Items of `pointing` name items of `named` by `link`. `reads` has the attributes that make the rule's value, each
    with the entity whose items hold it, and `conditions` those that its conditions read. `includes` is false for an
    item of `pointing` that the rule leaves out, by its own condition or because a sparse index lacks it. `optional`: an
    item that names nothing is an ordinary item.
    """

    pointing: Entity
    named: Entity
    link: Link
    reads: tuple[tuple[Entity, Path], ...]
    includes: Callable[[Item], bool]
    conditions: tuple[tuple[Entity, Path], ...] = ()
    optional: bool = False
