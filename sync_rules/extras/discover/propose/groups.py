"""Maps, lists and sets of parents that are made from their children: embed, collect, and counts by a value; the best is
chosen.

Invariant: the expected value of a parent is made from its children as the rule would make it, and compared as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import make_singular
from sync_rules.extras.discover.propose.choice import Lead, select_examples
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.differences import FAULTS_MIN
from sync_rules.extras.discover.propose.evidence import (
    AGREE_MIN,
    KAPPA_MIN,
    ONE_VALUE,
    Agreement,
    Grade,
    compute_chance,
)
from sync_rules.extras.discover.propose.expectation import score_entries
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.group_shapes import PROBE, PROBE_MIN, GroupShape, GroupShapes
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.parents import (
    DIFFER_MAX,
    IDLE_MAX,
    ChildCondition,
    Families,
    Parent,
    ask_if_own,
    filter_children,
    list_conditions,
    may_decide,
)
from sync_rules.extras.discover.propose.value_texts import MAP, NULL

PARENTS: Final = 1_500  # in the sample, each with all of its children
PART: Final = 20_000  # parents that are counted together
ROWS: Final = 50_000  # children that are read together: each has all of its columns in memory
CHILDREN_MAX: Final = 500  # of a parent in the sample, on average
HALF: Final = 0.5  # agree at least: each of several children may be wrong
FEW: Final = 0.2  # agree at least where most of their entries do
LONG_MIN: Final = 6  # letters of a text that several values may be joined in
BETTER: Final = 0.02  # so much more must agree with a condition than without
EVEN: Final = 0.0005  # of two that differ by less, the first one stays
FIRST: Final = frozenset({"first", "last", "latest", "newest", "oldest", "earliest", "recent", "recently", "previous"})


def find_groups(database: Database, join: Join) -> list[Lead]:
    """Find the maps, lists and sets of a link's sources that hold its targets."""
    source = join.source
    columns = {column.road: column for column in source.columns if column.writable}
    roads = [columns[road] for road in source.roads if road in columns]
    texts = [one for one in columns.values() if one.profile.is_text and one.profile.longest > LONG_MIN]
    roads += [one for one in columns.values() if one.profile.types - {NULL} == {MAP} and one not in roads]
    roads += [] if join.by_chance else texts
    if not roads or (join.by_chance and join.source is join.target) or join.each > CHILDREN_MAX:
        return []
    search = _GroupSearch(database, join)
    return [lead for column in roads for lead in search.of(column)]


