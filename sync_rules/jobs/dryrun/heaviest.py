"""The heaviest of very many things, counted in little memory.

Law: what weighs more than a share of one in `room` of all weight is never lost, and no weight is ever given too high.
This is the algorithm of Misra and Gries ("Finding repeated elements", 1982), with a cut for many things at once.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Final, Generic, TypeVar

T = TypeVar("T")
ROOM: Final = 2_000  # things remembered after a cut; up to twice as many before


class Heaviest(Generic[T]):
    """Things and their weights. Each weight given is at most `cut` too low; as long as that is 0, all are exact."""

    def __init__(self, room: int = ROOM) -> None:
        self.cut = 0.0
        self._room = room
        self._weights: defaultdict[T, float] = defaultdict(float)

    def add(self, thing: T, weight: float = 1) -> None:
        """Add to the weight of a thing."""
        self._weights[thing] += weight
        if len(self._weights) > 2 * self._room:
            least = heapq.nlargest(self._room + 1, self._weights.values())[-1]
            self.cut += least
            left = {thing: weight - least for thing, weight in self._weights.items() if weight > least}
            self._weights = defaultdict(float, left)

    def top(self, count: int) -> list[tuple[T, float]]:
        """The heaviest, with their weights; of equal ones those whose text is least, whichever came first."""
        return heapq.nsmallest(count, self._weights.items(), key=lambda pair: (-pair[1], str(pair[0])))
