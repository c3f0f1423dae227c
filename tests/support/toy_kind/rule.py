"""latest: a field of the newest child, on the parent. What would be `rules/kinds/latest.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sync_rules.model.numbers import read_text
from sync_rules.model.values import Item, Path, get
from sync_rules.model.writes import Desired
from sync_rules.rules.kinds.gathered_rule import GatheredRule


@dataclass(frozen=True, eq=False, kw_only=True)
class LatestRule(GatheredRule):
    """`shows` is the field of the child whose field `by` is the greatest text."""

    shows: Path
    by: Path
    kind = "latest"

    @property
    def reads(self) -> Iterable[Path]:
        return (self.shows, self.by)

    def body(self) -> Mapping[str, object]:
        return {**super().body(), "shows": self.shows, "by": self.by}

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired:
        """The field of the newest child; nothing without children."""
        views = [self.source.view(child, (self.by, self.shows)) for _, child in self.in_key_order(sources)]
        newest = max(views, key=lambda view: read_text(get(view, self.by)) or "", default=None)
        return {self.into: None if newest is None else get(newest, self.shows)}
