"""Every limit of the pipeline, by name, with its unit last and its default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sync_rules.model.items import ItemKey

DELAY_MAX_SECONDS: Final = 900  # the longest delay of an SQS message (DelaySeconds of SendMessage)


@dataclass(frozen=True)
class Limits:
    """How much is done at once and how often something is tried."""

    fan_out_page_max_items: int = 1_000
    """Items listed by one Query page, which ends at 1 MB whatever the limit."""

    fan_out_round_max_items: int = 1_000
    """Targets of all pushes of a batch held in memory at once; several rules for one of them become one update."""

    fan_out_inline_max_items: int = 1_000
    """Targets looked at for one push while its record holds up the shard, before the rest is handed over to workers."""

    fan_out_spread_max_items: int = 50_000
    """Targets of a push that was handed over whose keys one invocation sends as chunks before another goes on."""

    fan_out_chunk_max_items: int = 200
    """Targets of one chunk, which one worker looks at: all of them come again if one fails."""

    chunk_step_max_items: int = 50
    """Targets of a chunk looked at together; if time is up after the first of them, the others go on as a message."""

    fan_out_chunk_max_bytes: int = 200_000
    """Keys of one chunk as JSON; SQS takes messages of 1 MiB, and before August 2025 a quarter of that."""

    fan_out_second_look_max_items: int = 10_000
    """Targets one invocation looks at of a second look, which holds up nobody, before the rest goes on as a message."""

    apply_max_writes: int = 200
    """Writes handed to the store at once, between two looks at the clock."""

    source_reads_max_tries: int = 4
    """How often the source is read again when a transaction finds it changed, before the work is reported as failed."""

    settle_max_seconds: int = DELAY_MAX_SECONDS
    """Longest wait for a second look: the largest delay of an SQS message."""

    parked_first_delay_seconds: int = 60
    """First wait before a parked target is looked at again; doubles up to `settle_max_seconds`."""

    parked_max_looks: int = 12
    """Looks at a parked target (about two and a half hours); after that, its own next change or verify finds it."""

    fixes_per_target_max_writes: int = 600
    """The same written on one target in one window before it is parked: something else keeps writing it back."""

    fixes_window_seconds: int = 60
    """The window of `fixes_per_target_max_writes`."""

    fixes_counted_max_items: int = 5_000
    """Writes counted at a time, about 2 MB; the one made longest ago is forgotten."""

    failure_again_seconds: int = 900
    """How long the same failure of the same rule and item is not recorded again."""

    failures_remembered_max_items: int = 10_000
    """Failures remembered for that, in one process."""

    call_max_tries: int = 8
    """How often a user's function is called for one change before a failure record says that it failed each time."""

    listed_rows_max_items: int = 10_000
    """Rows listed for one look at a target that is made of several members, those that `where` leaves out included."""

    gathered_round_max_items: int = 50
    """Targets that are made of several members held at once, each with all of them."""

    def recorded_at(self, *, patient: bool) -> int:
        """At which look at something stuck a failure record is kept: what may pass by itself gets one more, if any."""
        return int(patient and self.parked_max_looks > 0)

    def parked_delay_seconds(self, attempt: int) -> int:
        """How long to wait before something is looked at that was parked so often before."""
        return min(self.parked_first_delay_seconds << min(attempt, 10), self.settle_max_seconds)


@dataclass(frozen=True)
class Bounds:
    """`may_write` is asked before each write, with the target and what is to be written on it."""

    limits: Limits = field(default_factory=Limits)
    out_of_time: Callable[[], bool] = lambda: False
    may_write: Callable[[ItemKey, object], bool] = lambda _key, _what: True
