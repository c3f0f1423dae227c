"""A measured figure beside its goal, and the Markdown table of them.

Invariant: only figures that repeat are gated: counts, and ratios of two things measured in turns in one run. Seconds of
one machine are reported and gate nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any, Final

from benchmarks.counters import CPU_TIME

CPU_TIME_ALLOWANCE: Final = 1.15  # the error of CPU time on a shared machine; instructions have none
ENGINE: Final = "the engine's counts"
WALL: Final = "the clock"
TABLE_HEAD: Final = "| measure | goal | measured | quartiles | reached | counted by |\n|---|---|---|---|---|---|"
FORMATS: Final = {
    "s": "{:.1f} s",
    "%": "{:.1%}",
    "x": "{:.2f}x",
    "us": "{:.3g} us",
    "ms": "{:.0f} ms",
    "MB": "{:.1f} MB",
    "USD": "{:.3f} USD",
    "": "{:.4g}",
}


@dataclass(frozen=True)
class Figure:
    """One line of the table: a value per round, and its goal, `at_most` or `at_least`. A share of 1 is all of it."""

    measure: str
    rounds: tuple[float, ...]
    unit: str
    counted_by: str
    at_most: float | None = None
    at_least: float | None = None
    gated: bool = False
    note: str = ""

    @property
    def value(self) -> float:
        return median(self.rounds)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.rounds) == 1:
            return self.value, self.value
        low, _, high = quantiles(self.rounds, n=4, method="inclusive")
        return low, high

    @property
    def reached(self) -> bool:
        """True if the goal is reached exactly, without an allowance."""
        return self._within(1.0)

    @property
    def passes(self) -> bool:
        """True if the figure is not gated, or within its goal by the precision of its counter."""
        return not self.gated or self._within(CPU_TIME_ALLOWANCE if self.counted_by == CPU_TIME else 1.0)

    def _within(self, allowance: float) -> bool:
        most = self.at_most is None or self.value <= self.at_most * allowance
        return most and (self.at_least is None or self.value >= self.at_least)

    @property
    def goal(self) -> str:
        if self.at_most is not None and self.at_most == self.at_least:
            return f"exactly {self._said(self.at_most)}"
        words = [("at most ", self.at_most), ("at least ", self.at_least)]
        return ", ".join(word + self._said(bound) for word, bound in words if bound is not None) or "reported"

    def _said(self, value: float) -> str:
        return FORMATS[self.unit].format(value)

    @property
    def missed(self) -> str:
        """The message for a figure that does not pass."""
        return f"missed: {self.measure}: {self.goal}, measured {self._said(self.value)}"

    def row(self) -> str:
        """The figure as a row of the table."""
        low, high = map(self._said, self.quartiles)
        well = "" if self.goal == "reported" else "yes" if self.reached else "**no**"
        spread = "" if low == high else f"{low} to {high}"
        name = f"{self.measure} ({self.note})" if self.note else self.measure
        return f"| {name} | {self.goal} | {self._said(self.value)} | {spread} | {well} | {self.counted_by} |"

    def body(self) -> dict[str, Any]:
        """The figure as results.json stores it."""
        return {**asdict(self), "value": self.value, "quartiles": self.quartiles, "reached": self.reached}


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Divide the values of each round."""
    return tuple(one / other for one, other in zip(ours, theirs, strict=True))
