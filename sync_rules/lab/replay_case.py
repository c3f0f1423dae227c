"""A recording that is replayed under several deliveries in turn, until a replay ends with a difference."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sync_rules.lab.delivery import Delivery
from sync_rules.lab.recording import Recording
from sync_rules.lab.recording_replay import Mismatch, Replay
from sync_rules.model.writes import Put
from sync_rules.rules.ruleset import Rules

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
    """The result of replays: the first mismatch, the number of replays, and the record counts of the last replay."""

    mismatch: Mismatch | None
    replays: int
    seconds: float
    counts: Mapping[str, int]


def replay_all(
    case: Case, recording: Recording, deliveries: Sequence[Delivery], doing: Callable[[str], object]
) -> ReplayResult:
    """Replay under each delivery in turn, until the first mismatch."""
    began = time.monotonic()
    number, mismatch, run = 0, None, case.replay(deliveries[0])
    total = len(recording.records)
    for number, delivery in enumerate(deliveries, 1):
        begins = f"replaying · {delivery.name}, seed {delivery.seed} · {number} of {len(deliveries)}"
        doing(begins)
        run = case.replay(delivery, partial(_tell, doing, begins, total))
        mismatch = next(run.list_mismatches(recording.records, case.data), None)
        if mismatch is not None:
            break
    return ReplayResult(mismatch, number, time.monotonic() - began, run.counts)


def _tell(doing: Callable[[str], object], begins: str, total: int, record: int) -> None:
    """Say which record of a delivery was replayed."""
    if record % TELL_EVERY_RECORDS == 0:
        doing(f"{begins} · record {record:,} of {total:,}")
