"""Redrive: retry failures by the code that failed.

Invariant: an entry is removed from its place only after its effect, later looks included. An entry that fails again, or
that cannot be read, stays. A retry is another hint, however late. A record goes through the consumer as in the handler.
A failure record becomes a strongly consistent look at its item, so no newer write is undone. Failure records share
reads in groups (`group`). An entry that its group did not finish is retried alone, so no entry fails because of others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.jobs.redrive.entries import LeftEntry, OpenEntry, RedriveCounts, WaitingMessage
from sync_rules.jobs.redrive.group import PullGroup, RuleOnItem
from sync_rules.jobs.redrive.ports import FailureRaiser, KeptCallReader, NewFailures
from sync_rules.jobs.redrive.work import describe_entry, find_shared_pull, list_entry_titles, make_work, split_readable
from sync_rules.jobs.streams import DynamoDBStreams, read_span
from sync_rules.model.errors import RecordError, StoreError, UserError
from sync_rules.model.items import Outcome
from sync_rules.model.json_bytes import format_compact_json
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.sizes import ITEM_MAX_BYTES
from sync_rules.pipeline.acceptance import NOT_ACCEPTED
from sync_rules.pipeline.consumer import TIME_RESERVED_MS, Consumer
from sync_rules.pipeline.failed_entries import Failed, FailedEntry, FailureStore, GivenUp, read_entry
from sync_rules.pipeline.failure_records import FailureRecord
from sync_rules.pipeline.messages import ChunkMessage, Message, PushMessage, format_message
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Queue, Remembering, World, run_work
from sync_rules.pipeline.tasks import Pull
from sync_rules.rules.ruleset import Rules

AT_ONCE: Final = Limits(  # without later looks, what is stuck is recorded at once
    parked_max_looks=0, call_max_tries=1, fan_out_again_first_seconds=0, fan_out_again_max_seconds=0
)
WAITING_MAX_MESSAGES: Final = 100_000
HELD_MAX_BYTES: Final = 16 * 1024 * 1024  # of entries that wait for a look; with more, no other is begun before it
GROUP_MAX_ITEMS: Final = HELD_MAX_BYTES // ITEM_MAX_BYTES  # their images fit in there, and so do their sources
GROUP_FIRST_ITEMS: Final = 1  # doubles with each group, because a slow service must not delay many entries
LOOKS_MAX: Final = Limits().parked_max_looks  # one after another, each later: about two hours
NO_DEADLINE_MS: Final = 900_000
WRITTEN: Final = (Outcome.COPIED, Outcome.DELETED)


@dataclass(eq=False)
class Redriver:
    """One redrive. `queue` takes messages that are due later; without it, `rest` handles them here. `only` are titles
    of rules, None for all; `function` limits batches to those of one Lambda function, by its name or ARN. `on_left`
    is called with each entry that stays, `on_entry` with the place of each entry that begins. `on_wait` is called
    with a sentence for each wait. When `remaining_ms` is used up, the current entry fails, and stays. `unaccepted`
    is that of a Consumer. If it is None, failure records of unaccepted rules stay, unless `only` names their rule:
    naming a rule accepts it.
    """

    rules: Rules
    world: World
    _: KW_ONLY
    reader: DynamoDBStreams | None = None
    queue: Queue | None = None
    only: frozenset[str] | None = None
    function: str = ""
    on_left: Callable[[LeftEntry], object] = lambda _left: None
    on_entry: Callable[[str], object] = lambda _where: None
    on_wait: Callable[[str], object] = lambda _words: None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], object] = time.sleep
    remaining_ms: Callable[[], int] = lambda: NO_DEADLINE_MS
    unaccepted: Callable[[], Mapping[str, str]] | None = None

    def __post_init__(self) -> None:
        self.tally = RedriveCounts()
        self._called: set[str] = set()
        self._uncalled: set[str] = set()
        self._rules = self.rules.select_titles(self.only)  # to retry by
        failures = NewFailures(self.world.failures, self.rules, self.tally)
        alone = KeptCallReader(self.world.kept)
        kept = self.world.kept if self.queue else alone
        self._world = replace(self.world, queue=self.queue or self, failures=failures, kept=kept)
        self._strict = replace(self._world, failures=FailureRaiser(), kept=alone)
        self._unaccepted = self.unaccepted or dict
        limits = None if self.queue else AT_ONCE
        self._consumer = Consumer(self._rules, self._world, THIS_PROCESS, limits=limits, unaccepted=self._unaccepted)
        self._waiting: dict[str, WaitingMessage] = {}
        self._current: Sequence[OpenEntry] = ()
        self._group: list[tuple[OpenEntry, Pull | None]] = []
        self._pulls = PullGroup()
        self._enough: Callable[[], bool] = lambda: False
        self._begun = self._stopped = False
        self._group_items = GROUP_FIRST_ITEMS
        self._held_bytes = 0
        self._looks = 0  # before the current entries

    def take(self, place: FailureStore, *, enough: Callable[[], bool] = lambda: False) -> bool:
        """Retry the entries of a place, until `enough` returns True after an entry. Return True if no entry is left to
        try. Raises StoreError and UserError if the place does not answer.
        """
        self._enough, self._begun, self._stopped, self._group_items = enough, False, False, GROUP_FIRST_ITEMS
        try:
            for entry in place.entries():
                self.on_entry(entry.where)
                opened = self._open(entry, place)
                if opened is not None:
                    self._take(opened)
                if enough():
                    self._stopped = True
                    break
        except (StoreError, UserError):
            self._finish_group()
            raise
        self._finish_group()
        return not self._stopped

    def _take(self, opened: OpenEntry) -> None:
        """Retry an entry after those that wait, or let it wait for others that can share its reads."""
        one = None if self._is_unaccepted(opened.body) else find_shared_pull(opened.body, self._rules)
        if one is not None and not self._pulls.admits(one):
            self._finish_group()
        self._group.append((opened, one))
        self._held_bytes += len(opened.entry.text)
        if one is not None:
            self._pulls.add(one)
        if one is None or len(self._group) >= self._group_items or self._held_bytes > HELD_MAX_BYTES:
            self._finish_group()

    def _finish_group(self) -> None:
        """Retry the entries that wait, and close them in their order. Release those that there is no time for."""
        group, self._group = self._group, []
        pulls, self._pulls = self._pulls, PullGroup(self._pulls.order)
        self._held_bytes -= sum(len(opened.entry.text) for opened, _ in group)
        self._current, self._looks = tuple(opened for opened, _ in group), 0
        self._forget_items()
        shared = len(group) > 1 and not self._is_late()
        reasons: dict[RuleOnItem, str] = {}
        if shared:
            reasons = pulls.retry(self._rules, self._make_bounds(AT_ONCE), self._strict, self._count_report)
        smooth = not shared or len(reasons) == pulls.count()
        self._group_items = min(2 * self._group_items, GROUP_MAX_ITEMS) if smooth else GROUP_FIRST_ITEMS
        for opened, one in group:
            reason = None if one is None else reasons.get((one.rules[0], one.key))
            if reason is not None:
                opened.reason = reason
                self._close(opened)
            elif self._is_late():
                opened.place.release(opened.entry)
            else:
                self._retry_alone(opened)

    def _forget_items(self) -> None:
        if isinstance(self.world.store, Remembering):
            self.world.store.forget()

    def _is_late(self) -> bool:
        """True if no further entry may begin. The first one always may."""
        self._stopped = self._stopped or (self._begun and self._enough())
        return self._begun and self._stopped

    def _retry_alone(self, opened: OpenEntry) -> None:
        self._current, self._looks, self._begun = (opened,), 0, True
        self._forget_items()
        try:
            opened.reason = self._retry(opened.body)
        except RecordError as error:
            opened.reason, opened.unreadable = str(error), True
        self._close(opened)
        self._held_bytes += 0 if opened.closed else len(opened.entry.text)
        if self._held_bytes > HELD_MAX_BYTES:
            self.rest()

    def rest(self) -> None:
        """Handle the waiting messages when they are due, until none is left."""
        while self._waiting:
            body = min(self._waiting, key=lambda name: self._waiting[name].due)
            wait = self._waiting[body].due - self.clock()
            if wait > 0:
                self.on_wait(f"{len(self._waiting)} second looks to come, the next in {wait:.0f} s")
                self.sleep(wait)
                continue
            one = self._waiting.pop(body)
            self._current, self._looks = one.opens, one.looks
            reason = ""
            try:
                self._consumer.handle_message(one.message, self.remaining_ms)
            except StoreError as error:
                reason = error.reason
            self._count()
            for opened in one.opens:
                opened.waiting -= 1
                opened.reason = opened.reason or reason
                self._close(opened)
        self._held_bytes = 0

    def send(self, message: Message, delay_seconds: int) -> None:
        """Keep a message as a Queue does: the current entry is done only after it. Raises StoreError if too many
        messages wait, or if every look queues another look.
        """
        body, looks = format_message(message), self._looks + bool(delay_seconds)
        if looks > LOOKS_MAX:
            raise StoreError("StillChanging", f"the item changed at each of {LOOKS_MAX} checks: redrive again later")
        if body not in self._waiting and len(self._waiting) >= WAITING_MAX_MESSAGES:
            raise StoreError("QueueFull", f"{WAITING_MAX_MESSAGES} messages wait already")
        due = self.clock() + delay_seconds
        one = self._waiting.setdefault(body, WaitingMessage(message, due, looks))
        one.looks = min(one.looks, looks)
        one.due = max(one.due, due)  # a look comes its whole delay after each that asked for it
        for opened in self._current:
            if opened not in one.opens:
                one.opens.append(opened)
                opened.waiting += 1

    def rehearse(self, place: FailureStore) -> Iterator[str]:
        """List a line for each entry that would be retried. Reads only the place, and writes nothing."""
        for entry in place.entries():
            opened = self._open(entry, place)
            if opened is None:
                continue
            try:
                if isinstance(opened.body, GivenUp):
                    split_readable((opened.body.event or {}).get("Records", ()), self.rules)
                else:
                    make_work(opened.body, self._rules, Bounds())
            except RecordError as error:
                self._leave(opened, str(error), unreadable=True)
            else:
                self.tally.done += 1
                yield describe_entry(opened.body)

    # ---------------------------------------------------------------- one entry
    def _open(self, entry: FailedEntry, place: FailureStore) -> OpenEntry | None:
        """The entry as read; None for one that is not asked for or cannot be read."""
        try:
            body = read_entry(entry.text)
        except RecordError as error:
            self._finish_group()  # lines are in the order of the entries
            self.tally.unreadable += 1
            self.on_left(LeftEntry(entry.where, "?", str(error), unreadable=True))
            return None
        titles = list_entry_titles(body, self.rules)
        if self.function and isinstance(body, GivenUp) and not body.is_of(self.function):
            self.tally.skipped += 1
            return None
        if self.only is None:
            return OpenEntry(entry, place, body)
        if titles is not None and titles.isdisjoint(self.only):
            self.tally.skipped += 1
            return None
        return OpenEntry(entry, place, body, whole=titles is not None and titles <= self.only)

    def _retry(self, body: Failed) -> str:
        """Retry an entry. Returns why it failed, "" if it did not. Raises RecordError when it cannot be retried."""
        if isinstance(body, GivenUp):
            return self._retry_batch(body)
        if isinstance(body, FailureRecord) and self._is_unaccepted(body):
            return body.reason
        pushes = isinstance(body, PushMessage | ChunkMessage)
        work = make_work(body, self._rules, self._make_bounds(self._consumer.limits if pushes else AT_ONCE))
        try:
            report = run_work(work, self._world if pushes else self._strict)
        except StoreError as error:
            return error.reason
        self._count_report(report)
        return next(iter(report.failed.values())).reason if report.failed else ""

    def _is_unaccepted(self, body: Failed) -> bool:
        """True for a failure record of a rule that was not accepted, if nothing here could tell that it is by now."""
        known = self.unaccepted is not None or self.only is not None
        return not known and isinstance(body, FailureRecord) and body.reason.startswith(NOT_ACCEPTED)

    def _make_bounds(self, limits: Limits) -> Bounds:
        return Bounds(limits, lambda: self.remaining_ms() < TIME_RESERVED_MS, unaccepted=self._unaccepted())

    def _retry_batch(self, batch: GivenUp) -> str:
        if batch.event is not None:
            return self._retry_records(batch.event["Records"])
        if self.reader is None:
            raise RecordError("it holds no records, and there is no stream to read them from")
        try:
            for page in read_span(self.reader, batch.span):
                if reason := self._retry_records(page):
                    return reason
        except StoreError as error:
            return error.reason
        return ""

    def _retry_records(self, records: Iterable[Any]) -> str:
        readable, unreadable = split_readable(records, self.rules)
        answer = self._consumer.handle_event({"Records": readable}, self.remaining_ms)
        self.tally.records += len(readable)
        failed = list(self._consumer.telemetry.failed.values())
        self._count()
        if answer.get("batchItemFailures"):
            return failed[0].reason if failed else "Failed"
        if unreadable:
            raise RecordError(f"{len(unreadable)} of its records cannot be retried, the first: {unreadable[0]}")
        return ""

    # ---------------------------------------------------------------- its end
    def _close(self, opened: OpenEntry) -> None:
        """Remove an entry from its place, or leave it there, once none of its messages waits."""
        if opened.closed or (opened.waiting and not opened.reason):
            return
        opened.closed = True
        try:
            if opened.reason:
                self._leave(opened, opened.reason, unreadable=opened.unreadable)
            elif opened.whole:
                opened.place.remove(opened.entry)
                if isinstance(opened.body, FailureRecord) and opened.body.call:
                    self._called.add(opened.body.call)
                self.tally.done += 1
            else:
                self.tally.kept += 1
        except StoreError as error:
            self._leave(opened, f"done, but not removed: {error}")

    def list_called_places(self) -> set[str]:
        """Return the places of kept calls that no failure record needs. Call it after all places of entries are
        closed.
        """
        return self._called - self._uncalled

    def _leave(self, opened: OpenEntry, reason: str, *, unreadable: bool = False) -> None:
        if isinstance(opened.body, FailureRecord):
            self._uncalled.add(opened.body.call)
        self.on_left(LeftEntry(opened.entry.where, describe_entry(opened.body), reason, unreadable))
        if unreadable:
            self.tally.unreadable += 1
            return
        self.tally.again += 1
        if isinstance(opened.body, FailureRecord | GivenUp):
            now = datetime.fromtimestamp(self.clock(), UTC)
            opened.place.replace(opened.entry, format_compact_json(opened.body.again(reason, now)))

    def _count_report(self, report: Report) -> None:
        for (_, what), count in report.outcomes.items():
            self.tally.written += count if what in WRITTEN else 0
            self.tally.acted += count if what is Outcome.DONE else 0

    def _count(self) -> None:
        self.tally.written += self._consumer.telemetry.total(*WRITTEN)
        self.tally.acted += self._consumer.telemetry.total(Outcome.DONE)
        self._consumer.telemetry.clear()
