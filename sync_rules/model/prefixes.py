"""Values by texts or paths, to find those whose text or path begins with another one, or the other way round.

Invariant: a search takes as many steps as the text is long and as there are answers, however many values there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Prefixes(Generic[T]):
    """Values by sequences that can be sliced and hashed: texts, tuples."""

    def __init__(self) -> None:
        self._at: dict[Sequence[Any], list[tuple[int, T]]] = {}
        self._inside: dict[Sequence[Any], list[tuple[int, T]]] = {}  # under each beginning of their sequences
        self._count = 0

    def add(self, sequence: Sequence[Any], value: T) -> None:
        entry = (self._count, value)
        self._count += 1
        self._at.setdefault(sequence, []).append(entry)
        for length in range(len(sequence)):
            self._inside.setdefault(sequence[:length], []).append(entry)

    def find_overlaps(self, sequence: Sequence[Any]) -> Iterator[T]:
        """List the values whose sequence begins this sequence, or begins with it, in the order of `add`."""
        found = [self._at.get(sequence[:length]) for length in range(len(sequence) + 1)]
        found.append(self._inside.get(sequence))
        return (value for _, value in merge(*(some for some in found if some), key=itemgetter(0)))
