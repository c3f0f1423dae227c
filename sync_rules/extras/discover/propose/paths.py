"""Paths: texts that hold the way from the root of a hierarchy to each item, by ids or by names.

Invariant: the expected path of an item follows from its ancestors' ids and names alone, not from their paths, which may
be wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.extras.discover.propose.choice import Lead, select_examples
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.evidence import AGREE_MIN, CASES_MIN
from sync_rules.extras.discover.propose.frames import Column, Frame
from sync_rules.extras.discover.propose.link_search import Join, make_equality
from sync_rules.extras.discover.propose.value_texts import STRING, TEXTS, keep_text, unescape

SAMPLE: Final = 2_000
PROBE: Final = 100
PROBE_MIN: Final = 0.2
RATE_MIN: Final = 0.5
DEEP: Final = 3  # items of a line, from the root, whose last one lies below a child of the root
DEEP_MIN: Final = 2  # items so deep, that a path is more than two ids
DEPTH_MAX: Final = 200
SEPARATOR_MAX: Final = 5
SEPARATOR: Final = "|"


@dataclass(frozen=True)
class PathGuess:
    """A column that may be a path: what it is made of, and the text between."""

    column: Column
    by: Column | None  # None: the ids
    separator: str


@dataclass
class TreeItem:
    """An item of a hierarchy: its scope and its id, its parent's id, and the values of some columns."""

    key: str
    scope: tuple[str, ...]
    own: str
    parent: str | None
    values: tuple[str | None, ...]


def find_paths(database: Database, join: Join) -> list[Lead]:
    """Find the paths of items that name a parent of their own kind."""
    if join.source is not join.target or len(join.pairs[-1][1].road) > 1:
        return []
    *scope, (own, parent) = join.pairs
    if any(field is not column for field, column in scope) or parent is own:
        return []
    forms = _list_forms(database, join, own)
    return list(_search(database, join, forms)) if forms else []


