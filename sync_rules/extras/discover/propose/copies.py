"""Copies: attributes of targets that equal an attribute of the source which they name.

Invariant: candidates are found in a sample that keeps the targets of a source together, and counted over all items.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sync_rules.extras.discover.propose.candidates import Finding
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.evidence import (
    AGREE_MIN,
    BITS_ALIKE,
    BITS_ALONE,
    BITS_NAMED,
    BY_CHANCE,
    CASES_MIN,
    HALF_NAMED,
    KAPPA_MIN,
    NEARLY_NAMED,
    ONE_VALUE,
    VALUES_ALONE,
    VALUES_SURE,
    Agreement,
    Grade,
    chance_of,
    is_generic_moment,
    look_alike,
    names_fit,
)
from sync_rules.extras.discover.propose.frames import MOST, Column
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.proposal import Example
from sync_rules.extras.discover.propose.snapshot_times import snapshot_along
from sync_rules.extras.discover.propose.value_texts import shown

SAMPLE: Final = 6_000  # pairs of a target and its source
RATE_MIN: Final = 0.3  # in the sample, of what is counted; snapshots agree in part
EXAMPLES: Final = 5
TELLING: Final = 6  # letters of a text that is not in two columns by chance
DIFFERING: Final = 0.97  # agree at most: of fewer that differ nobody can tell why
RATE_SURE: Final = 0.85
MANY: Final = 10  # targets of each source
BITS_FEW: Final = 8.0


def copies(database: Database, join: Join) -> list[Finding]:
    """Find what may be copied along a link."""
    targets = [one for one in join.target.columns if one.writable and one not in join.columns and one.profile.count]
    sources = [one for one in join.source.columns if not one.in_identity and not one.is_shadowed and one.profile.count]
    targets = [one for one in targets if not one.profile.is_constant]
    sources = [one for one in sources if not one.profile.is_constant]
    if not targets or not sources:
        return []
    alike = _sampled(database, join, targets, sources)
    if not alike:
        return []
    found = _counted(database, join, alike)
    if join.by_chance and any(one.is_likely for one in found):
        join.confirmed = True
        return _counted(database, join, alike)
    return found


def _sampled(
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
    found = agreements(rows, len(targets))
    pairs = {(targets[left], sources[right]): one for (left, right), one in found.items()}
    return {(left, right): one for (left, right), one in pairs.items() if left is not right}


def agreements(rows: Sequence[tuple[Any, ...]], width: int) -> dict[tuple[int, int], Agreement]:
    """The pairs of columns that agree beyond chance, in rows of a source's number, so many columns, and others."""
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


def _counted(database: Database, join: Join, alike: dict[tuple[Column, Column], Agreement]) -> list[Finding]:
    """Count the candidates over all items."""
    parts = []
    for target, source in alike:
        t, s = f"t.{target.sql}", f"s.{source.sql}"
        parts += [f"count(*) FILTER ({t} IS NOT DISTINCT FROM {s})", f"count(*) FILTER ({t} = {s})"]
        parts += [f"count(*) FILTER ({t} IS NOT NULL OR {s} IS NOT NULL)", f"count({t})"]
    there = " AND ".join(f"t.{one.sql} IS NOT NULL" for one in join.columns)
    total, joined, sources, *counts = database.row(
        f"SELECT (SELECT count(*) FROM {join.target.sql} t WHERE {there}), count(*), count(DISTINCT s.rid), "
        f"{', '.join(parts)} FROM {join.target.sql} t JOIN {join.source.sql} s ON {join.on()}"
    )
    found = []
    for number, ((target, source), sample) in enumerate(alike.items()):
        agree, equal, either, filled = counts[4 * number : 4 * number + 4]
        agreement = replace(sample, pairs=either, agree=equal)
        finding = _finding(join, target, source, agreement)
        if finding.grade == "none" and filled < either and equal >= MOST * filled and finding.named >= HALF_NAMED:
            finding.grade = "weak"
            finding.spoke_against.append(
                f"{joined - filled:,} lack it, and of the others {equal:,} of {filled:,} agree"
            )
        finding.checked, finding.agree = joined, agree
        finding.orphans, finding.sources = total - joined, sources
        if finding.grade != "none":
            finding.examples = examples(database, join, target, source)
        found.append(finding)
        _consider_snapshot(database, join, agreement, finding)
    return found


