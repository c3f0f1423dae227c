"""Verify: sweep the targets of some rules, look twice at what differs, and repair what is asked for.

Law: a repair is the same guarded pull as any other, from fresh images, so it never writes over a newer value. Memory is
bounded: at most `CANDIDATES_MAX` differences wait for their second look.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sync_rules.attributes import Item
from sync_rules.compare import Comparison, Difference, Drift, Sweep, compare, look_again, sweep_page, target_of
from sync_rules.entities import Table
from sync_rules.errors import UserError
from sync_rules.fanout import pull
from sync_rules.model import ItemKey
from sync_rules.plan import pull_of
from sync_rules.reconcile import Pace
from sync_rules.rules import Rules
from sync_rules.store import Read, Work, World, drive

PAGE_MAX_ITEMS: Final = 500
CANDIDATES_MAX: Final = 10_000
LOOK_AGAIN_MAX_ITEMS: Final = 100
GRACE_SECONDS: Final = 120.0  # a record is on its way for a second or two; a delayed one for a minute


@dataclass
class Tally:
    """What a verify found, in (rule, target) pairs, per rule."""

    right: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    lag: Counter[str] = field(default_factory=Counter)
    drift: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    items: int = 0

    @property
    def left(self) -> int:
        """Drift that is still there."""
        return self.drift.total() - self.repaired.total()


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

    def sweep(self) -> Iterator[Finding]:
        """Every target table of the rules, from end to end. Raises StoreError when a page cannot be read."""
        for table in target_tables(self._rules, self._only):
            cursor: Item | None = None
            while True:
                page: Sweep = drive(sweep_page(table, self._rules, self._only, cursor, PAGE_MAX_ITEMS), self._world)
                self.tally.items += page.items
                self._note(page.comparison)
                self._on_progress(self.tally, f"scanning {table.name}")
                if len(self._candidates) >= CANDIDATES_MAX:
                    yield from self._settle()
                cursor = page.cursor
                if cursor is None:
                    break
        yield from self._settle()

    def one(self, key: ItemKey) -> Iterator[Finding]:
        """A single target.

        Raises:
            UserError: when it does not exist, or none of the rules writes such items.
            StoreError: when it cannot be read.
        """
        self.tally.items += 1
        self._note(drive(_compare_item(key, self._rules, self._only), self._world))
        yield from self._settle()

    def _note(self, comparison: Comparison) -> None:
        self.tally.right.update(comparison.right)
        self.tally.kept.update(comparison.kept)
        if comparison.different:
            self._candidates += comparison.different
            self._last_seen = self._clock()

    def _settle(self) -> Iterator[Finding]:
        """The second look at what differed, once the last of it has had its time."""
        found, self._candidates = self._candidates, []
        wait = self._last_seen + self._grace_seconds - self._clock()
        if found and wait > 0:
            self._on_progress(self.tally, f"{len(found)} differ; looking again in {wait:.0f} s to tell lag from drift")
            self._sleep(wait)
        for start in range(0, len(found), LOOK_AGAIN_MAX_ITEMS):
            some = found[start : start + LOOK_AGAIN_MAX_ITEMS]
            comparison = drive(look_again(some, self._rules), self._world)
            self.tally.lag.update(one.rule for one in some)
            self.tally.lag.subtract(one.rule for one in comparison.different)
            self.tally.drift.update(one.rule for one in comparison.different)
            yield from self._mend(comparison.different)
            self._on_progress(self.tally, "looking again")

    def _mend(self, drifted: Sequence[Difference]) -> Iterator[Finding]:
        """Pull what drifted, then look whether it is right now. Orphans are only reported: nothing brings them back."""
        mendable = [one for one in drifted if one.drift is not Drift.ORPHAN] if self._repair else []
        unmended: set[tuple[str, ItemKey]] = {(one.rule, one.target) for one in drifted}
        if mendable:
            keys = dict.fromkeys(one.target for one in mendable)
            pulls = [
                replace(again, rules=tuple(rule for rule in again.rules if rule.name in self._only))
                for key in keys
                if (again := pull_of(key, self._rules)) is not None
            ]
            drive(pull(pulls, Pace()), self._world)
            after = drive(look_again(mendable, self._rules), self._world)
            unmended -= {(one.rule, one.target) for one in mendable}
            unmended |= {(one.rule, one.target) for one in after.different}
        for one in drifted:
            repaired = (one.rule, one.target) not in unmended
            self.tally.repaired[one.rule] += repaired
            yield Finding(one, repaired)


def target_tables(rules: Rules, only: frozenset[str]) -> tuple[Table, ...]:
    """The tables that hold targets of the rules in `only`, each once."""
    tables = {rule.target.table.name: rule.target.table for rule in rules.rules.values() if rule.name in only}
    return tuple(tables.values())


def _compare_item(key: ItemKey, rules: Rules, only: frozenset[str]) -> Work[Comparison]:
    (item,) = yield Read((key,))
    if item is None:
        raise UserError(f"there is no item {key}")
    target = target_of(item, rules.tables[key.table], rules, only)
    if target is None:
        entity = rules.entity_of(key)
        what = f"is a {entity.name}" if entity else "is of no entity"
        raise UserError(f"no rule that is verified writes {key}: it {what}")
    return (yield from compare([target]))
