"""The segments of table scans, as supplies of a backfill. The name of a segment says all that it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sync_rules.jobs.backfill.page import PageResult, Selection, Supply, process_page
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Scan, Work
from sync_rules.rules.order import swept_tables
from sync_rules.rules.ruleset import Rules

PAGE_MAX_ITEMS: Final = 500


@dataclass(frozen=True)
class Segment:
    """One segment of a table scan."""

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


def segments(rules: Rules, total: int, tables: Collection[str] = (), numbers: Iterable[int] | None = None) -> Supplies:
    """The segments of each table that a sweep for the rules reads. If `tables` names any, only their segments; with
    `numbers`, only the segments of this sample.
    """
    some = range(total) if numbers is None else tuple(numbers)

    def of_rules(names: frozenset[str]) -> Sequence[Supply]:
        swept = (table.name for table in swept_tables(rules, names))
        return [Segment(name, number, total) for name in swept if not tables or name in tables for number in some]

    return of_rules
