"""Values that differ from a rule: faults that a backfill may repair, or values that may be intended.

Invariant: a value is a fault only if the data show it. It is another item's value, a typing error, or on an item that
is newer than an item with the right value. A former value of the source, or a value that a mark of the item explains,
may be intended.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.frames import Column, Frame
from sync_rules.extras.discover.propose.link_search import Join, make_equality

FAULTS_MIN: Final = 0.9  # of the values that differ, to overwrite them
ROWS_MAX: Final = 50_000
MOMENTS_MAX: Final = 6
UNIQUE: Final = 0.8  # different values to one value, at least, where a value names its item
SOURCES_MIN: Final = 5  # of a snapshot, with both: targets that agree, and some that differ
PAIRS_MIN: Final = 10  # of such targets, to tell an order from chance
PILED: Final = 0.95  # of the pairs, the one that differs is older
SHARED_MAX: Final = 0.1  # of the values that differ are on two targets of a source
SWAPPED_LETTERS: Final = 2
SLIP_MIN: Final = 4  # letters of a word with a slip
MARKED_MIN: Final = 3
MARKED: Final = 0.8  # of what differs has the mark
MARK_CHANCE: Final = 1e-4
MARKS_MAX: Final = 12  # different values of an attribute that marks items
IN_ORDER: Final = re.compile(
    r"[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)  # ULID, UUID v7
BEGUN: Final = frozenset({
    "created", "inserted", "placed", "ordered", "made", "sold", "posted", "joined", "booked", "at", "on", "date",
    "time", "timestamp", "ts", "when",
})  # fmt: skip
CHANGED: Final = frozenset({"updated", "modified", "changed", "saved", "deleted", "due", "birth", "end", "until"})
Order = tuple[float, str]


# ---------------------------------------------------------------- by shape
@dataclass(frozen=True)
class OddValue:
    """A value that differs: its source's number, the value, the right value, and whether another item has it."""

    source: int
    held: str
    right: str | None
    is_elsewhere: bool


def list_odd_values(database: Database, rows: str, copy: Column, source: Column, alias: str = "t") -> list[OddValue]:
    """List the values of a copy that differ from its source. `rows` begins with FROM and names the source `s`."""
    held, right = f"{alias}.{copy.sql}", f"s.{source.sql}"
    known = f"EXISTS (SELECT 1 FROM {source.frame.sql} o WHERE o.{source.sql} = {held})"
    where = f"{held} IS DISTINCT FROM {right} AND {held} IS NOT NULL"
    found = database.rows(f"SELECT s.rid, {held}, {right}, {known} {rows} WHERE {where} LIMIT {ROWS_MAX}")
    return [OddValue(*row) for row in found]


def is_slip(held: str, right: str | None) -> bool:
    """Return True for the right value in another type or spelling, or with one wrong letter."""
    if right is None or held[0] not in "snb" or right[0] not in "snb":
        return False
    one, other = (re.sub(r"[\W_]+", "", text[1:]).casefold() for text in (held, right))
    if one == other:
        return True
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    swapped = len(one) == SWAPPED_LETTERS and one == other[::-1]
    words = re.findall(r"[^\W\d_]+", right[1:])
    return (swapped or max(len(one), len(other)) == 1) and (one + other).isalpha() and any(
        len(word) >= SLIP_MIN for word in words
    )  # fmt: skip


def list_other_values(found: Sequence[OddValue], *, unique: bool) -> list[OddValue]:
    """List the values whose form does not show a fault. `unique`: a value of a source tells it from other sources."""
    sources: dict[str, set[int]] = defaultdict(set)
    for one in found:
        sources[one.held].add(one.source)
    return [
        one
        for one in found
        if not is_slip(one.held, one.right) and not (unique and (one.is_elsewhere or len(sources[one.held]) > 1))
    ]


