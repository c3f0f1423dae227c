"""Copies: attributes of targets that equal an attribute of the source which they name.

Invariant: candidates are found in a sample that keeps the targets of a source together, and counted over all items.

A copy is a snapshot where differences pile up at targets that are older than the last change of their source.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sync_rules.extras.discover.propose.choice import EXAMPLES, Lead
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.evidence import HALF_NAMED, Agreement, chance_of, grade_copy, names_fit
from sync_rules.extras.discover.propose.frames import MOST, Column
from sync_rules.extras.discover.propose.link_search import Join, equal, present

SAMPLE: Final = 6_000  # pairs of a target and its source
RATE_MIN: Final = 0.3  # in the sample, of what is counted; snapshots agree in part
SNAPSHOT_ROWS_MAX: Final = 50_000
SNAPSHOT_SOURCES_MIN: Final = 5  # with both: targets that agree, and some that differ
PILED: Final = 0.95  # of the pairs of one that differs and one that agrees, the former is older
MOMENTS_MAX: Final = 4
DIFFERING: Final = 0.97  # agree at most: fewer differences do not show a reason


def find_copies(database: Database, join: Join) -> list[Lead]:
    """Find what may be copied along a link."""
    varied = [one for one in join.target.columns if one.profile.count and not one.profile.is_constant]
    targets = [one for one in varied if one.writable and one not in join.columns]
    varied = [one for one in join.source.columns if one.profile.count and not one.profile.is_constant]
    sources = [one for one in varied if not one.in_identity and not one.is_shadowed]
    if not targets or not sources:
        return []
    alike = _sample(database, join, targets, sources)
    if not alike:
        return []
    found = _count(database, join, alike)
    if join.by_chance and any(one.is_likely for one in found):
        join.confirmed = True
        return _count(database, join, alike)
    return found


def _sample(
    database: Database, join: Join, targets: Sequence[Column], sources: Sequence[Column]
) -> dict[tuple[Column, Column], Agreement]:
    """The pairs of columns that agree in a sample."""
    every = max(1, join.target.rows // SAMPLE)
    few = join.source.rows * join.reached < 50 * every  # sources: then any of their targets
    keys = "t.rid" if few else ", ".join(f"substr(t.{one.sql}, 2)" for one in join.columns)
    where = f"WHERE hash({keys}) % {every} = 0" if every > 1 else ""
    names = [f"t.{one.sql}" for one in targets] + [f"s.{one.sql}" for one in sources]
    rows = database.rows(
        f"SELECT s.rid, {', '.join(names)} FROM (SELECT * FROM {join.target.sql} t {where}) t "
        f"JOIN {join.source.sql} s ON {join.on()} LIMIT {4 * SAMPLE}"
    )
    found = find_agreements(rows, len(targets))
    pairs = {(targets[left], sources[right]): one for (left, right), one in found.items()}
    return {(left, right): one for (left, right), one in pairs.items() if left is not right}


def find_agreements(rows: Sequence[tuple[Any, ...]], width: int) -> dict[tuple[int, int], Agreement]:
    """The pairs of columns that agree beyond chance. A row has its source's number, `width` columns, and the others."""
    hits: Counter[tuple[int, int]] = Counter()
    values: dict[tuple[int, int], set[str]] = defaultdict(set)
    by_source: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for row in rows:
        places: dict[str, list[int]] = defaultdict(list)
        for number, value in enumerate(row[width + 1 :]):
            if value is not None and len(value) > 1:
                places[value].append(number)
        for number, value in enumerate(row[1 : width + 1]):
            for other in places.get(value, ()):
                hits[number, other] += 1
                values[number, other].add(value)
                by_source[number, other][row[0]] = value
    counters: dict[int, Counter[str]] = {}
    for place in {place for left, right in hits for place in (1 + left, width + 1 + right)}:
        counters[place] = Counter(row[place] for row in rows if row[place] is not None)
    found = {}
    for pair, agree in hits.items():
        mine, theirs = 1 + pair[0], width + 1 + pair[1]
        pairs = sum(1 for row in rows if row[mine] is not None or row[theirs] is not None)
        chance = chance_of(counters[mine], counters[theirs], pairs)
        repeats = sum(count * count for count in Counter(by_source[pair].values()).values()) / len(by_source[pair]) ** 2
        agreement = Agreement(pairs, agree, chance, len(values[pair]), len(by_source[pair]), repeats)
        if agreement.rate >= RATE_MIN and agreement.kappa >= RATE_MIN:
            found[pair] = agreement
    return found


