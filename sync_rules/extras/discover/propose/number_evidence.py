"""The evidence for a number of parents: how far it agrees with what their children make, and what its name says.

Invariant: nothing here reads an item. A number that a parent may own itself has the reason for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import make_singular
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
from sync_rules.extras.discover.propose.number_forms import NumberForm
from sync_rules.extras.discover.propose.parents import DIFFER_MAX, IDLE_MAX

RATE_MIN: Final = 0.5
MORE_ASKED: Final = 1.5  # times the evidence, of a number under a condition: many are tried
MATTER_MIN: Final = 3  # parents of two children or more, at least
ONE_SIDED_MIN: Final = 5  # parents that differ, all in one direction: no fault does that
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


def is_own_by_name(total: Column, form: NumberForm) -> str:
    """The reason why a name does not say a number of children; "" if it does."""
    spoken = total.words & SPOKEN[form.kind]
    if total.words & OWN:
        return "its name says a limit, or a plan"
    if form.kind in ("mean", "min", "max") and not spoken:
        return f"its name does not say {form.kind}"
    same = form.kind == "sum" and form.amount is not None and form.amount.words == total.words
    return "it has the name of what is added up" if same and not spoken else ""


def compare_numbers(held: Mapping[int, Any], wanted: Mapping[int, tuple[Decimal | None, int]]) -> Agreement | None:
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


def grade_number(join: Join, form: NumberForm, sample: Agreement, rate: float, named: float) -> tuple[Grade, list[str]]:
    """Return the grade of a number, and what speaks against it."""
    if sample.rate < AGREE_MIN or sample.kappa < KAPPA_MIN or rate < AGREE_MIN:
        return "none", ["too few agree"]
    if sample.values <= 1 or sample.sources < MATTER_MIN:
        return "none", ["hardly any parent has two children"]
    bits = BITS_ALONE * (MORE_ASKED if form.condition is not None else 1.0)
    grade, contra = sample.grade(named, bits=bits, values=CASES_MIN, by_chance=join.by_chance)
    return grade, [contra] if contra else []


def score_name(total: Column, form: NumberForm, join: Join) -> float:
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
