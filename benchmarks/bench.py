"""Measure contenders beside each other.

Invariant: contenders run in one process (or in fresh ones, in turns), each once per round, in an order that reverses
each round; a ratio compares costs of one round. The first round warms up and is not counted.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.counters import CPU_TIME, Cost, Counters
from benchmarks.running import Answering

SMOKE_SIZE: Final = 100


@dataclass(frozen=True)
class Bench:
    """The engine and the counters that a measure uses. `quick`: fewer rounds and targets, for a rough figure. `smoke`:
    two rounds of a few targets, which show that a measure runs; its figures mean nothing.
    """

    engine: Answering
    counters: Counters
    quick: bool = False
    smoke: bool = False

    @property
    def counts_instructions(self) -> bool:
        """True if work is counted in instructions. Else it is counted in CPU time, which has a figure of its own."""
        return self.counters.kind != CPU_TIME

    def rounds(self, wanted: int, quick: int = 3) -> int:
        return 2 if self.smoke else min(wanted, quick) if self.quick else wanted

    def size(self, wanted: int) -> int:
        return self.fixed(max(wanted // 5, 1_000) if self.quick else wanted)

    def fixed(self, wanted: int) -> int:
        """A size that a gate depends on: a quick run keeps it, a smoke run shrinks it."""
        return min(wanted, SMOKE_SIZE) if self.smoke else wanted

    def in_turns(
        self, contenders: Mapping[str, Callable[[], Cost]], rounds: int, quick: int = 3
    ) -> dict[str, list[Cost]]:
        """The costs of each contender, round by round; a quick run has at most `quick` rounds."""
        found: dict[str, list[Cost]] = {name: [] for name in contenders}
        for number in range(self.rounds(rounds, quick) + 1):
            for name in list(contenders)[:: 1 if number % 2 else -1]:
                gc.collect()
                cost = contenders[name]()
                if number:
                    found[name].append(cost)
        return found

    def copying(self, targets: int, work: Callable[[], object], **settings: Any) -> Cost:
        """The cost of each copy when `work` makes one on each of so many targets. Asserts that all were made."""
        self.engine.set(targets=targets, **settings)
        cost = self.counters.cost(work)
        written = self.engine.counts()["written"]
        assert written == targets, f"{written} of {targets} copies were written"
        return cost.per(targets)


def works(costs: list[Cost]) -> list[float]:
    return [cost.work for cost in costs]
