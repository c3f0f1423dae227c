"""The figures of a plan: which rules are new or changed, what each would do, and what that costs.

Invariant: a plan holds figures, keys and paths, but never a value. Figures from a sample are estimates for the whole
table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sync_rules.model.items import Alteration, ItemKey
from sync_rules.model.sizes import PARTITION_MAX_WRITE_UNITS
from sync_rules.model.values import Path, has_overlap, show_path
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share

UNCHANGED: Final = "unchanged"


# ---------------------------------------------------------------- since the last apply
@dataclass(frozen=True)
class Since:
    """The rules of a file compared with those last applied, by their titles."""

    new: frozenset[str]
    changed: frozenset[str]
    unchanged: frozenset[str]
    gone: frozenset[str]

    def word(self, title: str) -> str:
        return "new" if title in self.new else "changed" if title in self.changed else UNCHANGED


def describe_written_links(rules: Rules) -> Mapping[str, Mapping[Path, Collection[str]]]:
    """Describe the relations that end when a rule takes away the value of a link, by the name of the rule and the path
    of the link.
    """
    found: defaultdict[str, defaultdict[Path, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    linked = ((rule, one) for rule in rules.rules.values() if (one := rule.connection) is not None)
    for other, one in linked:
        for path in (ref.path for _, ref in one.link):
            end = f"{one.pointing.name}.{show_path(path)} then names no {one.named.name} (rule {other.title})"
            for rule in rules.into_target(one.pointing):
                if any(has_overlap(copy, path) for copy in rule.copies):
                    found[rule.name][path][end] = None
    return found


def compare_fingerprints(rules: Rules, now: Mapping[str, str], applied: Mapping[str, str]) -> Since:
    """Compare the current fingerprints with the applied fingerprints. Rules that only act on changes are never
    applied.
    """
    kept = {rule.title for rule in rules.rules.values() if rule.swept_entities}
    known = kept & applied.keys()
    unchanged = frozenset(title for title in known if now[title] == applied[title])
    gone = applied.keys() - {rule.title for rule in rules.rules.values()}
    return Since(frozenset(kept - known), frozenset(known - unchanged), unchanged, frozenset(gone))


# ---------------------------------------------------------------- figures
@dataclass(frozen=True)
class RuleFigures:
    """The figures of one rule, in (rule, target) pairs or parts. `reasons` counts the parked pairs by reason.
    `alterations` counts the values that its writes set, replace, zero or remove.
    """

    looked_at: float = 0
    to_write: float = 0
    right: float = 0
    kept: float = 0
    parked: float = 0
    refused: float = 0
    write_units: float = 0.0
    reasons: Mapping[str, float] = field(default_factory=dict)
    alterations: Mapping[Alteration, float] = field(default_factory=dict)
    ended: Mapping[str, float] = field(default_factory=dict)

    def times(self, factor: float) -> RuleFigures:
        """Return the figures of a sample, multiplied to those of the whole."""
        scaled: dict[str, Any] = {
            name: {key: count * factor for key, count in value.items()}
            if isinstance(value, Mapping)
            else value * factor
            for name, value in vars(self).items()
        }
        return RuleFigures(**scaled)


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One item that a rule would write. Items with the same `number` share one write. `alterations` maps each path
    whose value changes to the kind of change.
    """

    number: int
    rule: str
    does: str
    key: ItemKey
    paths: tuple[Path, ...]
    alterations: Mapping[Path, Alteration] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The figures of a backfill. Figures of a sample are scaled up to the whole, except `fan_outs` and `hottest`."""

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
        """The read units of all tables."""
        return sum(self.read_units.values())

    @property
    def total_write_units(self) -> float:
        return sum(self.write_units.values())

    @property
    def hottest_seconds(self) -> float:
        """The least number of seconds that the hottest partition key needs, at any rate."""
        return self.hottest[0][1] / PARTITION_MAX_WRITE_UNITS if self.hottest else 0.0

    def seconds(self, rate: float) -> float:
        """Return the seconds that the writes take at a rate in units a second; rate 0 means no limit. Reads may take
        longer.
        """
        return max(self.total_write_units / rate if rate else 0.0, self.hottest_seconds)
