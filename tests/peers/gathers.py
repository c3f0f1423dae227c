"""Attributes made of many items: maps and lists of entries, sets, lists and texts of values, counts, sums, extremes.

Each becomes one rule of ours over the items that point to their parent, which are at the end of backward hops:

- forward hops before them: the item there gathers, and the parent copies what it gathered;
- forward hops behind them: what is wanted is copied onto the items that point to the parent, and the key too, without
  which there is nothing at the end. An entry is wanted once: a set of keys is gathered, and edges are made of it;
- backward hops behind those again: a number is gathered there, and the numbers are gathered once more. For anything
  else the items behind are given a set of their parents, which makes a list of references of them.

All but maps keep their books in a ledger, one table per scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from sync_rules.model.values import Path, show_path
from tests.peers import chains, conditions, ways, weights
from tests.peers.builder import Builder, Target, UnsupportedError, path_of
from tests.peers.scenarios import ABSENT
from tests.peers.ways import ELEMENT, OWNER, Hop, Way

ENTRIES_MAX: Final = 1000
NUMBERS: Final = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}  # how numbers are gathered once more
EMPTY: Final[Mapping[str, Any]] = {
    "map": {}, "list": [], "set": ABSENT, "count": 0, "sum": 0, "min": ABSENT, "max": ABSENT, "join": ABSENT,
}  # fmt: skip
ALIASES: Final = {"missing": "empty", "default": "empty", "sort": "order", "order_by": "order"}
WORDS: Final = {
    "table", "attr", "agg", "path", "of", "where", "fields", "empty", "order", "distinct", *weights.WORDS, *ALIASES,
}  # fmt: skip


@dataclass(frozen=True)
class Gathered:
    """A value made of the items at the end of a way."""

    kind: str
    of: Path | None = None
    fields: tuple[tuple[Path, str], ...] = ()
    weighing: weights.Weighing | None = None
    order: str | None = None
    separator: str = ""
    distinct: bool = False

    @property
    def entries(self) -> bool:
        """True for maps and lists of maps."""
        return bool(self.fields)


def gather(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """Translate `agg`. Raises UnsupportedError."""
    said = {ALIASES.get(word, word): value for word, value in rule.items()}
    if said["agg"] == "count" and isinstance(said.get("weight"), str) and "weight_map" not in said:
        said |= {"agg": "sum", "of": said.pop("weight")}
    what, kind = read(said), said["agg"]
    way = ways.read(builder, into[0], said["path"], said.get("where"))
    if what.of is None and kind in ("set", "list") and not what.entries:
        what = replace(what, of=(builder.id_of(way.table(len(way.hops))),))
    empty = said.get("empty", EMPTY[kind])
    if empty == EMPTY[kind] and isinstance(empty, bool) == isinstance(EMPTY[kind], bool):
        make(builder, into, way, what)
        return
    helper = builder.helper(into[0], ("with empty", repr(said)), (*into[1], "found"))
    make(builder, (into[0], helper), way, what)
    where = {}
    if kind in ("count", "sum", "map", "list"):
        number = builder.helper(into[0], ("rows", repr(said)), (*into[1], "rows"))
        make(builder, (into[0], number), way, Gathered("count"))
        where = {"where": f"{conditions.name_of(number)} != `0`"}
    default = {} if empty == ABSENT else {"default": empty}
    ways.copy(builder, into, (), helper, **where, **default)


def read(said: Mapping[str, Any]) -> Gathered:
    """Say what a rule asks for. Raises UnsupportedError."""
    kind = said["agg"]
    if kind not in EMPTY:
        raise UnsupportedError(f"agg: {kind}")
    if unknown := said.keys() - WORDS:
        raise UnsupportedError(f"agg: {kind} with {', '.join(sorted(map(str, unknown)))}")
    weighing = weights.read(said)
    if weighing is not None and kind != "count":
        raise UnsupportedError(f"agg: {kind} with weights")
    given = said.get("fields", ())
    named = given.items() if isinstance(given, Mapping) else ((name, name) for name in given)
    fields = tuple((path_of(of), str(name)) for name, of in named)
    needs = {"map": {"fields"}, "count": set(), "set": {"of"} & said.keys()}
    needs["list"] = {"fields"} if "fields" in said else needs["set"]
    for word in ("fields", "of"):
        if (word in said) != (word in needs.get(kind, {"of"})):
            raise UnsupportedError(f"agg: {kind} {'with' if word in said else 'without'} {word}")
    if any("." in name for _, name in fields):
        raise UnsupportedError(f"agg: {kind} with a field inside a map")
    for word in ("order", "distinct"):
        if word in said and (kind != "list" or (word == "distinct" and fields)):
            raise UnsupportedError(f"agg: {kind} with {word}")
    order, distinct = said.get("order"), bool(said.get("distinct"))
    if not isinstance(order, str | None):
        raise UnsupportedError(f"agg: {kind} with an order that is a {type(order).__name__}")
    of = path_of(said["of"]) if "of" in said else None
    return Gathered(kind, of, fields, weighing, order, distinct=distinct)


# ---------------------------------------------------------------- along the way
def make(builder: Builder, into: Target, way: Way, what: Gathered) -> None:
    """The rules that gather at the end of a way. Raises UnsupportedError."""
    forward = _run(way.hops, forward=True)
    if forward == len(way.hops):
        way, forward = _over_an_edge(builder, way), 0
    if forward:
        helper = _gathered(builder, way.part(forward), what)
        if what.kind in ("set", "list"):
            builder.lists.add((way.table(forward), helper))
        empty = EMPTY[what.kind]
        chains.follow(builder, into, way.part(0, forward), helper, **({} if empty == ABSENT else {"default": empty}))
        return
    back = _run(way.hops, forward=False)
    there = back + _run(way.hops[back:], forward=True)
    if there < len(way.hops):
        if what.kind not in NUMBERS or _of_texts(builder, way, what):
            make(builder, into, _listed(builder, way, there), what)
            return
        helper = _gathered(builder, way.part(there), what)
        way, what = way.part(0, there), Gathered(NUMBERS[what.kind], of=helper)
    if what.entries:
        _entries(builder, into, way, what)
    else:
        _booked(builder, into, way, what)


def _run(hops: Sequence[Hop], *, forward: bool) -> int:
    """How many hops in a row go this way."""
    return next((n for n, hop in enumerate(hops) if hop.forward is not forward), len(hops))


def _over_an_edge(builder: Builder, way: Way) -> Way:
    """A way of forward hops alone, to one item at most: the first one goes over an edge."""
    first, *rest = way.hops
    if len(first.refs) > 1:
        raise UnsupportedError(f"agg over a reference to {first.table}, whose key has two attributes")
    edges = ways.edges_of(builder, way.start, first.refs[0], first.table, listed_by_owner=True)
    hops = (Hop(edges, ((OWNER,),), forward=False), Hop(first.table, ((ELEMENT,),)), *rest)
    return Way(way.start, hops, tuple(replace(test, after=test.after + 1) for test in way.conditions))


def _listed(builder: Builder, way: Way, there: int) -> Way:
    """The same way, where the items behind the one `there` list what they are reached from."""
    back = [Hop(way.table(n - 1), way.hops[n - 1].refs, not way.hops[n - 1].forward) for n in range(there, 0, -1)]
    tests = [replace(test, after=there - test.after) for test in way.conditions if test.after <= there]
    parents = _gathered(
        builder, Way(way.table(there), tuple(back), tuple(tests)), Gathered("set", (builder.id_of(way.start),))
    )
    builder.lists.add((way.table(there), parents))
    hop = way.hops[there]
    held = ways.bring(builder, hop.table, [Hop(way.table(there), hop.refs)], parents)
    hops = ways.members(builder, hop.table, held, way.start)
    behind = [replace(test, after=test.after - there - 1 + len(hops)) for test in way.conditions if test.after > there]
    return Way(way.start, (*hops, *way.hops[there + 1 :]), tuple(behind))


def _gathered(builder: Builder, way: Way, what: Gathered) -> Path:
    """The helper, on the items that a way starts at, for what is gathered at its end."""
    key = ("gathered", way.hops, repr(what), tuple((c.after, c.path, c.test("x")) for c in way.conditions))
    known = (way.start, *key) in builder.made
    helper = builder.helper(way.start, key, (way.hops[0].table, what.kind, *(what.of or ())))
    if not known:
        make(builder, (way.start, helper), way, what)
    return helper


# ---------------------------------------------------------------- the rules
def _booked(builder: Builder, into: Target, way: Way, what: Gathered) -> None:
    """A number or values of the items that the backward hops reach."""
    back = _run(way.hops, forward=False)
    entity, onward, end = way.table(back), way.hops[back:], way.table(len(way.hops))
    of = None if what.of is None else ways.bring(builder, entity, onward, what.of)
    tests = _tests(builder, way, back)
    if of is not None and what.of is not None and builder.has_null(end, what.of):
        tests.append(f"{conditions.name_of(of)} != `null`")
    order = path_of(what.order.removeprefix("-")) if what.order else (builder.keys_of(end)[0],)
    sign = "-" if what.order and what.order.startswith("-") else ""
    ordered = f"{sign}{show_path(ways.bring(builder, entity, onward, order))}" if what.kind in ("list", "join") else ""
    if _of_texts(builder, way, what) and of is not None:
        word, options = (
            "collect",
            {"join": "", "order": ("-" if what.kind == "max" else "") + show_path(of), "limit": 1},
        )
    elif what.kind in NUMBERS:
        word, options = what.kind, {}
    else:
        numbers = {"numbers": True} if what.of is not None and builder.holds_numbers(end, what.of) else {}
        word = "collect"
        options = {"set": numbers, "list": {"as": "list"}, "join": {"join": what.separator}}[what.kind]
        options = options | ({"order": ordered} if ordered else {}) | ({"distinct": True} if what.distinct else {})
    rule: dict[str, Any] = {
        word: entity if of is None else show_path((entity, *of)),
        "into": show_path((into[0], *into[1])),
        **options,
        "link": ways.single(builder, entity, way.back(back)),
        **_where(tests),
    }
    if what.weighing is not None:
        key = builder.keys_of(way.table(len(way.hops)))[0]
        weighed = ways.bring(builder, entity, onward, what.weighing.attribute or (key,))
        if what.weighing.absent_is_null:
            plain, weighed = weighed, builder.helper(entity, ("or null", weighed), (*weighed, "or", "null"))
            ways.copy(builder, (entity, weighed), (), plain, default=None)
        rule["weights"] = {"values": {show_path(weighed): dict(what.weighing.values)}, "default": what.weighing.default}
    builder.rule(into, {**rule, "ledger": builder.table(("ledger",), {"PK": "S", "SK": "S"})})


def _of_texts(builder: Builder, way: Way, what: Gathered) -> bool:
    """True for the least or the greatest of texts: the first of them in order."""
    if what.kind not in ("min", "max") or what.of is None:
        return False
    end = way.table(len(way.hops))
    return not builder.holds_numbers(end, what.of) and any(
        isinstance(value, str | date) for value in builder.values(end, what.of)
    )


def _entries(builder: Builder, into: Target, way: Way, what: Gathered) -> None:
    """A map or a list of the items at the end."""
    if not _is_edge(way) and (len(way.hops) > 1 or what.kind == "list"):
        way = _once(builder, way)
    back = _run(way.hops, forward=False)
    entity, onward = way.table(back), way.hops[back:]
    shown = {show_path(ways.bring(builder, entity, onward, path)): name for path, name in what.fields}
    rule: dict[str, Any] = {
        "embed": entity,
        "into": show_path((into[0], *into[1])),
        "link": ways.single(builder, entity, way.back(back)),
        "fields": shown,
        "limit": {"items": ENTRIES_MAX},
        **_where(_tests(builder, way, back)),
    }
    if what.kind == "map":
        rule["by"] = f"{{{ELEMENT}}}" if onward else "|".join(f"{{{key}}}" for key in builder.keys_of(entity))
    else:
        order = what.order or ELEMENT
        sign, order = ("-", order[1:]) if order.startswith("-") else ("", order)
        path = (ELEMENT,) if order == ELEMENT else ways.bring(builder, entity, onward, path_of(order))
        rule |= {"as": "list", "order": f"{sign}{show_path(path)}"}
    builder.rule(into, rule)


def _is_edge(way: Way) -> bool:
    """True if the way is over a table of edges and ends at their far end."""
    return len(way.hops) == 2 and way.hops[0].refs == ((OWNER,),) and way.hops[1].refs == ((ELEMENT,),)


def _once(builder: Builder, way: Way) -> Way:
    """A way over edges to the same items, each of them once."""
    end = way.table(len(way.hops))
    if len(way.hops) == 1:
        hops = ways.members(builder, end, *way.hops[0].refs, way.start)
        return Way(way.start, tuple(hops), tuple(replace(test, after=len(hops)) for test in way.conditions))
    keys = _gathered(builder, way, Gathered("set", (builder.id_of(end),)))
    builder.lists.add((way.start, keys))
    edges = ways.edges_of(builder, way.start, keys, end, listed_by_owner=True)
    return Way(way.start, (Hop(edges, ((OWNER,),), forward=False), Hop(end, ((ELEMENT,),))))


def _tests(builder: Builder, way: Way, back: int) -> list[str]:
    """Conditions on an item that points to the parent: those of the way, and that there is something at its end."""
    entity, onward = way.table(back), way.hops[back:]
    found = []
    if onward and not (entity in builder.carried and len(onward) == 1):
        end = builder.keys_of(onward[-1].table)[0]
        found.append(f"{conditions.name_of(ways.bring(builder, entity, onward, (end,)))} != `null`")
    for condition in way.conditions:
        if condition.after <= back:
            path = ways.bring(builder, entity, way.back(back, condition.after), condition.path)
        else:
            path = ways.bring(builder, entity, way.hops[back : condition.after], condition.path)
        found.append(condition.test(conditions.name_of(path)))
    return found


def _where(tests: Sequence[str]) -> dict[str, str]:
    return {"where": " && ".join(f"({test})" for test in tests)} if tests else {}
