"""Makes requests fail in a rehearsal: workers die, requests are throttled, answers get lost.

Invariant: only faults that AWS or a dying worker can cause occur. A write without an answer may have happened, may
happen later, or never. After `FAULTY_TRIES_MAX` attempts an arrival meets no more faults, so each rehearsal ends.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from sync_rules.lab.delivery import Delivery
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Call
from sync_rules.model.writes import Result, Status, Write
from sync_rules.pipeline.requests import Apply, Later, Park, Request, World

FAULTY_TRIES_MAX: Final = 3
THROTTLED: Final = "ThrottlingException"


class DiedError(Exception):
    """The worker died. Only the code that delivers its input again catches this."""


@dataclass
class Faults:
    """A source of random faults. `calm`: no faults now. `met` counts faults. `flying`: unanswered writes that may still
    happen.
    """

    delivery: Delivery
    random: Random
    calm: bool = True
    met: int = 0
    flying: list[Write] = field(default_factory=list)

    def occurs(self, share: float) -> bool:
        """Draw whether a fault with this share of requests occurs now."""
        if self.calm or not share or self.random.random() >= share:
            return False
        self.met += 1
        return True

    def flip_coin(self) -> bool:
        """Draw true or false."""
        return self.random.random() < 1 / 2


@dataclass(frozen=True)
class FaultyWorld(World):
    """A World whose requests and writes fail."""

    faults: Faults = field(kw_only=True)

    def answer(self, request: Request) -> Any:
        """Answer a request, unless a fault occurs. Raises DiedError when the worker dies."""
        faults = self.faults
        if faults.occurs(faults.delivery.crashes):
            self._do_some(request)
            raise DiedError
        match request:
            case Apply():
                return tuple(self._write(write) for write in request.writes)
            case Call():  # a function is not throttled
                return super().answer(request)
        if faults.occurs(faults.delivery.throttles):
            if isinstance(request, Later | Park) and faults.flip_coin():
                super().answer(request)
            raise StoreError(THROTTLED)
        return super().answer(request)

    def land(self, *, all_of_them: bool) -> bool:
        """Apply unanswered writes, if their guards hold. Return True if there were any."""
        landing = [write for write in self.faults.flying if all_of_them or self.faults.flip_coin()]
        for write in landing:
            self.faults.flying.remove(write)
            self.store.apply(Apply((write,)))
        return bool(landing)

    def _write(self, write: Write) -> Result:
        if not self.faults.occurs(self.faults.delivery.throttles):
            return self.store.apply(Apply((write,)))[0]
        self._lose_answer(write)
        return Result(Status.FAILED, reason=THROTTLED)

    def _lose_answer(self, write: Write) -> None:
        """Drop an unanswered write, apply it, or leave it for later."""
        fate = self.faults.random.randrange(3)
        if fate == 1:
            self.store.apply(Apply((write,)))
        elif fate == 2:  # noqa: PLR2004 - the last of three
            self.faults.flying.append(write)

    def _do_some(self, request: Request) -> None:
        """Do the part of a request that a worker completes before it dies: nothing, some or all."""
        if isinstance(request, Apply):
            done = self.faults.random.randint(0, len(request.writes))
            self.store.apply(Apply(request.writes[:done]))
            for write in request.writes[done : done + 1]:
                self._lose_answer(write)
        elif self.faults.flip_coin():
            with suppress(StoreError):
                super().answer(request)
