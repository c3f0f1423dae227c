"""An event source mapping of our own: it feeds one stream, shard by shard and batch by batch, to one function.

Invariant: a position moves only after the effect. A mapping that starts from `progress` reads every unfinished record
again, so delivery is at least once, in order per item. A record is left out only if the on-failure destination has it.
`attempts` decides about batches, and `shards` keeps the order of records. This module reads, calls, and orders both in
time. A `poll` is one bounded step of every shard, and never waits. As AWS documents it ("Using AWS Lambda with Amazon
DynamoDB", with-ddb; "DynamoDB Streams", Streams.html): a shard is read only after its parent is processed to its end,
and reading starts at TRIM_HORIZON.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Protocol, TypeVar

from sync_rules.jobs.consume.attempts import (
    Answer,
    AttemptResult,
    Batch,
    MappingSettings,
    evaluate,
    make_invocation_record,
)
from sync_rules.jobs.consume.shards import Lane, ShardProgress, ShardQueue
from sync_rules.jobs.streams import IteratorExpiredError, RecordsTrimmedError, ShardGoneError, StreamReader
from sync_rules.model.errors import StoreError

A = TypeVar("A")
B = TypeVar("B")
STREAM_GONE: Final = "ResourceNotFoundException"  # of DescribeStream
Invoke = Callable[[dict[str, Any]], Answer]


class Concurrently(Protocol):
    """A function that calls another for each argument, in any order or at once. It returns the answers in the order of
    the arguments.
    """

    def __call__(self, function: Callable[[A], B], things: Sequence[A], /) -> Iterable[B]: ...


def run_serially(function: Callable[[A], B], things: Sequence[A], /) -> Iterable[B]:
    return [function(thing) for thing in things]


@dataclass(frozen=True)
class StepCounts:
    """Counts of one step. Steps add up."""

    read: int = 0  # records read from shards
    finished: int = 0
    batches: int = 0
    records_dropped: int = 0  # records handed to the on-failure destination
    records_trimmed: int = 0  # times records were gone before they were read: verify what was missed
    read_errors: int = 0
    messages: int = 0

    def __add__(self, other: StepCounts) -> StepCounts:
        return StepCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def has_progress(self) -> bool:
        """True if this step did something, so that another step at the same moment may find work."""
        return bool(self.read or self.batches or self.records_dropped or self.messages)


@dataclass(frozen=True)
class Attempt:
    """A batch on its way to the function."""

    shard: ShardQueue
    lane: Lane
    batch: Batch


@dataclass(frozen=True)
class Response:
    """The answer of the function, or the name of the exception that it threw."""

    request_id: str
    answer: Answer = None
    thrown: str = ""


class EventSourceMapping:
    """A mapping of one stream to one function. `invoke` is called with {"Records": [...]} and answers as a function
    with ReportBatchItemFailures; an exception is a failure of the whole batch. `on_failure` gets the invocation
    record of a batch that is given up, and returns after storing it. If it raises, the batch stays. `progress` comes
    from an earlier mapping of the stream.
    """

    def __init__(
        self,
        stream_arn: str,
        reader: StreamReader,
        invoke: Invoke,
        on_failure: Callable[[dict[str, Any]], None],
        *,
        now_ms: Callable[[], int],
        settings: MappingSettings | None = None,
        progress: Iterable[ShardProgress] = (),
        concurrently: Concurrently = run_serially,
    ) -> None:
        self.stream_arn = stream_arn
        self.settings = settings or MappingSettings()
        self.thrown: Counter[str] = Counter()  # by name: never a message, which may hold values
        self.gone = False  # the stream did not exist any more when it was last described
        self._reader = reader
        self._invoke = invoke
        self._on_failure = on_failure
        self._now_ms = now_ms
        self._concurrently = concurrently
        self._shards = {shard.shard_id: ShardQueue(shard, self.settings) for shard in progress}
        self._iterators: dict[str, str] = {}
        self._read_at_ms: dict[str, int] = {}
        self._brought_at_ms: dict[str, int] = {}  # when a shard last brought records
        self._empty_reads: Counter[str] = Counter()
        self._not_found: Counter[str] = Counter()  # how often a shard was not found since it was last read
        self._described = False
        self._describe_at_ms = 0

    @property
    def progress(self) -> tuple[ShardProgress, ...]:
        """The progress of every shard. A new EventSourceMapping resumes from it."""
        return tuple(shard.progress for shard in self._shards.values())

    @property
    def idle(self) -> bool:
        """True if every shard is processed up to the end of the stream, as last read."""
        return self._described and all(
            shard.is_done or (not shard.outstanding_count and self._is_at_end(shard)) for shard in self._shards.values()
        )

    @property
    def is_over(self) -> bool:
        """True if the stream no longer exists, or all its shards are closed and processed."""
        if self.gone:
            return not self.outstanding_count
        return self._described and all(shard.is_done for shard in self._shards.values())

    @property
    def shards_open(self) -> int:
        return sum(not shard.is_done for shard in self._shards.values())

    @property
    def outstanding_count(self) -> int:
        """The number of records that are read and not finished."""
        return sum(shard.outstanding_count for shard in self._shards.values())

    def look_again(self) -> None:
        """Read all shards at the next poll, also those whose last pages were empty."""
        self._empty_reads.clear()
        self._read_at_ms.clear()

    def poll(self) -> StepCounts:
        """Do one bounded step: read a page of each shard that is due, and send the batches that are ready. Return the
        counts.
        """
        now_ms = self._now_ms()
        step = self._describe(now_ms)
        for shard in [shard for shard in self._shards.values() if self._may_read(shard, now_ms)]:
            step += self._read(shard, now_ms)
        attempts = [Attempt(s, lane, batch) for s in self._shards.values() for lane, batch in s.ready(now_ms)]
        for attempt, tried in zip(attempts, self._concurrently(self._try, attempts), strict=True):
            step += self._note(attempt, tried)
        return step

    # ---------------------------------------------------------------- shards
    def _describe(self, now_ms: int) -> StepCounts:
        """List the shards now and then, and at once when one was closed: its children follow."""
        if now_ms < self._describe_at_ms:
            return StepCounts()
        self._describe_at_ms = now_ms + self.settings.shard_refresh_ms
        try:
            found = self._reader.shards(self.stream_arn)
        except StoreError as error:
            self.thrown[error.reason] += 1
            self._described = False
            self.gone = error.reason == STREAM_GONE
            return StepCounts(read_errors=1)
        self._described, self.gone = True, False
        names = {shard.shard_id for shard in found}
        gone = [name for name in self._not_found if name not in names and not self._shards[name].closed]
        for name in self._not_found:
            self._shards[name].closed = name not in names  # one that is listed, or listed again, is read on
        self._shards = {
            name: s for name, s in self._shards.items() if name in names or not s.is_done
        }  # trimmed: forget
        self._not_found = Counter({name: n for name, n in self._not_found.items() if name in self._shards})
        for shard in found:
            start = ShardProgress(shard.shard_id, shard.parent_id)
            self._shards.setdefault(shard.shard_id, ShardQueue(start, self.settings))
        return StepCounts(records_trimmed=len(gone))

    def _may_read(self, shard: ShardQueue, now_ms: int) -> bool:
        if shard.closed or now_ms < self._read_at_ms.get(shard.shard_id, 0):
            return False
        parent = self._shards.get(shard.parent_id or "")  # an unknown parent was trimmed: its child is a root
        return (parent is None or parent.is_done) and shard.outstanding_count < self.settings.read_ahead_max_records

    def _is_at_end(self, shard: ShardQueue) -> bool:
        """True if several pages were empty: one alone may come from the middle of a shard."""
        return self._empty_reads[shard.shard_id] >= self.settings.idle_after_empty_reads

    def _read(self, shard: ShardQueue, now_ms: int) -> StepCounts:
        name = shard.shard_id
        try:
            iterator = self._iterators.pop(name, None)
            if iterator is None:
                iterator = self._reader.iterator(self.stream_arn, name, shard.last_read)
            limit = self.settings.read_ahead_max_records - shard.outstanding_count
            page = self._reader.records(self.stream_arn, iterator, limit)
        except IteratorExpiredError:
            return StepCounts()  # the next poll asks for a new one, after the last record read
        except RecordsTrimmedError:
            return self._restart_at_horizon(shard, now_ms)
        except ShardGoneError:
            return self._doubt(shard, now_ms)
        except StoreError as error:
            self.thrown[error.reason] += 1
            self._read_at_ms[name] = now_ms + self.settings.retry_first_ms
            return StepCounts(read_errors=1)
        self._not_found.pop(name, None)
        read = shard.add(page.records, now_ms)
        self._empty_reads[name] = 0 if page.records else self._empty_reads[name] + 1
        self._read_at_ms[name] = now_ms if page.records else now_ms + self._pause_ms(name, now_ms)
        if page.records:
            self._brought_at_ms[name] = now_ms
        if page.iterator is None:
            self._close(shard)
        else:
            self._iterators[name] = page.iterator
        return StepCounts(read=read)

    def _pause_ms(self, name: str, now_ms: int) -> int:
        """Milliseconds to wait after an empty page: few while changes are being made."""
        since_ms = now_ms - self._brought_at_ms.get(name, now_ms - self.settings.busy_ms)
        busy = since_ms < self.settings.busy_ms
        return min(self.settings.poll_busy_ms, self.settings.poll_idle_ms) if busy else self.settings.poll_idle_ms

    def _restart_at_horizon(self, shard: ShardQueue, now_ms: int) -> StepCounts:
        """Go on with the oldest records that are left, and count that records were missed."""
        self._read_at_ms[shard.shard_id] = now_ms + self.settings.poll_idle_ms
        try:
            self._iterators[shard.shard_id] = self._reader.iterator(self.stream_arn, shard.shard_id, None)
        except (StoreError, RecordsTrimmedError):
            return StepCounts(read_errors=1)
        except ShardGoneError:
            return self._doubt(shard, now_ms)
        return StepCounts(records_trimmed=1)

    def _doubt(self, shard: ShardQueue, now_ms: int) -> StepCounts:
        """List the shards again: this one is gone, or so new that it is not known everywhere."""
        self._not_found[shard.shard_id] += 1
        self._empty_reads[shard.shard_id] = 0
        self._read_at_ms[shard.shard_id] = now_ms + self.settings.backoff_ms(self._not_found[shard.shard_id])
        self._describe_at_ms = 0
        return StepCounts(read_errors=1)

    def _close(self, shard: ShardQueue) -> None:
        shard.closed = True
        self._described = False
        self._describe_at_ms = 0

    # ---------------------------------------------------------------- batches
    def _try(self, attempt: Attempt) -> Response:
        request_id = str(uuid.uuid4())
        try:
            return Response(request_id, self._invoke(attempt.batch.event()))
        except Exception as error:  # noqa: BLE001 - whatever a function throws is a failure of its batch
            return Response(request_id, thrown=type(error).__name__)

    def _note(self, attempt: Attempt, tried: Response) -> StepCounts:
        """Hand over a batch that is given up, and only then move on: so nothing is lost between the two."""
        now_ms = self._now_ms()
        result = evaluate(attempt.batch, tried.answer, thrown=bool(tried.thrown), settings=self.settings, now_ms=now_ms)
        if tried.thrown:
            self.thrown[tried.thrown] += 1
        dropped = result.dropped
        if dropped is not None and not self._hand_over(attempt.shard, result, tried, now_ms):
            kept = replace(dropped, due_ms=now_ms + self.settings.retry_max_ms)
            attempt.lane.replace_batch(replace(result, again=(kept, *result.again), dropped=None))
            return StepCounts(batches=1)
        attempt.lane.replace_batch(result)
        given_up = dropped.records if dropped else ()
        attempt.shard.finish((*result.finished, *given_up))
        return StepCounts(batches=1, finished=len(result.finished), records_dropped=len(given_up))

    def _hand_over(self, shard: ShardQueue, result: AttemptResult, tried: Response, now_ms: int) -> bool:
        record = make_invocation_record(
            result,
            shard_id=shard.shard_id,
            stream_arn=self.stream_arn,
            request_id=tried.request_id,
            thrown=bool(tried.thrown),
            settings=self.settings,
            now_ms=now_ms,
        )
        try:
            self._on_failure(record)
        except (StoreError, OSError):
            return False
        return True
