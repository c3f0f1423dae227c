"""What a plan is: how the rules stand to those applied before, what each would do, and what that takes.

Law: figures, keys and paths, never a value. Those of a sample are scaled up to the whole, and are estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sync_rules.audit.findings import Share
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Path
from sync_rules.rules.ruleset import Rules

UNCHANGED: Final = "unchanged"
PARTITION_MAX_UNITS: Final = 1_000  # write units per second: Developer Guide, "Designing partition keys"


# ---------------------------------------------------------------- since the last apply
@dataclass(frozen=True)
class Since:
    """How the rules of a file stand to those that were last brought in line, by their names in the file."""

    new: frozenset[str]
    changed: frozenset[str]
    unchanged: frozenset[str]
    gone: frozenset[str]

    def word(self, title: str) -> str:
        """What a rule of the file is."""
        return "new" if title in self.new else "changed" if title in self.changed else UNCHANGED


def since(rules: Rules, now: Mapping[str, str], applied: Mapping[str, str]) -> Since:
    """Compare fingerprints of now with those applied. What only acts on changes is never brought in line."""
    kept = {rule.title for rule in rules.rules.values() if rule.swept}
    known = kept & applied.keys()
    unchanged = frozenset(title for title in known if now[title] == applied[title])
    gone = applied.keys() - {rule.title for rule in rules.rules.values()}
    return Since(frozenset(kept - known), frozenset(known - unchanged), unchanged, frozenset(gone))


# ---------------------------------------------------------------- figures
@dataclass(frozen=True)
class RuleFigures:
    """What a rule would do, in (rule, target) pairs or parts. `reasons`: why how many are parked."""

    looked_at: float = 0
    to_write: float = 0
    right: float = 0
    kept: float = 0
    parked: float = 0
    refused: float = 0
    write_units: float = 0.0
    reasons: Mapping[str, float] = field(default_factory=dict)

    def times(self, factor: float) -> RuleFigures:
        """The figures of a sample as those of the whole."""
        numbers = {name: value * factor for name, value in vars(self).items() if name != "reasons"}
        return RuleFigures(**numbers, reasons={reason: count * factor for reason, count in self.reasons.items()})


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One item that a rule would write in the write of this number, which may have several: its key and paths, never a
    value.
    """

    number: int
    rule: str
    does: str
    key: ItemKey
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Plan:
    """What a backfill would do. Of a share, everything but `fan_outs` and `hottest` is scaled up to the whole."""

    rules: Mapping[str, RuleFigures]
    items: float
    writes: float
    read_units: Mapping[str, float]
    write_units: Mapping[str, float]
    fan_outs: Sequence[tuple[tuple[str, ItemKey], float]]  # of a rule, a source, and how many targets name it
    hottest: Sequence[tuple[ItemKey, float]]  # of a table, a partition key, and its write units
    share: Share

    @property
    def reads(self) -> float:
        """Read units, in all tables."""
        return sum(self.read_units.values())

    @property
    def written(self) -> float:
        """Write units, in all tables."""
        return sum(self.write_units.values())

    @property
    def hottest_seconds(self) -> float:
        """How long the hottest partition key takes at least, whatever the rate."""
        return self.hottest[0][1] / PARTITION_MAX_UNITS if self.hottest else 0.0

    def seconds(self, rate: float) -> float:
        """How long the writes take at so many units a second, 0 for no limit. Reads may take longer."""
        return max(self.written / rate if rate else 0.0, self.hottest_seconds)
