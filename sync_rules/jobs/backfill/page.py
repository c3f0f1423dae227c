"""Backfill: what is there already becomes hints, from a scan, from an export, or from a key.

Law: it is the same look as any other. A page of a strongly consistent scan is an image, read before the sources; a line
of an export is but a key. What is written is guarded, so the application and the stream handler may write meanwhile.
Nothing counts as done before its effect: a page of which something failed must come again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final, Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from sync_rules.audit.compare import ToCompare, add_item
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.pipeline.fanout import pull, push
from sync_rules.pipeline.parts import PartLook, reconcile_parts
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Park, Read, Scan, Work, World, run_work
from sync_rules.pipeline.sources import read_all
from sync_rules.pipeline.tasks import Pull, tasks_of
from sync_rules.rules.ruleset import Rules

EVERY_ITEM: Final = 1 << 62  # more than there are
Wanted = Callable[[ItemKey, Item], bool]


def everything(_key: ItemKey, _item: Item) -> bool:
    """The filter of a backfill that has none."""
    return True


@dataclass(frozen=True)
class Selection:
    """What a backfill brings in line: the rules of these names, on the items that are wanted."""

    rules: Rules
    names: frozenset[str]
    wanted: Wanted = everything


@dataclass(frozen=True)
class PageResult:
    """One page: what came of it, how many items it had, how many of them a rule was asked about, and where the scan
    goes on. `levels`: how many the longest path on it has, where a rule keeps paths.
    """

    report: Report
    items: int
    asked: int
    cursor: Item | None = None
    levels: int = 0


def process_page(scan: Scan, selection: Selection, bounds: Bounds) -> Work[PageResult]:
    """Scan a page and bring what is on it in line. Raises StoreError when it cannot be scanned."""
    page = yield replace(scan, consistent=True)
    result = yield from process_items(scan.table, page.items, selection, bounds)
    return replace(result, cursor=page.cursor)


def process_items(table: str, images: Sequence[Item], selection: Selection, bounds: Bounds) -> Work[PageResult]:
    """Bring items of a table, read just now, in line."""
    found = ToCompare()
    count = 0
    of_table = selection.rules.tables[table]
    for item in images:
        key = of_table.key_of(item)
        if key is not None and selection.wanted(key, item):
            count += add_item(item, of_table, selection.rules, selection.names, found)
    report = yield from pull([Pull(target.key, target.image, target.rules) for target in found.targets], bounds)
    report.add((yield from reconcile_parts([PartLook(part) for part, counts in found.parts.items() if counts], bounds)))
    others = yield from reconcile_parts([PartLook(part) for part, counts in found.parts.items() if not counts], bounds)
    for rule in {part.rule.name for part in found.parts}:
        del others.outcomes[rule, Outcome.RIGHT]  # each counts on the page of what it is made from
    report.add(others)
    return PageResult(report, len(images), count, levels=_levels(images, selection))


def process_keys(keys: Sequence[ItemKey], selection: Selection, bounds: Bounds) -> Work[PageResult]:
    """Bring the items of these keys, all of one table, in line: those that are still there. Raises StoreError when one
    cannot be read.
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


def process_all_of(key: ItemKey, image: Item, selection: Selection, bounds: Bounds) -> Work[Report]:
    """Bring everything in line that one item has to do with, as if it had just been put: its own copies, all copies of
    it wherever they are, its parts.
    """
    names = selection.names
    plan = tasks_of([Change(key, None, image)], selection.rules)
    pulls = [replace(one, image=None, rules=tuple(r for r in one.rules if r.name in names)) for one in plan.pulls]
    pushes = [replace(one, rules=tuple(r for r in one.rules if r.name in names)) for one in plan.pushes]
    report = yield from pull([one for one in pulls if one.rules], bounds)
    report.add((yield from push([one for one in pushes if one.rules], selection.rules, bounds)))
    report.add((yield from reconcile_parts([look for look in plan.parts if look.part.rule.name in names], bounds)))
    return report


