"""The results of a verify, each finding and the figures, and how a sample is drawn.

Invariant: repaired drift stays counted as drift; what came right or was kept does not. Figures are of (rule, target)
pairs, and nothing here holds a value of an item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from secrets import randbelow
from typing import Any, Final

from sync_rules.audit.compare import Comparison, Difference, Drift
from sync_rules.model.items import Alteration
from sync_rules.rules.selection import Share

SAMPLE_SEGMENTS: Final = 1_000  # of a sampled scan: a share is a number of these
SEEDS: Final = 1_000_000
BY_RULE: Final = ("right", "kept", "orphaned", "lag", "drift", "repaired")  # counters of a Tally
PAIRED: Final[Mapping[str, Callable[[str], Any]]] = {"unmended": Drift, "hopeless": Drift, "alterations": Alteration}


@dataclass(frozen=True)
class DriftFinding:
    """One drift, and whether it was repaired. `came_right`: a report listed it, but it is right or deleted by now."""

    difference: Difference
    repaired: bool = False
    came_right: bool = False


@dataclass
class Tally:
    """The figures of a verify by rule, in (rule, target) pairs. `right`, `kept`, `lag` come from the last check of a
    rule; repaired drift stays counted as drift. `orphaned`: the kept copies without a source; `waiting`: copies not
    compared before a backfill of their rule; `alterations`: what repairs did to values.
    """

    right: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    orphaned: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)
    lag: Counter[str] = field(default_factory=Counter)
    drift: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    unmended: Counter[tuple[str, Drift]] = field(default_factory=Counter)  # what is left, by rule and kind
    hopeless: Counter[tuple[str, Drift]] = field(default_factory=Counter)  # of that, what no repair can repair
    alterations: Counter[tuple[str, Alteration]] = field(default_factory=Counter)
    items: int = 0

    @property
    def remaining_count(self) -> int:
        """Number of drifted values that are not repaired."""
        return self.drift.total() - self.repaired.total()

    def body(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        paired = {
            name: [[rule, kind.value, count] for (rule, kind), count in getattr(self, name).items()] for name in PAIRED
        }
        waiting = {"waiting": dict(self.waiting)} if self.waiting else {}
        return {"items": self.items, **{name: dict(getattr(self, name)) for name in BY_RULE}, **waiting, **paired}

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Tally:
        """Return the figures from their JSON form."""
        counters: dict[str, Any] = {name: Counter(body[name]) for name in BY_RULE}
        counters["waiting"] = Counter(body.get("waiting", {}))
        for name, kind in PAIRED.items():  # earlier versions counted no alterations
            counters[name] = Counter({(rule, kind(word)): count for rule, word, count in body.get(name, ())})
        return cls(**counters, items=body["items"])

    def include(self, other: Tally) -> None:
        """Add the figures of another call."""
        for name in (*BY_RULE, "waiting", *PAIRED):
            getattr(self, name).update(getattr(other, name))
        self.items += other.items

    def take_out(self, rule: str, drift: Drift, *, repaired: bool) -> None:
        """Subtract one drift of a part that was counted twice."""
        self.drift[rule] -= 1
        self.repaired[rule] -= repaired
        self.unmended[rule, drift] -= not repaired
        if drift is Drift.STUCK and not repaired:  # of parts, nothing else is hopeless
            self.hopeless[rule, drift] -= 1

    def wrong(self, rule: str) -> int:
        """Return the number of a rule's unrepaired drifts that a repair could fix. Stuck copies are not counted."""
        return sum(n for (name, drift), n in self.unmended.items() if name == rule and drift is not Drift.STUCK)

    def count_targets(self, rule: str) -> int:
        """Return how many targets of a rule were checked."""
        return sum(counter[rule] for counter in (self.right, self.kept, self.waiting, self.lag, self.drift))

    def count_alterations(self, rule: str | None = None) -> dict[Alteration, int]:
        """Return the number of values that repairs altered, of one rule or of all."""
        of = [(each, count) for (name, each), count in self.alterations.items() if rule in (None, name)]
        return {each: total for each in Alteration if (total := sum(count for one, count in of if one is each))}

    def add(self, comparison: Comparison) -> None:
        """Add what one check found right or kept."""
        self.right.update(comparison.right)
        self.kept.update(comparison.kept)
        self.orphaned.update(comparison.orphaned)
        self.waiting.update(comparison.waiting)

    def count_drift(self, one: Difference, *, repaired: bool) -> DriftFinding:
        self.drift[one.rule] += 1
        self.repaired[one.rule] += repaired
        self.unmended[one.rule, one.drift] += not repaired
        self.hopeless[one.rule, one.drift] += not repaired and not one.repairable
        return DriftFinding(one, repaired)

    def count_repaired_row(self, one: Difference) -> DriftFinding:
        """Count a report row whose value is right now."""
        self.right[one.rule] += 1
        return DriftFinding(one, came_right=True)

    def start_over(self, rule: str) -> None:
        """Forget the results of a rule before all its targets are checked again."""
        for counter in (self.right, self.kept, self.orphaned, self.waiting, self.lag):
            del counter[rule]
        self.drift[rule] = self.repaired[rule]
        for left in (self.unmended, self.hopeless):
            for key in [key for key in left if key[0] == rule]:
                del left[key]


def choose_share(percent: float | None, seed: int | None, workers: int) -> tuple[Share, int | None]:
    """Return the segments to read: one for each worker, or a sample drawn by the seed, and the seed."""
    if percent is None or percent == 100:  # noqa: PLR2004 - percent
        return Share(workers, tuple(range(workers))), None
    seed = randbelow(SEEDS) if seed is None else seed
    numbers = draw_segments(percent, Random(seed))  # noqa: S311 - a guess gains nothing
    return Share(SAMPLE_SEGMENTS, tuple(sorted(numbers))), seed


def draw_segments(percent: float, random: Random) -> tuple[int, ...]:
    """Draw the segments of a sample, at least one, in random order."""
    count = min(SAMPLE_SEGMENTS, max(1, round(SAMPLE_SEGMENTS * percent / 100)))
    return tuple(random.sample(range(SAMPLE_SEGMENTS), count))
