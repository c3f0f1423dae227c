"""What a backfill came to so far, in numbers that go through JSON.

Law: a target counts once, however often it is looked at: as copied for each write, else as the last look found it.
Units and items are what was spent, and count each time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from sync_rules.adapters.state import Body
from sync_rules.model.items import Outcome

Count = tuple[str, Outcome]


@dataclass
class Totals:
    """Items gone over, those a rule was asked about, outcomes by rule, read and write units spent. `levels`: how many
    the longest path had that was seen.
    """

    items: int = 0
    asked: int = 0
    outcomes: Counter[Count] = field(default_factory=Counter)
    reads: float = 0.0
    writes: float = 0.0
    levels: int = 0

    def add(self, other: Totals) -> None:
        """Take in what other targets, or other rules, came to."""
        self.outcomes.update(other.outcomes)
        self._spend(other)

    def look_again(self, later: Totals) -> None:
        """Take in what another look at the same targets, by the same rules, came to."""
        copied = {rule: count for (rule, outcome), count in self.outcomes.items() if outcome is Outcome.COPIED}
        self.outcomes = Counter(later.outcomes)
        for rule, count in copied.items():
            self.outcomes[rule, Outcome.COPIED] += count
            self.outcomes[rule, Outcome.RIGHT] = max(0, self.outcomes[rule, Outcome.RIGHT] - count)
        self._spend(later)

    def _spend(self, other: Totals) -> None:
        self.items += other.items
        self.asked += other.asked
        self.reads += other.reads
        self.writes += other.writes
        self.levels = max(self.levels, other.levels)

    def count(self, *outcomes: Outcome, rules: frozenset[str] | None = None) -> int:
        """How often these outcomes occurred, over all rules or over some."""
        return sum(
            count
            for (rule, outcome), count in self.outcomes.items()
            if outcome in outcomes and (rules is None or rule in rules)
        )

    def rules_with(self, outcome: Outcome) -> frozenset[str]:
        """The rules that had this outcome."""
        return frozenset(rule for (rule, found), count in self.outcomes.items() if found is outcome and count)

    @property
    def wrote(self) -> int:
        """Copies written."""
        return self.count(Outcome.COPIED)

    def copy(self) -> Totals:
        """The same numbers, to go on with."""
        return replace(self, outcomes=Counter(self.outcomes))

    def body(self) -> Body:
        """As JSON."""
        outcomes = [[rule, outcome.value, count] for (rule, outcome), count in sorted(self.outcomes.items(), key=str)]
        return {**vars(self), "outcomes": outcomes}

    @classmethod
    def of(cls, body: Body) -> Totals:
        """From JSON."""
        outcomes = Counter({(rule, Outcome(word)): count for rule, word, count in body["outcomes"]})
        return cls(**{**body, "outcomes": outcomes})