def _list_forms(database: Database, join: Join, own: Column) -> list[PathGuess]:
    """The columns that end with an own value after what the parent has in the same column."""
    frame = join.target
    texts = [one for one in frame.columns if one.writable and one.profile.is_text and not one.profile.is_boolean]
    named = [
        one for one in frame.columns if not one.is_shadowed and one.profile.types <= {*TEXTS, "z"} and one is not own
    ]
    every = max(1, frame.rows // SAMPLE)
    named = [one for one in named if not _is_own_id(database, frame, one, own)]
    columns = [*texts, own, *named]
    names = ", ".join([*(f"t.{one.sql}" for one in columns), *(f"s.{one.sql}" for one in texts)])
    rows = database.rows(
        f"SELECT {names} FROM {frame.sql} t JOIN {frame.sql} s ON {join.on()} WHERE hash(t.rid) % {every} = 0 "
        f"LIMIT {2 * SAMPLE}"
    )
    found = []
    for place, column in enumerate(texts):
        forms = []
        for number, by in enumerate(columns[len(texts) :], len(texts)):
            if by is column:
                continue
            probe = [_find_separator(row[place], row[number], row[len(columns) + place]) for row in rows[:PROBE]]
            if len(probe) - probe.count(None) < PROBE_MIN * len(probe):
                continue
            between = Counter(_find_separator(row[place], row[number], row[len(columns) + place]) for row in rows)
            between.pop(None, None)
            (separator, count), *_ = between.most_common(1) or [(None, 0)]
            if separator is not None and count >= RATE_MIN * len(rows) and count >= CASES_MIN:
                forms.append(PathGuess(column, None if by is own else by, separator))
        # a number that repeats the digits of an id leaves its letters to the separator
        found += sorted(forms, key=lambda form: len(form.separator))[:1]
    return found


def _is_own_id(database: Database, frame: Frame, column: Column, own: Column) -> bool:
    """True for an attribute that holds the id once more."""
    alike, total = database.row(
        f"SELECT count(*) FILTER ({make_equality(column, 't', own, 't')}), count(*) FROM {frame.sql} t"
    )
    return bool(alike > total / 2)


def _find_separator(path: str | None, own: str | None, above: str | None) -> str | None:
    """The text between the parent's path and the own value; None if it is no such path."""
    if not path or not own or not above or len(own) <= 1 or own[0] not in TEXTS:
        return None
    middle = path.removeprefix(above)
    if len(middle) == len(path) or not middle.endswith(own[1:]):
        return None
    between = unescape(middle[: len(middle) - len(own) + 1])
    return between if 0 < len(between) <= SEPARATOR_MAX else None


def _search(database: Database, join: Join, forms: Sequence[PathGuess]) -> Iterator[Lead]:
    """One lead for each path: with names it takes the path of ids along, and the depth goes with one of them."""
    frame = join.target
    by_ids = next((form for form in forms if form.by is None), None)
    names = [form for form in forms if form.by is not None]
    numbers = [one for one in frame.columns if one.writable and one.profile.is_number and len(one.road) == 1]
    texts = sorted({form.by for form in names if form.by}, key=lambda one: one.path)
    columns = [*(form.column for form in forms), *texts, *numbers]
    tree = _read_tree(database, join, columns)
    place = {id(column): number for number, column in enumerate(columns)}
    depths = {id(item): len(line) - 1 for item, line in _list_lines(tree) if line is not None}
    deep = [one for one in numbers if _is_depth(tree, depths, place[id(one)])]
    taken = False
    for form in names or ([by_ids] if by_ids else []):
        ids = by_ids if form.by is not None and not taken else None
        depth = deep[0] if deep and not taken else None
        taken = True
        yield _count(join, PathRule(form, ids, depth), tree, place)


def _read_tree(
    database: Database, join: Join, columns: Sequence[Column]
) -> dict[tuple[tuple[str, ...], str], TreeItem]:
    frame = join.target
    *scope, (own, parent) = join.pairs
    names = "".join(f", t.{one.sql}" for one in columns)
    scopes = "".join(f", t.{field.sql}" for field, _ in scope)
    found = {}
    for row in database.each(
        f"SELECT {frame.make_key_sql()}, t.{own.sql}, t.{parent.sql}{scopes}{names} FROM {frame.sql} t"
    ):
        key, mine, above, *rest = row
        inner = tuple(str(one) for one in rest[: len(scope)])
        above = None if above is None or len(above) <= 1 else above[1:]  # empty or NULL
        item = TreeItem(key, inner, mine[1:], above, tuple(rest[len(scope) :]))
        found[inner, item.own] = item
    return found


def _list_lines(tree: dict[tuple[tuple[str, ...], str], TreeItem]) -> Iterator[tuple[TreeItem, list[TreeItem] | None]]:
    """Each item with its ancestors from the root down to itself; None where one is missing, or in a ring."""
    for item in tree.values():
        line = [item]
        whole = True
        while whole and line[-1].parent is not None:
            above = tree.get((item.scope, line[-1].parent))
            whole = above is not None and len(line) <= DEPTH_MAX and above is not item
            if above is not None:
                line.append(above)
        yield item, line[::-1] if whole else None


def _is_depth(tree: dict[tuple[tuple[str, ...], str], TreeItem], depths: dict[int, int], place: int) -> bool:
    known = [(item.values[place], depths[id(item)]) for item in tree.values() if id(item) in depths]
    agree = sum(value == f"n{depth}" for value, depth in known)
    return len({depth for _, depth in known}) > 1 and agree >= AGREE_MIN * len(known)


def _format_path(line: Sequence[TreeItem], place: int | None, separator: str) -> str | None:
    """The path of ids, or of names: an item without a name is left out."""
    if place is None:
        return separator.join(item.own for item in line)
    names = [value[1:] for item in line if (value := item.values[place]) and len(value) > 1 and value[0] in TEXTS]
    return separator.join(names) or None


@dataclass(frozen=True)
class PathRule:
    """The columns that one rule writes: a path, that of ids beside one of names, and the depth."""

    form: PathGuess
    ids: PathGuess | None
    depth: Column | None

    def rule(self, parent: Column) -> dict[str, Any]:
        """The rule as the rules file has it."""
        rule: dict[str, Any] = {"path": self.form.column.column_name, "parent": parent.path}
        if self.form.by is not None:
            rule["by"] = self.form.by.path
        if self.form.separator != SEPARATOR:
            rule["separator"] = self.form.separator
        if self.ids is not None:
            rule["ids"] = self.ids.column.path
            rule |= {"ids_separator": self.ids.separator} if self.ids.separator != SEPARATOR else {}
        if self.depth is not None:
            rule["depth"] = self.depth.path
        return rule

    def compare_values(self, line: Sequence[TreeItem], place: dict[int, int]) -> list[tuple[str | None, str | None]]:
        """The value of each column on the last item of a line, and what it should be, as typed texts."""
        held, by = line[-1].values, self.form.by
        text = _format_path(line, None if by is None else place[id(by)], self.form.separator)
        found = [(held[place[id(self.form.column)]], None if text is None else STRING + keep_text(unescape(text)))]
        if self.ids is not None:
            expected = STRING + keep_text(unescape(_format_path(line, None, self.ids.separator) or ""))
            found.append((held[place[id(self.ids.column)]], expected))
        if self.depth is not None:
            found.append((held[place[id(self.depth)]], f"n{len(line) - 1}"))
        return found


def _count(join: Join, written: PathRule, tree: dict[Any, TreeItem], place: dict[int, int]) -> Lead:
    frame, parent, form = join.target, join.pairs[-1][1], written.form
    ids, depth = written.ids, written.depth
    checked = agree = orphans = deep = overwrites = 0
    values = set()
    right: Counter[int] = Counter()  # by column: they may be wrong independently
    differing: list[str] = []
    for item, line in _list_lines(tree):
        if line is None:
            orphans += 1
            continue
        cells = written.compare_values(line, place)
        (_, expected), *_ = cells
        each = [one == other for one, other in cells]
        right.update(number for number, one in enumerate(each) if one)
        deep += each[0] and len(line) >= DEEP
        checked += 1
        agree += all(each)
        overwrites += sum(one != other and one is not None for one, other in cells)
        if all(each):
            values.add(expected)
        else:
            differing.append(item.key)
    rule, remarks = written.rule(parent), []
    if ids is None and form.by is not None:
        remarks.append(f"it keeps the path of ids too, in {form.column.path}_ids, which is not there yet")
    writes = tuple(one for one in (form.column, ids.column if ids else None, depth) if one is not None)
    reads = tuple(one for one in (parent, form.by) if one is not None)
    many = checked and all(right[number] >= AGREE_MIN * checked for number in range(1 + bool(ids) + bool(depth)))
    good = many and deep >= DEEP_MIN and len(values) >= CASES_MIN
    return Lead(
        "path", frame, frame, writes, reads, rule, "sure" if good else "none", checked, agree, orphans, sources=checked,
        join=join, plainness=5, remarks=remarks, named=1.0, examples=select_examples(differing), overwrites=overwrites,
        spoke_for=[f"{agree} of {checked} follow from their ancestors"],
        spoke_against=[] if good else ["too few follow from their ancestors"],
    )  # fmt: skip
