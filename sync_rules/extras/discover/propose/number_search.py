"""Numbers of parents that their children add up to: count, sum, min and max, with a condition on one attribute.

Invariant: each number is compared with that of a parent's children, and with what children of other parents would make.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import singular
from sync_rules.extras.discover.propose.candidates import Finding
from sync_rules.extras.discover.propose.child_conditions import Condition, conditions, may_decide
from sync_rules.extras.discover.propose.copies import EXAMPLES
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.evidence import (
    AGREE_MIN,
    BITS_ALONE,
    CASES_MIN,
    KAPPA_MIN,
    Agreement,
    Grade,
    chance_of,
)
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.proposal import Example
from sync_rules.extras.discover.propose.value_texts import NUMBER

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
DECIMAL: Final = "DECIMAL(38, 10)"
COUNTED: Final = frozenset({"count", "counts", "number", "num", "n", "total", "size", "qty", "amount", "items"})
SPOKEN: Final = {
    "count": COUNTED,
    "sum": frozenset({"sum", "total", "spent", "amount", "volume", "balance", "revenue", "points", "score"}),
    "min": frozenset({"min", "minimum", "least", "lowest", "smallest", "cheapest", "first", "earliest", "shortest"}),
    "max": frozenset({"max", "maximum", "most", "highest", "largest", "biggest", "last", "latest", "best", "longest"}),
}  # fmt: skip


@dataclass
class Share:
    """The children of one parent that have one value of a column: how many, and their amounts by column."""

    count: int = 0
    amounts: dict[int, tuple[Decimal, Decimal, Decimal]] = field(default_factory=dict)  # sum, least, most


@dataclass(frozen=True)
class Made:
    """A number that may be made: its kind, of which column, under which condition."""

    kind: str
    amount: Column | None = None
    condition: Condition | None = None


def numbers(database: Database, join: Join) -> list[Finding]:
    """Find the numbers of the items that a link points to which the items that point add up to."""
    totals = [
        one for one in join.source.columns if one.writable and one.profile.is_number and not one.profile.is_constant
    ]
    if not totals or join.is_one_to_one or (join.by_chance and not _may_be_meant(join)):
        return []
    return list(_Search(database, join, totals).found())


def _may_be_meant(join: Join) -> bool:
    """False for numbers that are found among others by chance, and group nothing."""
    return join.source is not join.target and join.each >= EACH_MIN and join.reached >= REACHED_MIN


class _Search:
    """The search along one link, in a sample of the parents with all of their children."""

    def __init__(self, database: Database, join: Join, totals: Sequence[Column]) -> None:
        self.database, self.join, self.totals = database, join, totals
        children = [one for one in join.target.columns if not one.is_shadowed and one not in join.columns]
        amounts = [one for one in children if one.profile.is_number]
        self.amounts = sorted(amounts, key=lambda one: one.in_identity)[:AMOUNTS_MAX]
        self.conditions = [one for one in children if may_decide(one)][:CONDITIONS_MAX]
        every = max(1, join.source.rows // PARENTS)
        self.sample = f"SELECT * FROM {join.source.sql} s" + (f" WHERE hash(s.rid) % {every} = 0" if every > 1 else "")
        names = ", ".join(_decimal(one, "s") for one in totals)
        self.parents = {row[0]: row[1:] for row in database.rows(f"SELECT s.rid, {names} FROM ({self.sample}) s")}
        self.plain = self._shares(None)
        several = [rid for rid, shares in self.plain.items() if shares[None].count > 1]
        self.probe = several[:PROBE]

    def found(self) -> Iterator[Finding]:
        """The best finding for each number: without a condition, or with one where that says more."""
        best: dict[int, tuple[Made, Agreement]] = {}
        for place, (made, agreement) in self._tried(Made("count"), lambda shares: shares.get(None)):
            _keep(best, place, made, agreement)
        for number, amount in enumerate(self.amounts):
            for kind in self._kinds(number):
                for place, (made, agreement) in self._tried(
                    Made(kind, amount), lambda shares: shares.get(None), number
                ):
                    _keep(best, place, made, agreement)
        for column in self.conditions:
            self._under(column, best)
        for place, (made, agreement) in best.items():
            yield self._counted(self.totals[place], made, agreement)

    def _shares(self, by: Column | None) -> dict[int, dict[str | None, Share]]:
        """The children of each parent, by the values of a column."""
        amounts = "".join(f", sum({x}), min({x}), max({x})" for x in (_decimal(one, "t") for one in self.amounts))
        value = "NULL" if by is None else f"t.{by.sql}"
        found: dict[int, dict[str | None, Share]] = defaultdict(dict)
        for row in self.database.rows(
            f"SELECT s.rid, {value}, count(*){amounts} FROM ({self.sample}) s JOIN {self.join.target.sql} t "
            f"ON {self.join.on()} GROUP BY 1, 2"
        ):
            share = Share(row[2])
            for number in range(len(self.amounts)):
                total, least, most = row[3 + 3 * number : 6 + 3 * number]
                if total is not None:
                    share.amounts[number] = total, least, most
            found[row[0]][row[1]] = share
        return found

    def _under(self, column: Column, best: dict[int, tuple[Made, Agreement]]) -> None:
        """Try the conditions on a column."""
        shares = self._shares(column)
        for condition in conditions(column, {value for each in shares.values() for value in each}):
            chosen: Callable[[Mapping[str | None, Share]], Share | None] = _picker(condition.values)
            for made, number in self._makes(condition):
                for place, (_, agreement) in self._tried(made, chosen, number, shares):
                    before = best.get(place)
                    if before is None or agreement.kappa >= before[1].kappa + (
                        BETTER if before[0].condition is None else EVEN
                    ):
                        best[place] = made, agreement

    def _makes(self, condition: Condition) -> Iterator[tuple[Made, int]]:
        yield Made("count", None, condition), -1
        for number, amount in enumerate(self.amounts):
            if amount is not condition.column:
                yield from ((Made(kind, amount, condition), number) for kind in self._kinds(number))

    def _kinds(self, number: int) -> Iterator[str]:
        """The kinds of numbers that an amount makes. One that names the children, as a time does, is never added up."""
        if not self.amounts[number].in_identity:
            yield "sum"
        if self._differs(number):
            yield from ("min", "max")

    def _differs(self, number: int) -> bool:
        """True if children of one parent have several amounts: else the least says nothing that a copy does not."""
        several = [shares[None].amounts[number] for shares in self.plain.values() if number in shares[None].amounts]
        differ = sum(least < most for _, least, most in several)
        groups = sum(shares[None].count > 1 for shares in self.plain.values())
        return differ >= max(MATTER_MIN, DIFFER_MIN * groups)

    def _tried(
        self,
        made: Made,
        pick: Callable[[Mapping[str | None, Share]], Share | None],
        number: int = -1,
        shares: Mapping[int, Mapping[str | None, Share]] | None = None,
    ) -> Iterator[tuple[int, tuple[Made, Agreement]]]:
        """The numbers of the parents that agree with one that is made of their children."""
        held = self.plain if shares is None else shares
        places = self._probed(made, pick, number, held)
        if not places:
            return
        wanted: dict[int, tuple[Decimal | None, int]] = {}
        for rid in self.parents:
            share = pick(held[rid]) if rid in held else None
            wanted[rid] = _value(made.kind, share, number), self.plain[rid][None].count if rid in self.plain else 0
        if len({value for value, _ in wanted.values()}) <= 1:
            return
        telling = self._telling(made, pick, number, held)
        for place in places:
            there = {rid: row[place] for rid, row in self.parents.items()}
            agreement = _compared(there, wanted)
            right = sum(there[rid] == wanted[rid][0] for rid in telling)
            if agreement is not None and right >= AGREE_MIN * len(telling):
                yield place, (made, agreement)

    def _telling(
        self,
        made: Made,
        pick: Callable[[Mapping[str | None, Share]], Share | None],
        number: int,
        held: Mapping[int, Mapping[str | None, Share]],
    ) -> list[int]:
        """The parents that tell a least or a most from an amount that their children took from them."""
        if made.kind not in ("min", "max"):
            return []
        shares = ((rid, pick(held[rid])) for rid in self.parents if rid in held)
        amounts = (
            (rid, share.amounts[number]) for rid, share in shares if share is not None and number in share.amounts
        )
        return [rid for rid, (_, least, most) in amounts if least < most]

    def _probed(
        self,
        made: Made,
        pick: Callable[[Mapping[str | None, Share]], Share | None],
        number: int,
        held: Mapping[int, Mapping[str | None, Share]],
    ) -> list[int]:
        """The numbers of the parents that some of them have so."""
        hits = [0] * len(self.totals)
        for rid in self.probe:
            value = _value(made.kind, pick(held[rid]) if rid in held else None, number)
            for place, there in enumerate(self.parents[rid]):
                if there == value or (there is None and not value):
                    hits[place] += 1
        return [place for place, count in enumerate(hits) if count and count >= PROBE_MIN * len(self.probe)]

    # ---------------------------------------------------------------- over all
    def _counted(self, total: Column, made: Made, sample: Agreement) -> Finding:
        agree, checked, sources, examples = self._over_all(total, made)
        rate = agree / checked if checked else 0.0
        named = _named(total, made, self.join)
        grade, contra = _judged(self.join, made, sample, rate, named)
        reads = tuple(one for one in (made.amount, made.condition.column if made.condition else None) if one)
        child, parent = self.join.target, self.join.source
        first = child.name if made.amount is None else made.amount.shown
        rule: dict[str, object] = {made.kind: first, "into": total.shown}
        if made.condition is not None:
            rule["where"] = made.condition.where
        if self.join.link:
            rule["link"] = self.join.link
        finding = Finding(made.kind, child, parent, (total,), reads, rule, grade, checked, agree, join=self.join)
        finding.sources, finding.examples, finding.named = sources, examples, named
        finding.plainness = 16 + (0 if made.kind == "count" else 1) + (2 if made.condition else 0)
        finding.spoke_for = [f"{rate:.1%} agree, {sample.chance:.1%} would by chance"]
        finding.spoke_against = contra
        finding.figures = {
            "rate": rate, "chance": sample.chance, "kappa": sample.kappa, "values": sample.values,
            "groups": sample.sources, "name": named,
        }  # fmt: skip
        return finding

    def _over_all(self, total: Column, made: Made) -> tuple[int, int, int, tuple[Example, ...]]:
        parent, child = self.join.source, self.join.target
        amount = "t.rid" if made.amount is None else _decimal(made.amount, "t")
        function = {"count": "count", "sum": "sum", "min": "min", "max": "max"}[made.kind]
        where = f"FILTER ({made.condition.sql})" if made.condition is not None else ""
        wanted = f"{function}({amount}) {where}"
        if made.kind == "sum":
            wanted = f"coalesce({wanted}, 0)"
        there = _decimal(total, "s")
        empty = "0" if made.kind in ("count", "sum") else "NULL"
        self.database.run(
            f"CREATE OR REPLACE TEMP TABLE wanted AS SELECT s.rid AS rid, {wanted} AS w FROM {parent.sql} s "
            f"JOIN {child.sql} t ON {self.join.on()} GROUP BY s.rid"
        )
        compared = (
            f"SELECT {parent.key_shown('s')} k, {there} p, CASE WHEN w.rid IS NULL THEN {empty} ELSE w.w END w, "
            f"w.rid IS NOT NULL c FROM {parent.sql} s LEFT JOIN wanted w ON w.rid = s.rid"
        )
        agree, checked, sources = self.database.row(
            f"SELECT count(*) FILTER (p IS NOT DISTINCT FROM w), count(*), count(*) FILTER (c) FROM ({compared})"
        )
        rows = self.database.rows(
            f"SELECT k, w, p FROM ({compared}) WHERE p IS DISTINCT FROM w ORDER BY k LIMIT {EXAMPLES}"
        )
        self.database.run("DROP TABLE wanted")
        return agree, checked, sources, tuple(Example(k, _shown(w), _shown(p)) for k, w, p in rows)


def _keep(best: dict[int, tuple[Made, Agreement]], place: int, made: Made, agreement: Agreement) -> None:
    if place not in best or agreement.kappa > best[place][1].kappa + EVEN:
        best[place] = made, agreement


def _decimal(column: Column, alias: str) -> str:
    name = f"{alias}.{column.sql}"
    return f"CASE WHEN {name}[1] = '{NUMBER}' THEN try_cast(substr({name}, 2) AS {DECIMAL}) END"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return (
        format(value.normalize(), "f")
        if isinstance(value, Decimal) and value
        else str(int(value))
        if not value
        else str(value)
    )


# ---------------------------------------------------------------- comparing
def _value(kind: str, share: Share | None, number: int) -> Decimal | None:
    if kind == "count":
        return Decimal(share.count if share is not None else 0)
    amounts = share.amounts.get(number) if share is not None else None
    if kind == "sum":
        return amounts[0] if amounts is not None else Decimal(0)
    return amounts[1 if kind == "min" else 2] if amounts is not None else None


def _compared(held: Mapping[int, Any], wanted: Mapping[int, tuple[Decimal | None, int]]) -> Agreement | None:
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
    agreement = Agreement(pairs, agree, chance_of(mine, theirs, pairs), len(values), groups, min(repeats, 0.7))
    return agreement if agreement.kappa > 0 else None


def _judged(join: Join, made: Made, sample: Agreement, rate: float, named: float) -> tuple[Grade, list[str]]:
    if sample.rate < AGREE_MIN or sample.kappa < KAPPA_MIN or rate < AGREE_MIN:
        return "none", ["too few agree"]
    if sample.values <= 1 or sample.sources < MATTER_MIN:
        return "none", ["hardly any parent has two children"]
    bits = BITS_ALONE * (MORE_ASKED if made.condition is not None else 1.0)
    grade, contra = sample.judged(named, bits=bits, values=CASES_MIN, by_chance=join.by_chance)
    return grade, [contra] if contra else []


def _named(total: Column, made: Made, join: Join) -> float:
    """How far the name of a number says what is counted."""
    mine = {singular(word) for word in total.words} | total.words
    child = {singular(word) for word in join.target.words}
    score = 0.4 * bool(mine & SPOKEN[made.kind]) + 0.5 * bool(mine & child)
    if made.amount is not None:
        score += 0.4 * bool(mine & {*made.amount.words, *(singular(word) for word in made.amount.words)})
    if made.condition is not None:
        spoken = {part.lower() for value in made.condition.values if value for part in re.findall(r"\w+", value[1:])}
        score += 0.4 * bool(mine & (spoken | made.condition.column.words))
    return min(1.0, score)


def _picker(values: frozenset[str | None]) -> Callable[[Mapping[str | None, Share]], Share | None]:
    def pick(shares: Mapping[str | None, Share]) -> Share | None:
        kept = [share for value, share in shares.items() if value in values]
        if len(kept) <= 1:
            return kept[0] if kept else None
        whole = Share(sum(share.count for share in kept))
        for number in {number for share in kept for number in share.amounts}:
            all_of = [share.amounts[number] for share in kept if number in share.amounts]
            total = sum((one[0] for one in all_of), Decimal(0))
            whole.amounts[number] = total, min(one[1] for one in all_of), max(one[2] for one in all_of)
        return whole

    return pick
