"""The six ways in which a scenario's records may be delivered, as data. Each must end in the same state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Schedule:
    """How records reach the function.

    `batched`: all that wait in a table's stream are one event, else each record is. `times`: how often each event
    comes. `seed`: which table's turn it is, is drawn with it, else the oldest record goes first. `lagging`: the
    scenario goes on without waiting for the pipeline; it waits at steps that stand alone (paused, corrupt, repair) and
    at the end. `dies`: each event's first attempt dies after half of its target writes, or before it can answer.
    `stale`: after each step, all records of the step before come once more, but not between
    a step that leaves drift on purpose and the repair of it.
    """

    batched: bool = False
    times: int = 1
    seed: int | None = None
    lagging: bool = False
    dies: bool = False
    stale: bool = False


@dataclass(frozen=True)
class Variant:
    """A delivery variant, played by each of its schedules."""

    number: int
    name: str
    schedules: tuple[Schedule, ...]


REFERENCE: Final = Schedule()
ORDERS: Final = 4  # seeds with which tables take turns, once step by step and once with the pipeline lagging behind
VARIANTS: Final = (
    Variant(1, "one-per-invocation", (REFERENCE,)),
    Variant(2, "one-batch-per-table", (Schedule(batched=True, lagging=True),)),
    Variant(3, "every-record-twice", (Schedule(times=2),)),
    Variant(
        4,
        "tables-in-any-order",
        tuple(Schedule(seed=seed, lagging=lagging) for seed in range(ORDERS) for lagging in (False, True)),
    ),
    Variant(
        5, "dies-halfway-once", (Schedule(batched=True, dies=True), Schedule(batched=True, dies=True, lagging=True))
    ),
    Variant(6, "stale-duplicate", (Schedule(stale=True),)),
)
