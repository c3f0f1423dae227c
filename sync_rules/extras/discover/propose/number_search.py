"""Numbers of parents that their children add up to: count, sum, mean, min and max, with a condition on one attribute.

Invariant: each number is compared with that of a parent's children, and with what children of other parents would make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sync_rules.extras.discover.propose.choice import EXAMPLES, Lead
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.differences import find_mark
from sync_rules.extras.discover.propose.evidence import AGREE_MIN, Agreement
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.number_evidence import (
    MATTER_MIN,
    NumberCount,
    compare_numbers,
    grade_number,
    is_own_by_name,
    score_name,
)
from sync_rules.extras.discover.propose.number_forms import (
    SCALE,
    TOTAL_MAX,
    Amounts,
    ChildSum,
    NumberForm,
    add_groups,
    make_decimal_sql,
)
from sync_rules.extras.discover.propose.parents import ChildCondition, ask_if_own, list_conditions, may_decide
from sync_rules.language.kinds.count import PLACES_DEFAULT, PLACES_MAX

PARENTS: Final = 3_000  # in the sample, each with all of its children
AMOUNTS_MAX: Final = 12  # columns that are added up
CONDITIONS_MAX: Final = 10  # columns by whose values children are left out
PROBE: Final = 60  # parents on which a number is tried first
PROBE_MIN: Final = 0.35
EACH_MIN: Final = 1.5
REACHED_MIN: Final = 0.3
BETTER: Final = 0.02  # so much more must agree with a condition than without
EVEN: Final = 0.0001  # of two that differ by less, the first one stays
DIFFER_MIN: Final = 0.3  # of the parents with several children have different amounts, that one of them is the least


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
        names = ", ".join(make_decimal_sql(one, "s") for one in totals)
        self.parents = {row[0]: row[1:] for row in database.rows(f"SELECT s.rid, {names} FROM ({self.sample}) s")}
        self.all = {rid: sums[None] for rid, sums in self._sum_children(None).items()}
        self.varied = frozenset(place for place in range(len(self.amounts)) if self._differs(place))
        self.digits = {id(one): self._count_places(one) for one in totals}
        found = {min(places, SCALE) for places in self.digits.values()} - {PLACES_DEFAULT}
        self.places = (PLACES_DEFAULT, *sorted(found))  # the first that agrees
        self.probe = [rid for rid, sums in self.all.items() if sums.count > 1][:PROBE]

    def list_leads(self) -> Iterator[Lead]:
        """The best lead for each number: without a condition, or with one where that says more."""
        best: BestForms = {}
        for form in self._list_forms(None):
            self._try(form, self.all, best)
        for column in self.deciders:
            sums = self._sum_children(column)
            for condition in list_conditions(column, {value for each in sums.values() for value in each}):
                left = {rid: add_groups(each, condition.values) for rid, each in sums.items()}
                for form in self._list_forms(condition):
                    self._try(form, left, best)
        for place, (form, agreement) in best.items():
            yield self._count(self.totals[place], form, agreement)

    def _sum_children(self, by: Column | None) -> dict[int, dict[str | None, ChildSum]]:
        """The children of each parent, by the values of a column."""
        amounts = "".join(
            f", sum({x}), min({x}), max({x}), count({x})" for x in (make_decimal_sql(one, "t") for one in self.amounts)
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
            agreement = compare_numbers(there, wanted)
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
        over, beyond = self._count_over_all(total, form), self._find_limit(total, form)
        agree, checked = (sample.agree, sample.pairs) if beyond else (over.agree, over.checked)
        rate = agree / checked if checked else 0.0
        named = score_name(total, form, self.join)
        grade, contra = grade_number(self.join, form, sample, rate, named)
        reads = tuple(one for one in (form.amount, form.condition.column if form.condition else None) if one)
        child, parent = self.join.target, self.join.source
        first = child.name if form.amount is None else form.amount.column_name
        digits = self.digits[id(total)]
        places = min(digits, PLACES_MAX) if form.places == SCALE < digits else form.places
        rule = {
            form.kind: first,
            "into": total.column_name,
            **({"places": places} if form.kind == "mean" and places != PLACES_DEFAULT else {}),
            **self.join.options(form.condition.where if form.condition else ""),
        }
        figures = {"rate": rate, **sample.figures, "groups": sample.sources, "name": named}
        lead = Lead(
            form.kind, child, parent, (total,), reads, rule, grade, checked, agree, join=self.join,
            sources=over.sources, examples=() if beyond else over.examples, named=named,
            spoke_for=[sample.format_against_chance(rate)],
            spoke_against=contra, plainness=16 + (0 if form.kind == "count" else 1) + (2 if form.condition else 0),
            figures=figures, overwrites=over.higher + over.lower,
        )  # fmt: skip
        if beyond and lead.is_likely:
            lead.hold_back(beyond)
        why = (is_own_by_name(total, form) or over.is_own(form.kind)) if lead.is_likely else ""
        if why or (lead.is_likely and over.mark):
            why = why or f"what differs has {over.mark}"
            lead.hold_back(ask_if_own(total, self.join, why))
        return lead

    def _find_limit(self, total: Column, form: NumberForm) -> str:
        """The reason why a mean can be compared in the sample alone; "" if statements compare it exactly."""
        if form.kind != "mean":
            return ""
        if self.digits[id(total)] > SCALE:
            return f"{total.path} has {self.digits[id(total)]} decimal places, and propose compares {SCALE}: check it"
        totals = (abs(one.amounts[form.place].total) for one in self.all.values() if form.place in one.amounts)
        over = max(totals, default=0) > TOTAL_MAX
        return f"some totals are beyond {TOTAL_MAX:.0e}, and propose does not compare these: check it" if over else ""

    def _count_over_all(self, total: Column, form: NumberForm) -> NumberCount:
        parent, child = self.join.source, self.join.target
        there = make_decimal_sql(total, "i")
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
