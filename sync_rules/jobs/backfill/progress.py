"""The progress of a backfill, which goes through JSON: its totals, its position, and whether it is unfinished.

Invariant: a target counts once, however often it is checked. Each write counts as copied; otherwise the last check
decides. Units and items count each time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from sync_rules.adapters.state import Body, State
from sync_rules.model.errors import UserError
from sync_rules.model.items import Alteration, Outcome
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Step

HEAD: Final = "backfill"
UNREADABLE: Final = "the state of the backfill cannot be read: restart it with --restart"
Count = tuple[str, Outcome]


@dataclass
class Totals:
    """Counts of processed items, of items that concern a rule (`asked`), of outcomes and alterations by rule, and of
    read and write units. `levels` is the length of the longest path. Alterations count once for each write.
    """

    items: int = 0
    asked: int = 0
    outcomes: Counter[Count] = field(default_factory=Counter)
    reads: float = 0.0
    writes: float = 0.0
    levels: int = 0
    alterations: Counter[tuple[str, Alteration]] = field(default_factory=Counter)

    def add(self, other: Totals) -> None:
        """Add the totals of other targets, or of other rules."""
        self.outcomes.update(other.outcomes)
        self._spend(other)

    def look_again(self, later: Totals) -> None:
        """Add the totals of a later check of the same targets, by the same rules. A target that failed and is now right
        was written: only the answer was lost.
        """
        before, self.outcomes = self.outcomes, Counter(later.outcomes)
        for rule in {rule for rule, _ in before}:
            copied, right = before[rule, Outcome.COPIED], later.outcomes[rule, Outcome.RIGHT]
            newly_right = max(0, right - copied - before[rule, Outcome.RIGHT])
            # rather too many, which costs a round, than too few
            written = copied + min(newly_right, before[rule, Outcome.FAILED])
            self.outcomes[rule, Outcome.COPIED] += written
            self.outcomes[rule, Outcome.RIGHT] = max(0, right - written)
        self._spend(later)

    def _spend(self, other: Totals) -> None:
        self.items += other.items
        self.asked += other.asked
        self.reads += other.reads
        self.writes += other.writes
        self.levels = max(self.levels, other.levels)
        self.alterations.update(other.alterations)

    def count(self, *outcomes: Outcome, rules: frozenset[str] | None = None) -> int:
        """Return the count of these outcomes, over all rules or some."""
        return sum(
            count
            for (rule, outcome), count in self.outcomes.items()
            if outcome in outcomes and (rules is None or rule in rules)
        )

    def count_alterations(self, rules: frozenset[str] | None = None) -> dict[Alteration, int]:
        """Return the count of each alteration, over all rules or some."""
        found = dict.fromkeys(Alteration, 0)
        for (rule, each), count in self.alterations.items():
            found[each] += count if rules is None or rule in rules else 0
        return found

    def list_rules_with(self, outcome: Outcome) -> frozenset[str]:
        """List the names of the rules that had this outcome."""
        return frozenset(rule for (rule, found), count in self.outcomes.items() if found is outcome and count)

    def copy(self) -> Totals:
        """Return a copy that may be changed."""
        return replace(self, outcomes=Counter(self.outcomes), alterations=Counter(self.alterations))

    def body(self) -> Body:
        """Return the totals, ready for JSON."""
        outcomes = [[rule, outcome.value, count] for (rule, outcome), count in sorted(self.outcomes.items(), key=str)]
        alterations = [[rule, each.value, count] for (rule, each), count in sorted(self.alterations.items())]
        made = {"alterations": alterations} if alterations else {}
        others = {name: value for name, value in vars(self).items() if name != "alterations"}
        return {**others, "outcomes": outcomes, **made}

    @classmethod
    def of(cls, body: Body) -> Totals:
        """Return the totals from their JSON form."""
        outcomes = Counter({(rule, Outcome(word)): count for rule, word, count in body["outcomes"]})
        altered = body.get("alterations", ())  # earlier versions did not count them
        alterations = Counter({(rule, Alteration(word)): count for rule, word, count in altered})
        return cls(**{**body, "outcomes": outcomes, "alterations": alterations})


@dataclass(frozen=True)
class Position:
    """A step of the cascade, and its round. With `recording`, an item parked now is stuck, and gets a failure record.
    Before the last round, an item may be parked only because its source is not yet right.
    """

    step: int
    round: int = 0
    recording: bool = False


def make_first_position(step: int, steps: Sequence[Step]) -> Position:
    """Return the position of a step's first round. After the last step, the position has no work left."""
    return Position(step, recording=step < len(steps) and steps[step].max_rounds == 1)


def make_next_position(
    position: Position, steps: Sequence[Step], rules: Rules, ended: Totals, *, resumed: bool
) -> Position:
    """Return the position after a round with these totals. `resumed`: the run was interrupted, so its last writes may
    be missing from the totals.
    """
    if not position.recording:
        again = ended.count(Outcome.COPIED) or resumed or ended.count(Outcome.WAITING)  # for books, complete by now
        if again and position.round + 1 < _compute_max_rounds(steps[position.step], rules, ended):
            return Position(position.step, position.round + 1)
        if ended.count(Outcome.PARKED):
            return Position(position.step, position.round + 1, recording=True)
    return make_first_position(position.step + 1, steps)


def _compute_max_rounds(step: Step, rules: Rules, ended: Totals) -> int:
    """The rounds that a step may need. Each makes another level of a hierarchy right; after as many rounds as it has
    levels only changes of the application are left, and their stream records handle those.
    """
    some = [rules.rules[name] for name in step.names]
    if not any(rule.hierarchical for rule in some):
        return step.max_rounds
    return min(step.max_rounds, (ended.levels + 1) * sum(len(rule.nodes()) for rule in some) + 1)


def load_unfinished_head(state: State) -> dict[str, Any] | None:
    """Return the head of the unfinished backfill, or None if there is none. Raises StoreError, and UserError if it
    cannot be read.
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


def load_beginning(state: State) -> datetime:
    """Return the time at which the last backfill began, or now if the state lacks it. Raises StoreError."""
    found = (state.load(HEAD) or {}).get("began")
    return datetime.now(UTC) if found is None else datetime.fromisoformat(found)


def abandon(state: State) -> None:
    """Mark the unfinished backfill as done. Raises StoreError."""
    if (head := state.load(HEAD)) is not None:
        state.save(HEAD, {**head, "done": True})
