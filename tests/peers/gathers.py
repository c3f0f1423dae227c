"""Attributes made of many items: maps and lists of entries, sets, counts, sums, least and greatest.

Each becomes one rule of ours over the items that point to their parent, which are at the end of backward hops:

- forward hops before them: the item there gathers, and the parent copies what it gathered;
- forward hops behind them: what is wanted is copied onto the items that point to the parent, and the key too, without
  which there is nothing at the end;
- backward hops behind those again: a number is gathered there, and the numbers are gathered once more.

Counts and the like keep their books in a ledger, one table per scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sync_rules.model.values import Path, show_path
from tests.peers import conditions, ways, weights
from tests.peers.builder import Builder, Target, UnsupportedError, path_of
from tests.peers.scenarios import ABSENT
from tests.peers.ways import ELEMENT, OWNER, Hop, Way

PARENT, MEMBER = "pair_parent", "pair_member"  # the key of a pair; a mirror of an edge keeps the edge's own names
ENTRIES_MAX: Final = 1000
NUMBERS: Final = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}  # how numbers are gathered once more
EMPTY: Final[Mapping[str, Any]] = {"map": {}, "list": [], "count": 0, "sum": 0, "min": ABSENT, "max": ABSENT}
ALIASES: Final = {"missing": "empty"}
WORDS: Final = {"table", "attr", "agg", "path", "of", "where", "fields", "empty", "order", *weights.WORDS, *ALIASES}


@dataclass(frozen=True)
class Gathered:
    """A value made of the items at the end of a way."""

    kind: str
    of: Path | None = None
    fields: tuple[tuple[Path, str], ...] = ()
    weighing: weights.Weighing | None = None
    order: str | None = None

    @property
    def reads(self) -> tuple[Path, ...]:
        """The attributes that it needs of each item."""
        return tuple(path for path in (self.of, *(path for path, _ in self.fields)) if path is not None)


def gather(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """Translate `agg`. Raises UnsupportedError."""
    said = {ALIASES.get(word, word): value for word, value in rule.items()}
    if said["agg"] == "count" and isinstance(said.get("weight"), str) and "weight_map" not in said:
        said |= {"agg": "sum", "of": said.pop("weight")}
    what, kind = read(said), said["agg"]
    way = ways.read(builder, into[0], said["path"], said.get("where"))
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
    for word, kinds in (("fields", ("map", "list")), ("of", ("sum", "min", "max"))):
        if (word in said) != (kind in kinds):
            raise UnsupportedError(f"agg: {kind} {'with' if word in said else 'without'} {word}")
    if any("." in name for _, name in fields):
        raise UnsupportedError(f"agg: {kind} with a field inside a map")
    if "order" in said and kind != "list":
        raise UnsupportedError(f"agg: {kind} with order")
    return Gathered(kind, path_of(said["of"]) if "of" in said else None, fields, weighing, said.get("order"))


# ---------------------------------------------------------------- along the way
def make(builder: Builder, into: Target, way: Way, what: Gathered) -> None:
    """The rules that gather at the end of a way. Raises UnsupportedError."""
    forward = _run(way.hops, forward=True)
    if forward == len(way.hops):
        way, forward = _over_an_edge(builder, way), 0
    if forward:
        if any(condition.after <= forward for condition in way.conditions):
            raise UnsupportedError("`where` on a reference")
        helper = _gathered(builder, way.part(forward), what)
        empty = EMPTY[what.kind]
        ways.copy(builder, into, way.hops[:forward], helper, **({} if empty == ABSENT else {"default": empty}))
        return
    back = _run(way.hops, forward=False)
    there = back + _run(way.hops[back:], forward=True)
    if there < len(way.hops):
        if what.kind not in NUMBERS:
            raise UnsupportedError(f"agg: {what.kind} of items that are reached backward, forward and backward again")
        helper = _gathered(builder, way.part(there), what)
        way, what = way.part(0, there), Gathered(NUMBERS[what.kind], of=helper)
    if what.kind in NUMBERS:
        _number(builder, into, way, what)
    else:
        _entries(builder, into, way, what)


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


def _gathered(builder: Builder, way: Way, what: Gathered) -> Path:
    """The helper, on the items that a way starts at, for what is gathered at its end."""
    key = ("gathered", way.hops, repr(what), tuple((c.after, c.path, c.test("x")) for c in way.conditions))
    known = (way.start, *key) in builder.made
    helper = builder.helper(way.start, key, (way.hops[0].table, what.kind, *(what.of or ())))
    if not known:
        make(builder, (way.start, helper), way, what)
    return helper


# ---------------------------------------------------------------- the rules
def _number(builder: Builder, into: Target, way: Way, what: Gathered) -> None:
    """count, sum, min or max of the items that the backward hops reach."""
    back = _run(way.hops, forward=False)
    entity, onward = way.table(back), way.hops[back:]
    of = None if what.of is None else ways.bring(builder, entity, onward, what.of)
    tests = _tests(builder, way, back)
    if of is not None and _has_null(builder, way.table(len(way.hops)), what.of):
        tests.append(f"{conditions.name_of(of)} != `null`")
    rule: dict[str, Any] = {
        what.kind: entity if of is None else show_path((entity, *of)),
        "into": show_path((into[0], *into[1])),
        **ways.link_of(builder, entity, way.back(back)),
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


def _entries(builder: Builder, into: Target, way: Way, what: Gathered) -> None:
    """A map or a list of the items at the end."""
    back = _run(way.hops, forward=False)
    entity, onward = way.table(back), way.hops[back:]
    tests = _tests(builder, way, back)
    if not _is_edge(way) and (onward or what.kind == "list"):
        way, tests = _paired(builder, way, back, tests)
        back = 1
        entity, onward = way.table(1), way.hops[1:]
    shown = {show_path(ways.bring(builder, entity, onward, path)): name for path, name in what.fields}
    last = onward[0].refs[0][0] if onward else ""  # of an edge or a pair, its key
    name = f"{{{last}}}" if onward else "|".join(f"{{{key}}}" for key in builder.keys_of(entity))
    rule: dict[str, Any] = {
        "embed": entity,
        "into": show_path((into[0], *into[1])),
        "link": ways.single(builder, entity, way.back(back)),
        "fields": shown,
        "limit": {"items": ENTRIES_MAX},
        **_where(tests),
    }
    if what.kind == "map":
        rule["by"] = name
    else:
        order = what.order or last
        sign, order = ("-", order[1:]) if order.startswith("-") else ("", order)
        path = (last,) if order == last else ways.bring(builder, entity, onward, path_of(order))
        rule |= {"as": "list", "order": f"{sign}{show_path(path)}"}
    builder.rule(into, rule)


def _is_edge(way: Way) -> bool:
    """True if the way is over a table of edges and ends at their far end."""
    return len(way.hops) == 2 and way.hops[0].refs == ((OWNER,),) and way.hops[1].refs == ((ELEMENT,),)


def _paired(builder: Builder, way: Way, back: int, tests: list[str]) -> tuple[Way, list[str]]:
    """The same over a table with an edge for each pair of parent and item, listed by the parent."""
    entity, onward = way.table(back), way.hops[back:]
    parent, member = way.start, way.table(len(way.hops))
    (owner,) = _brought(builder, entity, way.back(back))
    (element,) = _brought(builder, entity, onward) if onward else ((builder.id_of(entity),),)
    words = (parent, *owner, member, *element, "pairs", *([] if not tests else [str(len(builder.made))]))
    kinds = {end: builder.keys[table][builder.id_of(table)] for end, table in ((PARENT, parent), (MEMBER, member))}
    pairs = builder.table(words, kinds)
    mirror = {
        "mirror": entity,
        "into": pairs,
        "link": {PARENT: show_path(owner), MEMBER: show_path(element)},
        **_where(tests),
    }
    if mirror not in builder.rules.values():
        builder.rule((pairs, ()), mirror)
    hops = (Hop(pairs, ((PARENT,),), forward=False), Hop(member, ((MEMBER,),)))
    paired = Way(parent, hops)
    return paired, _tests(builder, paired, 1)


def _brought(builder: Builder, entity: str, hops: Sequence[Hop]) -> tuple[Path, ...]:
    """The attributes of items of `entity` that name the item at the end of forward hops."""
    *before, last = hops
    refs = tuple(ways.bring(builder, entity, before, ref) for ref in last.refs)
    if len(refs) > 1:
        raise UnsupportedError(f"pairs with {last.table}, whose key has two attributes")
    return tuple(ref if len(ref) == 1 else builder.lifted(entity, ref) for ref in refs)


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


def _has_null(builder: Builder, table: str, path: Path | None) -> bool:
    """True if an item's value is null: nothing to add, and no mistake."""
    *parents, name = path or ("",)
    return any(
        isinstance(inner, Mapping) and name in inner and inner[name] is None
        for inner in (builder.values(table, tuple(parents)) if path else ())
    )
