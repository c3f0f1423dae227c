"""The display of a long command: sentences at once; figures as a bar on a terminal, as lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from sync_rules.cli.show.console import say

LINE_EVERY_SECONDS: Final = 10.0
Figures = TypeVar("Figures")


@dataclass
class Display(Generic[Figures]):
    """Shows sentences and figures. `shown`: when it showed figures last. Called by one thread at a time."""

    say: Callable[[str], None]
    show: Callable[[Figures], None]
    every_seconds: float = 0.0
    clock: Callable[[], float] = time.monotonic
    shown: float = -inf

    def update(self, figures: Callable[[], Figures]) -> None:
        """Show the figures, if it is time to."""
        if self.clock() - self.shown >= self.every_seconds:
            self.shown = self.clock()
            self.show(figures())


class Bar(NamedTuple):
    """A moment of a bar: the stage, how much of how much is done (None: not known), and figures as a text."""

    stage: str
    done: float
    of: float | None
    figures: str


@contextmanager
def displayed(
    console: Console,
    name: str,
    bar: Callable[[Figures], Bar],
    row: Callable[[Figures], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Display[Figures]]:
    """Show figures as `bar` says. `row` prints them for machines instead, as often as lines."""
    write = partial(say, console)

    def as_line(now: Figures) -> None:
        shown = bar(now)
        write(f"{shown.stage} · {shown.figures}")

    if row is not None or not console.is_terminal:
        yield Display(write, row or as_line, LINE_EVERY_SECONDS, clock, shown=clock())
        return
    figures = TextColumn("{task.fields[figures]}")
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), figures)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=None, figures="")

        def as_bar(now: Figures) -> None:
            shown = bar(now)
            progress.update(task, description=shown.stage, completed=shown.done, total=shown.of, figures=shown.figures)

        yield Display(write, as_bar)
