"""A redrive in the account: each place where failures lie is a unit, worked through in as many calls as it takes.

Law: what lay there when it began is tried once. What succeeds is removed; what fails again stays, and is left out by
the calls that follow, which know it by the mark of their place; so the last is the one that comes to the end of it.
A call that dies leaves word of that: what it had in hand is hidden for a while, and nobody says that all is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, Protocol

from sync_rules.adapters.state import LeasedState, SharedState
from sync_rules.jobs.account.protocol import TIME_RESERVED_MS, Answer, Body, left_of, require_deployed, require_time
from sync_rules.jobs.redrive.redriver import Redriver, Tally
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.failed_entries import Entry, Place
from sync_rules.rules.ruleset import Rules

CURE: Final = "Run it again"
UNITS: Final = ("batches", "dead letters", "failures")  # the places of a deployed stack
ENTRY_LEAST_MS: Final = 120_000  # no entry but the first is begun with less: it would only fail for want of time
LET_GO_MS: Final = 20  # for each message that a place has to let go of at the end
MARK_MAX_CHARS: Final = 250_000  # of a document, which has at most 400 KB: 25,000 messages that stay
TOO_MANY_STAY: Final = "TooManyStay: remove what nobody needs any more, or name other rules"

Redrivers = Callable[[frozenset[str] | None, Callable[[], int]], Redriver]
"""For the rules of these titles, None for all; with the milliseconds that are left for what is at work."""


class MarkedPlace(Place, Protocol):
    """A Place that goes on where another one, of an earlier call, was."""

    @property
    def mark(self) -> str:
        """What the place of the next call is made with, once this one is closed."""
        ...

    @property
    def hidden_seconds(self) -> int:
        """How long entries are hidden that it gave, if it is never closed; 0 for not at all."""
        ...

    @property
    def held(self) -> int:
        """How many entries `close` has to let go; after it, how many it could not."""
        ...


class InTime:
    """A Place, as far as time goes. `ended`: whether all of it was given."""

    def __init__(self, place: MarkedPlace, remaining_ms: Callable[[], int]) -> None:
        self.ended = False
        self._place = place
        self._remaining_ms = remaining_ms

    def entries(self) -> Iterator[Entry]:
        for entry in self._place.entries():
            yield entry
            if self._remaining_ms() < ENTRY_LEAST_MS + LET_GO_MS * self._place.held:
                return
        self.ended = True

    def remove(self, entry: Entry) -> None:
        self._place.remove(entry)

    def replace(self, entry: Entry, text: str) -> None:
        self._place.replace(entry, text)

    def close(self) -> None:
        self._place.close()


class RedriveWork:
    """A Work. `places` are where failures lie, by name, each made anew for each call with the mark of the last."""

    def __init__(
        self,
        rules: Rules,
        redrivers: Redrivers,
        places: Mapping[str, Callable[[str], MarkedPlace]],
        state: SharedState,
        *,
        remaining_ms: Callable[[], int],
    ) -> None:
        self._rules = rules
        self._redrivers = redrivers
        self._places = places
        self._state = state
        self._remaining_ms = remaining_ms

    def begin(self, asked: Body, execution: str) -> Answer:
        require_deployed(asked, self._rules)
        known = {rule.title for rule in self._rules.rules.values()}
        if strange := sorted(set(asked["rules"]) - known):
            raise UserError(f"there is no rule {strange[0]}")
        units = sorted(self._places)
        run = {"execution": execution, "rules": asked["rules"]}
        return Answer(more=True, units=units, workers=len(units), run=run)

    def unit(self, unit: str, run: Body) -> bool:
        require_time(self._remaining_ms())
        held = LeasedState(self._state)
        name = document_of(run["execution"], unit)
        before = held.load(name) or {"done": False, "lost": False, "mark": "", "tally": asdict(Tally())}
        if before["done"]:
            return True
        there = self._places[unit](before["mark"])
        died = died_of(there)
        # A call that began and did not end has died, and what it had in hand is hidden where this one looks.
        lost = before["lost"] or (bool(there.hidden_seconds) and before.get("begun", False))
        held.save(name, {**before, "lost": lost, "begun": True, "reason": died})
        place = InTime(there, self._remaining_ms)
        redriver = self._redrivers(frozenset(run["rules"]) or None, self._left_ms)
        try:
            try:
                redriver.take(place)
                redriver.rest()
            finally:
                place.close()
        except (StoreError, UserError) as error:
            held.save(name, {**before, "lost": lost or there.held > 0, "begun": False, "reason": str(error)})
            raise
        lost = lost or there.held > 0
        reason = died if lost and place.ended else ""
        if not place.ended and len(there.mark) > MARK_MAX_CHARS:
            reason = TOO_MANY_STAY
        tally = {word: count + before["tally"][word] for word, count in asdict(redriver.tally).items()}
        done = place.ended or bool(reason)
        body = {"done": done, "lost": lost, "begun": False, "reason": reason, "mark": "" if done else there.mark}
        held.save(name, {**body, "tally": tally})
        return done

    def _left_ms(self) -> int:
        return self._remaining_ms() - TIME_RESERVED_MS

    def end(self, run: Body) -> Answer:
        found = unit_documents(self._state, run["execution"], self._places)
        left = [
            (unit, of_unit.get("reason") or "NotFinished")
            for unit in sorted(self._places)
            if not (of_unit := found.get(unit, {})).get("done") or of_unit["reason"]
        ]
        return left_of(left, CURE) if left else Answer()


def died_of(place: MarkedPlace) -> str:
    """Why a place is left of which a call died, or could not let go of what it held."""
    if not place.hidden_seconds:
        return "a call died"
    minutes = -(-place.hidden_seconds // 60)
    return f"a call died with messages in hand; they come back within {minutes} minutes: run it again then"


def document_of(execution: str, unit: str) -> str:
    """The document of what became of one place."""
    return f"redrive/{execution}/{unit}"


def unit_documents(state: SharedState, execution: str, units: Any) -> dict[str, dict[str, Any]]:
    """What became of each place so far. Raises StoreError."""
    names = {document_of(execution, unit): unit for unit in units}
    return {names[name]: body for name, body in state.load_many(names).items()}


def total(bodies: Any) -> Tally:
    """What became of all of them together."""
    tally = Tally()
    for body in bodies:
        for word, count in body["tally"].items():
            setattr(tally, word, getattr(tally, word) + count)
    return tally
