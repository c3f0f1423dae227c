"""Paths: texts that hold the way from the root of a hierarchy to each item, by ids or by names.

Invariant: what is expected of an item follows from its ancestors' ids and names alone, not from their paths, which may
be wrong themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.extras.discover.propose.candidates import Finding
from sync_rules.extras.discover.propose.copies import EXAMPLES
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.evidence import AGREE_MIN, CASES_MIN
from sync_rules.extras.discover.propose.frames import Column, Frame
from sync_rules.extras.discover.propose.link_search import Join, equal
from sync_rules.extras.discover.propose.proposal import Example
from sync_rules.extras.discover.propose.value_texts import STRING, TEXTS, kept, shown, unescaped

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
class Way:
    """A column that may be a path: what it is made of, and the text between."""

    column: Column
    by: Column | None  # None: the ids
    separator: str


@dataclass
class Node:
    """An item of a hierarchy: its scope and its id, its parent's id, and the values of some columns."""

    key: str
    scope: tuple[str, ...]
    own: str
    parent: str | None
    values: tuple[str | None, ...]


def paths(database: Database, join: Join) -> list[Finding]:
    """Find the paths of items that name a parent of their own kind."""
    if join.source is not join.target or len(join.pairs[-1][1].road) > 1:
        return []
    *scope, (own, parent) = join.pairs
    if any(field is not column for field, column in scope) or parent is own:
        return []
    ways = _ways(database, join, own)
    return list(_found(database, join, ways)) if ways else []


