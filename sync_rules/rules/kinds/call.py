"""call: a user's function, called once per change.

Invariant: the record alone decides if a change matters. No rule reads what the function writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from sync_rules.model.item_change import When
from sync_rules.model.items import Call, Change
from sync_rules.model.values import Path, has_changed
from sync_rules.model.where import Where
from sync_rules.rules.description import Drawing
from sync_rules.rules.families import EffectRule
from sync_rules.rules.rule import Blocked, let_in

Since = Literal["deployment", "horizon"]
ALWAYS: Final[frozenset[When]] = frozenset({"created", "changed", "deleted"})


@dataclass(frozen=True, eq=False, kw_only=True)
class CallRule(EffectRule):
    """A rule that calls `function` (module.function) for changes of its source. An item counts as changed if a path of
    `watch` changed, or anything if `watch` is empty.
    """

    function: str
    when: frozenset[When] = ALWAYS
    watch: tuple[Path, ...] = ()
    where: Where | None = None
    since: Since = "deployment"
    kind = "call"

    @cached_property
    def watched_paths(self) -> tuple[Path, ...]:
        return tuple(self.source.locate_field(path) for path in self.watch)

    def body(self) -> Mapping[str, object]:
        body = {
            "function": self.function,
            "when": sorted(self.when),
            "watch": sorted(self.watch),
            "where": self.where and self.where.text,
        }
        return body if self.since == "deployment" else {**body, "since": self.since}

    @property
    def calls(self) -> str:
        return self.function

    @property
    def calls_from_horizon(self) -> bool:
        return self.since == "horizon"

    def draw(self) -> Drawing:
        return Drawing((self.function, "function"), self.watch, (), (f"when {', '.join(sorted(self.when))}",))

    def effect(self, change: Change) -> Call | None:
        """Return the call for a change. The rule must apply to the new image, or to the old image of a deleted item."""
        if self._classify_change(change) not in self.when:
            return None
        return self.retry(Call(self.name, self.function, change))

    def retry(self, asked: Call) -> Call | None:
        """Return the call, with the rule's present function, if its present condition holds."""
        item = asked.change.old if asked.change.new is None else asked.change.new
        lets_in = item is not None and let_in(self.where, item, self.source)
        unsure = lets_in.reason if isinstance(lets_in, Blocked) else ""
        if not lets_in:
            return None
        return replace(asked, rule=self.name, function=self.function, unsure=unsure, former=self.former_name or "")

    def _classify_change(self, change: Change) -> When | None:
        if change.new is None:
            return "deleted"
        if change.old is None:
            return "created"
        return "changed" if not self.watch or has_changed(change.old, change.new, self.watched_paths) else None
