"""What goes wrong with requests in a rehearsal: workers that die, throttles, answers that are lost.

Law: whatever AWS or a dying worker may do may happen here, and nothing else. A write that got no answer may have
happened, may happen later, or never. It ends: what was tried `FAULTY_TRIES_MAX` times meets no more faults, so that all
comes to rest.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from sync_rules.lab.delivery import Delivery
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Call, Keep
from sync_rules.model.writes import Result, Status, Write
from sync_rules.pipeline.requests import Apply, Later, Park, Request, World

FAULTY_TRIES_MAX: Final = 3
THROTTLED: Final = "ThrottlingException"


class DiedError(Exception):
    """The worker died: nothing catches it but whoever delivers again."""


@dataclass
class Faults:
    """What may go wrong now. `calm`: nothing. `flying` are writes that may happen yet, though nobody waits for them."""

    delivery: Delivery
    random: Random
    calm: bool = True
    met: int = 0
    flying: list[Write] = field(default_factory=list)

    def occurs(self, share: float) -> bool:
        """Whether something of this share goes wrong now."""
        if self.calm or not share or self.random.random() >= share:
            return False
        self.met += 1
        return True

    def coin(self) -> bool:
        """One of two."""
        return self.random.random() < 1 / 2


@dataclass(frozen=True)
class FaultyWorld(World):
    """A World in which requests and writes go wrong."""

    faults: Faults = field(kw_only=True)

    def answer(self, request: Request) -> Any:
        """What the world answers, unless something goes wrong. Raises DiedError for a worker that dies."""
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
            if isinstance(request, Later | Park | Keep) and faults.coin():
                super().answer(request)
            raise StoreError(THROTTLED)
        return super().answer(request)

    def land(self, *, all_of_them: bool) -> bool:
        """Let writes on which nobody waits happen, if their guards hold; whether any did."""
        landing = [write for write in self.faults.flying if all_of_them or self.faults.coin()]
        for write in landing:
            self.faults.flying.remove(write)
            self.store.apply(Apply((write,)))
        return bool(landing)

    def _write(self, write: Write) -> Result:
        if not self.faults.occurs(self.faults.delivery.throttles):
            return self._written(write)
        self._perhaps(write)
        return Result(Status.FAILED, reason=THROTTLED)

    def _written(self, write: Write) -> Result:
        (result,) = self.store.apply(Apply((write,)))
        return result

    def _perhaps(self, write: Write) -> None:
        """What becomes of a write that gets no answer."""
        fate = self.faults.random.randrange(3)
        if fate == 1:
            self._written(write)
        elif fate == 2:  # noqa: PLR2004 - the last of three
            self.faults.flying.append(write)

    def _do_some(self, request: Request) -> None:
        """What a worker does of a request before it dies: nothing, some of it, or all."""
        if isinstance(request, Apply):
            done = self.faults.random.randint(0, len(request.writes))
            for write in request.writes[:done]:
                self._written(write)
            for write in request.writes[done : done + 1]:
                self._perhaps(write)
        elif self.faults.coin():
            with suppress(StoreError):
                super().answer(request)
