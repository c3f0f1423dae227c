"""From a batch of stream records, or a message of the queue, to its answer. Records become changes, changes become
tasks, `work.do_tasks` does them, and a `Report` says what must come again. Lambda functions and `run` share this.

Invariant: an item whose work failed is reported by its first record in the batch, everything else goes on, and nothing
is reported as done before its effect. Records of one item are one piece of work, so none overtakes another. A store
remembers items for one batch or message only.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import UNKNOWN_RULE, Change, Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.pipeline.acceptance import collect_old_images
from sync_rules.pipeline.breaker import Breaker, DeduplicatedFailures, PendingWork
from sync_rules.pipeline.effects import run_message
from sync_rules.pipeline.fanout import process_chunks, relay
from sync_rules.pipeline.handover import spread
from sync_rules.pipeline.messages import (
    CallMessage,
    ChunkMessage,
    Message,
    PartMessage,
    PullMessage,
    PushMessage,
    find_item,
)
from sync_rules.pipeline.records import read_event, split_changes
from sync_rules.pipeline.report import Report, Unfinished
from sync_rules.pipeline.requests import Host, Later, Remembering, Work, World, run_work
from sync_rules.pipeline.tasks import (
    Tasks,
    find_part,
    list_chunks,
    list_pushes,
    list_unknown_rules,
    make_pull,
    make_tasks,
)
from sync_rules.pipeline.telemetry import Telemetry
from sync_rules.pipeline.work import do_tasks
from sync_rules.rules.ruleset import Rules

TIME_RESERVED_MS = 2_000  # to answer, and for the last requests to return


def process_changes(changes: Sequence[Change], rules: Rules, bounds: Bounds) -> Work[Report]:
    """Process the changes of a batch of stream records. Return the report of outcomes and unfinished items."""
    tasks = make_tasks(changes, rules)
    if bounds.unaccepted:
        bounds = replace(bounds, old_images=collect_old_images(changes))
    return (yield from do_tasks(tasks, rules, bounds))


def process_message(message: Message, rules: Rules, bounds: Bounds, *, again: bool = False) -> Work[Report]:
    """Process a message of the queue. `again`: it was delivered before, and its work may be done in part.

    A message for a rule that these rules do not know fails and comes again: while functions are updated, another worker
    knows the rule. Where some rules of a message are known, a message goes on for the others alone.
    """
    report = yield from _process_valid_message(message, rules, bounds, again=again)
    unknown = list_unknown_rules(message, rules)
    if not unknown or report.failed:
        return report
    reason = UNKNOWN_RULE
    if isinstance(message, PushMessage | ChunkMessage) and len(unknown) < len(message.rules):
        try:
            yield Later(replace(message, rules=unknown))
        except StoreError as error:
            reason = error.reason
        else:
            return report
    report.note(find_item(message), Unfinished(unknown, reason))
    report.outcomes.update((name, Outcome.FAILED) for name in unknown)
    return report


def _process_valid_message(message: Message, rules: Rules, bounds: Bounds, *, again: bool) -> Work[Report]:
    match message:
        case PullMessage():
            one = make_pull(message.target, rules, attempt=message.attempt, delay_seconds=message.delay_seconds)
            return (yield from do_tasks(Tasks(pulls=(one,) if one else ()), rules, bounds))
        case ChunkMessage():
            return (yield from process_chunks(list_chunks(message, rules), bounds))
        case PartMessage():
            look = find_part(message, rules)
            return (yield from do_tasks(Tasks(parts=(look,) if look else ()), rules, bounds))
        case CallMessage():
            report = Report()
            yield from run_message(message, rules, bounds, report)
            return report
        case PushMessage():
            return (yield from _process_push(message, rules, bounds, again=again))


def _process_push(message: PushMessage, rules: Rules, bounds: Bounds, *, again: bool) -> Work[Report]:
    pushes = list_pushes(message, rules)
    if not message.spread:
        return (yield from do_tasks(Tasks(pushes=pushes), rules, bounds))
    report = yield from spread([one for one in pushes if one.index is not None], rules, bounds)
    of_tables = [one for one in pushes if one.index is None]
    report.add((yield from relay(of_tables, rules, bounds, ahead=not again)))
    return report


class Consumer:
    """Processes Lambda events and queue messages for one set of rules. One per process; threads may share it.

    `unaccepted` gives, by the name of each rule that nothing has accepted, how to accept it (adapters/acceptance.py).
    """

    def __init__(
        self,
        rules: Rules,
        world: World,
        host: Host,
        telemetry: Telemetry | None = None,
        limits: Limits | None = None,
        *,
        unaccepted: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.rules = rules
        self.unaccepted = unaccepted
        self.limits = limits or Limits()
        self._pending = PendingWork(self.limits, host)
        failures = DeduplicatedFailures(world.failures, self.limits, host)
        self.world = replace(world, failures=failures, pending=self._pending)
        self.telemetry = telemetry or Telemetry()
        self._now = host.now
        of, counted = self.limits, self.limits.fixes_counted_max_items
        self._writes = Breaker(of.fixes_per_target_max_writes, of.fixes_window_seconds, counted, host)
        self._calls = Breaker(of.calls_per_item_max_tries, of.calls_window_seconds, counted, host)
        self._lock = host.lock()
        self._full: OrderedDict[ItemKey, None] = OrderedDict()

    def handle_event(self, event: Mapping[str, Any], remaining_ms: Callable[[], int]) -> dict[str, Any]:
        """Process a stream event. Returns Lambda's partial batch response with the lowest failed sequence number.

        A failed record without a number is named "", which Lambda takes for a failure of the whole batch.
        https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
        """
        self._begin()
        changes, unreadable = split_changes(read_event(event, self.rules, filtered=True))
        unkept = self._park(unreadable)
        report = run_work(process_changes(changes, self.rules, self._bounds(remaining_ms)), self.world)
        self._count(report, len(changes), len(unreadable))
        failed = [change.position for change in changes if change.key in report.failed] if report.failed else []
        first = find_lowest([*unkept, *failed])
        return {"batchItemFailures": [] if first is None else [{"itemIdentifier": first}]}

    def handle_message(
        self, message: Message, remaining_ms: Callable[[], int] = lambda: 900_000, *, again: bool = False
    ) -> None:
        """Process a message from the queue. `again`: it was delivered before.

        Raises:
            StoreError: when some of its work failed: the message must be delivered again.
        """
        bounds = self._bounds(remaining_ms)
        if bounds.out_of_time():  # it would only be handed over, for ever
            raise StoreError(OUT_OF_TIME, f"a message needs more than {TIME_RESERVED_MS} ms: raise the timeout")
        self._begin()
        self._pending.begins(message)
        report = run_work(process_message(message, self.rules, bounds, again=again), self.world)
        self._count(report)
        if report.failed:
            reason = next(iter(report.failed.values())).reason
            raise StoreError(reason, f"the worker did not finish {len(report.failed)} items")

    def _begin(self) -> None:
        if isinstance(self.world.store, Remembering):
            self.world.store.forget()

    def _bounds(self, remaining_ms: Callable[[], int]) -> Bounds:
        return Bounds(
            self.limits,
            lambda: remaining_ms() < TIME_RESERVED_MS,
            self._writes.allows,
            self._calls.allows,
            self._full,
            unaccepted=self.unaccepted(),
        )

    def _park(self, unreadable: Sequence[Failure]) -> list[str]:
        """Keep a failure record of each unreadable record. Returns the positions of those that could not be kept."""
        lost = []
        for failure in unreadable:
            try:
                self.world.failures.park(failure)
            except StoreError:
                lost.append(failure.position)
        return lost

    def _count(self, report: Report, records: int = 0, unreadable: int = 0) -> None:
        with self._lock:
            self.telemetry.add(report, records, self._now())
            self.telemetry.unreadable_records += unreadable


def find_lowest(positions: Iterable[str]) -> str | None:
    """The lowest sequence number, by value: numbers grow in width, so text order would be wrong. A position that is
    no number comes first, because it fails the whole batch.
    """
    return min(positions, key=lambda text: (text.isdecimal(), int(text) if text.isdecimal() else 0), default=None)
