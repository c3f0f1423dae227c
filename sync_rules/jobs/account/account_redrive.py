"""A redrive in the account: each place with failures is a unit, processed in as many calls as it takes.

Invariant: each entry that a place held at the beginning is tried once. An entry that succeeds is removed; one that
fails again stays, and later calls skip it by the mark of their place. The document of a unit says when a call died: its
entries are hidden for a while, and the unit is then never reported as done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from sync_rules.adapters.s3 import OnFailureObjects
from sync_rules.adapters.sqs import FailedMessages
from sync_rules.adapters.state import LeasedState, SharedState
from sync_rules.jobs.account.protocol import (
    TIME_RESERVED_MS,
    Answer,
    Body,
    list_unfinished_units,
    load_units,
    report_leftovers,
)
from sync_rules.jobs.redrive.entries import RedriveCounts
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.model.errors import StoreError, UserError
from sync_rules.rules.ruleset import Rules

CURE: Final = "Run it again"
UNITS: Final = ("batches", "dead letters", "failures")  # the places of a deployed stack
ENTRY_LEAST_MS: Final = 120_000  # with less no further entry is begun: it would fail for want of time
LET_GO_MS: Final = 20  # for each message that a place has to release at the end
MARK_MAX_CHARS: Final = 250_000  # of a document, which has at most 400 KB: 25,000 messages that stay
TOO_MANY_STAY: Final = "TooManyStay: remove messages that you no longer need, or name other rules"

MarkedStore = FailedMessages | OnFailureObjects  # each continues after the one of an earlier call
Redrivers = Callable[[frozenset[str] | None, Callable[[], int]], Redriver]
"""Makes a Redriver for the rules of these titles, None for all, with the milliseconds left for an entry."""


@dataclass(eq=False)
class RedriveWork:
    """The Work of a redrive. `places` opens each place with failures by name. Each call continues at the mark that the
    last call saved.
    """

    rules: Rules
    redrivers: Redrivers
    places: Mapping[str, Callable[[str], MarkedStore]]
    state: SharedState
    remaining_ms: Callable[[], int] = field(kw_only=True)

    def begin(self, asked: Body, execution: str) -> Answer:
        known = {rule.title for rule in self.rules.rules.values()}
        if strange := sorted(set(asked["rules"]) - known):
            raise UserError(f"rule {strange[0]} is not in the deployed rules: correct --rule, or deploy first")
        units = sorted(self.places)
        run = {"execution": execution, "rules": asked["rules"]}
        return Answer(more=True, units=units, workers=len(units), run=run)

    def unit(self, unit: str, run: Body) -> bool:
        held = LeasedState(self.state)
        name = name_document(run["execution"], unit)
        before = held.load(name) or {"done": False, "lost": False, "mark": "", "tally": asdict(RedriveCounts())}
        if before["done"]:
            return True
        place = self.places[unit](before["mark"])
        died = _explain_death(place)
        # A call that began and did not end has died, and what it had in hand is hidden where this one looks.
        lost = before["lost"] or (bool(place.hidden_seconds) and before.get("begun", False))
        held.save(name, {**before, "lost": lost, "begun": True, "reason": died})
        redriver = self.redrivers(frozenset(run["rules"]) or None, lambda: self.remaining_ms() - TIME_RESERVED_MS)
        try:
            try:
                ended = redriver.take(
                    place, enough=lambda: self.remaining_ms() < ENTRY_LEAST_MS + LET_GO_MS * place.held_count
                )
                redriver.rest()
            finally:
                place.close()
        except (StoreError, UserError) as error:
            held.save(name, {**before, "lost": lost or place.held_count > 0, "begun": False, "reason": str(error)})
            raise
        lost = lost or place.held_count > 0
        reason = died if lost and ended else ""
        if not ended and len(place.mark) > MARK_MAX_CHARS:
            reason = TOO_MANY_STAY
        tally = {word: count + before["tally"].get(word, 0) for word, count in asdict(redriver.tally).items()}
        done = ended or bool(reason)
        body = {"done": done, "lost": lost, "begun": False, "reason": reason, "mark": "" if done else place.mark}
        held.save(name, {**body, "tally": tally})
        return done

    def end(self, run: Body) -> Answer:
        left = list_unfinished_units(sorted(self.places), load_documents(self.state, run["execution"], self.places))
        return report_leftovers(left, CURE) if left else Answer()


def _explain_death(place: MarkedStore) -> str:
    """The reason to leave a place whose call died, or could not release its entries."""
    if not place.hidden_seconds:
        return "a call died"
    minutes = -(-place.hidden_seconds // 60)
    return f"a call died with messages in hand; they come back within {minutes} minutes: run it again then"


def name_document(execution: str, unit: str) -> str:
    """Return the name of the state document that holds the outcome of one unit: a place with failures."""
    return f"redrive/{execution}/{unit}"


def load_documents(state: SharedState, execution: str, units: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the outcome of each unit so far. Raises StoreError."""
    return load_units(state, {unit: name_document(execution, unit) for unit in units})


def add_counts(bodies: Iterable[Body]) -> RedriveCounts:
    """Return the sum of the counts in the documents of all units."""
    tally = RedriveCounts()
    for body in bodies:
        for word, count in body["tally"].items():
            setattr(tally, word, getattr(tally, word) + count)
    return tally