def _count_past_values(found: Sequence[OddValue]) -> int:
    """The values that several targets of one source have, and those of no other: the source may have held them."""
    sources: dict[str, set[int]] = defaultdict(set)
    for one in found:
        sources[one.held].add(one.source)
    shared = Counter(one.held for one in found if len(sources[one.held]) == 1 and not is_slip(one.held, one.right))
    return sum(count for count in shared.values() if count > 1)


def is_unique(column: Column) -> bool:
    """True if a value of a column tells its item from most others."""
    return column.profile.distinct >= UNIQUE * column.profile.count


# ---------------------------------------------------------------- by time
@dataclass(frozen=True)
class OddCopies:
    """The targets of a link whose value is not that of their source."""

    database: Database
    join: Join
    target: Column
    source: Column

    def find_reason(self) -> tuple[str, str]:
        """Return "faults", "snapshot" or "history" for the differing copies, with the reason."""
        found = list_odd_values(self.database, self._pairs, self.target, self.source)
        left = list_other_values(found, unique=is_unique(self.source))
        why = "what differs is another item's value, or a slip" if len(left) <= (1 - FAULTS_MIN) * len(found) else ""
        is_telling = is_unique(self.source) and self.source.profile.is_text
        for moment, kin in self._list_moments():
            rows = self._list_rows(moment, kin)
            if _is_piled(rows):
                return "snapshot", f"what differs is older by {moment.path} than what agrees"
            if not why and is_telling and kin is None and _is_time(moment, rows) and _is_scattered(rows):
                why = f"items that are newer by {moment.path} differ where older ones agree"
        is_past = _count_past_values(found) > SHARED_MAX * len(found)
        return ("faults", why) if why and not is_past else ("history", "items that may be history")

    @property
    def _pairs(self) -> str:
        return f"FROM {self.join.target.sql} t JOIN {self.join.source.sql} s ON {self.join.on()}"

    def _list_rows(self, moment: Column, kin: tuple[Column, Column] | None) -> list[tuple[int, bool, Order]]:
        """Targets: their source, whether they differ, and their place in the order of time."""
        also, alias = "", "t"
        if kin is not None:
            also, alias = f"JOIN {moment.frame.sql} k ON {make_equality(kin[0], 't', kin[1], 'k')}", "k"
        rows = self.database.rows(
            f"SELECT s.rid, t.{self.target.sql} IS DISTINCT FROM s.{self.source.sql}, {alias}.{moment.sql} "
            f"{self._pairs} {also} WHERE {alias}.{moment.sql} IS NOT NULL AND t.{self.target.sql} IS NOT NULL "
            f"ORDER BY hash(s.rid) LIMIT {ROWS_MAX}"
        )
        whole = moment.profile.is_whole
        return [(rid, differs, (float(text[1:]), "") if whole else (0.0, text[1:])) for rid, differs, text in rows]

    def _list_moments(self) -> list[tuple[Column, tuple[Column, Column] | None]]:
        """The columns that may tell the age of a target: its dates and ids, then dates of items with the same field."""
        columns = [one for one in self.join.target.columns if one is not self.target and one not in self.join.columns]
        dates = [one for one in columns if one.profile.is_date and not one.is_shadowed]
        ids = [
            one
            for one in columns
            if one not in dates and (one.in_identity or one.profile.is_whole) and (one.in_identity or is_unique(one))
        ]
        near = [
            (one, kin)
            for kin in self.join.target.kin
            if kin[1].frame is not self.join.source
            for one in kin[1].frame.columns
            if one.profile.is_date
        ]
        return [*((one, None) for one in (*dates[: MOMENTS_MAX - 2], *ids)), *near][:MOMENTS_MAX]


def _group_orders(rows: Iterable[tuple[int, bool, Order]]) -> Iterator[tuple[list[Order], list[Order]]]:
    """By source, the places of the targets that agree, and of those that differ, if there are any."""
    by_source: dict[int, tuple[list[Order], list[Order]]] = defaultdict(lambda: ([], []))
    for rid, differs, order in rows:
        by_source[rid][differs].append(order)
    return ((agreeing, differing) for agreeing, differing in by_source.values() if differing)


