"""Numbers of parents that their children add up to: count, sum, mean, min and max, with a condition on one attribute.

Invariant: each number is compared with that of a parent's children, and with what children of other parents would make.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sync_rules.extras.discover.imports.identifiers import make_singular
from sync_rules.extras.discover.propose.choice import EXAMPLES, Lead
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.differences import find_mark
from sync_rules.extras.discover.propose.evidence import (
    AGREE_MIN,
    BITS_ALONE,
    CASES_MIN,
    KAPPA_MIN,
    Agreement,
    Grade,
    compute_chance,
)
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.parents import (
    DIFFER_MAX,
    IDLE_MAX,
    ChildCondition,
    ask_if_own,
    list_conditions,
    may_decide,
)
from sync_rules.extras.discover.propose.value_texts import NUMBER
from sync_rules.language.kinds.count import PLACES_DEFAULT
from sync_rules.model.numbers import compute_mean

PARENTS: Final = 3_000  # in the sample, each with all of its children
AMOUNTS_MAX: Final = 12  # columns that are added up
CONDITIONS_MAX: Final = 10  # columns by whose values children are left out
RATE_MIN: Final = 0.5
PROBE: Final = 60  # parents on which a number is tried first
PROBE_MIN: Final = 0.35
EACH_MIN: Final = 1.5
REACHED_MIN: Final = 0.3
BETTER: Final = 0.02  # so much more must agree with a condition than without
EVEN: Final = 0.0001  # of two that differ by less, the first one stays
MORE_ASKED: Final = 1.5  # times the evidence, of a number under a condition: many are tried
DIFFER_MIN: Final = 0.3  # of the parents with several children have different amounts, that one of them is the least
MATTER_MIN: Final = 3  # parents of two children or more, at least
ONE_SIDED_MIN: Final = 5  # parents that differ, all in one direction: no fault does that
SCALE: Final = 10  # decimal places that statements keep
TOTAL_MAX: Final = 10 ** (37 - 2 * SCALE)  # the largest total of a mean: a DECIMAL must hold 10**SCALE times as much
DECIMAL: Final = f"DECIMAL(38, {SCALE})"
COUNTED: Final = frozenset({"count", "counts", "number", "num", "n", "total", "size", "qty", "amount", "items"})
SPOKEN: Final = {
    "count": COUNTED,
    "sum": frozenset({"sum", "total", "spent", "amount", "volume", "balance", "revenue", "points", "score"}),
    "mean": frozenset({"mean", "average", "avg", "rating"}),
    "min": frozenset({"min", "minimum", "least", "lowest", "smallest", "cheapest", "first", "earliest", "shortest"}),
    "max": frozenset({"max", "maximum", "most", "highest", "largest", "biggest", "last", "latest", "best", "longest"}),
}  # fmt: skip


OWN: Final = frozenset({
    "capacity", "limit", "quota", "budget", "planned", "plan", "target", "allowed", "reserved", "goal",
})  # fmt: skip


class Amounts(NamedTuple):
    """The amounts of some children in one column."""

    total: Decimal
    least: Decimal
    most: Decimal
    number: int


@dataclass
class ChildSum:
    """The children of one parent that have one value of a column: how many, and their amounts by column."""

    count: int = 0
    amounts: dict[int, Amounts] = field(default_factory=dict)


@dataclass(frozen=True)
class NumberForm:
    """A number that children may make: its kind, the column with its place among the amounts, the condition, and the
    decimal places of a mean.
    """

    kind: str
    amount: Column | None = None
    place: int = -1
    condition: ChildCondition | None = None
    places: int = PLACES_DEFAULT

    def of(self, children: ChildSum | None) -> Decimal | None:
        """The number that some children make; None for the mean, the least and the most of no amounts."""
        if self.kind == "count":
            return Decimal(children.count if children is not None else 0)
        amounts = children.amounts.get(self.place) if children is not None else None
        if amounts is None:
            return Decimal(0) if self.kind == "sum" else None
        match self.kind:
            case "sum":
                return amounts.total
            case "mean":
                return compute_mean(amounts.total, Decimal(amounts.number), self.places)
            case "min":
                return amounts.least
        return amounts.most

    def make_sql(self) -> str:
        """Return the number of a group of children, which statements call `t`. The rule rounds a mean alike."""
        where = f" FILTER ({self.condition.sql})" if self.condition is not None else ""
        if self.amount is None:
            return f"count(*){where}"
        amount = _make_decimal_sql(self.amount, "t")
        if self.kind == "sum":
            return f"coalesce(sum({amount}){where}, 0)"
        if self.kind != "mean":
            return f"{self.kind}({amount}){where}"
        total, number = f"sum({amount}){where}", f"count({amount}){where} * {10 ** (SCALE - self.places)}"
        scaled = f"(CASE WHEN abs({total}) <= {TOTAL_MAX} THEN abs({total}) * {10**SCALE} END)::HUGEINT"
        rounded = f"((2 * {scaled} + {number}) // nullif(2 * {number}, 0))::DECIMAL(28, 0)"
        unit = f"{Decimal(1).scaleb(-self.places):f}::DECIMAL({SCALE}, {self.places})"
        return f"sign({total}) * {rounded} * {unit}"


Sums = Mapping[int, ChildSum]  # of the children of each parent that count
BestForms = dict[int, tuple[NumberForm, Agreement]]  # of each number of the parents


def find_numbers(database: Database, join: Join) -> list[Lead]:
    """Find the numbers of a link's sources that its targets add up to."""
    totals = [
        one for one in join.source.columns if one.writable and one.profile.is_number and not one.profile.is_constant
    ]
    if not totals or join.is_one_to_one or (join.by_chance and not _is_plausible(join)):
        return []
    return list(_NumberSearch(database, join, totals).list_leads())


