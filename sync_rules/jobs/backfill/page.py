"""Backfill, page by page: existing items become hints, from a segment of a scan, or a key.

Invariant: an item counts as done only after its writes. The backfill repeats a page if one of its items failed. The
items of a strongly consistent scan are images, read before the sources. Writes are guarded, so the application and the
stream handler may write at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Final, Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from sync_rules.adapters import patience
from sync_rules.audit.stock import Stock
from sync_rules.jobs.backfill.progress import Count, Totals
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Park, Scan, Work, World, read_all, run_work
from sync_rules.pipeline.tasks import Pull, make_tasks
from sync_rules.pipeline.telemetry import SETUP_REASONS
from sync_rules.pipeline.work import do_tasks
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import list_swept_tables

PAGE_MAX_ITEMS: Final = 500
TRIES_MAX: Final = 6  # after retries of each call
WAIT_MAX_SECONDS: Final = 20.0
SET_ASIDE_MAX_ITEMS: Final = 100  # of a whole run
Wanted = Callable[[ItemKey, Item], bool]


def accept_all(_key: ItemKey, _item: Item) -> bool:
    """Return True: the filter of a backfill without --where."""
    return True


@dataclass(frozen=True)
class Selection:
    """The rules that a backfill applies, by name, and the items that it applies them to."""

    rules: Rules
    names: frozenset[str]
    wanted: Wanted = accept_all


@dataclass(frozen=True)
class PageResult:
    """The result of a page: its report, its number of items, the number that concern a rule (`asked`), and the next
    page's cursor. `levels` is the length of the longest path on the page, for rules that keep paths.
    """

    report: Report
    items: int
    asked: int
    cursor: Item | None = None
    levels: int = 0


class Supply(Protocol):
    """A source of pages, such as a segment of a table. `name` is unique in a run."""

    @property
    def name(self) -> str: ...

    def page(self, cursor: Item | None, selection: Selection, bounds: Bounds) -> Work[PageResult]:
        """Process the next page. Raises StoreError if it cannot be read."""


@dataclass(frozen=True)
class Segment:
    """One segment of a table scan. Its name contains all its fields."""

    table: str
    number: int
    total: int

    @property
    def name(self) -> str:
        return f"{self.table}/{self.number}-of-{self.total}"

    def page(self, cursor: Item | None, selection: Selection, bounds: Bounds) -> Work[PageResult]:
        scan = Scan(self.table, PAGE_MAX_ITEMS, cursor, self.number, self.total)
        return (yield from process_page(scan, selection, bounds))


Supplies = Callable[[frozenset[str]], Sequence[Supply]]  # for the rules of these names


def make_supplies(
    rules: Rules, total: int, tables: Collection[str] = (), numbers: Iterable[int] | None = None
) -> Supplies:
    """Make a function that lists the segments of each table that a sweep for given rules reads. `tables` limits the
    tables, and `numbers` limits the segments to a sample.
    """
    some = range(total) if numbers is None else tuple(numbers)

    def of_rules(names: frozenset[str]) -> Sequence[Supply]:
        swept = (table.name for table in list_swept_tables(rules, names))
        return [Segment(name, number, total) for name in swept if not tables or name in tables for number in some]

    return of_rules


def process_page(scan: Scan, selection: Selection, bounds: Bounds) -> Work[PageResult]:
    """Scan a page and process its items. Raises StoreError if it cannot be scanned."""
    page = yield replace(scan, consistent=True)
    result = yield from process_items(scan.table, page.items, selection, bounds)
    return replace(result, cursor=page.cursor)


def process_items(table: str, images: Sequence[Item], selection: Selection, bounds: Bounds) -> Work[PageResult]:
    """Apply the rules to items of a table that were just read with consistent reads."""
    found = Stock()
    count = 0
    of_table = selection.rules.tables[table]
    for item in images:
        key = of_table.key_of(item)
        if key is not None and selection.wanted(key, item):
            count += found.add(item, of_table, selection.rules, selection.names)
    counted, others = found.tasks()
    report = yield from do_tasks(counted, selection.rules, bounds)
    missing = yield from found.read_missing_targets()
    others.pulls = tuple(Pull(target.key, None, target.rules) for target in missing)
    uncounted = yield from do_tasks(others, selection.rules, bounds)
    for rule in {look.part.rule.name for look in others.parts}:
        del uncounted.outcomes[rule, Outcome.RIGHT]  # each counts on the page of its source
    report.add(uncounted)
    return PageResult(report, len(images), count, levels=_count_levels(images, selection))


def process_keys(keys: Sequence[ItemKey], selection: Selection, bounds: Bounds) -> Work[PageResult]:
    """Read and process the existing items of these keys, all of one table. Raises StoreError if an item cannot be
    read.
    """
    images = yield from read_all(keys)
    found = []
    for image in images.values():
        if isinstance(image, StoreError):
            raise image
        if image is not None:
            found.append(image)
    if not found:
        return PageResult(Report(), len(keys), 0)
    result = yield from process_items(keys[0].table, found, selection, bounds)
    return replace(result, items=len(keys))


def process_item(key: ItemKey, image: Item, selection: Selection, bounds: Bounds) -> Work[Report]:
    """Process all that one item concerns, as if it had just been put: its copies, all copies of it, its parts."""
    tasks = make_tasks([Change(key, None, image)], selection.rules).only(selection.names)
    return (yield from do_tasks(tasks, selection.rules, bounds))


def _count_levels(images: Iterable[Item], selection: Selection) -> int:
    """The number of levels of the longest path on these items."""
    some = [rule for rule in selection.rules.rules.values() if rule.name in selection.names and rule.hierarchical]
    return max((rule.levels(image) for rule in some for image in images), default=0)


class UnfinishedError(StoreError):
    """Some items of a page failed."""

    def __init__(self, result: PageResult) -> None:
        reason = next(iter(result.report.failed.values())).reason
        super().__init__(reason, f"{len(result.report.failed)} items not finished")
        self.result = result


@dataclass(eq=False)
class Pages:
    """A processor of pages, for several threads. If `halted` returns True, it stops at once and leaves the page
    unfinished.
    """

    _bounds: Bounds
    _halted: Callable[[], bool]
    _sleep: Callable[[float], None]
    parked: Counter[Count] = field(default_factory=Counter, init=False)  # on pages that could not be finished
    _set_aside: int = field(default=0, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def process(
        self, supply: Supply, cursor: Item | None, selection: Selection, world: World, page: Totals, *, recording: bool
    ) -> PageResult:
        """Process the page at a cursor, and count it in `page`. With `recording`, parked items get a failure record.

        Raises:
            StoreError: if the page could not be finished; `page` then counts only its writes.
        """
        limits = replace(self._bounds.limits, parked_max_looks=0 if recording else 1)
        bounds = replace(
            self._bounds,
            limits=limits,
            out_of_time=lambda: self._bounds.out_of_time() or self._halted(),
            follows_ancestors=True,
        )

        def once() -> PageResult:
            result = run_work(supply.page(cursor, selection, bounds), world)
            page.look_again(Totals(outcomes=result.report.outcomes, alterations=result.report.alterations))
            if result.report.failed:
                raise UnfinishedError(result)
            return result

        def may_pass(error: BaseException) -> bool:
            """True if another try may end well: not when the user stops, a wait is over, or a setup is wrong."""
            if self._halted() or patience.is_over() or not isinstance(error, StoreError):
                return False
            return isinstance(error, UnfinishedError) or error.reason not in SETUP_REASONS

        retrying = Retrying(
            retry=retry_if_exception(may_pass),
            wait=wait_random_exponential(max=WAIT_MAX_SECONDS),
            stop=stop_after_attempt(TRIES_MAX),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            try:
                result = retrying(once)
            except UnfinishedError as error:
                if not self._record_failed_items(error.result, world):
                    raise
                result = error.result
        except StoreError:
            with self._lock:
                self.parked.update({each: n for each, n in page.outcomes.items() if each[1] is Outcome.PARKED})
            page.outcomes = Counter({each: n for each, n in page.outcomes.items() if each[1] is Outcome.COPIED})
            raise
        page.items, page.asked, page.levels = result.items, result.asked, result.levels
        return result

    def _record_failed_items(self, result: PageResult, world: World) -> bool:
        """Keep a failure record of each item that failed. Returns False, with none kept, if they are too many, or the
        service is down for all items.
        """
        failed = result.report.failed
        with self._lock:
            if self._halted() or patience.is_over() or self._set_aside + len(failed) > SET_ASIDE_MAX_ITEMS:
                return False
            self._set_aside += len(failed)
        for key, unfinished in failed.items():
            reason = unfinished.reason.partition(":")[0]
            of_parts = {part.rule.name for part in unfinished.parts}
            for rule in (name for name in unfinished.rules if name not in of_parts):
                world.answer(Park(Failure(rule, key, reason)))
            for part in unfinished.parts:
                element = part.rule.label(part)
                failure = Failure(part.rule.name, key, reason, "", part.source, apart=True, element=element)
                world.answer(Park(failure))
        return True