def _consider_snapshot(database: Database, join: Join, agreement: Agreement, finding: Finding) -> None:
    """Make it a snapshot if what differs is what was written before its source changed."""
    target, source = finding.writes[0], finding.reads[0]
    if agreement.rate > DIFFERING or agreement.kappa < RATE_MIN or join.by_chance:
        return
    why = snapshot_along(database, join, target, source)
    if not why:
        return
    if finding.grade == "none" and finding.named < HALF_NAMED:
        return
    finding.rule = {**finding.rule, "mode": "snapshot"}
    finding.grade = "likely" if finding.grade == "none" else finding.grade
    finding.spoke_for.append(why)
    finding.remarks.append(f"a snapshot: {why}")
    finding.examples = examples(database, join, target, source)


def _finding(join: Join, target: Column, source: Column, agreement: Agreement) -> Finding:
    named = names_fit(target, source, join.columns)
    grade, pro, contra = judged(join, target, source, agreement, named)
    rule: dict[str, object] = {"copy": source.shown, "into": target.shown}
    if join.link:
        rule["link"] = join.link
    finding = Finding("copy", join.source, join.target, (target,), (source,), rule, grade, 0, 0, join=join)
    finding.spoke_for, finding.spoke_against, finding.named = pro, contra, named
    finding.plainness = 10
    finding.figures = {
        "rate": agreement.rate, "chance": agreement.chance, "kappa": agreement.kappa, "bits": agreement.bits,
        "values": agreement.values, "sources": agreement.sources, "name": named,
    }  # fmt: skip
    return finding


def judged(
    join: Join, target: Column, source: Column, agreement: Agreement, named: float
) -> tuple[Grade, list[str], list[str]]:
    """The grade of a copy, and what speaks for and against it."""
    pro = [f"{agreement.rate:.1%} agree, {agreement.chance:.1%} would by chance"]
    contra: list[str] = []
    if named >= HALF_NAMED:
        pro.append("its name says so")
    else:
        contra.append("its name does not say so")
    if agreement.rate < AGREE_MIN or agreement.kappa < KAPPA_MIN:
        contra.append("too few agree")
        return "none", pro, contra
    if agreement.values <= 1:
        return "none", pro, [*contra, ONE_VALUE]
    alike = look_alike(source) or ("" if target.profile.is_small else look_alike(target))
    if join.by_chance and (alike or not _beats_chance(join, agreement, source)):
        return "none", pro, [*contra, BY_CHANCE]
    if is_generic_moment(target) and is_generic_moment(source):
        return "weak", pro, [*contra, "both hold the moment when they were written, which may be the same"]
    grade = _weighed(agreement, named, alike, source)
    if grade in ("weak", "none"):
        contra.append(alike or f"only {agreement.sources} sources agree, in {agreement.values} values")
    return grade, pro, contra


def _beats_chance(join: Join, agreement: Agreement, source: Column) -> bool:
    """True if a copy shows that its link is none by chance: by many values, or by a few that nothing else has."""
    if agreement.values >= VALUES_ALONE and agreement.bits >= 2 * BITS_ALONE:
        return True
    telling = source.profile.is_text and source.profile.longest > TELLING and agreement.rate >= RATE_SURE
    if not telling or agreement.values < CASES_MIN:
        return False
    one_each = agreement.values == agreement.sources and agreement.pairs >= MANY * agreement.sources
    return one_each or agreement.sources * math.log2(join.source.rows) >= BITS_FEW


def _weighed(agreement: Agreement, named: float, alike: str, source: Column) -> Grade:
    """The grade by the weight of the evidence: more is asked of what looks alike, less where a name speaks for it."""
    bits, several = agreement.bits, agreement.values >= VALUES_ALONE
    if not alike:
        if bits >= BITS_ALONE and agreement.values >= VALUES_SURE:
            return "sure"
        if named >= HALF_NAMED and bits >= BITS_NAMED:
            return "likely"
        return "weak" if bits >= BITS_NAMED else "none"
    if named >= NEARLY_NAMED and bits >= BITS_NAMED:
        return "sure" if several and bits >= BITS_ALIKE else "likely"
    if source.profile.is_sequence or agreement.values < CASES_MIN:
        enough = named >= HALF_NAMED and bits >= BITS_ALIKE
    else:
        enough = bits >= (BITS_ALONE if named >= HALF_NAMED else BITS_ALIKE)
    if enough:
        return "likely"
    return "weak" if bits >= BITS_ALONE else "none"


def examples(database: Database, join: Join, target: Column, source: Column) -> tuple[Example, ...]:
    """Some targets that differ, by their keys."""
    rows = database.rows(
        f"SELECT {join.target.key_shown()} k, s.{source.sql}, t.{target.sql} FROM {join.target.sql} t "
        f"JOIN {join.source.sql} s ON {join.on()} WHERE t.{target.sql} IS DISTINCT FROM s.{source.sql} "
        f"ORDER BY k LIMIT {EXAMPLES}"
    )
    return tuple(Example(key, shown(expected), shown(there)) for key, expected, there in rows)
