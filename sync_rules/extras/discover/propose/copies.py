"""Copies: attributes of targets that equal an attribute of their source.

Invariant: candidates are found in a sample that keeps the targets of a source together, and counted over all items. A
copy is a snapshot if the differing targets are older than the last change of their source. If differences may be
intended, the copy is a comment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sync_rules.extras.discover.propose.choice import EXAMPLES, Lead
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.differences import OddCopies, find_mark
from sync_rules.extras.discover.propose.evidence import (
    BITS_ALONE,
    HALF_NAMED,
    VALUES_ALONE,
    Agreement,
    compute_chance,
    grade_copy,
    score_names,
)
from sync_rules.extras.discover.propose.frames import MOST, Column
from sync_rules.extras.discover.propose.link_search import Join, make_presence

SAMPLE: Final = 6_000  # pairs of a target and its source
RATE_MIN: Final = 0.3  # in the sample, of what is counted; snapshots agree in part
LACKING_MAX: Final = 0.12  # of the targets lack the copy: more may be meant so


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
        chance = compute_chance(counters[mine], counters[theirs], pairs)
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
    there = make_presence(join.columns, "t")
    total, joined, sources, *counts = database.row(
        f"SELECT (SELECT count(*) FROM {join.target.sql} t WHERE {there}), count(*), count(DISTINCT s.rid), "
        f"{', '.join(parts)} FROM {join.target.sql} t JOIN {join.source.sql} s ON {join.on()}"
    )
    found = []
    for number, ((target, source), sample) in enumerate(alike.items()):
        agree, equal, either, filled = counts[4 * number : 4 * number + 4]
        agreement = replace(sample, pairs=either, agree=equal)
        lead = _make_lead(join, target, source, agreement)
        if lead.grade == "none" and filled < either and equal >= MOST * filled and lead.named >= HALF_NAMED:
            lead.grade = "weak"
            lead.spoke_against.append(f"{joined - filled:,} lack it, and of the others {equal:,} of {filled:,} agree")
        lead.checked, lead.agree = joined, agree
        lead.orphans, lead.sources = total - joined, sources
        lead.overwrites = filled - equal
        found.append(lead)
        _judge(database, join, agreement, lead, filled)
    return found


def _judge(database: Database, join: Join, agreement: Agreement, lead: Lead, filled: int) -> None:
    """Hold a copy back whose backfill would overwrite what may be meant; make it a snapshot where time shows it."""
    target, source = lead.writes[0], lead.reads[0]
    may_be_told = lead.named >= HALF_NAMED and agreement.kappa >= RATE_MIN and not join.by_chance
    if lead.grade == "none" and not may_be_told:
        return
    lead.examples = _list_differing_keys(database, join, target, source)
    rows = f"{join.target.sql} i JOIN {join.source.sql} s ON {join.on('i')}"
    if lead.is_likely and lead.differ:
        differs = f"i.{target.sql} IS DISTINCT FROM s.{source.sql}"
        mark = find_mark(database, join.target, rows, differs, (target, *join.columns))
        if mark:
            lead.hold_back(f"what differs has {mark}: it may be meant, {lead.overwrites:,} values")
            return
    if lead.is_likely and lead.checked - filled > LACKING_MAX * lead.checked:
        lead.hold_back(f"{lead.checked - filled:,} lack it, which may be meant")
    if not lead.overwrites:
        return
    verdict, why = OddCopies(database, join, target, source).find_reason()
    if verdict == "snapshot":
        lead.rule = {**lead.rule, "mode": "snapshot"}
        lead.grade = "likely" if lead.grade == "none" else lead.grade
        lead.overwrites = 0
        lead.remarks.append(f"a snapshot: {why}")
    elif verdict == "faults" and lead.is_likely:
        lead.spoke_for.append(why)
    elif lead.grade != "none" or (agreement.values >= VALUES_ALONE and agreement.bits >= BITS_ALONE):
        lead.hold_back(f"it would overwrite {lead.overwrites:,} values of {why}: mode: snapshot, or no rule?")


def _make_lead(join: Join, target: Column, source: Column, agreement: Agreement) -> Lead:
    named = score_names(target, source, join.columns)
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
