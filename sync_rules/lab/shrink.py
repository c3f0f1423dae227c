"""Shrinks a recording that ends wrong to a shorter one, under a simpler delivery, that ends wrong by the same rule.

Delta debugging (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002) leaves out pieces,
large ones first. Invariant: each result has been seen to fail, after at most the given number of tries.
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


@dataclass(frozen=True)
class ShrinkResult:
    """A failure after shrinking."""

    records: tuple[Recorded, ...]
    delivery: Delivery
    tries: int


def shrink_recording(records: Sequence[Recorded], delivery: Delivery, fails: Fails, tries_max: int) -> ShrinkResult:
    """Find a smaller failure: first simpler deliveries, then fewer items, then fewer records."""
    best, left = tuple(records), tries_max

    def still(candidate: Sequence[Recorded], under: Delivery) -> bool:
        nonlocal left
        if not left:
            return False
        left -= 1
        return fails(candidate, under)

    while True:
        before = (best, delivery)
        delivery = next((one for one in _simpler(delivery) if still(best, one)), delivery)
        by_item: dict[object, list[Recorded]] = {}
        for one in best:
            by_item.setdefault(one.change.key, []).append(one)
        keys = fewest(tuple(by_item), lambda some: still(_of(best, some), delivery))  # noqa: B023 - used at once
        best = tuple(fewest(_of(best, keys), lambda some: still(some, delivery)))  # noqa: B023
        if (best, delivery) == before or not left:
            return ShrinkResult(best, delivery, tries_max - left)


def fewest(things: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Leave out things while the rest still fails: in the end no single one can go, unless tries ran out."""
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
    """The variants before this one, which are simpler, with its seed and with others."""
    for variant in VARIANTS:
        if variant.name == delivery.name:
            return
        for seed in dict.fromkeys((delivery.seed, *SEEDS)):
            yield replace(variant, seed=seed)
