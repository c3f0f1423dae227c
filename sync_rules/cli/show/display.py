"""The display of a long command: sentences at once; figures as a moving line on a terminal, as lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, Generic, TypeVar

from rich.console import Console
from rich.markup import escape

from sync_rules.cli.show.console import say

LINE_EVERY_SECONDS: Final = 10.0
LIVE_EVERY_SECONDS: Final = 0.25
Figures = TypeVar("Figures")


@dataclass
class Display(Generic[Figures]):
    """A display of sentences and figures. `shown` is the time of the last figures. Only one thread at a time may call
    it.
    """

    say: Callable[[str], None]
    show: Callable[[Figures], None]
    every_seconds: float = 0.0
    clock: Callable[[], float] = time.monotonic
    shown: float = -inf

    def update(self, figures: Callable[[], Figures]) -> None:
        """Show the figures, if `every_seconds` have passed since the last figures."""
        if self.clock() - self.shown >= self.every_seconds:
            self.shown = self.clock()
            self.show(figures())


@contextmanager
def open_display(
    console: Console,
    text: Callable[[Figures], str],
    row: Callable[[Figures], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    every_seconds: float = LINE_EVERY_SECONDS,
) -> Iterator[Display[Figures]]:
    """Yield a display that shows figures as `text` formats them. If `row` is given, it prints them for machines
    instead, as often as lines.
    """
    write = partial(say, console)
    if row is not None or not console.is_terminal:
        yield Display(write, row or (lambda now: write(text(now))), every_seconds, clock, shown=clock())
        return
    with console.status("", spinner="dots") as status:
        yield Display(write, lambda now: status.update(escape(text(now))), LIVE_EVERY_SECONDS, clock)
