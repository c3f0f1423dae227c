"""Rule kinds: one file each, all of one Protocol, listed in one registry.

Law: a kind is pure. It decides which records matter, what is true of a target given its source, and under which guard
that may be written; it reads no store, no clock and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from sync_rules.attributes import AttributeValue, Item, Path
from sync_rules.kinds import copy
from sync_rules.model import Change, Condition
from sync_rules.rules import CopyRule, Rule


class Kind(Protocol):
    """What the pipeline asks of a kind of rule."""

    def pushes(self, rule: Rule, change: Change) -> bool:
        """Whether this record of a source is a reason to look at all of its targets."""
        ...

    def pulls(self, rule: Rule, change: Change) -> bool:
        """Whether this record of a target is a reason to look at it: whoever wrote it, this pipeline included."""
        ...

    def desired(self, rule: Rule, source: Item | None, target: Item) -> Mapping[Path, AttributeValue | None] | None:
        """What the target must hold at each path (None: nothing there); None in all when the rule says nothing."""
        ...

    def deletes(self, rule: Rule, target: Item) -> bool:
        """Whether this target is deleted when its source is."""
        ...

    def link_guard(self, rule: Rule, image: Item) -> tuple[Condition, ...]:
        """Still the same source, and still a target `where` speaks of."""
        ...

    def source_guard(self, rule: Rule, source: Item | None) -> tuple[Condition, ...]:
        """The source still says what it said; for transactions."""
        ...


KINDS: Final[Mapping[type[Rule], Kind]] = MappingProxyType({CopyRule: copy})
