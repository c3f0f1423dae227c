"""What a backfill came to so far, in numbers that go through JSON.

Law: a target counts once, however often it is looked at: as copied for each write, else as the last look found it.
Units and items are what was spent, and count each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sync_rules.adapters.state import Body, State
from sync_rules.model.errors import UserError
from sync_rules.model.items import Outcome
from sync_rules.rules.order import Step
from sync_rules.rules.ruleset import Rules

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


@dataclass(frozen=True)
class Position:
    """The step down the cascade, and the round in it. `recording`: what is parked now is stuck, so failure records say
    so. In a round that others follow, it may only have come too early.
    """

    step: int
    round: int = 0
    recording: bool = False


def start_of(step: int, steps: Sequence[Step]) -> Position:
    """The first round of a step; behind the last one nothing is left to do."""
    return Position(step, recording=step < len(steps) and steps[step].max_rounds == 1)


def next_position(position: Position, steps: Sequence[Step], rules: Rules, ended: Totals, *, resumed: bool) -> Position:
    """Where to go after a round that came to this much. `resumed`: what was written just before it was broken off is
    counted nowhere.
    """
    if not position.recording:
        if (ended.wrote or resumed) and position.round + 1 < _max_rounds(steps[position.step], rules, ended):
            return Position(position.step, position.round + 1)
        if ended.count(Outcome.PARKED):
            return Position(position.step, position.round + 1, recording=True)
    return start_of(position.step + 1, steps)


def _max_rounds(step: Step, rules: Rules, ended: Totals) -> int:
    """Each round makes another level of a hierarchy right. Once there have been more rounds than it has levels, what is
    still being written is what the application changes meanwhile, and the records of that see to it.
    """
    some = [rules.rules[name] for name in step.names]
    if not any(rule.hierarchical for rule in some):
        return step.max_rounds
    return min(step.max_rounds, (ended.levels + 1) * sum(len(rule.nodes()) for rule in some) + 1)


HEAD: Final = "backfill"
UNREADABLE: Final = "the state says how far a backfill is in words that cannot be read: begin anew with --restart"


def unfinished(state: State) -> dict[str, Any] | None:
    """The backfill that was begun and not finished, if there is one.

    Raises:
        UserError: when what is there cannot be read.
        StoreError: when the state does not answer.
    """
    head = state.load(HEAD)
    if head is None or head.get("done") is True:
        return None
    try:
        Position(**head["place"])
        for name in ("steps", "rounds"):
            Totals.of(head[name])
        readable = isinstance(head["run"], str) and isinstance(head["scope"], dict)
    except (KeyError, TypeError, ValueError, AttributeError):
        readable = False
    if not readable:
        raise UserError(UNREADABLE)
    return head


def abandon(state: State) -> None:
    """Forget the backfill that was begun and not finished. Raises StoreError."""
    if (head := state.load(HEAD)) is not None:
        state.save(HEAD, {**head, "done": True})