def _is_plausible(join: Join) -> bool:
    """False for numbers that are found among others by chance, and group nothing."""
    return join.source is not join.target and join.each >= EACH_MIN and join.reached >= REACHED_MIN


class _NumberSearch:
    """The search along one link, in a sample of the parents with all of their children."""

    def __init__(self, database: Database, join: Join, totals: Sequence[Column]) -> None:
        self.database, self.join, self.totals = database, join, totals
        children = [one for one in join.target.columns if not one.is_shadowed and one not in join.columns]
        amounts = [one for one in children if one.profile.is_number]
        self.amounts = sorted(amounts, key=lambda one: one.in_identity)[:AMOUNTS_MAX]
        self.deciders = [one for one in children if may_decide(one)][:CONDITIONS_MAX]
        every = max(1, join.source.rows // PARENTS)
        self.sample = f"SELECT * FROM {join.source.sql} s" + (f" WHERE hash(s.rid) % {every} = 0" if every > 1 else "")
        names = ", ".join(_make_decimal_sql(one, "s") for one in totals)
        self.parents = {row[0]: row[1:] for row in database.rows(f"SELECT s.rid, {names} FROM ({self.sample}) s")}
        self.all = {rid: sums[None] for rid, sums in self._sum_children(None).items()}
        self.varied = frozenset(place for place in range(len(self.amounts)) if self._differs(place))
        found = {self._count_places(one) for one in totals} - {PLACES_DEFAULT}
        self.places = (PLACES_DEFAULT, *sorted(places for places in found if places <= SCALE))  # the first that agrees
        self.probe = [rid for rid, sums in self.all.items() if sums.count > 1][:PROBE]

    def list_leads(self) -> Iterator[Lead]:
        """The best lead for each number: without a condition, or with one where that says more."""
        best: BestForms = {}
        for form in self._list_forms(None):
            self._try(form, self.all, best)
        for column in self.deciders:
            sums = self._sum_children(column)
            for condition in list_conditions(column, {value for each in sums.values() for value in each}):
                left = {rid: _add(each, condition.values) for rid, each in sums.items()}
                for form in self._list_forms(condition):
                    self._try(form, left, best)
        for place, (form, agreement) in best.items():
            yield self._count(self.totals[place], form, agreement)

    def _sum_children(self, by: Column | None) -> dict[int, dict[str | None, ChildSum]]:
        """The children of each parent, by the values of a column."""
        amounts = "".join(
            f", sum({x}), min({x}), max({x}), count({x})" for x in (_make_decimal_sql(one, "t") for one in self.amounts)
        )
        value = "NULL" if by is None else f"t.{by.sql}"
        found: dict[int, dict[str | None, ChildSum]] = defaultdict(dict)
        for row in self.database.rows(
            f"SELECT s.rid, {value}, count(*){amounts} FROM ({self.sample}) s JOIN {self.join.target.sql} t "
            f"ON {self.join.on()} GROUP BY 1, 2"
        ):
            one = ChildSum(row[2])
            for place in range(len(self.amounts)):
                total, least, most, number = row[3 + 4 * place : 7 + 4 * place]
                if number:
                    one.amounts[place] = Amounts(total, least, most, number)
            found[row[0]][row[1]] = one
        return found

    def _list_forms(self, condition: ChildCondition | None) -> Iterator[NumberForm]:
        """The numbers to try. An amount that names the children, as a time does, is never added up."""
        yield NumberForm("count", condition=condition)
        for place, amount in enumerate(self.amounts):
            if condition is None or amount is not condition.column:
                kinds = [] if amount.in_identity else ["sum"]
                kinds += ["min", "max"] if place in self.varied else []
                yield from (NumberForm(kind, amount, place, condition) for kind in kinds)
                if place in self.varied and not amount.in_identity:
                    yield from (NumberForm("mean", amount, place, condition, places) for places in self.places)

    def _count_places(self, total: Column) -> int:
        """The decimal places of a number of the parents: as many as its longest value has."""
        digits = f"split_part(s.{total.sql}, '.', 2)"
        return int(self.database.row(f"SELECT coalesce(max(length({digits})), 0) FROM ({self.sample}) s")[0])

    def _differs(self, place: int) -> bool:
        """True if children of one parent have several amounts: else the least says nothing that a copy does not."""
        several = [one.amounts[place] for one in self.all.values() if place in one.amounts]
        differ = sum(one.least < one.most for one in several)
        groups = sum(one.count > 1 for one in self.all.values())
        return differ >= max(MATTER_MIN, DIFFER_MIN * groups)

    def _try(self, form: NumberForm, sums: Sums, best: BestForms) -> None:
        """Keep the form for each number of the parents with which it agrees better than the best so far."""
        places = self._probe(form, sums)
        if not places:
            return
        wanted = {rid: (form.of(sums.get(rid)), self.all[rid].count if rid in self.all else 0) for rid in self.parents}
        if len({value for value, _ in wanted.values()}) <= 1:
            return
        telling = self._list_deciding_parents(form, sums)
        for place in places:
            there = {rid: row[place] for rid, row in self.parents.items()}
            agreement = _compare(there, wanted)
            right = sum(there[rid] == wanted[rid][0] for rid in telling)
            if agreement is None or len(telling) < MATTER_MIN or right < AGREE_MIN * len(telling):
                continue
            before = best.get(place)
            more = EVEN if before is None or before[0].condition or not form.condition else BETTER
            if before is None or agreement.kappa >= before[1].kappa + more:
                best[place] = form, agreement

    def _list_deciding_parents(self, form: NumberForm, sums: Sums) -> list[int]:
        """The parents that tell a form from a plainer one: several amounts from one, the children that a condition
        leaves from all of them.
        """
        there = [rid for rid in self.parents if rid in self.all]
        if form.condition is not None:
            return [rid for rid in there if form.of(sums.get(rid)) != form.of(self.all[rid])]
        if form.kind == "count":
            return [rid for rid in there if self.all[rid].count > 1]
        amounts = [(rid, sums[rid].amounts.get(form.place)) for rid in there if rid in sums]
        if form.kind == "sum":
            return [rid for rid, one in amounts if one is not None and one.total not in (one.least, one.most)]
        return [rid for rid, one in amounts if one is not None and one.least < one.most]

    def _probe(self, form: NumberForm, sums: Sums) -> list[int]:
        """The numbers of the parents that some of them have so."""
        hits = [0] * len(self.totals)
        for rid in self.probe:
            value = form.of(sums.get(rid))
            for place, there in enumerate(self.parents[rid]):
                if there == value or (there is None and not value):
                    hits[place] += 1
        return [place for place, count in enumerate(hits) if count and count >= PROBE_MIN * len(self.probe)]

    # ---------------------------------------------------------------- over all
    def _count(self, total: Column, form: NumberForm, sample: Agreement) -> Lead:
        over = self._count_over_all(total, form)
        agree, checked = over.agree, over.checked
        rate = over.agree / over.checked if over.checked else 0.0
        named = _score_name(total, form, self.join)
        grade, contra = _grade(self.join, form, sample, rate, named)
        reads = tuple(one for one in (form.amount, form.condition.column if form.condition else None) if one)
        child, parent = self.join.target, self.join.source
        first = child.name if form.amount is None else form.amount.column_name
        rule = {
            form.kind: first,
            "into": total.column_name,
            **({"places": form.places} if form.kind == "mean" and form.places != PLACES_DEFAULT else {}),
            **self.join.options(form.condition.where if form.condition else ""),
        }
        figures = {"rate": rate, **sample.figures, "groups": sample.sources, "name": named}
        lead = Lead(
            form.kind, child, parent, (total,), reads, rule, grade, checked, agree, join=self.join,
            sources=over.sources, examples=over.examples, named=named, spoke_for=[sample.format_against_chance(rate)],
            spoke_against=contra, plainness=16 + (0 if form.kind == "count" else 1) + (2 if form.condition else 0),
            figures=figures, overwrites=over.higher + over.lower,
        )  # fmt: skip
        why = (_is_own_by_name(total, form) or over.is_own(form.kind)) if lead.is_likely else ""
        if why or (lead.is_likely and over.mark):
            why = why or f"what differs has {over.mark}"
            lead.hold_back(ask_if_own(total, self.join, why))
        return lead

    def _count_over_all(self, total: Column, form: NumberForm) -> NumberCount:
        parent, child = self.join.source, self.join.target
        there = _make_decimal_sql(total, "i")
        empty = "0" if form.kind in ("count", "sum") else "NULL"
        self.database.run(
            f"CREATE OR REPLACE TEMP TABLE wanted AS SELECT s.rid AS rid, {form.make_sql()} AS w FROM {parent.sql} s "
            f"JOIN {child.sql} t ON {self.join.on()} GROUP BY s.rid"
        )
        w = f"(CASE WHEN w.rid IS NULL THEN {empty} ELSE w.w END)"
        rows = f"{parent.sql} i LEFT JOIN wanted w ON w.rid = i.rid"
        differs = f"{there} IS DISTINCT FROM {w}"
        figures = self.database.row(
            f"SELECT count(*) FILTER (NOT {differs}), count(*), count(w.rid), "
            f"count(*) FILTER ({there} > {w} OR ({there} IS NOT NULL AND {w} IS NULL)), "
            f"count(*) FILTER ({there} < {w}), count(*) FILTER (w.rid IS NULL), "
            f"count(*) FILTER (w.rid IS NULL AND coalesce({there}, 0) <> 0) FROM {rows}"
        )
        keys = self.database.rows(
            f"SELECT {parent.make_key_sql('i')} k FROM {rows} WHERE {differs} ORDER BY k LIMIT {EXAMPLES}"
        )
        mark = find_mark(self.database, parent, rows, differs, (total,))
        self.database.run("DROP TABLE wanted")
        return NumberCount(mark, tuple(key for (key,) in keys), *figures)


@dataclass(frozen=True)
class NumberCount:
    """A number over all parents. `agree` of `checked` parents agree; `sources` have children; `higher` and `lower`
    differ in that direction. `idle` have no children, and `idle_with_value` of these still have a value.
    """

    mark: str
    examples: tuple[str, ...]
    agree: int
    checked: int
    sources: int
    higher: int
    lower: int
    idle: int
    idle_with_value: int

    def is_own(self, kind: str) -> str:
        """The reason to take the number for the parent's own; "" if there is none."""
        differ = self.checked - self.agree
        if self.idle_with_value > max(1, IDLE_MAX * self.idle):
            return f"{self.idle_with_value:,} have one, and no children"
        if max(self.higher, self.lower) >= ONE_SIDED_MIN and 0 in (self.higher, self.lower):
            return f"all {max(self.higher, self.lower):,} that differ are {'higher' if self.higher else 'lower'}"
        if differ > DIFFER_MAX[kind] * self.checked:
            return f"{differ:,} differ"
        return ""


def _is_own_by_name(total: Column, form: NumberForm) -> str:
    """The reason why a name does not say a number of children; "" if it does."""
    spoken = total.words & SPOKEN[form.kind]
    if total.words & OWN:
        return "its name says a limit, or a plan"
    if form.kind in ("mean", "min", "max") and not spoken:
        return f"its name does not say {form.kind}"
    same = form.kind == "sum" and form.amount is not None and form.amount.words == total.words
    return "it has the name of what is added up" if same and not spoken else ""


def _make_decimal_sql(column: Column, alias: str) -> str:
    name = f"{alias}.{column.sql}"
    return f"CASE WHEN {name}[1] = '{NUMBER}' THEN try_cast(substr({name}, 2) AS {DECIMAL}) END"


# ---------------------------------------------------------------- comparing
def _compare(held: Mapping[int, Any], wanted: Mapping[int, tuple[Decimal | None, int]]) -> Agreement | None:
    """The agreement over parents; values and sources are those of parents with two children or more."""
    mine: Counter[Any] = Counter()
    theirs: Counter[Any] = Counter()
    pairs = agree = groups = 0
    values = set()
    for rid, there in held.items():
        value, count = wanted[rid]
        if there is None and (value is None or not value):
            continue
        pairs += 1
        mine[there] += there is not None
        theirs[value] += value is not None
        if value is not None and there == value:
            agree += 1
            values.add(value)
            groups += count > 1
    if not pairs or agree < RATE_MIN * pairs:
        return None
    span = 1 + int(max(values) - min(values)) if values else 1
    repeats = max(1 / span, sum(count * count for count in theirs.values()) / (4 * pairs * pairs))
    agreement = Agreement(pairs, agree, compute_chance(mine, theirs, pairs), len(values), groups, min(repeats, 0.7))
    return agreement if agreement.kappa > 0 else None


def _grade(join: Join, form: NumberForm, sample: Agreement, rate: float, named: float) -> tuple[Grade, list[str]]:
    if sample.rate < AGREE_MIN or sample.kappa < KAPPA_MIN or rate < AGREE_MIN:
        return "none", ["too few agree"]
    if sample.values <= 1 or sample.sources < MATTER_MIN:
        return "none", ["hardly any parent has two children"]
    bits = BITS_ALONE * (MORE_ASKED if form.condition is not None else 1.0)
    grade, contra = sample.grade(named, bits=bits, values=CASES_MIN, by_chance=join.by_chance)
    return grade, [contra] if contra else []


def _score_name(total: Column, form: NumberForm, join: Join) -> float:
    """How far the name of a number says what is counted."""
    mine = {make_singular(word) for word in total.words} | total.words
    child = {make_singular(word) for word in join.target.words}
    score = 0.4 * bool(mine & SPOKEN[form.kind]) + 0.5 * bool(mine & child)
    if form.amount is not None:
        score += 0.4 * bool(mine & {*form.amount.words, *(make_singular(word) for word in form.amount.words)})
    if form.condition is not None:
        spoken = {part.lower() for value in form.condition.values if value for part in re.findall(r"\w+", value[1:])}
        score += 0.4 * bool(mine & (spoken | form.condition.column.words))
    return min(1.0, score)


def _add(groups: Mapping[str | None, ChildSum], values: frozenset[str | None]) -> ChildSum:
    """The sum of the groups of children that have one of these values."""
    parts = [one for value, one in groups.items() if value in values]
    if len(parts) == 1:
        return parts[0]
    whole = ChildSum(sum(one.count for one in parts))
    for place in {place for one in parts for place in one.amounts}:
        totals, least, most, numbers = zip(*(one.amounts[place] for one in parts if place in one.amounts), strict=True)
        whole.amounts[place] = Amounts(sum(totals, Decimal(0)), min(least), max(most), sum(numbers))
    return whole
