"""A recording replayed under one delivery after the other, and reduced when a replay ends wrong.

Delta debugging (Zeller and Hildebrandt, Simplifying and isolating failure-inducing input, 2002) leaves out pieces,
large ones first. Invariant: each result has been seen to fail, after at most the given number of tries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.recording import Recorded, Recording
from sync_rules.lab.recording_replay import Mismatch, Replay
from sync_rules.model.writes import Put
from sync_rules.rules.ruleset import Rules

T = TypeVar("T")
Fails = Callable[[Sequence[Recorded], Delivery], bool]
SEEDS = range(3)
TELL_EVERY_RECORDS: Final = 100


@dataclass(frozen=True)
class Case:
    """Everything that a replay depends on, except the records and the delivery."""

    rules: Rules
    data: tuple[Put, ...]
    with_copies: bool

    def replay(self, delivery: Delivery, on_progress: Callable[[int], object] = lambda _record: None) -> Replay:
        return Replay(self.rules, delivery, with_copies=self.with_copies, on_progress=on_progress)


@dataclass(frozen=True)
class ReplayResult:
    """Result of replays: the first mismatch, the number of replays, and the record counts of the last one."""

    mismatch: Mismatch | None
    replays: int
    seconds: float
    counts: Mapping[str, int]


def replay_all(
    case: Case, recording: Recording, deliveries: Sequence[Delivery], doing: Callable[[str], object]
) -> ReplayResult:
    """Replay under one delivery after the other, until the first mismatch."""
    began = time.monotonic()
    number, mismatch, run = 0, None, case.replay(deliveries[0])
    total = len(recording.records)
    for number, delivery in enumerate(deliveries, 1):
        begins = f"replaying · {delivery.name}, seed {delivery.seed} · {number} of {len(deliveries)}"
        doing(begins)
        run = case.replay(delivery, partial(_tell, doing, begins, total))
        mismatch = next(run.mismatches(recording.records, case.data), None)
        if mismatch is not None:
            break
    return ReplayResult(mismatch, number, time.monotonic() - began, run.counts)


def _tell(doing: Callable[[str], object], begins: str, total: int, record: int) -> None:
    """Say which record of a delivery was replayed."""
    if record % TELL_EVERY_RECORDS == 0:
        doing(f"{begins} · record {record:,} of {total:,}")


def shrink_failure(
    case: Case, recording: Recording, found: Mismatch, tries_max: int, stopping: Callable[[], bool]
) -> tuple[ShrinkResult, Mismatch]:
    """The smallest recording found whose first mismatch is of the same rule and check, and that mismatch."""
    latest = found

    def fails(records: Sequence[Recorded], delivery: Delivery) -> bool:
        nonlocal latest
        first = None if stopping() else next(case.replay(delivery).mismatches(records, case.data), None)
        if first is None or (first.rule, first.check) != (found.rule, found.check):
            return False
        latest = first  # what fails is always kept
        return True

    return shrink_recording(recording.records, found.delivery, fails, tries_max), latest


# ---------------------------------------------------------------- reducing
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
