"""Verify: sweep the targets of some rules, look twice at what differs, and repair what is asked for.

Law: a repair is the same guarded pull as any other, from fresh images, so it never writes over a newer value. It goes
down the cascade: no copy is judged, let alone mended, before the copies it is made from have been. Nobody is accused
before a grace period in which neither the copy nor its source has changed; where the source has, one more grace period
decides, and there is no fourth look. Memory is bounded: at most `CANDIDATES_MAX` differences wait for their next look.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sync_rules import balance
from sync_rules.attributes import Item
from sync_rules.balance import as_difference, ledgers, still, unbalanced
from sync_rules.cascade import Step, cascade, swept_tables
from sync_rules.compare import (
    Asked,
    Comparison,
    Difference,
    Drift,
    Sweep,
    Verdict,
    ask,
    compare,
    judge,
    look_again,
    sweep_page,
)
from sync_rules.errors import UserError
from sync_rules.model import ItemKey
from sync_rules.repair import mend
from sync_rules.rules import Rules
from sync_rules.store import Read, Work, World, drive

PAGE_MAX_ITEMS: Final = 500
CANDIDATES_MAX: Final = 10_000
LOOK_AGAIN_MAX_ITEMS: Final = 100
GRACE_SECONDS: Final = 120.0  # a record is on its way for a second or two; a delayed one for a minute
Look = Callable[[frozenset[str]], Iterator["Finding"]]  # at all targets asked for, by the rules of these names


@dataclass
class Tally:
    """What a verify found, in (rule, target) pairs, per rule. `right`, `kept` and `lag` are of the last look at a rule;
    what was mended stays counted as drift.
    """

    right: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    lag: Counter[str] = field(default_factory=Counter)
    drift: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    unmended: Counter[tuple[str, Drift]] = field(default_factory=Counter)  # what is left, by rule and kind
    items: int = 0

    @property
    def left(self) -> int:
        """Drift that is still there."""
        return self.drift.total() - self.repaired.total()

    def seen(self, rule: str) -> int:
        """The targets of a rule that were looked at."""
        return sum(counter[rule] for counter in (self.right, self.kept, self.lag, self.drift))

    def start_over(self, rule: str) -> None:
        """Forget what another look at all targets of a rule will find again."""
        for counter in (self.right, self.kept, self.lag):
            del counter[rule]
        self.drift[rule] = self.repaired[rule]
        for key in [key for key in self.unmended if key[0] == rule]:
            del self.unmended[key]


@dataclass(frozen=True)
class Finding:
    """One drift, and whether it was mended."""

    difference: Difference
    repaired: bool = False


class Verifier:
    """One verify run. `on_progress` is called after every page and before and after every wait."""

    def __init__(
        self,
        rules: Rules,
        world: World,
        only: frozenset[str],
        *,
        repair: bool = False,
        grace_seconds: float = GRACE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        on_progress: Callable[[Tally, str], None] = lambda _tally, _doing: None,
    ) -> None:
        self.tally = Tally()
        self._rules = rules
        self._world = world
        self._only = only
        self._repair = repair
        self._grace_seconds = grace_seconds
        self._sleep = sleep
        self._clock = clock
        self._on_progress = on_progress
        self._candidates: list[Difference] = []
        self._last_seen = 0.0
        self._scanned: set[str] = set()

    def sweep(self) -> Iterator[Finding]:
        """Every target table of the rules, from end to end. Raises StoreError when a page cannot be read."""
        return self._in_order(self._only, self._sweep)

    def one(self, key: ItemKey) -> Iterator[Finding]:
        """A single target. A repair mends it alone, whatever else is made from it.

        Raises:
            UserError: when it does not exist, or none of the rules writes such items.
            StoreError: when it cannot be read.
        """

        def look(names: frozenset[str]) -> Iterator[Finding]:
            mended = self.tally.repaired.total() > 0
            self._note(drive(_compare_item(key, self._rules, names, mended=mended), self._world))
            yield from self._settle()

        self.tally.items += 1
        entity = self._rules.entity_of(key)
        about = (*self._rules.into_target(entity), *self._rules.parts_of(entity)) if entity is not None else ()
        asked = self._only.intersection(rule.name for rule in about)
        return self._in_order(asked or self._only, look)

    def _in_order(self, names: frozenset[str], look: Look) -> Iterator[Finding]:
        """Look with these rules: all at once, or, when each look may mend something, step by step down the cascade."""
        steps = cascade(self._rules, names) if self._repair else (Step(names),)
        for step in steps:
            for number in range(step.max_rounds):
                if number > 0:
                    for name in step.names:
                        self.tally.start_over(name)
                repaired = self.tally.repaired.total()
                yield from look(step.names)
                if self.tally.repaired.total() == repaired:
                    break

    def _sweep(self, names: frozenset[str]) -> Iterator[Finding]:
        for table in swept_tables(self._rules, names):
            cursor: Item | None = None
            while True:
                page: Sweep = drive(sweep_page(table, self._rules, names, cursor, PAGE_MAX_ITEMS), self._world)
                self.tally.items += 0 if table.name in self._scanned else page.items
                self._note(page.comparison)
                self._on_progress(self.tally, f"scanning {table.name}")
                if len(self._candidates) >= CANDIDATES_MAX:
                    yield from self._settle()
                cursor = page.cursor
                if cursor is None:
                    break
            self._scanned.add(table.name)
        yield from self._settle()
        yield from self._balance(names)

    def _balance(self, names: frozenset[str]) -> Iterator[Finding]:
        """The totals that are not what their entries add up to, twice in the same way."""
        for table, tallies in ledgers(self._rules, names):
            self._on_progress(self.tally, f"adding up {table.name}")
            found = drive(unbalanced(table, tallies), self._world)
            if found and self._grace_seconds:
                self._on_progress(self.tally, f"{len(found)} differ; looking again in {self._grace_seconds:.0f} s")
                self._sleep(self._grace_seconds)
            for slot, books in drive(still(table, tallies, found), self._world).items() if found else ():
                mended = self._repair and drive(balance.mend(slot, books), self._world)
                self.tally.drift[books.rule.name] += 1
                self.tally.repaired[books.rule.name] += mended
                difference = as_difference(slot, books)
                self.tally.unmended[difference.rule, difference.drift] += not mended
                yield Finding(difference, mended)

    def _note(self, comparison: Comparison) -> None:
        self.tally.right.update(comparison.right)
        self.tally.kept.update(comparison.kept)
        if comparison.different:
            self._candidates += comparison.different
            self._last_seen = self._clock()

    def _settle(self) -> Iterator[Finding]:
        """The second look at what differed, and the third at what that could not tell."""
        found = list({one.subject: one for one in self._candidates}.values())  # a part is seen from both its sides
        self._candidates = []
        unsure = yield from self._look_again(found)
        yield from self._look_again(unsure, last=True)

    def _look_again(
        self, found: Sequence[Difference], *, last: bool = False
    ) -> Generator[Finding, None, list[Difference]]:
        """Another look, once the last of these has had its time. Mends what drifted; gives what is still unsure. At the
        last look nothing is: the same wrong copy three times is one that nobody is at work on.
        """
        unsure: list[Difference] = []
        wait = self._last_seen + self._grace_seconds - self._clock()
        if found and wait > 0:
            self._on_progress(self.tally, f"{len(found)} differ; looking again in {wait:.0f} s to tell lag from drift")
            self._sleep(wait)
        for start in range(0, len(found), LOOK_AGAIN_MAX_ITEMS):
            some = found[start : start + LOOK_AGAIN_MAX_ITEMS]
            comparison = drive(look_again(some, self._rules), self._world)
            self._last_seen = self._clock()
            before = {one.subject: one for one in some}
            judged: dict[Verdict, list[Difference]] = {verdict: [] for verdict in Verdict}
            for one in comparison.different:
                judged[judge(before[one.subject], one)].append(one)
            waiting = [] if last else judged[Verdict.UNSURE]
            drifted = judged[Verdict.DRIFT] + (judged[Verdict.UNSURE] if last else [])
            unsure += waiting
            self.tally.drift.update(one.rule for one in drifted)
            self.tally.lag.update(one.rule for one in some)
            self.tally.lag.subtract(one.rule for one in (*drifted, *waiting))
            yield from self._mend(drifted)
            self._on_progress(self.tally, "looking again")
        return unsure

    def _mend(self, drifted: Sequence[Difference]) -> Iterator[Finding]:
        """Mend what drifted, if asked for, and say of each whether it is right now."""
        unmended = {one.subject for one in drifted}
        if self._repair:
            unmended = set(drive(mend(drifted, self._rules), self._world))
        for one in drifted:
            repaired = one.subject not in unmended
            self.tally.repaired[one.rule] += repaired
            self.tally.unmended[one.rule, one.drift] += not repaired
            yield Finding(one, repaired)


def _compare_item(key: ItemKey, rules: Rules, only: frozenset[str], *, mended: bool) -> Work[Comparison]:
    (item,) = yield Read((key,))
    if item is None and mended:  # it should not have been there
        return Comparison()
    if item is None:
        raise UserError(f"there is no item {key}")
    asked = Asked()
    if not ask(item, rules.tables[key.table], rules, only, asked, alone=True):
        entity = rules.entity_of(key)
        what = f"is a {entity.name}" if entity else "is of no entity"
        raise UserError(f"no rule that is verified writes {key}: it {what}")
    return (yield from compare(asked))
