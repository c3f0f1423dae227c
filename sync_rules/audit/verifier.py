"""Verify: sweep the targets of some rules, check twice what differs, and repair drift if asked to.

Invariant: a repair is a guarded pull like any other, from fresh images, so it never writes over a newer value. It goes
down the cascade: a copy is compared and repaired only after the copies that it is made from. Verify reports drift only
after a grace period without a change of the copy or its source. If the source changed, one more grace period decides;
there is no fourth check. The report of an earlier verify replaces the first checks of a repair. A repair that reads
books in full marks them complete if they are right; then it repairs the values that show them. Memory is bounded: at
most `CANDIDATES_MAX` differences, and a page for each worker, wait for their next check.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from sync_rules.audit import ledger_balance
from sync_rules.audit.compare import (
    Comparison,
    Difference,
    Drift,
    Subject,
    Sweep,
    Verdict,
    compare,
    group_by_thing,
    judge_second_look,
    merge_thing,
    recheck,
    sweep_page,
)
from sync_rules.audit.ledger_balance import (
    Balance,
    Slot,
    check_slots,
    confirm_unbalanced_totals,
    find_slot,
    find_unbalanced_totals,
    list_ledgers,
    make_difference,
)
from sync_rules.audit.stock import Stock
from sync_rules.audit.verify_tally import DriftFinding, Tally
from sync_rules.model.errors import UserError
from sync_rules.model.items import Alteration, Change, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.books import begin_all_books, finish_all_books
from sync_rules.pipeline.requests import Read, Request, Scan, Work, World, run_work
from sync_rules.pipeline.tasks import PartLook, Tasks, make_pull
from sync_rules.pipeline.work import do_tasks
from sync_rules.rules.families import Part
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import WHOLE, Share, Step, cascade, list_swept_tables

PAGE_MAX_ITEMS: Final = 500
CANDIDATES_MAX: Final = 10_000
LOOK_AGAIN_MAX_ITEMS: Final = 100
GRACE_SECONDS: Final = 120.0  # a record is on its way for a second or two; a delayed one for a minute
Look = Callable[[frozenset[str]], Iterator[DriftFinding]]  # at all targets asked for, by the rules of these names
Listed = Callable[[frozenset[str]], Iterator[Difference]]  # what a report lists of the rules of these names


@dataclass(frozen=True)
class Repair:
    """The result of a repair. `left` are the subjects that are still not right, also those that no pull can repair.
    `rebuilt` names the rules whose parts were rebuilt: their totals must be added up again. `alterations` counts
    what the writes did to values.
    """

    left: frozenset[Subject]
    rebuilt: frozenset[str]
    alterations: Counter[tuple[str, Alteration]]


def repair(drifted: Sequence[Difference], rules: Rules, *, rebuild: bool = True) -> Work[Repair]:
    """Pull what drifted. A copy that is now wrong in another way, while its source also changed, counts as repaired:
    that is lag. With `rebuild`, rebuild the parts that nothing else can repair.
    """
    repairable = [one for one in drifted if one.repairable or one.tried]
    asked: dict[ItemKey, set[str]] = {}
    for one in repairable:
        if one.part is None:
            asked.setdefault(one.target, set()).add(one.rule)
    pulls = [
        replace(again, rules=tuple(rule for rule in again.rules if rule.name in names))
        for key, names in asked.items()
        if (again := make_pull(key, rules)) is not None
    ]
    parts = dict.fromkeys(one.part for one in repairable if one.part is not None)
    parts |= dict.fromkeys((yield from _find_blocking_parts(repairable, rules)))
    tasks = Tasks(tuple(pulls), parts=tuple(PartLook(part, rebuild=rebuild) for part in parts))
    report = yield from do_tasks(tasks, rules, Bounds(follows_ancestors=True))
    after = yield from recheck(repairable, rules)
    before = {one.subject: one for one in repairable}
    left = {one.subject for one in drifted} - {one.subject for one in repairable}
    still = (
        one for one in after.different if one.target in report.failed or not _has_moved(before.get(one.subject), one)
    )
    return Repair(frozenset(left | {one.subject for one in still}), frozenset(report.rebuilt), report.alterations)


def _find_blocking_parts(found: Sequence[Difference], rules: Rules) -> Work[list[Part]]:
    """The parts that stand, for another source, where those that are stuck should."""
    stuck = {one.part.target: one.part.rule for one in found if one.part is not None and one.drift is Drift.STUCK}
    images = (yield Read(tuple(stuck))) if stuck else ()
    parts: list[Part] = []
    for (key, rule), image in zip(stuck.items(), images, strict=True):
        entity = rules.entity_of(key)
        if image is not None and entity is rule.target:
            parts += (part for part in rule.parts(Change(key, None, image), entity) if part.target == key)
    return parts


def _has_moved(before: Difference | None, now: Difference) -> bool:
    """True if both the copy and its expected value changed. `before` is None for a new difference."""
    return before is not None and now.held != before.held and now.truth != before.truth


@dataclass(frozen=True)
class _ObservedWorld(World):
    """World wrapper that calls `observe` before each request."""

    inner: World = field(kw_only=True)
    observe: Callable[[], object] = field(kw_only=True)

    def answer(self, request: Request) -> Any:
        self.observe()
        return self.inner.answer(request)


@dataclass(eq=False)
class Verifier:
    """One verify run. A sweep reads the `share` of the tables, `workers` segments at a time. `on_progress` is called at
    every page, also of ledgers, and before every wait; an exception of it ends the run. Once `enough` returns True,
    no further page is scanned; `cut_short` says whether pages were left out. Without `rebuild`, a repair skips
    unreadable ledger entries: for a caller that adds up no ledgers afterwards.
    """

    rules: Rules
    world: World
    only: frozenset[str]
    _: KW_ONLY
    repair: bool = False
    share: Share = WHOLE
    workers: int = 1
    grace_seconds: float = GRACE_SECONDS
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    on_progress: Callable[[Tally, str], None] = lambda _tally, _doing: None
    enough: Callable[[], bool] = lambda: False
    rebuild: bool = True

    def __post_init__(self) -> None:
        self.tally = Tally()
        self.cut_short = False
        self._candidates: list[Difference] = []
        self._last_seen = 0.0
        self._scanned: set[str] = set()
        self._rebuilt: set[str] = set()
        self._things: set[int] = set()  # hashes of the parts found: each is met from two sides, perhaps long after

    def sweep(self) -> Iterator[DriftFinding]:
        """Verify the share of the tables of all rules. Raises StoreError if a page cannot be read."""
        return self._look_in_order(self.only, self._sweep, completes=self.repair and not self.share.is_sample)

    def look_over(self, names: frozenset[str], counted: Collection[str] = ()) -> Iterator[DriftFinding]:
        """Verify the share of the tables once, with the rules of one cascade step, without the totals of ledgers. Items
        of the tables in `counted` are not counted again. Raises StoreError.
        """
        self._scanned |= set(counted)
        tables = [table.name for table in list_swept_tables(self.rules, names)]
        for pages in self._scan_pages(tables, names):
            for scan, page in pages:
                self.tally.items += 0 if scan.table in self._scanned else page.items
                self._note(page.comparison)
            self.on_progress(self.tally, f"scanning {pages[0][0].table}")
            if len(self._candidates) >= CANDIDATES_MAX:
                yield from self._check_again()
        self._scanned |= set(tables)
        yield from self._check_again()

    def one(self, key: ItemKey) -> Iterator[DriftFinding]:
        """Verify a single target. A repair repairs only this target, not the copies made from it.

        Raises:
            UserError: if it does not exist, or none of the rules writes such items.
            StoreError: if it cannot be read.
        """

        def look(names: frozenset[str]) -> Iterator[DriftFinding]:
            repaired = self.tally.repaired.total() > 0
            self._note(run_work(_compare_item(key, self.rules, names, repaired=repaired), self.world))
            yield from self._check_again()
            yield from self._balance_rebuilt()

        self.tally.items += 1
        entity = self.rules.entity_of(key)
        about = (*self.rules.into_target(entity), *self.rules.parts_of(entity)) if entity is not None else ()
        asked = self.only.intersection(rule.name for rule in about)
        return self._look_in_order(asked or self.only, look)

    def verify_report(self, listed: Listed, age_seconds: float) -> Iterator[DriftFinding]:
        """Verify only what a report lists: what is right by now, and what still drifts. For a repair, a report older
        than the grace period counts as the first check. Otherwise each difference is checked twice.
        """

        def look(names: frozenset[str]) -> Iterator[DriftFinding]:
            first = names not in looked
            slots: dict[Slot, Difference] = {}
            looked.add(names)
            differences = listed(names)
            while some := {one.subject: one for one in islice(differences, LOOK_AGAIN_MAX_ITEMS)}:
                self.tally.items += len(some) if first else 0
                slots |= {slot: one for one in some.values() if (slot := find_slot(one)) is not None}
                yield from self._look_at([one for one in some.values() if find_slot(one) is None], first=first)
                self.on_progress(self.tally, "looking at what the report lists")
            yield from self._check_again()
            yield from self.add_up(names, slots, first=first)
            yield from self._balance_rebuilt()

        looked: set[frozenset[str]] = set()
        if self.repair and age_seconds < self.grace_seconds:
            self._wait(self.grace_seconds - age_seconds, "the report is too new")
        yield from self._look_in_order(self.only, look)

    def _look_at(self, some: Sequence[Difference], *, first: bool) -> Iterator[DriftFinding]:
        """Look at what a report lists. Only in the `first` round has something come right by itself."""
        comparison = run_work(recheck(some, self.rules), self.world)
        differing = {one.subject for one in comparison.different}
        right = [self.tally.count_repaired_row(one) for one in some if one.subject not in differing]
        yield from right if first else ()
        if self.repair:
            yield from self._repair_drift(comparison.different)
        else:
            self._note(Comparison(different=comparison.different))
            if len(self._candidates) >= CANDIDATES_MAX:
                yield from self._check_again()

    def _look_in_order(self, names: frozenset[str], look: Look, *, completes: bool = False) -> Iterator[DriftFinding]:
        """Look with these rules: all at once, or, to repair, step by step down the cascade. `completes`: the
        sweep reads everything, so it marks books complete that have no more differences.
        """
        steps = cascade(self.rules, names) if self.repair else (Step(names),)
        for step in steps:
            begun = run_work(begin_all_books(self.rules, step.names), self.world) if completes else {}
            for number in range(step.max_rounds):
                if number > 0:
                    for name in step.names:
                        self.tally.start_over(name)
                repaired = self.tally.repaired.total()
                self._things.clear()
                yield from look(step.names)
                right = {name: number for name, number in begun.items() if not self.tally.wrong(name)}
                finished = run_work(finish_all_books(self.rules, right), self.world) if right else 0
                if self.tally.repaired.total() == repaired and not finished:
                    break

    def _sweep(self, names: frozenset[str]) -> Iterator[DriftFinding]:
        yield from self.look_over(names)
        if not self.share.is_sample:
            self._rebuilt.clear()
            yield from self.add_up(names)
        yield from self._balance_rebuilt()

    def _scan_pages(self, tables: Sequence[str], names: frozenset[str]) -> Iterator[list[tuple[Scan, Sweep]]]:
        """The pages of the tables, one of each of several segments at a time; none is read while others are repaired. A
        segment of every table comes before the next of any, each time with another table first: so a run that is cut
        short does not always leave out the same table.
        """
        of, turns = self.share, range(len(tables))
        places = [(tables[(number + turn) % len(tables)], number) for number in of.numbers for turn in turns]
        waiting = [Scan(table, PAGE_MAX_ITEMS, None, number, of.segments) for table, number in places]
        with ThreadPoolExecutor(self.workers) as pool:
            while waiting and not self.enough():
                scans, waiting = waiting[: self.workers], waiting[self.workers :]
                each = map if len(scans) == 1 else pool.map  # one page needs no thread
                found = each(lambda one: run_work(sweep_page(one, self.rules, names), self.world), scans)
                pages = list(zip(scans, found, strict=True))
                yield pages
                waiting = [replace(s, cursor=page.cursor) for s, page in pages if page.cursor is not None] + waiting
        self.cut_short |= bool(waiting)

    def add_up(
        self, names: frozenset[str], listed: dict[Slot, Difference] | None = None, *, first: bool = True
    ) -> Iterator[DriftFinding]:
        """Verify the totals of the ledgers of these rules, or only those `listed`. A total has drifted if it differs
        twice, in the same way, from the sum of its entries. Raises StoreError.
        """
        for table, tallies in list_ledgers(self.rules, names):
            asked = {slot: one for slot, one in (listed or {}).items() if slot[0].table == table.name}
            if listed is not None and not asked:
                continue
            of, observe = self.world, partial(self.on_progress, self.tally, f"adding up {table.name}")
            world = _ObservedWorld(of.store, of.queue, of.failures, inner=of, observe=observe)
            look = find_unbalanced_totals(table, tallies) if listed is None else check_slots(table, tallies, asked)
            found = run_work(look, world)
            off = {*found, *((key, "") for key, _ in found)}
            right = [self.tally.count_repaired_row(one) for slot, one in asked.items() if slot not in off]
            yield from right if first else ()
            if found:
                self._wait(self.grace_seconds, f"{len(found)} differ")
            totals: dict[ItemKey, dict[str, Balance]] = {}
            for (key, at), balance in (
                run_work(confirm_unbalanced_totals(table, tallies, found), world).items() if found else ()
            ):
                totals.setdefault(key, {})[at] = balance
            for key, slots in totals.items():
                repaired = self.repair and run_work(ledger_balance.repair_total(key, slots), self.world)
                for at, balance in slots.items():
                    yield self.tally.count_drift(make_difference((key, at), balance), repaired=repaired)

    def _balance_rebuilt(self) -> Iterator[DriftFinding]:
        """Verify the totals of rules with rebuilt entries: the totals may or may not have counted these entries."""
        names, self._rebuilt = frozenset(self._rebuilt), set()
        yield from self.add_up(names)

    def _note(self, comparison: Comparison) -> None:
        self.tally.add(comparison)
        if comparison.different:
            self._candidates += comparison.different
            self._last_seen = self.clock()

    def _wait(self, seconds: float, why: str) -> None:
        if seconds > 0:
            self.on_progress(self.tally, f"{why}; looking again in {seconds:.0f} s to tell lag from drift")
            self.sleep(seconds)

    def _check_again(self) -> Iterator[DriftFinding]:
        """Check again what differed, and a third time what the second check left unsure."""
        found = list({one.subject: one for one in self._candidates}.values())  # a part is seen from both its sides
        self._candidates = []
        unsure = yield from self._look_again(found)
        yield from self._look_again(unsure, last=True)

    def _look_again(
        self, found: Sequence[Difference], *, last: bool = False
    ) -> Generator[DriftFinding, None, list[Difference]]:
        """Look again once the grace period of the last of these is over. Repairs what drifted; returns what is still
        unsure. The last look leaves nothing unsure: a copy that is wrong in the same way three times has drifted.
        """
        unsure: list[Difference] = []
        if found:
            self._wait(self._last_seen + self.grace_seconds - self.clock(), f"{len(found)} differ")
        things = list(group_by_thing(found).values())
        for start in range(0, len(things), LOOK_AGAIN_MAX_ITEMS):
            some = [one for thing in things[start : start + LOOK_AGAIN_MAX_ITEMS] for one in thing]
            comparison = run_work(recheck(some, self.rules), self.world)
            self._last_seen = self.clock()
            before = {one.subject: one for one in some}
            by_verdict: dict[Verdict, list[Difference]] = {verdict: [] for verdict in Verdict}
            for one in comparison.different:
                seen = before.get(one.subject)  # None: it is another difference now, such as of the whole set
                by_verdict[Verdict.UNSURE if seen is None else judge_second_look(seen, one)].append(one)
            waiting = [] if last else by_verdict[Verdict.UNSURE]
            drifted = by_verdict[Verdict.DRIFT] + (by_verdict[Verdict.UNSURE] if last else [])
            unsure += waiting
            self.tally.lag.update(one.rule for one in some)
            self.tally.lag.subtract(one.rule for one in (*drifted, *waiting))
            yield from self._repair_drift(drifted)
            self.on_progress(self.tally, "looking again")
        return unsure

    def _repair_drift(self, drifted: Sequence[Difference]) -> Iterator[DriftFinding]:
        """Repair what drifted, if asked to, and report each with whether it is right now."""
        drifted = [one for one in drifted if one.part is None or hash(one.thing) not in self._things]
        self._things |= {hash(one.thing) for one in drifted if one.part is not None}
        unrepaired: Collection[object] = {one.subject for one in drifted}
        if self.repair and drifted:
            done = run_work(repair(drifted, self.rules, rebuild=self.rebuild), self.world)
            self._rebuilt |= done.rebuilt
            self.tally.alterations.update(done.alterations)
            unrepaired = done.left
        for some in group_by_thing(drifted).values():
            yield self.tally.count_drift(merge_thing(some), repaired=all(one.subject not in unrepaired for one in some))


def _compare_item(key: ItemKey, rules: Rules, only: frozenset[str], *, repaired: bool) -> Work[Comparison]:
    (item,) = yield Read((key,))
    if item is None and repaired:  # it should not have been there
        return Comparison()
    if item is None:
        raise UserError(f"item {key} does not exist: correct --key")
    asked = Stock()
    if not asked.add(item, rules.tables[key.table], rules, only, alone=True):
        entity = rules.entity_of(key)
        what = f"is a {entity.name}" if entity else "is of no entity"
        raise UserError(f"no verified rule writes {key}, which {what}: give another --key, or other rules")
    return (yield from compare(asked))