class _GroupSearch:
    """The search along one link."""

    def __init__(self, database: Database, join: Join) -> None:
        self.join = join
        self.columns = [one for one in join.target.columns if not one.is_shadowed and one.profile.count]
        self.families = Families(database, join, self.columns)
        self.shapes = GroupShapes(join, self.columns)
        self.places = self.shapes.places
        self.linked = int(join.each * join.reached * join.source.rows)  # children that name a parent
        self.parts = max(1, join.source.rows // PARENTS, self.linked // ROWS)
        self.children = self.families.children(self.parts)

    def of(self, column: Column) -> Iterator[Lead]:
        """The best lead for one attribute of the parents."""
        sample = [
            one for one in self.families.parents(column, self.parts, self.children).values() if one.held or one.children
        ]
        there = [one for one in sample if one.held]
        if len(there) <= 1:
            return
        best: tuple[GroupShape, Agreement, ChildCondition | None] | None = None
        for condition in [None, *self._list_conditions(column, sample)]:
            shown = filter_children(sample, condition, self.places)
            for shape in self.shapes.of(column, shown):
                agreement = _measure_agreement(shape, shown)
                if agreement is not None and (
                    best is None or agreement.rate > best[1].rate + (BETTER if condition else EVEN)
                ):
                    best = shape, agreement, condition
            if condition is None and (
                best[1].rate >= AGREE_MIN if best else not self.shapes.has_values_of_children(sample)
            ):
                break
        if best is not None:
            yield self._count(column, *best)

    def _list_conditions(self, column: Column, sample: Sequence[Parent]) -> Iterator[ChildCondition]:
        """Conditions under which as many children are left as the parents have entries."""
        probe = [one for one in sample if one.entries][:PROBE]
        if column.profile.types <= {"S", "N"}:
            probe = probe[: PROBE // 2]
        for decider in self.columns:
            if not may_decide(decider):
                continue
            place = self.places[id(decider)]
            values = {row[place] for parent in sample for row in parent.children}
            for condition in list_conditions(decider, values):
                counts = [sum(row[place] in condition.values for row in one.children) for one in probe]
                hits = sum(count >= len(one.entries) for count, one in zip(counts, probe, strict=True))
                exact = sum(count == len(one.entries) for count, one in zip(counts, probe, strict=True))
                is_set = column.profile.types <= {"S", "N", "z"}
                if hits >= PROBE_MIN * len(probe) and (is_set or exact >= PROBE_MIN * len(probe)):
                    yield condition

    # ------------------------------------------------------------ counting
    def _count(self, column: Column, shape: GroupShape, sample: Agreement, condition: ChildCondition | None) -> Lead:
        agree = checked = sources = overwrites = strays = own = 0
        differing: list[str] = []
        parts = 1 + max(self.join.source.rows // PART, self.linked // ROWS)
        for part in range(parts):
            parents = self.families.parents(column, parts, self.families.children(parts, part), part).values()
            for parent in filter_children(list(parents), condition, self.places):
                checked += 1
                sources += bool(parent.children)
                expected, held = shape.expected(parent.children), shape.found(parent)
                if expected == held:
                    agree += 1
                else:
                    differing.append(parent.key)
                    if parent.held is not None:
                        own += not parent.children
                        more = _count_surplus(expected, held)
                        strays += more > 0 and not (shape.kind in ("count", "sum") and held.keys() <= expected.keys())
                        overwrites += more if isinstance(held, dict) or shape.adds_elements else 1
            differing = list(select_examples(differing))
        named = _score_name(column, self.join, shape)
        rate = agree / checked if checked else 0.0
        grade, contra = _grade(self.join, sample, rate, named)
        rule = {**shape.rule, **self.join.options(condition.where if condition else "")}
        reads = (*shape.reads, *((condition.column,) if condition else ()))
        inside = tuple(
            one for one in self.join.source.columns if one.road[: len(column.road)] == column.road and one is not column
        )
        lead = Lead(
            shape.kind, self.join.target, self.join.source, (column, *inside), reads, rule, grade, checked, agree,
            join=self.join, sources=sources, examples=tuple(differing), named=named, spoke_against=contra,
            spoke_for=[f"{agree} of {checked} agree, {sample.chance:.1%} would by chance"],
            plainness=12 + 2 * bool(condition), figures={"rate": rate, **sample.figures}, overwrites=overwrites,
        )  # fmt: skip
        if lead.is_likely and shape.is_of_one:
            why = "its name does not say first or last" if not column.words & FIRST else ""
            why = why or (f"{own:,} have one, and no children" if own > max(1, IDLE_MAX * (checked - sources)) else "")
            why = why or (f"{lead.differ:,} differ" if lead.differ > DIFFER_MAX["max"] * checked else "")
            if why:
                lead.hold_back(ask_if_own(column, self.join, why))
        elif lead.is_likely and strays > (1 - FAULTS_MIN) * overwrites:
            lead.hold_back(f"it would remove what {strays:,} {self.join.source.name} items hold and no child does")
        return lead


# ---------------------------------------------------------------- judging
def _measure_agreement(shape: GroupShape, sample: Sequence[Parent]) -> Agreement | None:
    """The agreement of the parents that hold something, or should; after a probe of a few."""
    there = [one for one in sample if one.held or one.children]
    probe = [one for one in there if one.held][:PROBE]
    if sum(score_entries(shape.expected(one.children), shape.found(one)) for one in probe) < PROBE_MIN * len(probe):
        return None
    mine: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    agree = several = 0
    alike = 0.0
    values = set()
    for parent in there:
        expected, held = shape.expected(parent.children), shape.found(parent)
        shown = _show(held)
        mine[shown] += 1
        theirs[_show(expected)] += 1
        alike += score_entries(expected, held)
        if expected == held:
            agree += 1
            values.add(shown)
            several += len(parent.children) > 1
    chance = compute_chance(mine, theirs, len(there))
    groups = several or agree // 2
    return Agreement(len(there), agree, chance, len(values), groups, chance, alike / len(there))


def _count_surplus(expected: Any, held: Any) -> int:
    """The elements and entries that are held and that no child makes; what is only missing is a fault."""
    if isinstance(held, frozenset):
        return len(held - (expected or frozenset()))
    if isinstance(held, dict):
        return sum(expected.get(name) != one for name, one in held.items())
    return sum(one not in expected for one in held) if isinstance(held, list) else 1


def _show(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, frozenset) else str(value)


def _score_name(column: Column, join: Join, shape: GroupShape) -> float:
    mine = {make_singular(word) for word in column.words}
    child = {make_singular(word) for word in join.target.words}
    read = {make_singular(word) for one in shape.reads for word in one.words}
    return min(1.0, 0.6 * bool(mine & child) + 0.6 * bool(mine & read))


def _grade(join: Join, sample: Agreement, rate: float, named: float) -> tuple[Grade, list[str]]:
    if min(sample.rate, sample.kappa, rate) < (FEW if sample.near >= AGREE_MIN else HALF):
        return "none", ["too few agree"]
    if min(sample.rate, rate) < AGREE_MIN or sample.kappa < KAPPA_MIN:
        return "weak", ["too few agree: the children may be wrong themselves"]
    if sample.values <= 1:
        return "none", [ONE_VALUE]
    grade, contra = sample.grade(named, by_chance=join.by_chance)
    return grade, [contra] if contra else []
