"""Every limit of the pipeline, by name, with its unit last and its default."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item

DELAY_MAX_SECONDS: Final = 900  # the longest delay of an SQS message (DelaySeconds of SendMessage)


@dataclass(frozen=True)
class Limits:
    """The limits of the pipeline: how much it processes at once, and how often it retries."""

    fan_out_page_max_items: int = 1_000
    """Items listed by one Query page, which ends at 1 MB whatever the limit."""

    side_by_side_max_lists: int = 8
    """Listings of a batch that are sent side by side: of members, and first pages of pushes, which share a page."""

    fan_out_round_max_items: int = 1_000
    """Targets of all pushes of a batch held in memory at once; several rules for one of them become one update."""

    fan_out_inline_max_items: int = 1_000
    """Targets that one push reconciles while its record holds up the shard; the rest goes to workers; `run`: 200."""

    fan_out_spread_max_items: int = 50_000
    """Targets whose keys one invocation lists in an index and sends as chunks, before the next one goes on."""

    fan_out_relay_max_items: int = 500
    """Targets that one worker lists in the base table and reconciles, after it sent the rest on; `run`: 200."""

    fan_out_again_first_seconds: int = 5
    """Wait of the second large fan-out of one source in a row, which serves all changes until then; doubles."""

    fan_out_again_max_seconds: int = 300
    """Longest of these waits, of a source that changes all the time."""

    fan_outs_remembered_max_items: int = 1_000
    """Large fan-outs remembered for that, in one process."""

    fan_out_chunk_max_items: int = 200
    """Targets of one chunk, for one worker: all of them are delivered again if one fails."""

    chunk_step_max_items: int = 50
    """Targets of a chunk reconciled together; if time is up after the first step, the others go on as a message."""

    fan_out_chunk_max_bytes: int = 200_000
    """Keys of one chunk as JSON; SQS takes messages of 1 MiB, and before August 2025 a quarter of that."""

    fan_out_second_look_max_items: int = 10_000
    """Targets of a second look, which holds up no shard, before its rest goes on as a message."""

    apply_max_writes: int = 200
    """Writes applied at once, between two checks of the time left."""

    source_reads_max_tries: int = 4
    """Reads of a source that transactions find changed, before the work is reported as failed."""

    settle_max_seconds: int = DELAY_MAX_SECONDS
    """Longest wait for a second look: the largest delay of an SQS message."""

    parked_first_delay_seconds: int = 60
    """First wait before a parked target is retried; doubles up to `settle_max_seconds`."""

    parked_max_looks: int = 12
    """Retries of a parked target by each process that parked it (2.5 hours in all); then a change or verify helps."""

    fixes_per_target_max_writes: int = 600
    """Writes of the same value on one target in one window before it is parked, because something writes it back."""

    fixes_window_seconds: int = 60
    """The window of `fixes_per_target_max_writes`."""

    fixes_counted_max_items: int = 5_000
    """Writes counted at a time, about 2 MB; the oldest is forgotten."""

    failure_again_seconds: int = 900
    """A failure that repeats within this time, for the same rule and item, is recorded once."""

    failures_remembered_max_items: int = 10_000
    """Failures remembered for that, in one process; as many looks to come, and as many items without room."""

    call_max_tries: int = 8
    """Calls of a user's function for one change before a failure record is kept."""

    calls_per_item_max_tries: int = 300
    """Calls of one rule for one item in one window before the next are set aside: the function may change it."""

    calls_window_seconds: int = 600
    """The window of `calls_per_item_max_tries`."""

    listed_rows_max_items: int = 10_000
    """Rows listed for one target made of several members, including rows that `where` excludes."""

    gathered_round_max_items: int = 50
    """Targets made of several members held at once, each with all its members."""

    def records(self, attempt: int, *, patient: bool) -> bool:
        """True if the failure of this attempt is recorded: the first attempt (the second if `patient`), and the
        last.
        """
        return attempt in (int(patient and self.parked_max_looks > 0), self.parked_max_looks)

    def compute_parked_delay_seconds(self, attempt: int) -> int:
        """The delay before the next retry of an item that was parked `attempt` times before."""
        return min(self.parked_first_delay_seconds << min(attempt, 10), self.settle_max_seconds)


@dataclass(frozen=True)
class Bounds:
    """The bounds of one piece of work. `may_write` is called before each write, with target and changes. `may_call` is
    called before the first call of a function for a change, with item and rule. `full`: items that had no room for a
    write, and are read as a whole before the next write. `follows_ancestors`: compare an item of a hierarchy with
    its parent's future path. `unaccepted`: for each rule that must not replace others' values, how to accept it.
    `old_images`: those of the batch.
    """

    limits: Limits = field(default_factory=Limits)
    out_of_time: Callable[[], bool] = lambda: False
    may_write: Callable[[ItemKey, object], bool] = lambda _key, _what: True
    may_call: Callable[[ItemKey, str], bool] = lambda _key, _rule: True
    full: OrderedDict[ItemKey, None] = field(default_factory=OrderedDict)
    follows_ancestors: bool = False
    unaccepted: Mapping[str, str] = field(default_factory=dict)
    old_images: Mapping[ItemKey, tuple[Item, ...]] = field(default_factory=dict)

    def note_full(self, item: ItemKey) -> None:
        """Note an item that has no room for a write, and forget the oldest of too many."""
        self.full[item] = None
        if len(self.full) > self.limits.failures_remembered_max_items:
            self.full.popitem(last=False)
