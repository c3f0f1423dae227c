"""The decisions of a history: six independent streams of integers, drawn from a seed or given as lists.

Invariant: everything a history does follows from these integers. 0 is always the plainest choice, and a list that is
too short continues with 0, so a history shrinks by deleting and zeroing choices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

STREAMS = ("configuration", "application", "schedule", "faults", "transactions", "people")


class Stream:
    """One stream. `taken` are the choices made so far."""

    __slots__ = ("_given", "_random", "taken")

    def __init__(self, draw: Random | None, given: Sequence[int] = ()) -> None:
        self.taken: list[int] = []
        self._given = given
        self._random = draw.random if draw is not None else None

    def pick(self, count: int) -> int:
        """A number below `count`; where there is nothing to choose, nothing is taken."""
        if count <= 1:
            return 0
        if self._random is not None:
            choice = int(self._random() * count)
        else:
            at = len(self.taken)
            choice = self._given[at] % count if at < len(self._given) else 0
        self.taken.append(choice)
        return choice

    def chance(self, percent: int) -> bool:
        """True with this probability, False when 0 is chosen."""
        return percent > 0 and self.pick(100) >= 100 - percent


@dataclass(frozen=True)
class Choices:
    """The six streams of one history. `people` decides what there is beside the handlers and plain writers."""

    configuration: Stream
    application: Stream
    schedule: Stream
    faults: Stream
    transactions: Stream
    people: Stream

    def taken(self) -> dict[str, list[int]]:
        return {name: list(getattr(self, name).taken) for name in STREAMS}


def drawn(seed: int) -> Choices:
    """Streams from a seed; each has a generator of its own, so one can change without the others."""
    return Choices(*(Stream(Random(f"{name} {seed}")) for name in STREAMS))


def given(lists: Mapping[str, Sequence[int]]) -> Choices:
    """Streams that replay these choices."""
    return Choices(*(Stream(None, lists.get(name, ())) for name in STREAMS))
