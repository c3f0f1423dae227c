"""A redrive in the account: each place where failures lie is a unit, worked through in as many calls as it takes.

Law: what succeeds is removed, and what fails again stays; so a call that took nothing out, or came to the end of its
place, is the last. Messages that a call which died had in hand come back by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from sync_rules.errors import UserError
from sync_rules.redriving.atwork import Tally
from sync_rules.redriving.failed import Entry, Place
from sync_rules.redriving.redriver import Redriver
from sync_rules.remote.documents import Held, SharedState
from sync_rules.remote.protocol import TIME_RESERVED_MS, Answer, Body, left_of, require_deployed, require_time
from sync_rules.rules import Rules

CURE: Final = "Run it again"
UNITS: Final = ("batches", "dead letters", "failures")  # the places of a deployed stack
ADDED: Final = ("done", "records", "written", "parked")  # over all calls; the others are of the last

Redrivers = Callable[[frozenset[str] | None], Redriver]  # for the rules of these titles, None for all


class InTime:
    """A Place, as far as time goes. `ended`: whether all of it was given."""

    def __init__(self, place: Place, remaining_ms: Callable[[], int]) -> None:
        self.ended = False
        self._place = place
        self._remaining_ms = remaining_ms

    def entries(self) -> Iterator[Entry]:
        for entry in self._place.entries():
            yield entry
            if self._remaining_ms() < TIME_RESERVED_MS:
                return
        self.ended = True

    def remove(self, entry: Entry) -> None:
        self._place.remove(entry)

    def replace(self, entry: Entry, text: str) -> None:
        self._place.replace(entry, text)

    def close(self) -> None:
        self._place.close()


class RedriveWork:
    """A Work. `places` are where failures lie, by name, each made anew for each call."""

    def __init__(
        self,
        rules: Rules,
        redrivers: Redrivers,
        places: Mapping[str, Callable[[], Place]],
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
        require_deployed(asked["prints"], self._rules)
        known = {rule.title for rule in self._rules.rules.values()}
        if strange := sorted(set(asked["rules"]) - known):
            raise UserError(f"there is no rule {strange[0]}")
        units = sorted(self._places)
        run = {"execution": execution, "rules": asked["rules"]}
        return Answer(more=True, units=units, workers=len(units), run=run)

    def unit(self, unit: str, run: Body) -> bool:
        require_time(self._remaining_ms())
        held = Held(self._state)
        name = document_of(run["execution"], unit)
        before = held.load(name) or {"done": False, "tally": asdict(Tally())}
        if before["done"]:
            return True
        redriver = self._redrivers(frozenset(run["rules"]) or None)
        place = InTime(self._places[unit](), self._remaining_ms)
        try:
            redriver.take(place)
            redriver.rest()
        finally:
            place.close()
        tally = asdict(redriver.tally)
        done = place.ended or not tally["done"]
        added = {word: count + (before["tally"][word] if word in ADDED else 0) for word, count in tally.items()}
        held.save(name, {"done": done, "tally": added})
        return done

    def end(self, run: Body) -> Answer:
        found = told(self._state, run["execution"], self._places)
        left = [(unit, "NotFinished") for unit in sorted(self._places) if not found.get(unit, {}).get("done")]
        return left_of(left, CURE) if left else Answer()


def document_of(execution: str, unit: str) -> str:
    """The document of what became of one place."""
    return f"redrive/{execution}/{unit}"


def told(state: SharedState, execution: str, units: Any) -> dict[str, dict[str, Any]]:
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
