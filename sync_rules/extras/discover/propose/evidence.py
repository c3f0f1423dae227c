"""How much the agreement of two columns proves: against chance, by sources, and by names.

Invariant: agreement alone is not evidence. The evidence is how far it exceeds that of random pairs, over how many
sources, in how many values.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from sync_rules.extras.discover.imports.identifiers import make_singular
from sync_rules.extras.discover.propose.frames import Column

Grade = Literal["sure", "likely", "weak", "none"]
GRADES: Final[dict[Grade, int]] = {"sure": 3, "likely": 2, "weak": 1, "none": 0}
KAPPA_MIN: Final = 0.6
AGREE_MIN: Final = 0.75
BITS_ALONE: Final = 11.0  # of evidence, where no name speaks for it: thousands of pairs are looked at
BITS_ALIKE: Final = 30.0  # of what looks alike, such as an enumeration
BITS_NAMED: Final = 3.0
VALUES_ALONE: Final = 8  # different values that agree, where the link itself may be by chance
VALUES_SURE: Final = 4  # different values that agree: fewer may be an enumeration
CASES_MIN: Final = 3  # different values, items or parents that agree: two may do so by chance
HALF_NAMED: Final = 0.5  # a name that says half of what it names
NEARLY_NAMED: Final = 0.8  # a name that says all of it, but for a word
BY_CHANCE: Final = "the link may be by chance: both sides count from a small number"
ONE_VALUE: Final = "only one value agrees"  # which is no evidence
TELLING: Final = 6  # letters of a text that is not in two columns by chance
RATE_SURE: Final = 0.85
MANY: Final = 10  # targets of each source
BITS_FEW: Final = 8.0
CHANCE_LEAST: Final = 0.01
GENERIC_MOMENTS: Final = frozenset({
    "created", "updated", "modified", "changed", "inserted", "deleted", "at", "on", "date", "time", "timestamp", "ts",
    "datetime", "last", "when", "day", "saved", "written", "year", "month",
})  # fmt: skip


@dataclass(frozen=True)
class Agreement:
    """The agreement of two columns over the pairs of items with at least one value."""

    pairs: int
    agree: int
    chance: float  # of two values drawn at random
    values: int  # different values that agree
    sources: int  # different sources with a pair that agrees
    repeats: float = 1.0  # the chance that two of these sources have the same value
    near: float = 0.0  # of groups: the share of their entries that agrees, on average

    @property
    def rate(self) -> float:
        return self.agree / self.pairs if self.pairs else 0.0

    @property
    def figures(self) -> dict[str, float]:
        """The figures that explain the grade."""
        return {"chance": self.chance, "kappa": self.kappa, "values": self.values}

    def format_against_chance(self, rate: float) -> str:
        """Return the share of all items that agrees, and the share expected by chance, as text."""
        return f"{rate:.1%} agree, {self.chance:.1%} would by chance"

    @property
    def kappa(self) -> float:
        """How far agreement exceeds chance: 0 for as much as by chance, 1 for all."""
        return (self.rate - self.chance) / (1 - self.chance) if self.chance < 1 else 0.0

    @property
    def bits(self) -> float:
        """The weight of the evidence: each source that agrees counts as much as its agreement is unlikely."""
        return self.sources * -math.log2(max(self.repeats, CHANCE_LEAST))

    def grade(
        self, named: float, *, bits: float = BITS_ALONE, values: int = VALUES_SURE, by_chance: bool = False
    ) -> tuple[Grade, str]:
        """Return the grade of what enough parents hold of their children, and the evidence against it. `bits` and
        `values` are the minimum if no name supports it; more are needed if the link may be by chance.
        """
        if by_chance and (self.values < VALUES_ALONE or self.bits < 2 * bits):
            return "none", BY_CHANCE
        if self.values >= values and self.bits >= bits:
            return "sure", ""
        if named >= HALF_NAMED and self.bits >= BITS_NAMED:
            return "likely", "few parents"
        return "weak", f"only {self.sources} parents agree, in {self.values} values"


def compute_chance(left: Counter[str], right: Counter[str], pairs: int) -> float:
    """Return the chance that two random values, one of each counter, are equal; missing values never are."""
    if not pairs:
        return 0.0
    return sum(count * right[value] for value, count in left.items()) / (pairs * pairs)


def score_names(target: Column, source: Column, along: tuple[Column, ...] = ()) -> float:
    """Return how well the name of a copy names its source: 0 to 1."""
    mine, theirs = target.words, source.words
    entity = frozenset({*source.frame.words, *(make_singular(word) for word in source.frame.words)})
    role = entity | {word for column in along for word in column.words}
    if mine == theirs:
        return 1.0
    if theirs <= mine:
        return 1.0 if mine - theirs <= role else 0.8
    short = theirs - entity
    if short and short <= mine and mine - short <= role:
        return 1.0
    if mine & theirs - GENERIC_MOMENTS:
        return 0.5
    if mine and mine <= entity:
        return 0.6
    return 0.0


def look_alike(column: Column) -> str:
    """Return why equal values of a column prove little; "" if they do prove something."""
    profile = column.profile
    if profile.is_constant:
        return "all its values are the same"
    if profile.is_boolean:
        return "it has only two values"
    if profile.is_date:
        return "it holds dates"
    if profile.is_sequence:
        return "it is a sequence of numbers"
    if profile.is_small:
        return f"it has only {profile.distinct} values"
    return ""


def is_generic_moment(column: Column) -> bool:
    """True for a date by whose name many items have one, such as created_at."""
    return column.profile.is_date and column.words <= GENERIC_MOMENTS


# ---------------------------------------------------------------- copies
def grade_copy(
    target: Column, source: Column, agreement: Agreement, named: float, *, by_chance: bool
) -> tuple[Grade, list[str], list[str]]:
    """Return the grade of a copy, and the reasons for and against it. `by_chance`: its link may be by chance."""
    pro = [agreement.format_against_chance(agreement.rate)]
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
    if by_chance and (alike or not _beats_chance(agreement, source)):
        return "none", pro, [*contra, BY_CHANCE]
    if is_generic_moment(target) and is_generic_moment(source):
        return "weak", pro, [*contra, "both hold the moment when they were written, which may be the same"]
    grade = _weigh(agreement, named, alike, source)
    if grade in ("weak", "none"):
        contra.append(alike or f"only {agreement.sources} sources agree, in {agreement.values} values")
    return grade, pro, contra


def _beats_chance(agreement: Agreement, source: Column) -> bool:
    """True if a copy shows that its link is none by chance: by many values, or by a few that nothing else has."""
    if agreement.values >= VALUES_ALONE and agreement.bits >= 2 * BITS_ALONE:
        return True
    telling = source.profile.is_text and source.profile.longest > TELLING and agreement.rate >= RATE_SURE
    if not telling or agreement.values < CASES_MIN:
        return False
    one_each = agreement.values == agreement.sources and agreement.pairs >= MANY * agreement.sources
    return one_each or agreement.sources * math.log2(source.frame.rows) >= BITS_FEW


def _weigh(agreement: Agreement, named: float, alike: str, source: Column) -> Grade:
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
