"""From a recording that ends wrong to a shorter one, under a simpler delivery, that ends wrong by the same rule.

Law: what is kept has been seen to fail, and no more is tried than asked for. It is delta debugging (Zeller and
Hildebrandt, Simplifying and isolating failure-inducing input, 2002): pieces are left out, large ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.recording import Recorded

T = TypeVar("T")
Fails = Callable[[Sequence[Recorded], Delivery], bool]
SEEDS = range(3)


@dataclass
class Tries:
    """How often something may still be tried, and how often it was."""

    left: int
    made: int = 0

    def may(self) -> bool:
        """Count one more try; False when there is none left."""
        if not self.left:
            return False
        self.left -= 1
        self.made += 1
        return True


@dataclass(frozen=True)
class Shrunk:
    """What is left of a failure."""

    records: tuple[Recorded, ...]
    delivery: Delivery
    tries: int


def shrunk(records: Sequence[Recorded], delivery: Delivery, fails: Fails, tries_max: int) -> Shrunk:
    """The least found that still fails: first under simpler deliveries, then with fewer items, then fewer records."""
    tries = Tries(tries_max)
    best = tuple(records)

    def still(candidate: Sequence[Recorded]) -> bool:
        return tries.may() and fails(candidate, delivery)

    while True:
        before = (best, delivery)
        delivery = next((one for one in _simpler(delivery) if tries.may() and fails(best, one)), delivery)
        by_item: dict[object, list[Recorded]] = {}
        for one in best:
            by_item.setdefault(one.change.key, []).append(one)
        keys = fewest(tuple(by_item), lambda some: still(_of(best, some)))  # noqa: B023 - used at once
        best = tuple(fewest(_of(best, keys), still))
        if (best, delivery) == before or not tries.left:
            return Shrunk(best, delivery, tries.made)


def fewest(things: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """As few of the things as still fail, in their order: none can be left out alone, unless tries ran out."""
    best = list(things)
    size = max(len(best) // 2, 1)
    while True:
        start, progress = 0, False
        while start < len(best):
            candidate = best[:start] + best[start + size :]
            if fails(candidate):
                best, progress = candidate, True
            else:
                start += size
        if size == 1 and not progress:
            return best
        size = max(size // 2, 1)


def _of(records: Sequence[Recorded], keys: Sequence[object]) -> tuple[Recorded, ...]:
    chosen = frozenset(keys)
    return tuple(one for one in records if one.change.key in chosen)


def _simpler(delivery: Delivery) -> Iterator[Delivery]:
    """The variants that come before this one, which are simpler, with its seed and with others."""
    for variant in VARIANTS:
        if variant.name == delivery.name:
            return
        for seed in dict.fromkeys((delivery.seed, *SEEDS)):
            yield replace(variant, seed=seed)