def _count(database: Database, join: Join, alike: dict[tuple[Column, Column], Agreement]) -> list[Lead]:
    """Count the candidates over all items."""
    parts = []
    for target, source in alike:
        t, s = f"t.{target.sql}", f"s.{source.sql}"
        parts += [f"count(*) FILTER ({t} IS NOT DISTINCT FROM {s})", f"count(*) FILTER ({t} = {s})"]
        parts += [f"count(*) FILTER ({t} IS NOT NULL OR {s} IS NOT NULL)", f"count({t})"]
    there = present(join.columns, "t")
    total, joined, sources, *counts = database.row(
        f"SELECT (SELECT count(*) FROM {join.target.sql} t WHERE {there}), count(*), count(DISTINCT s.rid), "
        f"{', '.join(parts)} FROM {join.target.sql} t JOIN {join.source.sql} s ON {join.on()}"
    )
    found = []
    for number, ((target, source), sample) in enumerate(alike.items()):
        agree, equal, either, filled = counts[4 * number : 4 * number + 4]
        agreement = replace(sample, pairs=either, agree=equal)
        lead = _lead(join, target, source, agreement)
        if lead.grade == "none" and filled < either and equal >= MOST * filled and lead.named >= HALF_NAMED:
            lead.grade = "weak"
            lead.spoke_against.append(f"{joined - filled:,} lack it, and of the others {equal:,} of {filled:,} agree")
        lead.checked, lead.agree = joined, agree
        lead.orphans, lead.sources = total - joined, sources
        if lead.grade != "none":
            lead.examples = _list_differing_keys(database, join, target, source)
        found.append(lead)
        _consider_snapshot(database, join, agreement, lead)
    return found


def _consider_snapshot(database: Database, join: Join, agreement: Agreement, lead: Lead) -> None:
    """Make it a snapshot if what differs is what was written before its source changed."""
    target, source = lead.writes[0], lead.reads[0]
    if agreement.rate > DIFFERING or agreement.kappa < RATE_MIN or join.by_chance:
        return
    why = _snapshot_along(database, join, target, source)
    if not why:
        return
    if lead.grade == "none" and lead.named < HALF_NAMED:
        return
    lead.rule = {**lead.rule, "mode": "snapshot"}
    lead.grade = "likely" if lead.grade == "none" else lead.grade
    lead.spoke_for.append(why)
    lead.remarks.append(f"a snapshot: {why}")
    lead.examples = _list_differing_keys(database, join, target, source)


def _lead(join: Join, target: Column, source: Column, agreement: Agreement) -> Lead:
    named = names_fit(target, source, join.columns)
    grade, pro, contra = grade_copy(target, source, agreement, named, by_chance=join.by_chance)
    rule = {"copy": source.column_name, "into": target.column_name, **join.options()}
    figures = {
        "rate": agreement.rate, "chance": agreement.chance, "kappa": agreement.kappa, "bits": agreement.bits,
        "values": agreement.values, "sources": agreement.sources, "name": named,
    }  # fmt: skip
    return Lead(
        "copy", join.source, join.target, (target,), (source,), rule, grade, 0, 0, join=join, spoke_for=pro,
        spoke_against=contra, named=named, plainness=10, figures=figures,
    )  # fmt: skip


def _list_differing_keys(database: Database, join: Join, target: Column, source: Column) -> tuple[str, ...]:
    """Keys of some targets that differ."""
    rows = database.rows(
        f"SELECT {join.target.make_key_sql()} k FROM {join.target.sql} t JOIN {join.source.sql} s ON {join.on()} "
        f"WHERE t.{target.sql} IS DISTINCT FROM s.{source.sql} ORDER BY k LIMIT {EXAMPLES}"
    )
    return tuple(key for (key,) in rows)


# ---------------------------------------------------------------- snapshots
def _snapshot_along(database: Database, join: Join, target: Column, source: Column) -> str:
    """The reason to take a copy for a snapshot; "" if there is none."""
    for moment, kin in _moments(join, target):
        also, alias = "", "t"
        if kin is not None:
            also, alias = f"JOIN {moment.frame.sql} k ON {equal(kin[0], 't', kin[1], 'k')}", "k"
        rows = database.rows(
            f"SELECT s.rid, t.{target.sql} IS DISTINCT FROM s.{source.sql}, {alias}.{moment.sql} "
            f"FROM {join.target.sql} t JOIN {join.source.sql} s ON {join.on()} {also} "
            f"WHERE {alias}.{moment.sql} IS NOT NULL ORDER BY hash(s.rid) LIMIT {SNAPSHOT_ROWS_MAX}"
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
    return [*((one, None) for one in dates), *near, *((one, None) for one in numbers)][:MOMENTS_MAX]


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
    return sources >= SNAPSHOT_SOURCES_MIN and older >= PILED * total
