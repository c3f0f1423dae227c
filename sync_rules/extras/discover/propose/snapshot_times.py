"""Snapshots told from drift: differences pile up at targets that are older than their source's last change."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.link_search import Join, equal

ROWS_MAX: Final = 50_000
SOURCES_MIN: Final = 5  # with both: targets that agree, and some that differ
PILED: Final = 0.95  # of the pairs of one that differs and one that agrees, the former is older
COLUMNS_MAX: Final = 4


def snapshot_along(database: Database, join: Join, target: Column, source: Column) -> str:
    """The reason to take a copy for a snapshot; "" if there is none."""
    for moment, kin in _moments(join, target):
        also, alias = "", "t"
        if kin is not None:
            also, alias = f"JOIN {moment.frame.sql} k ON {equal(kin[0], 't', kin[1], 'k')}", "k"
        rows = database.rows(
            f"SELECT s.rid, t.{target.sql} IS DISTINCT FROM s.{source.sql}, {alias}.{moment.sql} "
            f"FROM {join.target.sql} t JOIN {join.source.sql} s ON {join.on()} {also} "
            f"WHERE {alias}.{moment.sql} IS NOT NULL ORDER BY hash(s.rid) LIMIT {ROWS_MAX}"
        )
        if _is_piled(rows, moment):
            return f"what differs is older by {moment.path} than what agrees"
    return ""


def _moments(join: Join, target: Column) -> list[tuple[Column, tuple[Column, Column] | None]]:
    """The columns that tell the age of a target: its dates, those of items with the same key field, its numbers."""
    columns = [one for one in join.target.columns if one is not target and one not in join.columns]
    dates = [one for one in columns if one.profile.is_date]
    near = [
        (one, kin)
        for kin in join.target.kin
        if kin[1].frame is not join.source
        for one in kin[1].frame.columns
        if one.profile.is_date
    ]
    numbers = [one for one in columns if one.in_identity and one.profile.is_sequence]
    return [*((one, None) for one in dates), *near, *((one, None) for one in numbers)][:COLUMNS_MAX]


def _is_piled(rows: list[tuple[int, bool, str]], moment: Column) -> bool:
    def order(text: str) -> tuple[float, str]:
        if moment.profile.is_whole:
            return float(text[1:]), ""
        return 0.0, text[1:]

    by_source: dict[int, tuple[list[tuple[float, str]], list[tuple[float, str]]]] = defaultdict(lambda: ([], []))
    for rid, differs, text in rows:
        by_source[rid][differs].append(order(text))
    older = total = sources = 0
    for agreeing, differing in by_source.values():
        if agreeing and differing:
            sources += 1
            pairs = [(one, other) for one in differing[:50] for other in agreeing[:50]]
            older += sum(one < other for one, other in pairs)
            total += len(pairs)
    return sources >= SOURCES_MIN and older >= PILED * total