@dataclass(frozen=True)
class OneItem:
    """One item with all that it has to do with, however many targets it has."""

    key: ItemKey
    name = "item"

    def page(self, _cursor: Item | None, selection: Selection, bounds: Bounds) -> Work[PageResult]:
        (image,) = yield Read((self.key,))
        if image is None:
            return PageResult(Report(), 0, 0)
        limits = replace(bounds.limits, fan_out_inline_max_items=EVERY_ITEM)  # nobody takes a message
        report = yield from process_all_of(self.key, image, selection, replace(bounds, limits=limits))
        if bounds.out_of_time():  # the rest of its targets went on as a message, which nobody takes
            raise StoreError("OutOfTime", "not all of its targets were looked at")
        return PageResult(report, 1, 1)


def _levels(images: Iterable[Item], selection: Selection) -> int:
    """How many levels the longest path has that stands on one of these items."""
    some = [rule for rule in selection.rules.rules.values() if rule.name in selection.names and rule.hierarchical]
    return max((rule.levels(image) for rule in some for image in images), default=0)


TRIES_MAX: Final = 6  # after retries of each call
WAIT_MAX_SECONDS: Final = 20.0
SET_ASIDE_MAX_ITEMS: Final = 100  # of a whole run


class Supply(Protocol):
    """Where items come from, page by page: a segment of a table, a file of an export. `name` is its own among all."""

    @property
    def name(self) -> str: ...

    def page(self, cursor: Item | None, selection: Selection, bounds: Bounds) -> Work[PageResult]:
        """The next page, brought in line. Raises StoreError when it cannot be had."""
        ...


class UnfinishedError(StoreError):
    """Some items of a page failed."""

    def __init__(self, result: PageResult) -> None:
        reason = next(iter(result.report.failed.values())).reason
        super().__init__(reason, f"{len(result.report.failed)} items not finished")
        self.result = result


class Pages:
    """Brings pages in line, for several threads. `halted` says whether to stop: at once, with the page unfinished."""

    def __init__(self, bounds: Bounds, halted: Callable[[], bool], sleep: Callable[[float], None]) -> None:
        self._bounds = bounds
        self._halted = halted
        self._sleep = sleep
        self._set_aside = 0
        self._lock = Lock()

    def process(
        self, supply: Supply, cursor: Item | None, selection: Selection, world: World, page: Totals, *, recording: bool
    ) -> PageResult:
        """The page at a cursor, whose totals go to `page`. `recording`: what is parked is stuck, and said to be.

        Raises:
            StoreError: when it could not be finished; `page` then counts what was written all the same.
        """
        limits = replace(self._bounds.limits, parked_max_looks=0 if recording else 1)
        bounds = replace(self._bounds, limits=limits, out_of_time=lambda: self._bounds.out_of_time() or self._halted())

        def once() -> PageResult:
            result = run_work(supply.page(cursor, selection, bounds), world)
            page.look_again(Totals(outcomes=result.report.outcomes))
            if result.report.failed:
                raise UnfinishedError(result)
            return result

        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, StoreError) and not self._halted()),
            wait=wait_random_exponential(max=WAIT_MAX_SECONDS),
            stop=stop_after_attempt(TRIES_MAX),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            result: PageResult = retrying(once)
        except StoreError as error:
            if not isinstance(error, UnfinishedError) or not self._sets_aside(error.result, world):
                page.outcomes = Counter({each: n for each, n in page.outcomes.items() if each[1] is Outcome.COPIED})
                raise
            result = error.result
        page.items, page.asked, page.levels = result.items, result.asked, result.levels
        return result

    def _sets_aside(self, result: PageResult, world: World) -> bool:
        """Keep a failure record of each item that failed, unless they are too many."""
        failed = result.report.failed
        with self._lock:
            if self._halted() or self._set_aside + len(failed) > SET_ASIDE_MAX_ITEMS:
                return False
            self._set_aside += len(failed)
        for key, unfinished in failed.items():
            reason = unfinished.reason.partition(":")[0]
            of_parts = {part.rule.name for part in unfinished.parts}
            for rule in (name for name in unfinished.rules if name not in of_parts):
                world.answer(Park(Failure(rule, key, reason)))
            for part in unfinished.parts:
                failure = Failure(part.rule.name, key, reason, "", part.source, apart=True, element=part.element)
                world.answer(Park(failure))
        return True
