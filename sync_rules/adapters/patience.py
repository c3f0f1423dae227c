"""How long a command waits for a service that fails, and what it shows meanwhile.

Invariant: a command that waits shows it. An answer ends the wait of its operation and table. If the service answers
other calls of the same operation and table, a failing call ends after its attempts. Functions on AWS have no patience:
they have a deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Final

PATIENCE_SECONDS: Final = 120.0  # a table on demand doubles its capacity within minutes
FIRST_SHOWN_SECONDS: Final = 5.0
SHOWN_EVERY_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Wait:
    """A wait for an answer: the call, the last error code ("" once answered), the seconds so far, and the seconds left
    (None: only the user ends it). `first`: nothing has answered the command yet, so it gives up sooner.
    """

    call: str
    reason: str
    seconds: float
    left_seconds: float | None
    first: bool = False


class Patience:
    """The waits of a command. `show` is called with a wait after 5 seconds, then every 10, and when the wait has ended.

    Without `seconds` the command itself repeats its work, and each call ends after its attempts. `stopping` returns
    True once the user asked the command to stop. May be used by several threads.
    """

    def __init__(
        self,
        show: Callable[[Wait], None],
        seconds: float | None = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show = show
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._began: dict[str, float] = {}  # when each call that waits was first made
        self._answered: dict[str, float] = {}
        self._shown: dict[str, float] = {}
        self.stopping: Callable[[], bool] = lambda: False

    def note_failure(self, call: str, reason: str, seconds: float) -> None:
        """Note a failed attempt, `seconds` after the first attempt of its call. Show the wait if it is due."""
        with self._lock:
            now = self._clock()
            waited = now - self._began.setdefault(call, max(now - seconds, self._answered.get(call, -inf)))
            if waited < FIRST_SHOWN_SECONDS or now - max(self._shown.values(), default=-inf) < SHOWN_EVERY_SECONDS:
                return
            self._shown[call] = now
        left_seconds = None if self._seconds is None else max(0.0, self._seconds - waited)
        self._show(Wait(call, reason, waited, left_seconds, first=not self._answered))

    def note_answer(self, call: str) -> None:
        """Note an answer. Show the end of its wait if the wait was shown."""
        self._answered[call] = self._clock()
        if call not in self._began:
            return
        with self._lock:
            began, shown = self._began.pop(call, None), self._shown.pop(call, None)
        if began is not None and shown is not None:
            self._show(Wait(call, "", self._clock() - began, None))

    def has_answered(self, call: str | None = None) -> bool:
        """True if this call was answered before; without `call`, if any call was."""
        return bool(self._answered) if call is None else call in self._answered

    def gives_up(self, call: str, seconds: float, *, tried: bool) -> bool:
        """True if a call that failed `seconds` after its first attempt should not be made again. `tried`: it had all
        its attempts.
        """
        if self._seconds is None:
            return tried
        now = self._clock()
        alone = self._answered.get(call, -inf) >= now - seconds  # others were answered meanwhile
        return self.stopping() or self._measure_wait(call) >= self._seconds or (tried and alone)

    def is_over(self) -> bool:
        """True while a wait has lasted as long as the command waits. More calls would fail too."""
        return self._seconds is not None and any(
            self._measure_wait(call) >= self._seconds for call in tuple(self._began)
        )

    def _measure_wait(self, call: str) -> float:
        return self._clock() - self._began.get(call, inf)


_commands: Final[list[Patience]] = []  # for all threads of the process, which runs one command


@contextmanager
def use_patience(patience: Patience) -> Iterator[Patience]:
    """Let all calls of this process wait with this patience."""
    _commands.append(patience)
    try:
        yield patience
    finally:
        _commands.remove(patience)


def find_current() -> Patience | None:
    """Return the patience of the running command; None in a function on AWS and in applications."""
    return _commands[-1] if _commands else None


def is_over() -> bool:
    """True if the running command has waited for an answer as long as it waits: see `Patience.is_over`."""
    patience = find_current()
    return patience is not None and patience.is_over()
