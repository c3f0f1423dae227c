"""A table of faults per request, drawn from a finite budget until the world heals.

Invariant: a fault is something AWS or a dying worker may really do. A write that got no answer may have happened, may
happen later, or never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sync_rules.model.writes import Transaction, Write
from sync_rules.pipeline.requests import Apply, Later, List, Park, Read, Request, Scan
from tests.simulation.choices import Stream
from tests.simulation.stops import Save, Wait
from tests.simulation.writers import Do, Submit

CRASHES = ("crash before", "crash after")
REQUEST_FAULTS: dict[type[Request], tuple[str, ...]] = {
    Read: (*CRASHES, "throttle"),
    List: (*CRASHES, "throttle"),
    Apply: (*CRASHES, "throttle", "answer lost", "in flight", "crash in flight", "conflict"),
    Later: (*CRASHES, "throttle", "answer lost"),
    Park: (*CRASHES, "throttle", "answer lost"),
}
ERRAND_FAULTS: dict[type, tuple[str, ...]] = {  # of what only errands ask for
    Scan: (*CRASHES, "throttle"),
    Save: (*CRASHES, "throttle", "answer lost"),
    Wait: ("crash before",),
}
WRITER_FAULTS: dict[type, tuple[str, ...]] = {  # of what only applications ask for
    Submit: (*CRASHES, "throttle", "answer lost", "in flight", "crash in flight", "conflict"),
    Do: (*CRASHES, "throttle", "answer lost"),
}
ALL_FAULTS = {**REQUEST_FAULTS, **ERRAND_FAULTS, **WRITER_FAULTS}
OTHER_FAULTS = ("give up", "deliver again", "message twice", "out of time", "contended")
FAULTS = tuple(dict.fromkeys((*(fault for some in REQUEST_FAULTS.values() for fault in some), *OTHER_FAULTS)))


@dataclass
class Faults:
    """The faults of one history: which are possible, how likely each chance is, how many are left."""

    stream: Stream
    possible: Collection[str]
    percent: int
    budget: int
    seen: Counter[tuple[str, str]]
    tell: Callable[[str], None]

    def heal(self) -> None:
        self.budget = 0

    def occurs(self, fault: str) -> bool:
        """Decide if this fault happens now."""
        if self.budget <= 0 or fault not in self.possible or not self.stream.chance(self.percent):
            return False
        self.budget -= 1
        self.seen["fault", fault] += 1
        self.tell(f"fault: {fault}")
        return True

    def of(self, request: Request, write: Write | None = None) -> str | None:
        """Draw the fault of a request or of one of its writes, if any."""
        if self.budget <= 0 or not self.stream.chance(self.percent):
            return None
        kind = next(kind for kind in ALL_FAULTS if isinstance(request, kind))
        conflicts = isinstance(write, Transaction) or isinstance(request, Submit)
        some = [f for f in ALL_FAULTS[kind] if f in self.possible and (conflicts or f != "conflict")]
        if not some:
            return None
        fault = some[self.stream.pick(len(some))]
        self.budget -= 1
        self.seen[kind.__name__, fault] += 1
        return fault