def _ways(database: Database, join: Join, own: Column) -> list[Way]:
    """The columns that end with an own value after what the parent has in the same column."""
    frame = join.target
    texts = [one for one in frame.columns if one.writable and one.profile.is_text and not one.profile.is_boolean]
    named = [
        one for one in frame.columns if not one.is_shadowed and one.profile.types <= {*TEXTS, "z"} and one is not own
    ]
    every = max(1, frame.rows // SAMPLE)
    named = [one for one in named if not _repeats(database, frame, one, own)]
    columns = [*texts, own, *named]
    names = ", ".join([*(f"t.{one.sql}" for one in columns), *(f"s.{one.sql}" for one in texts)])
    rows = database.rows(
        f"SELECT {names} FROM {frame.sql} t JOIN {frame.sql} s ON {join.on()} WHERE hash(t.rid) % {every} = 0 "
        f"LIMIT {2 * SAMPLE}"
    )
    found = []
    for place, column in enumerate(texts):
        for number, by in enumerate(columns[len(texts) :], len(texts)):
            if by is column:
                continue
            probe = [_between(row[place], row[number], row[len(columns) + place]) for row in rows[:PROBE]]
            if len(probe) - probe.count(None) < PROBE_MIN * len(probe):
                continue
            between = Counter(_between(row[place], row[number], row[len(columns) + place]) for row in rows)
            between.pop(None, None)
            (separator, count), *_ = between.most_common(1) or [(None, 0)]
            if separator is not None and count >= RATE_MIN * len(rows) and count >= CASES_MIN:
                found.append(Way(column, None if by is own else by, separator))
    return found


def _repeats(database: Database, frame: Frame, column: Column, own: Column) -> bool:
    """True for an attribute that holds the id once more."""
    alike, total = database.row(f"SELECT count(*) FILTER ({equal(column, 't', own, 't')}), count(*) FROM {frame.sql} t")
    return bool(alike > total / 2)


def _between(path: str | None, own: str | None, above: str | None) -> str | None:
    """The text between the parent's path and the own value; None if it is no such path."""
    if not path or not own or not above or len(own) <= 1 or own[0] not in TEXTS:
        return None
    middle = path.removeprefix(above)
    if len(middle) == len(path) or not middle.endswith(own[1:]):
        return None
    between = unescaped(middle[: len(middle) - len(own) + 1])
    return between if 0 < len(between) <= SEPARATOR_MAX else None


def _found(database: Database, join: Join, ways: Sequence[Way]) -> Iterator[Finding]:
    """One finding for each path: with names it takes the path of ids along, and the depth goes with one of them."""
    frame = join.target
    by_ids = next((way for way in ways if way.by is None), None)
    names = [way for way in ways if way.by is not None]
    numbers = [one for one in frame.columns if one.writable and one.profile.is_number and len(one.road) == 1]
    texts = sorted({one for way in ways if way.by for one in (way.by,)}, key=lambda one: one.path)
    columns = [*(way.column for way in ways), *texts, *numbers]
    nodes = _nodes(database, join, columns)
    place = {id(column): number for number, column in enumerate(columns)}
    depths = _depths(nodes)
    deep = [one for one in numbers if _is_depth(nodes, depths, place[id(one)])]
    taken = False
    for way in names or ([by_ids] if by_ids else []):
        ids = by_ids if way.by is not None and not taken else None
        depth = deep[0] if deep and not taken else None
        taken = True
        yield _counted(join, Written(way, ids, depth), nodes, place)


def _nodes(database: Database, join: Join, columns: Sequence[Column]) -> dict[tuple[tuple[str, ...], str], Node]:
    frame = join.target
    *scope, (own, parent) = join.pairs
    names = "".join(f", t.{one.sql}" for one in columns)
    scopes = "".join(f", t.{field.sql}" for field, _ in scope)
    found = {}
    for row in database.each(
        f"SELECT {frame.key_shown()}, t.{own.sql}, t.{parent.sql}{scopes}{names} FROM {frame.sql} t"
    ):
        key, mine, above, *rest = row
        inner = tuple(str(one) for one in rest[: len(scope)])
        above = None if above is None or len(above) <= 1 else above[1:]  # empty or NULL
        node = Node(key, inner, mine[1:], above, tuple(rest[len(scope) :]))
        found[inner, node.own] = node
    return found


def _lines(nodes: dict[tuple[tuple[str, ...], str], Node]) -> Iterator[tuple[Node, list[Node] | None]]:
    """Each item with its ancestors from the root down to itself; None where one is missing, or in a ring."""
    for node in nodes.values():
        line = [node]
        whole = True
        while whole and line[-1].parent is not None:
            above = nodes.get((node.scope, line[-1].parent))
            whole = above is not None and len(line) <= DEPTH_MAX and above is not node
            if above is not None:
                line.append(above)
        yield node, line[::-1] if whole else None


def _depths(nodes: dict[tuple[tuple[str, ...], str], Node]) -> dict[int, int]:
    return {id(node): len(line) - 1 for node, line in _lines(nodes) if line is not None}


def _is_depth(nodes: dict[tuple[tuple[str, ...], str], Node], depths: dict[int, int], place: int) -> bool:
    known = [(node.values[place], depths[id(node)]) for node in nodes.values() if id(node) in depths]
    agree = sum(value == f"n{depth}" for value, depth in known)
    return len({depth for _, depth in known}) > 1 and agree >= AGREE_MIN * len(known)


def _text(line: Sequence[Node], place: int | None, separator: str) -> str | None:
    """The path of ids, or of names: an item without a name is left out."""
    if place is None:
        return separator.join(node.own for node in line)
    names = [value[1:] for node in line if (value := node.values[place]) and len(value) > 1 and value[0] in TEXTS]
    return separator.join(names) or None


@dataclass(frozen=True)
class Written:
    """The columns that one rule writes: a path, that of ids beside one of names, and the depth."""

    way: Way
    ids: Way | None
    depth: Column | None

    def rule(self, parent: Column) -> dict[str, Any]:
        """The rule as the rules file has it."""
        rule: dict[str, Any] = {"path": self.way.column.shown, "parent": parent.path}
        if self.way.by is not None:
            rule["by"] = self.way.by.path
        if self.way.separator != SEPARATOR:
            rule["separator"] = self.way.separator
        if self.ids is not None:
            rule["ids"] = self.ids.column.path
            rule |= {"ids_separator": self.ids.separator} if self.ids.separator != SEPARATOR else {}
        if self.depth is not None:
            rule["depth"] = self.depth.path
        return rule

    def expected(self, line: Sequence[Node], place: dict[int, int]) -> list[tuple[str | None, str | None]]:
        """The value of each column on the last item of a line, and what it should be, as typed texts."""
        held, by = line[-1].values, self.way.by
        text = _text(line, None if by is None else place[id(by)], self.way.separator)
        found = [(held[place[id(self.way.column)]], None if text is None else STRING + kept(unescaped(text)))]
        if self.ids is not None:
            found.append(
                (
                    held[place[id(self.ids.column)]],
                    STRING + kept(unescaped(_text(line, None, self.ids.separator) or "")),
                )
            )
        if self.depth is not None:
            found.append((held[place[id(self.depth)]], f"n{len(line) - 1}"))
        return found


def _counted(join: Join, written: Written, nodes: dict[Any, Node], place: dict[int, int]) -> Finding:
    frame, parent, way = join.target, join.pairs[-1][1], written.way
    ids, depth = written.ids, written.depth
    checked = agree = orphans = deep = 0
    values = set()
    right: Counter[int] = Counter()  # by column: they may be wrong independently
    differing: list[Example] = []
    for node, line in _lines(nodes):
        if line is None:
            orphans += 1
            continue
        cells = written.expected(line, place)
        (held, expected), *_ = cells
        each = [one == other for one, other in cells]
        right.update(number for number, one in enumerate(each) if one)
        deep += each[0] and len(line) >= DEEP
        checked += 1
        agree += all(each)
        if all(each):
            values.add(expected)
        else:
            differing.append(Example(node.key, shown(expected), shown(held)))
    rule, remarks = written.rule(parent), []
    if ids is None and way.by is not None:
        remarks.append(f"it keeps the path of ids too, in {way.column.path}_ids, which is not there yet")
    writes = tuple(one for one in (way.column, ids.column if ids else None, depth) if one is not None)
    reads = tuple(one for one in (parent, way.by) if one is not None)
    many = checked and all(right[number] >= AGREE_MIN * checked for number in range(1 + bool(ids) + bool(depth)))
    good = many and deep >= DEEP_MIN and len(values) >= CASES_MIN
    finding = Finding("path", frame, frame, writes, reads, rule, "sure" if good else "none", checked, agree, orphans)
    finding.join, finding.plainness, finding.remarks, finding.named = join, 5, remarks, 1.0
    finding.examples = tuple(sorted(differing, key=lambda one: one.key)[:EXAMPLES])
    finding.sources, finding.spoke_for = checked, [f"{agree} of {checked} follow from their ancestors"]
    finding.spoke_against = [] if good else ["too few follow from their ancestors"]
    return finding
