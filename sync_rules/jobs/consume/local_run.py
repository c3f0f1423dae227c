"""A pipeline in one process, which can stop and resume: streams of all tables, a consumer, the local queue, files.

Invariant: all work that a checkpoint counts as done ended before the checkpoint was written. `sync-rules run` and the
demo are a LocalRun with a display.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from sync_rules.adapters.beginnings import CallsSince, list_beginnings
from sync_rules.adapters.host import make_steady_clock
from sync_rules.adapters.kept_calls import CallsInFolder
from sync_rules.jobs.consume import checkpoint as file
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.checkpoint import Checkpoint
from sync_rules.jobs.consume.mapping import Concurrently, EventSourceMapping, StepCounts, run_serially
from sync_rules.jobs.consume.queue import LocalQueue, Taken
from sync_rules.jobs.consume.run_start import RunAcceptance, RunBeginnings
from sync_rules.jobs.failure_log import FailureLog, JsonLines
from sync_rules.jobs.local_files import Files, read_wall_clock_ms
from sync_rules.jobs.streams import StreamReader, parse_table_arn
from sync_rules.model.errors import StoreError
from sync_rules.model.items import REFUSALS, UNKNOWN_RULE, Outcome
from sync_rules.pipeline.books import (
    describe_doubts,
    describe_waits,
    finish_empty,
    list_books,
    list_rules_by_identity,
    read_incomplete_books,
    restart_books,
)
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import NULL_PORTS, Caller, Share, Store, World, run_work
from sync_rules.pipeline.telemetry import sum_over_rules

MESSAGES_PER_STEP = 10  # the batch size of an SQS event source mapping by default
MESSAGES_MAX_MS = 200  # after this time of a step no message begins, because records wait for the next step
WAIT_SECONDS = 0.01  # between two looks at what is due, which cost no request
POLL_BUSY_MS: Final = 20  # of an engine on this machine, which answers at once and counts no requests
CHECKPOINT_EVERY_MS: Final = 500
STREAMS_EVERY_MS: Final = 30_000  # between two checks for new streams of the tables
CHECKPOINT_PAUSE_FACTOR: Final = 10  # a save that took long is not made again before ten times as long has passed
INVOCATION_MAX_MS: Final = 60_000  # the time of a consumer for one batch
GROUPS: Final[Mapping[str, frozenset[Outcome]]] = {
    "copied": frozenset({Outcome.COPIED, Outcome.DELETED}),
    "done": frozenset({Outcome.DONE}),
    "right": frozenset({Outcome.RIGHT, Outcome.KEPT}),
    "refused": REFUSALS,
    "failed": frozenset({Outcome.FAILED}),
    "again": frozenset({Outcome.PARKED}),
    "waiting": frozenset({Outcome.WAITING}),
}


@dataclass(eq=False)
class Pump:
    """A driver of mappings and the local queue, step by step. If `handle_message` raises, the message is delivered
    again. `now_ms` must not follow changes of the system's clock.
    """

    mappings: Sequence[EventSourceMapping]
    queue: LocalQueue
    handle_message: Callable[[Taken], None]
    now_ms: Callable[[], int] = field(kw_only=True)
    sleep: Callable[[float], object] = field(kw_only=True)
    concurrently: Concurrently = field(default=run_serially, kw_only=True)
    workers: int = field(default=1, kw_only=True)
    thrown: Counter[str] = field(default_factory=Counter, init=False)  # what the handler raised, by name

    @property
    def idle(self) -> bool:
        """True if all streams are processed to their end and no message is due; delayed messages may wait."""
        return all(mapping.idle for mapping in self.mappings) and not self.queue.due

    def step(self) -> StepCounts:
        """Do one step of every mapping, then handle some messages. Return the counts."""
        step = StepCounts()
        for mapping in self.mappings:
            step += mapping.poll()
        return step + StepCounts(messages=self._handle_messages())

    def _handle_messages(self) -> int:
        """Handle some messages, as many at once as there are workers, for a bounded time. Return their number."""
        count, until_ms = 0, self.now_ms() + MESSAGES_MAX_MS
        while taken := self.queue.take(min(self.workers, MESSAGES_PER_STEP - count)):
            count += len(taken)
            for message, handled in zip(taken, self.concurrently(self._handle, taken), strict=True):
                if handled:
                    self.queue.acknowledge(message)
                else:
                    self.queue.give_back(message)
            if self.now_ms() >= until_ms:
                break
        return count

    def drain(self, max_ms: int) -> bool:
        """Step until idle, or for `max_ms`. Return True if it became idle."""
        deadline_ms = self.now_ms() + max_ms
        for mapping in self.mappings:
            mapping.look_again()
        while self.now_ms() < deadline_ms:
            progressed = self.step().has_progress
            if self.idle:
                return True
            if not progressed:
                self.sleep(WAIT_SECONDS)
        return self.idle

    def _handle(self, taken: Taken) -> bool:
        try:
            self.handle_message(taken)
        except Exception as error:  # noqa: BLE001 - as with SQS, any exception redelivers the message
            self.thrown[error.reason if isinstance(error, StoreError) else type(error).__name__] += 1
            return False
        return True


@dataclass(frozen=True)
class RunStatus:
    """A run at one moment, in counts since its start. `lags_ms`: by rule, the greatest age of a record at the end of
    its batch, over the batches of the last minute; `lag_ms` over all rules, None without a batch. `parked` counts
    failure records, `again` scheduled retries of calls and parked items. `waiting` counts numbers left unwritten
    until a backfill. `alterations` counts the values that copies set, replaced, zeroed or removed.
    """

    seconds: float = 0.0
    records: int = 0
    copied: int = 0
    done: int = 0
    right: int = 0
    refused: int = 0
    failed: int = 0
    again: int = 0
    waiting: int = 0
    parked: int = 0
    given_up: int = 0
    trimmed: int = 0
    read_errors: int = 0
    lag_ms: int | None = None
    lags_ms: Mapping[str, int] = field(default_factory=dict)
    messages_due: int = 0
    messages_waiting: int = 0
    shards: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    alterations: Mapping[str, int] = field(default_factory=dict)


class LocalRun:
    """Everything that `sync-rules run` drives, inside `files.lock_file`. `make_consumer` is called with the world.
    `latest_streams` returns the ARN of each table's stream, by the table's name in DynamoDB; None if its stream is
    off.
    """

    def __init__(
        self,
        *,
        stream_arns: Sequence[str],
        rules_fingerprint: str,
        reader: StreamReader,
        store: Store,
        make_consumer: Callable[[World], Consumer],
        files: Files,
        settings: MappingSettings | None = None,
        caller: Caller = NULL_PORTS,
        beginnings: RunBeginnings | None = None,
        acceptance: RunAcceptance | None = None,
        concurrently: Concurrently = run_serially,
        share: Share = map,
        latest_streams: Callable[[], Mapping[str, str | None]] | None = None,
        now_ms: Callable[[], int] | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        now_ms = now_ms or make_steady_clock()
        self._files = files
        self._fingerprint = rules_fingerprint
        self._now_ms = now_ms
        self._started_ms = now_ms()
        self._latest_streams = latest_streams
        self._look_at_ms = now_ms() + STREAMS_EVERY_MS
        self._current = set(stream_arns)
        self._off: set[str] = set()  # tables without a stream
        self._save_at_ms = 0
        self._dirty = False
        self._total = StepCounts()
        found = file.load(files.checkpoint, stream_arns) or Checkpoint(rules_fingerprint, {}, [])
        self._notices = _list_notices(found, stream_arns, rules_fingerprint)
        self._parked_before = found.parked
        self._failures = FailureLog(files.failures, read_wall_clock_ms)
        self._began = found.began
        self._books = found.books
        if beginnings is not None:
            self._began = beginnings.of(found.began, resumes=bool(found.streams), started_ms=self._started_ms)
            self._notices += beginnings.notices(self._began)
            caller = CallsSince(caller, list_beginnings(beginnings.rules, self._began))
        self._accepted = (
            found.accepted
            if acceptance is None
            else acceptance.begin(_read_accepted_fingerprints(found, rules_fingerprint))
        )
        queue = LocalQueue(now_ms, found.list_messages())
        world = World(store, queue, self._failures, caller, CallsInFolder(files.calls), share=share)
        self._world = world
        self.consumer = make_consumer(world)
        self._mapping = partial(
            EventSourceMapping,
            reader=reader,
            invoke=self._invoke,
            on_failure=JsonLines(files.batches).append,
            now_ms=now_ms,
            settings=settings,
            concurrently=concurrently,
        )
        tables = {parse_table_arn(arn) for arn in stream_arns}
        left = [arn for arn in found.streams if arn not in stream_arns and parse_table_arn(arn) in tables]
        mappings = [self._mapping(arn, progress=found.streams.get(arn, ())) for arn in (*stream_arns, *left)]
        handle = self._handle_message
        workers = (settings or MappingSettings()).parallelization_factor
        self.pump = Pump(
            mappings, queue, handle, now_ms=now_ms, sleep=sleep, concurrently=concurrently, workers=workers
        )
        if self._began != found.began or self._accepted != found.accepted:
            self.save()  # a process that dies at once must not restart it later

    def begin(self, options: str = "") -> tuple[str, ...]:
        """Take over bookkeeping: restart the books that the run before did not keep, before the checkpoint lists them,
        and complete the books of empty tables. So a rule that comes back never finds its books complete while items
        are missing. Where no list of books is known, complete books stay complete. Call it before the first step.

        Returns sentences for the user: the rules that wait for a backfill, which takes these `options` here, and the
        rules whose books may be wrong. Raises StoreError when it cannot restart books.
        """
        rules, known = self.consumer.rules, self._books
        kept = list_rules_by_identity(rules)
        doubtful: frozenset[str] = frozenset()
        try:
            if known is None:
                waiting = run_work(read_incomplete_books(rules), self._world)
                doubtful = frozenset(rule.title for rule in list_books(rules) if rule not in waiting)
        except StoreError as error:
            return (_describe_unread_books(error),)
        if known is not None:
            new = [rule.books for identity, rule in kept.items() if identity not in known and rule.books is not None]
            for failed in run_work(restart_books(new), self._world).values():
                raise failed
        if known != sorted(kept):
            self._books = sorted(kept)
            self.save()
        try:
            left = run_work(finish_empty(rules), self._world)
        except StoreError as error:
            return (*describe_doubts(doubtful), _describe_unread_books(error))
        return (*describe_doubts(doubtful), *describe_waits((rule.title for rule in left), options))

    def step(self) -> StepCounts:
        """Do one step of the pump, and save a checkpoint if it is due. Raises StoreError if it cannot be written."""
        self._follow()
        step = self.pump.step()
        self._let_go()
        self._total += step
        self._dirty |= step.has_progress
        if self._dirty and self._now_ms() >= self._save_at_ms:
            self.save()
        return step

    def save(self) -> None:
        """Write the checkpoint now. Raises StoreError if that fails; a restart then repeats the work since the last
        checkpoint.
        """
        started_ms = self._now_ms()
        streams = {mapping.stream_arn: list(mapping.progress) for mapping in self.pump.mappings}
        messages = file.pack_messages(self.pump.queue.pending_messages)
        parked = self._parked_before + self._failures.parked_count
        found = Checkpoint(self._fingerprint, streams, messages, parked, self._began, self._books, self._accepted)
        try:
            file.save(self._files.checkpoint, found)
        except OSError as error:
            raise StoreError("CheckpointNotWritten", f"{self._files.checkpoint}: {error.strerror}") from error
        saved_ms = self._now_ms()
        pause_ms = CHECKPOINT_PAUSE_FACTOR * (saved_ms - started_ms)
        self._save_at_ms = saved_ms + max(CHECKPOINT_EVERY_MS, pause_ms)
        self._dirty = False

    def take_notices(self) -> list[str]:
        """Return the sentences for the user that were not taken before."""
        taken, self._notices = self._notices, []
        return taken

    def _follow(self) -> None:
        """Look for new streams of the tables now and then: an old stream ends without an error."""
        if self._latest_streams is None or self._now_ms() < self._look_at_ms:
            return
        self._look_at_ms = self._now_ms() + STREAMS_EVERY_MS
        try:
            found = self._latest_streams()
        except StoreError as error:
            self.pump.thrown[error.reason] += 1
            self._total += StepCounts(read_errors=1)
            return
        off = {table for table, arn in found.items() if arn is None}
        for table in sorted(off - self._off):
            self._notices.append(
                f"table {table} has no stream any more: its changes are not seen. Enable one with new and old images, "
                "and run `sync-rules verify --repair`; this run follows the new stream by itself."
            )
        self._off = off
        for arn in sorted({arn for arn in found.values() if arn is not None} - self._current):
            self._current = {old for old in self._current if parse_table_arn(old) != parse_table_arn(arn)} | {arn}
            self._notices.append(_describe_new_stream(arn))
            self.pump.mappings = [*self.pump.mappings, self._mapping(arn)]
            self._dirty = True

    def _let_go(self) -> None:
        """Drop the old streams that are read to their end, or gone."""
        for mapping in [one for one in self.pump.mappings if one.stream_arn not in self._current and one.is_over]:
            self.pump.mappings = [one for one in self.pump.mappings if one is not mapping]
            self.pump.thrown += mapping.thrown
            self._dirty = True

    @property
    def status(self) -> RunStatus:
        telemetry = self.consumer.telemetry
        lags_ms = telemetry.read_lags_ms(self._now_ms() / 1000)
        counts = {name: telemetry.total(*group) for name, group in GROUPS.items()}
        thrown = sum((mapping.thrown for mapping in self.pump.mappings), self.pump.thrown)
        return RunStatus(
            seconds=(self._now_ms() - self._started_ms) / 1000,
            records=self._total.finished,
            **counts,
            parked=self._failures.parked_count,
            given_up=self._total.records_dropped,
            trimmed=self._total.records_trimmed,
            read_errors=self._total.read_errors,
            lag_ms=max(lags_ms.values(), default=None),
            lags_ms=lags_ms,
            messages_due=self.pump.queue.due,
            messages_waiting=self.pump.queue.waiting_count,
            shards=sum(mapping.shards_open for mapping in self.pump.mappings),
            errors=dict(thrown + telemetry.reasons),
            alterations=sum_over_rules(telemetry.alterations),
        )

    def _invoke(self, event: dict[str, Any]) -> dict[str, Any] | None:
        return self.consumer.handle_event(event, self._make_clock())

    def _handle_message(self, taken: Taken) -> None:
        """Process a message. One for a rule that is gone is kept for redrive: no other process knows it."""
        try:
            self.consumer.handle_message(taken.message, self._make_clock(), again=taken.receives > 1)
        except StoreError as error:
            if error.reason != UNKNOWN_RULE:
                raise
            self._failures.keep(taken.message)

    def _make_clock(self) -> Callable[[], int]:
        started_ms = self._now_ms()
        return lambda: INVOCATION_MAX_MS - (self._now_ms() - started_ms)


def _read_accepted_fingerprints(found: Checkpoint, rules_fingerprint: str) -> dict[str, str] | None:
    """The fingerprints that a run accepted before; None for a run of an earlier version with these rules."""
    earlier = found.accepted is None and bool(found.streams) and found.rules_fingerprint == rules_fingerprint
    return None if earlier else found.accepted or {}


def _describe_unread_books(error: StoreError) -> str:
    return f"this run could not read the books of the ledger: {error}"


def _describe_new_stream(arn: str) -> str:
    return (
        f"{parse_table_arn(arn)} has a new stream. It is read from its beginning, and the old one to its end; "
        "changes made while no stream was on were not seen: run `sync-rules verify --repair`."
    )


def _list_notices(found: Checkpoint, stream_arns: Sequence[str], rules_fingerprint: str) -> list[str]:
    known = {parse_table_arn(arn) for arn in found.streams}
    notices = [
        _describe_new_stream(arn) for arn in stream_arns if arn not in found.streams and parse_table_arn(arn) in known
    ]
    gone = sorted(known - {parse_table_arn(arn) for arn in stream_arns})
    if gone:
        notices.append(f"no rule uses {', '.join(gone)} any more: the run forgets its position in that stream.")
    if found.rules_fingerprint != rules_fingerprint:
        notices.append(
            "the rules changed since the checkpoint. Changes from here on follow the new rules. For items that exist "
            "already, run `sync-rules plan --changed`, then `sync-rules backfill --changed`."
        )
    return notices