def _is_piled(rows: Iterable[tuple[int, bool, Order]]) -> bool:
    """True if nearly all targets that differ are older than those of the same source that agree."""
    sources = pairs = older = 0
    for agreeing, differing in _group_orders(rows):
        each = [one < other for one in differing[:50] for other in agreeing[:50]]
        sources, pairs, older = sources + bool(each), pairs + len(each), older + sum(each)
    return older >= PILED * pairs and sources >= SOURCES_MIN and pairs >= PAIRS_MIN


def _is_time(moment: Column, rows: Sequence[tuple[int, bool, Order]]) -> bool:
    """True for a date when an item was made, for numbers in sequence, and for ids whose text order is time."""
    if moment.profile.is_date:
        return is_beginning(moment)
    return moment.profile.is_sequence or all(IN_ORDER.fullmatch(order[1]) for _, _, order in rows)


def _is_scattered(rows: Iterable[tuple[int, bool, Order]]) -> bool:
    """True if targets that differ are as often the oldest of their source as chance makes them."""
    oldest, expected, total = 0, 0.0, 0
    for agreeing, differing in _group_orders(rows):
        total += len(differing)
        expected += len(differing) / (len(agreeing) + 1)
        oldest += sum(not agreeing or one < min(agreeing) for one in differing)
    return 2 * expected < total and oldest <= expected + math.sqrt(expected)


def is_beginning(column: Column) -> bool:
    """True for a date when an item was made, which no program changes."""
    return column.profile.is_date and bool(column.words & BEGUN) and not column.words & CHANGED


# ---------------------------------------------------------------- by a mark
def find_mark(database: Database, frame: Frame, rows: str, differs: str, without: Iterable[Column]) -> str:
    """Return the attribute that tells the differing items from others, by a value or by its presence; "" if none does.
    `rows` is the part of a statement after FROM, which calls the items of `frame` `i`; `differs` is a condition.
    """
    marks = list(_list_marks(frame, {id(one) for one in without}))
    if not marks:
        return ""
    columns = ", ".join(expression for _, expression in marks)
    sample = f"SELECT {columns} FROM {rows} WHERE ({differs}) ="
    wrong, right = (database.rows(f"{sample} {one} LIMIT {ROWS_MAX // 10}") for one in (True, False))
    if len(wrong) < MARKED_MIN:
        return ""
    counts = [(Counter(each), place) for place, each in enumerate(zip(*wrong, strict=True))]
    tried = sum(len(each) for each, _ in counts)
    for each, place in counts:
        value, count = each.most_common(1)[0]
        share = count / len(wrong)
        usual = (sum(row[place] == value for row in right) + 1) / (len(right) + 2)
        if share >= MARKED and share > usual and _compute_chance(share, usual, len(wrong)) < MARK_CHANCE / tried:
            return marks[place][0]
    return ""


def _list_marks(frame: Frame, skipped: Collection[int]) -> Iterator[tuple[str, str]]:
    """List marks of items: the name of an attribute, and an expression of few values."""
    fields = {one.road: one for one in frame.columns if one.is_field}
    for one in frame.columns:
        if id(one) in skipped or one.is_field or one.in_index or not one.profile.count:
            continue
        if one.is_shadowed and one.road in fields:
            yield f"{one.path}, which is not that of its key", f"{one.bare('i')} <> {fields[one.road].bare('i')}"
        elif one.profile.distinct <= MARKS_MAX:
            yield one.path, f"i.{one.sql}"
        elif one.profile.count < frame.rows:
            yield one.path, f"i.{one.sql} IS NOT NULL"


def _compute_chance(share: float, usual: float, count: int) -> float:
    """The chance that a share so far above the usual one comes about, at most."""
    rest = (1 - share) * math.log((1 - share) / (1 - usual)) if share < 1 else 0.0
    return math.exp(-count * (share * math.log(share / usual) + rest))
