"""The live display of a long command: sentences at once, figures every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

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
