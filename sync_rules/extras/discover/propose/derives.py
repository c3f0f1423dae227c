"""Derived attributes: composite keys, formats and joined texts, found by formulas that hold for the items of an entity.

Invariant: a formula is tried by the code that keeps the rule, over all items.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import is_generic_key
from sync_rules.extras.discover.propose.choice import EXAMPLES, Lead, select_examples
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.differences import (
    FAULTS_MIN,
    ROWS_MAX,
    UNIQUE,
    OddValue,
    is_beginning,
    list_other_values,
)
from sync_rules.extras.discover.propose.evidence import (
    AGREE_MIN,
    BITS_ALONE,
    CASES_MIN,
    KAPPA_MIN,
    ONE_VALUE,
    Agreement,
    Grade,
    compute_chance,
)
from sync_rules.extras.discover.propose.formula_search import Guess, list_guesses, may_fill
from sync_rules.extras.discover.propose.frames import Column, Frame
from sync_rules.extras.discover.propose.value_texts import STRING, TEXTS, keep_text, parse_value
from sync_rules.model.durations import parse_duration
from sync_rules.model.values import AttributeValue
from sync_rules.rules.formula import Formula, parse_moment

SAMPLE: Final = 400  # items on which guesses are tried
SEEDS: Final = 12  # items to make guesses from
PROBE: Final = 40  # items on which a guess is tried first
PROBE_MIN: Final = 0.2
KEPT: Final = 4  # guesses for an attribute that are counted over all items
RATE_MIN: Final = 0.5
DIFFER_MAX: Final = 0.05  # of the items, where no source can change: more may be meant
DURATIONS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
Values = Mapping[Column, AttributeValue]


def find_derives(database: Database, frame: Frame) -> list[Lead]:
    """Find the attributes that are made from other attributes of their item."""
    usable = [one for one in frame.columns if one.profile.count]
    every = max(1, frame.rows // (4 * SAMPLE))
    names = ", ".join(one.sql for one in usable)
    if not usable or frame.rows <= 1:
        return []
    rows = database.rows(
        f"SELECT {names} FROM {frame.sql} WHERE hash(rid) % {every} = 0 ORDER BY hash(rid) LIMIT {SAMPLE}"
    )
    items = [
        {column: value for column, text in zip(usable, row, strict=True) if (value := parse_value(text))}
        for row in rows
    ]
    found: list[Lead] = []
    for target in usable:
        if _can_be_derived(target):
            found += _search_texts(database, frame, target, usable, items)
            found += _search_expiry(database, frame, target, usable, items)
    return found


def _can_be_derived(target: Column) -> bool:
    if target.is_field or target.in_key or target.profile.is_constant:
        return False
    return (target.writable or target.in_index) and bool(target.profile.types & set(TEXTS))


def _list_sources(target: Column, usable: Sequence[Column]) -> list[Column]:
    def fits(column: Column) -> bool:
        inside = column.road[: len(target.road)] == target.road or target.road[: len(column.road)] == column.road
        other_key = column.in_index and is_generic_key(column.road[-1])
        hidden = column.is_shadowed if not target.in_index else column.is_field and not column.in_identity
        return not inside and not other_key and not hidden and not column.profile.is_constant

    return [one for one in usable if fits(one)]


# ---------------------------------------------------------------- texts
def _search_texts(
    database: Database, frame: Frame, target: Column, usable: Sequence[Column], items: Sequence[Values]
) -> Iterator[Lead]:
    if not target.profile.types <= {STRING, "z"}:
        return
    sources = _list_sources(target, usable)
    there = [item for item in items if target in item]
    tried: dict[str, tuple[Guess, Agreement]] = {}
    full = sorted(there, key=lambda item: -len(item))
    seeds = [*full[: SEEDS // 2], *there[: SEEDS // 2]]
    sources = [one for one in sources if _may_be_part(one, target, seeds)]
    for seed in seeds:
        values = {one: seed[one] for one in sources if one in seed}
        for guess in list_guesses(seed[target]["S"], values):
            for one in (guess, guess.join_slots()):
                if one is not None and str(one.rule) not in tried and _says_something(one, target):
                    probe = _try(one, target, items[:PROBE])
                    tried[str(one.rule)] = one, _try(one, target, items) if probe.rate >= PROBE_MIN else probe
    good = [(guess, agreement) for guess, agreement in tried.values() if agreement.rate >= RATE_MIN]
    good.sort(key=lambda one: (-round(one[1].rate, 2), one[0].letters, _count_oddities(one[0]), len(one[0].pieces)))
    for place, (guess, agreement) in enumerate(good[:KEPT]):
        yield _count(database, frame, target, guess, sample=agreement, place=place)


def _may_be_part(source: Column, target: Column, seeds: Sequence[Values]) -> bool:
    """True if half of the seeds with both have the value of a column, in some form, in the text of another one."""
    there = [may_fill(one[source], one[target]["S"]) for one in seeds if source in one]
    return bool(there) and 2 * sum(there) >= len(there)


def _count_oddities(guess: Guess) -> tuple[int, int]:
    """Formats that could be left out, and joined texts, which take whatever is there."""
    return sum(slot.formats.count(":") for slot in guess.slots), int(guess.separator is not None)


def _says_something(guess: Guess, target: Column) -> bool:
    """False for one column as it is, but in the key of an index, and for what no rules file can have."""
    bare = len(guess.pieces) == 1 and not guess.slots[0].formats
    if bare and not (target.in_index and is_generic_key(target.road[-1])):
        return False
    return guess.formula is not None


def _try(guess: Guess, target: Column, items: Sequence[Values]) -> Agreement:
    formula = guess.formula
    assert formula is not None
    by_path = {column.path: column for column in guess.columns}
    mine: Counter[str] = Counter()
    theirs: Counter[str] = Counter()
    values = set()
    pairs = agree = 0
    for item in items:
        made = formula.text({path: item.get(column) for path, column in by_path.items()}.__getitem__)
        there = item.get(target, {}).get("S")
        if made is None and there is None:
            continue
        pairs += 1
        if made is not None:
            theirs[made] += 1
        if there is not None:
            mine[there] += 1
        if made == there:
            agree += 1
            values.add(made)
    chance = compute_chance(mine, theirs, pairs)
    return Agreement(pairs, agree, chance, len(values), agree, chance)


def _count(database: Database, frame: Frame, target: Column, guess: Guess, *, sample: Agreement, place: int) -> Lead:
    formula = guess.formula
    assert formula is not None
    agree, overwrites, examples, differing = _count_over_all(
        database, frame, target, guess.columns, _make_text_function(formula)
    )
    grade, pro, contra = _grade(guess, sample, agree / frame.rows, in_index=target.in_index)
    rule = {"derive": target.column_name, **guess.rule}
    lead = Lead(
        "derive", frame, frame, (target,), guess.columns, rule, grade, frame.rows, agree, spoke_for=pro,
        spoke_against=contra, examples=examples, plainness=14 + place, sources=frame.rows,
        figures={"rate": sample.rate, **sample.figures}, overwrites=overwrites,
    )  # fmt: skip
    is_fixed = all(one.in_identity or is_beginning(one) for one in guess.columns)
    if lead.is_likely and not target.in_index and not (is_fixed and overwrites <= DIFFER_MAX * frame.rows):
        former = differing if is_fixed else [one for one in differing if re.fullmatch(guess.pattern, one.held[1:])]
        if former and sample.values >= UNIQUE * sample.agree:
            made = _list_values(database, frame, guess, {one.held for one in former})
            former = list_other_values([replace(one, is_elsewhere=one.held in made) for one in former], unique=True)
        if len(former) > (1 - FAULTS_MIN) * len(differing):
            names = " or ".join(one.path for one in guess.columns)
            lead.hold_back(f"it would overwrite {overwrites:,} values that may be made of a former {names}")
    return lead


def _grade(guess: Guess, sample: Agreement, rate: float, *, in_index: bool) -> tuple[Grade, list[str], list[str]]:
    pro = [sample.format_against_chance(rate)]
    if sample.rate < AGREE_MIN or sample.kappa < KAPPA_MIN or rate < AGREE_MIN:
        return "none", pro, ["too few agree"]
    if sample.values <= 1:
        return "none", pro, [ONE_VALUE]
    first = guess.slots[0]
    if len(guess.slots) == 1 and first.column.in_identity and not first.formats and not in_index:
        return "none", pro, ["it is the item's own id with a word before it"]
    if any("@" in piece or "://" in piece for piece in guess.pieces if isinstance(piece, str)):
        return "weak", pro, ["an address is often made once, of what its owner was called then"]
    if sample.bits >= BITS_ALONE:
        return "sure", pro, []
    return ("likely" if sample.values >= CASES_MIN or sample.bits > BITS_ALONE / 4 else "weak"), pro, ["few items"]


def _make_text_function(formula: Formula) -> Any:
    def make_text(read: Any) -> str | None:
        text = formula.text(read)
        return None if text is None else STRING + keep_text(text)

    return make_text


def _count_over_all(
    database: Database, frame: Frame, target: Column, columns: Sequence[Column], make: Any
) -> tuple[int, int, tuple[str, ...], list[OddValue]]:
    """Count the items whose value is what is made of their columns, and those with another value; keys and values of
    some that differ.
    """
    by_path = {column.path: number for number, column in enumerate(columns, 2)}
    names = "".join(f", t.{column.sql}" for column in columns)
    agree, overwrites, keys, differing = 0, 0, list[str](), list[OddValue]()
    for row in database.each(f"SELECT {frame.make_key_sql()}, t.{target.sql}{names} FROM {frame.sql} t"):
        made = make(lambda path, row=row: parse_value(row[by_path[path]]))
        if made == row[1]:
            agree += 1
            continue
        keys.append(row[0])
        if len(keys) > 100 * EXAMPLES:
            keys = list(select_examples(keys))
        overwrites += row[1] is not None
        if row[1] is not None and overwrites <= ROWS_MAX:
            differing.append(OddValue(overwrites, row[1], made, is_elsewhere=False))
    return agree, overwrites, select_examples(keys), differing


def _list_values(database: Database, frame: Frame, guess: Guess, held: AbstractSet[str]) -> set[str]:
    """List the values, of some that items hold, that a formula makes of any item."""
    assert guess.formula is not None
    make = _make_text_function(guess.formula)
    by_path = {column.path: number for number, column in enumerate(guess.columns)}
    names = ", ".join(column.sql for column in guess.columns)
    rows = database.each(f"SELECT {names} FROM {frame.sql}")
    return {made for row in rows if (made := make(lambda path, row=row: parse_value(row[by_path[path]]))) in held}


# ---------------------------------------------------------------- Time to Live
def _search_expiry(
    database: Database, frame: Frame, target: Column, usable: Sequence[Column], items: Sequence[Values]
) -> Iterator[Lead]:
    """A number of seconds that is a date and a fixed time after it."""
    if not target.profile.is_number or not target.profile.is_date or len(target.road) > 1:
        return
    for source in usable:
        if source is target or not source.profile.is_date or source.is_shadowed:
            continue
        apart = Counter(_compute_seconds_apart(item.get(source), item.get(target)) for item in items)
        apart.pop(None, None)
        (span, count), *_ = apart.most_common(1) or [(None, 0)]
        if not span or span <= 0 or count < AGREE_MIN * len(items) or source.profile.distinct < CASES_MIN:
            continue
        unit, size = next((unit, size) for unit, size in DURATIONS if span % size == 0)
        duration = f"{span // size}{unit}"

        def make_text(read: Any, path: str = source.path, after: int = parse_duration(duration)) -> str | None:
            moment = parse_moment(read(path) or {})
            return None if moment is None else f"n{int(moment.timestamp()) + after}"

        agree, overwrites, examples, _ = _count_over_all(database, frame, target, [source], make_text)
        rule = {"derive": target.column_name, "as": f"ttl({source.path}, {duration})"}
        lead = Lead(
            "derive", frame, frame, (target,), (source,), rule, "sure", frame.rows, agree,
            spoke_for=[f"always {duration} later"], examples=examples, plainness=14, overwrites=overwrites,
        )  # fmt: skip
        if overwrites:
            lead.hold_back(f"{overwrites:,} values differ, which may be meant")
        yield lead


def _compute_seconds_apart(first: AttributeValue | None, last: AttributeValue | None) -> int | None:
    start = parse_moment(first) if first else None
    end = last.get("N") if last else None
    return None if start is None or end is None or not end.isdecimal() else int(end) - int(start.timestamp())
