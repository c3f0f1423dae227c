"""Truth: for each rule of a file and each item, what must stand there, recomputed from the items by own means.

Invariant: no code of the product's kinds is used. Each value is checked against the items that it is made of, as they
stand. Rules have no cycles, so if each is right against the one before it, all are what a recompute from the
application's bare items gives. What follows from history (a snapshot, a copy of a deleted source) or cannot be (a taken
key, a ring) is `open`: the oracle says nothing of it, and a checker may ask why.
"""

# ruff: noqa: C901, PLR0912, PLR0915 -- a choice is a branch

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final

from tests.kinds import TRIALS
from tests.simulation.plain import RaisingError, bytes_of, holds, number_of, same, seen, spelt, total, word_of
from tests.simulation.spec import (
    SETS,
    SORT_MAX_BYTES,
    Body,
    Entity,
    Item,
    Link,
    Path,
    Pattern,
    Place,
    Spec,
    Value,
    Way,
    fits,
    get,
    kind_of,
    path_of,
    views,
)

Items = Mapping[Place, Item]
Wanted = dict[Path, Value | None]
HISTORY: Final = "history"  # what stands there follows from what was
RAISES_FOR_NONE: Final = "perhaps"  # it is unknown if there is a mirror, and there could be none
NOT_IN_INDEX: Final = "NotInIndex"  # an item lacks what its entity says all have: no listing finds it
LATE: Final = "late"  # verify finds what came after its targets, where nothing lists these
NOWHERE: Final[Place] = ("", ())  # of children whose time names no group
GROUPS_MAX: Final = 100  # of one child in one rule
NO_GROUP: Final = "\0"  # of a value that can name none


@dataclass
class Verdict:
    """The findings of a look at all items. `open`: what a rule leaves as it is at an item, and why. `orphans`: items under a
    rule that deletes or reports them, whose source is gone. `settled`: the paths that a rule answers for.
    """

    wrong: list[str] = field(default_factory=list)
    open: dict[tuple[str, Place], str] = field(default_factory=dict)
    orphans: set[tuple[str, Place]] = field(default_factory=set)
    settled: list[tuple[str, Place, Path]] = field(default_factory=list)
    differing: dict[tuple[str, Place], Wanted] = field(default_factory=dict)  # what is wrong, by rule and item

    def settles(self, name: str, place: Place, path: Path) -> bool:
        """True if a rule answers for a path of an item."""
        if len(self._known) < len(self.settled):
            self._known.update(self.settled)
        return (name, place, path) in self._known

    def __post_init__(self) -> None:
        self._known: set[tuple[str, Place, Path]] = set()


@dataclass(eq=False)
class Oracle:
    """The truth of one rules file."""

    spec: Spec

    def __post_init__(self) -> None:
        self._checks = [(rule, CHECKS[rule["kind"]]) for rule in self.spec.rules.values() if rule["kind"] in CHECKS]

    def look(self, items: Items) -> Verdict:
        """Check every rule against all items."""
        verdict = Verdict()
        view = View(self.spec, items, verdict)
        for rule, check in self._checks:
            check(view, rule)
            if rule["kind"] in ("embed", "collect", "count", "sum", "mean", "min", "max", "values"):
                _parents(view, rule)
        _made_items(view)
        return verdict


class View:
    """All items, by entity."""

    def __init__(self, spec: Spec, items: Items, verdict: Verdict) -> None:
        self.spec, self.items, self.verdict = spec, items, verdict
        self.with_members: set[Place] = set()  # of entities whose items rules make
        self._by: dict[str, list[tuple[Place, Item]]] = {name: [] for name in spec.entities}
        for place, item in items.items():
            entity = spec.entity_of(place)
            if entity is not None:
                self._by[entity.name].append((place, item))

    def of(self, entity: Entity) -> list[tuple[Place, Item]]:
        return self._by[entity.name]

    # ---------------------------------------------------------------- what is found
    def leave(self, rule: Body, place: Place, why: str) -> None:
        self.verdict.open[rule["name"], place] = why

    def require(self, rule: Body, place: Place, item: Item, wanted: Wanted) -> None:
        """Require values at paths of an item; where one cannot stand, the rule says nothing of the item."""
        different = {path: value for path, value in wanted.items() if not same(get(item, path), value)}
        if any(_blocked(item, path) for path in different):
            self.leave(rule, place, "misfit")
            return
        limits = self.spec.tables[place[0]].limits
        for path, value in different.items():
            kind, most = limits.get(path[0], ("", 0)) if len(path) == 1 else ("", 0)
            if kind and value is not None and (kind not in value or not fits(value, most)):
                self.leave(rule, place, "rejected")
                return
        self.verdict.settled += [(rule["name"], place, path) for path in wanted]
        if different:
            self.verdict.differing[rule["name"], place] = different
        for path, value in different.items():
            self.wrong(rule, place, f"{'.'.join(path)} is {get(item, path)}, expected {value}")

    def wrong(self, rule: Body, place: Place, what: str) -> None:
        self.verdict.wrong.append(f"rule {rule['name']} ({rule['kind']}) on {shown(place)}: {what}")


def shown(place: Place) -> str:
    return f"{place[0]}[{', '.join(str(content) for _, content in place[1])}]"


def _blocked(item: Item, path: Path) -> bool:
    """True if something that is no map is on the way to a path."""
    return any((value := get(item, path[:size])) is not None and "M" not in value for size in range(1, len(path)))


def once(function: Callable[[Spec, Body], Any]) -> Callable[[Spec, Body], Any]:
    """Take each rule of a file apart once."""

    def known(spec: Spec, rule: Body) -> Any:
        found = spec.known.get((function.__name__, rule["name"]))
        if found is None:
            found = spec.known[function.__name__, rule["name"]] = function(spec, rule)
        return found

    return known


# ---------------------------------------------------------------- copy
@dataclass(frozen=True)
class Copy:
    """A rule of kind copy, taken apart."""

    source: Entity
    target: Entity
    pairs: tuple[tuple[Path, Path], ...]
    link: Link
    way: Way | None  # of a snapshot there may be none
    defaults: Mapping[Path, Value]
    policy: str


@once
def copy_of(spec: Spec, rule: Body) -> Copy:
    given = rule["copy"]
    texts = [given] if isinstance(given, str) else list(given)
    source = spec.ref(texts[0])[0]
    target, into = spec.ref(rule["into"])
    paths = [spec.ref(text)[1] for text in texts]
    if isinstance(given, str):
        pairs = [(paths[0], into)]
    elif isinstance(given, Mapping):
        pairs = [(path, into + path_of(given[text])) for path, text in zip(paths, texts, strict=True)]
    else:
        pairs = [(path, into + path[-1:]) for path in paths]
    link = spec.link(source, target, rule.get("link", {}))
    way = spec.way(source, target, link, rule, first=True)
    assert way is not None or rule.get("mode") == "snapshot", "any other rule without a listing is refused"
    policy = rule.get("on_delete", "clear" if "default" in rule else "keep")
    return Copy(source, target, tuple(pairs), link, way, _defaults(rule, into), policy)


def _stands(copy: Copy, to: Path, value: Value | None) -> bool:
    """True for a value that is copied; where there is a default, an index must be able to hold it in its key."""
    kind, most = copy.target.table.limits.get(to[0], ("", 0)) if len(to) == 1 and to in copy.defaults else ("", 0)
    return value is not None and (not kind or (kind in value and fits(value, most)))


def _defaults(rule: Body, into: Path) -> Mapping[Path, Value]:
    """The defaults of a copy, by their paths."""
    if "default" not in rule:
        return {}
    if isinstance(rule["copy"], str):
        return {into: as_value(rule["default"])}
    return {into + path_of(name): as_value(value) for name, value in rule["default"].items()}


def as_value(given: Any) -> Value:
    """A value of a rules file as DynamoDB has it."""
    match given:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": given}
        case str():
            return {"S": given}
        case list():
            return {"L": [as_value(one) for one in given]}
        case Mapping():
            return {"M": {name: as_value(one) for name, one in given.items()}}
    return {"N": spelt(Decimal(repr(given)))}


def copy_holds(copy: Copy, rule: Body, source: Item | None, target: Item) -> bool:
    """True if a rule speaks of a pair. Without a source, what is read of one is missing."""
    if rule.get("sparse") and copy.way is not None and not copy.way.lists(target):
        return False
    text = rule.get("where")
    if text is None:
        return True
    view = seen(copy.target, target)
    if f"{copy.source.name}." in text:
        view[copy.source.name] = {} if source is None else seen(copy.source, source)
    return holds(text, view)


def _copy(view: View, rule: Body) -> None:
    copy = copy_of(view.spec, rule)
    policy = copy.policy
    for place, item in view.of(copy.target):
        named = view.spec.named(copy.source, copy.link, item)
        source = None if named is None else view.items.get(named)
        if named is not None and not rule.get("sparse") and copy.way is not None and not copy.way.lists(item):
            view.leave(rule, place, NOT_IN_INDEX)
            continue
        try:
            reported = named is not None and source is None and policy in ("delete", "restrict")
            if reported and copy_holds(copy, rule, None, item):
                view.verdict.orphans.add((rule["name"], place))
            if rule.get("mode") == "snapshot" and any(get(item, to) is not None for _, to in copy.pairs):
                view.leave(rule, place, HISTORY)
            elif source is not None and copy_holds(copy, rule, source, item):
                found = {to: copy.source.read(source, path) for path, to in copy.pairs}
                wanted = {to: v if _stands(copy, to, v) else copy.defaults.get(to) for to, v in found.items()}
                if copy.way is None and any(not same(get(item, to), v) for to, v in wanted.items()):
                    view.leave(rule, place, LATE)  # it is unknown here which of the two came first
                else:
                    view.require(rule, place, item, wanted)
            elif policy == "clear":
                view.require(rule, place, item, {to: copy.defaults.get(to) for _, to in copy.pairs})
            else:
                view.leave(rule, place, HISTORY)
                view.require(rule, place, item, {to: v for to, v in copy.defaults.items() if get(item, to) is None})
        except RaisingError:
            view.leave(rule, place, "raises")


# ---------------------------------------------------------------- members of a parent
@dataclass(frozen=True)
class Members:
    """The items of a child entity by the parent that they name."""

    child: Entity
    parent: Entity
    link: Link
    way: Way | None


def children_of(spec: Spec, rule: Body) -> Entity:
    what = rule[rule["kind"]]
    return spec.ref(what)[0] if rule["kind"] in ("sum", "mean", "min", "max", "values") else spec.entities[what]


@once
def members_of(spec: Spec, rule: Body) -> Members:
    child, (parent, _) = children_of(spec, rule), spec.ref(rule["into"])
    link = spec.link(parent, child, rule.get("link", {}))
    return Members(child, parent, link, spec.way(parent, child, link, rule))


def _grouped(view: View, members: Members) -> dict[Place, list[tuple[Place, Item]]]:
    groups: dict[Place, list[tuple[Place, Item]]] = {}
    for place, item in view.of(members.child):
        if _misfit(members, item):
            continue
        for named in view.spec.all_named(members.parent, members.link, item):
            if named is not None:
                groups.setdefault(named, []).append((place, item))
    return groups


def _misfit(members: Members, child: Item) -> str:
    """Why the elements of a child's list name no groups."""
    for spot in members.link.values():
        value = get(child, spot.path) if spot.each else None
        if value is not None and kind_of(value) not in (("S", "NULL") if spot.separator else ("L", "NULL", *SETS)):
            return "NotAText" if spot.separator else "NotAList"
        if value is not None and len(views(members.link, child)) > GROUPS_MAX:
            return "TooManyGroups"
    return ""


def _parents(view: View, rule: Body) -> None:
    """The children of parents that are gone, where they go with them or are reported."""
    if rule.get("on_delete", "keep") == "keep":
        return
    members = members_of(view.spec, rule)
    assert members.way is not None, "a rule without a listing is refused"
    for place, item in view.of(members.child):
        named = view.spec.named(members.parent, members.link, item)
        if not members.way.lists(item):
            if named is not None and not rule.get("sparse"):
                view.leave(rule, place, NOT_IN_INDEX)
            continue
        if named is None:
            continue
        try:
            if lets_in(rule, members.child, item) and named not in view.items:
                view.verdict.orphans.add((rule["name"], place))
        except RaisingError:
            view.leave(rule, place, "raises")


def lets_in(rule: Body, entity: Entity, item: Item) -> bool:
    """True if `where` lets an item in, and `omit` does not leave it out."""
    if rule.get("where") is None and rule.get("omit") is None:
        return True
    view = seen(entity, item)
    meant = holds(rule.get("where"), view)  # else `omit` is not asked
    return meant and not (rule.get("omit") is not None and holds(rule["omit"], view))


# ---------------------------------------------------------------- embed
def _embed(view: View, rule: Body) -> None:
    spec, members, into = view.spec, members_of(view.spec, rule), view.spec.ref(rule["into"])[1]
    groups = _grouped(view, members)
    assert members.way is not None, "a rule without a listing is refused"
    for one in groups.values():
        for at, child in one if not rule.get("sparse") else ():
            if not members.way.lists(child):
                view.leave(rule, at, NOT_IN_INDEX)
    for place, parent in view.of(members.parent):
        children = [(at, one) for at, one in groups.get(place, ()) if spec.shown(members.way, members.child, one)]
        try:
            children = [(at, one) for at, one in children if lets_in(rule, members.child, one)]
        except RaisingError:
            view.leave(rule, place, "raises")
            continue
        value = _embedded(rule, members, children)
        if isinstance(value, str):
            view.leave(rule, place, value)
        else:
            view.require(rule, place, parent, {into: value})
            left = _left_out(rule, members, children)
            if left and (rule["name"], place) not in view.verdict.open:
                view.leave(rule, place, left)


def _contents(place: Place) -> tuple[Any, ...]:
    return tuple(content for _, content in place[1])


def _own(members: Members) -> list[str]:
    """The fields of a child's key that its parent does not have."""
    known = {spot.field for spot in members.link.values()}
    return [name for name in members.child.identity if name not in known]


def _claims(rule: Body, members: Members, children: list[tuple[Place, Item]]) -> dict[str, list[Place]]:
    """The children that claim each entry, those whose keys come first ahead; under "" those that name none."""
    child = members.child
    by = Pattern.of(rule.get("by") or "#".join(f"{{{name}}}" for name in _own(members)) or child.name)
    claims: dict[str, list[Place]] = {}
    for place, item in sorted(children, key=lambda one: _contents(one[0])):
        fields = {name: value for name in by.fields if (value := child.spot(name).read(item)) is not None}
        claims.setdefault((by.build(fields, "S") or {"S": ""})["S"], []).append(place)
    return claims


def _named_by_attribute(rule: Body, members: Members) -> bool:
    return "by" in rule and not {*_own(members)} <= {*Pattern.of(rule["by"]).fields}


def _left_out(rule: Body, members: Members, children: list[tuple[Place, Item]]) -> str:
    """The reason why some child is left out, though all others have their entries."""
    if not _named_by_attribute(rule, members):
        return ""
    claims = _claims(rule, members, children)
    return "EntryTwice" if any(len(some) > 1 for some in claims.values()) else "NoEntryKey" if "" in claims else ""


def _embedded(rule: Body, members: Members, children: list[tuple[Place, Item]]) -> Value | str:
    child, listed, items = members.child, rule.get("as") == "list", dict(children)
    claims = _claims(rule, members, children)
    if _named_by_attribute(rule, members):
        claims = {name: some[:1] for name, some in claims.items() if name}
    named = sorted(
        ((place, name) for name, some in claims.items() for place in some), key=lambda one: _contents(one[0])
    )
    entries = [(name, _entry(rule, child, items[place]), items[place], place) for place, name in named]
    if not listed:
        if any(not name for name, *_ in entries):
            return "NoEntryKey"
        if len({name for name, *_ in entries}) < len(entries):
            return "EntryTwice"
    order = rule.get("order")
    if order is None:
        entries.sort(key=lambda one: one[0])
    else:
        path, down = path_of(order.removeprefix("-")), order.startswith("-")
        ranks = [_rank(child.read(item, path)) for _, _, item, _ in entries]
        least = [one for one, rank in zip(entries, ranks, strict=True) if rank is None]
        rest = [(rank, one) for one, rank in zip(entries, ranks, strict=True) if rank is not None]
        rest.sort(key=lambda one: one[0], reverse=down)
        entries = [one for _, one in rest] + least if down else least + [one for _, one in rest]
    shown = [(name, value) for name, value, *_ in entries]
    limit, overflow = rule["limit"], rule.get("on_overflow", "fail")
    if _exceeds(shown, limit, listed=listed):
        if overflow == "fail":
            return "TooMany"
        if overflow == "omit":
            return {"NULL": True}
        ahead = order is not None and order.startswith("-")
        while shown and _exceeds(shown, limit, listed=listed):
            shown = shown[:-1] if ahead else shown[1:]
    return _whole(shown, listed=listed)


def _entry(rule: Body, child: Entity, item: Item) -> Value:
    fields = rule.get("fields")
    if fields is None:
        return {"M": {name: value for name, value in item.items() if name not in child.table.key}}
    renamed = fields if isinstance(fields, Mapping) else {}
    names = {text: path_of(renamed.get(text, text))[-1] for text in fields}
    found = ((name, child.read(item, path_of(text))) for text, name in names.items())
    given = {path_of(name)[-1]: as_value(value) for name, value in rule.get("default", {}).items()}
    return {"M": given | {name: value for name, value in found if value is not None}}


def _whole(entries: Sequence[tuple[str, Value]], *, listed: bool) -> Value:
    return {"L": [value for _, value in entries]} if listed else {"M": dict(entries)}


def _exceeds(entries: Sequence[tuple[str, Value]], limit: Mapping[str, Any], *, listed: bool) -> bool:
    size = limit.get("bytes")
    if isinstance(size, str):
        size = int(size.removesuffix("KB")) * 1024
    if limit.get("items") is not None and len(entries) > limit["items"]:
        return True
    return size is not None and bytes_of(_whole(entries, listed=listed)) > size


def _rank(value: Value | None) -> tuple[str, Any] | None:
    if value is None:
        return None
    ((kind, content),) = value.items()
    if kind == "N":
        return kind, Decimal(content)
    return kind, content if isinstance(content, str | bytes | bool) else ""


# ---------------------------------------------------------------- collect
def element_of(rule: Body, edge: Entity, item: Item) -> tuple[str, bool] | None:
    """The element of an edge, and whether it comes apart into the same fields again."""
    pattern = Pattern.of(rule["as"])
    words: dict[str, str] = {}
    for name in pattern.fields:
        word = word_of(edge.spot(name).read(item))
        if not word:
            return None
        words[name] = word
    text = pattern.texts[0]
    for name, after in zip(pattern.fields, pattern.texts[1:], strict=True):
        text += words[name] + after
    if rule.get("numbers"):
        try:
            text = spelt(Decimal(text))
        except ArithmeticError:
            return None
        if Decimal(text) != Decimal(words[pattern.fields[0]]):
            return None
    return text, _apart(pattern, text) == words


def _apart(pattern: Pattern, text: str) -> dict[str, str] | None:
    """The words in an element, from the right: the first field may hold the separator, the others may not."""
    first, *between, last = pattern.texts
    if not (text.startswith(first) and text.endswith(last)) or len(text) < len(first) + len(last):
        return None
    rest = text[len(first) : len(text) - len(last)]
    words: dict[str, str] = {}
    for number in range(len(pattern.fields) - 1, -1, -1):
        if number:
            rest, found, word = rest.rpartition(between[number - 1])
            if not found:
                return None
        else:
            word = rest
        if not word or words.setdefault(pattern.fields[number], word) != word:
            return None
    return words


def _collect(view: View, rule: Body) -> None:
    members, into = members_of(view.spec, rule), view.spec.ref(rule["into"])[1]
    kind = "NS" if rule.get("numbers") else "SS"
    groups = _grouped(view, members)
    assert members.way is not None, "a rule without a listing is refused"
    for place, edges in groups.items():
        unlisted = [at for at, edge in edges if not members.way.lists(edge)]
        if rule.get("sparse"):
            groups[place] = [(at, edge) for at, edge in edges if at not in unlisted]
            continue
        for at in unlisted:
            view.leave(rule, at, NOT_IN_INDEX)
            view.leave(rule, place, "perhaps")
    for place, node in view.of(members.parent):
        value = node.get(into[0])
        wanted: set[str] = set()
        loose: set[str] = set()  # of edges that do not come apart
        for at, edge in groups.get(place, ()):
            element = element_of(rule, members.child, edge)
            try:
                if at == place or not lets_in(rule, members.child, edge):
                    continue
            except RaisingError:
                view.leave(rule, place, "perhaps")
                view.leave(rule, at, "perhaps" if element is None else "raises")
                continue
            if element is not None:
                fit = element[1] and _names(members, rule, place, element[0]) == at
                (wanted if fit else loose).add(element[0])
        if value is not None and kind not in value:
            view.leave(rule, place, "NotASet")
            continue
        held = set() if value is None else set(map(_spelt, value[kind]) if kind == "NS" else value[kind])
        if loose:
            view.leave(rule, place, "ElementAmbiguous")
        if (rule["name"], place) in view.verdict.open:
            continue
        view.verdict.settled.append((rule["name"], place, into))
        if held != wanted:
            view.wrong(rule, place, f"{into[0]} holds {sorted(held)}, expected {sorted(wanted)}")


def _names(members: Members, rule: Body, node: Place, element: str) -> Place | None:
    """The edge that a node and an element name."""
    words = _apart(Pattern.of(rule["as"]), element)
    of_node = members.parent.fields(node)
    if words is None or of_node is None:
        return None
    fields: dict[str, Value] = {spot.field: of_node[name] for name, spot in members.link.items()}
    for name, word in words.items():
        pattern = members.child.patterns.get(name)
        if pattern is not None and name in members.child.table.key and not pattern.whole:
            fields |= pattern.parse({"S": word}) or {}
        else:
            fields.setdefault(name, {"S": word})
    return members.child.place(fields)


def _spelt(text: str) -> str:
    return spelt(Decimal(text))


# ---------------------------------------------------------------- derive
def _derive(view: View, rule: Body) -> None:
    entity, path = view.spec.ref(rule["derive"])
    for place, item in view.of(entity):
        try:
            view.require(rule, place, item, {path: derived(rule, entity, path, item)})
        except RaisingError:
            view.leave(rule, place, "raises")
            continue
        date = expiry_of(rule)
        value = None if date is None else entity.read(item, path_of(date))
        unread = value is not None and "NULL" not in value and _made(rule, entity, path, item) is None
        if unread and (rule["name"], place) not in view.verdict.open:
            view.leave(rule, place, "no time")


def expiry_of(rule: Body) -> str | None:
    """The date that a Time to Live is made of; the grammar's live for 36 hours."""
    found = re.fullmatch(r"ttl\((.*), 36h\)", rule.get("as", ""))
    return found and found[1]


def derived(rule: Body, entity: Entity, path: Path, item: Item) -> Value | None:
    """The value that a rule makes of an item's own, or its default."""
    if not lets_in(rule, entity, item):
        made = None
    else:
        case = next((case for case in rule.get("cases", ()) if lets_in(case, entity, item)), None)
        made = _made(rule if case is None else {**rule, "as": case["as"]}, entity, path, item)
    return as_value(rule["default"]) if made is None and "default" in rule else made


def _made(rule: Body, entity: Entity, path: Path, item: Item) -> Value | None:
    bare = {name: one for name, one in entity.patterns.items() if name in entity.table.key or (name,) != path}
    date = expiry_of(rule)
    if date is not None:
        value = Entity(entity.name, entity.table, bare).read(item, path_of(date))
        word = None if value is None else word_of(value)
        moment = _moment(value, word) if value is not None and word else None
        return None if moment is None else {"N": str(math.floor(moment.timestamp()) + 36 * 3_600)}
    text = _formula(rule, Entity(entity.name, entity.table, bare), item)
    value: Value | None = None if text is None else {"S": text}
    asked = entity.table.limits.get(path[0]) if len(path) == 1 else None
    if value is not None and asked is not None:
        if asked[0] == "N":
            return _as_number(text or "")
        if asked[0] == "B" or not fits(value, asked[1]):
            return None
    return value


def _as_number(text: str) -> Value | None:
    try:
        number = Decimal(text)
    except ArithmeticError:
        return None
    return {"N": spelt(number)} if number.is_finite() and text.strip() == text else None


def _formula(rule: Body, entity: Entity, item: Item) -> str | None:
    if "join" in rule:
        words = [word_of(entity.read(item, path_of(text))) for text in rule["join"]]
        return rule.get("separator", " ").join(word for word in words if word) or None
    pieces = Pattern.of(rule["as"])
    text = pieces.texts[0]
    for slot, after in zip(pieces.fields, pieces.texts[1:], strict=True):
        name, *formats = slot.split(":") if "date(" not in slot else _with_date(slot)
        value = entity.read(item, path_of(name))
        for form in formats:
            word = None if value is None else _formatted(form, value, rule.get("map", {}))
            value = None if word is None else {"S": word}
        word = word_of(value)
        if not word:
            return None
        text += word + after
    return text


def _with_date(slot: str) -> list[str]:
    name, _, form = slot.partition(":")
    return [name, form]


def _formatted(form: str, value: Value, tables: Mapping[str, Mapping[str, str]]) -> str | None:
    word, (name, _, argument) = word_of(value), form.rstrip(")").partition("(")
    if name in tables:
        return tables[name].get(word or "")
    if not word:
        return None
    match name:
        case "upper":
            return word.upper()
        case "lower":
            return word.lower()
        case "nospace":
            return "".join(word.split())
        case "shard":
            return str(_hash(word) % int(argument))
        case "pad":
            if "N" not in value and not (word.isascii() and word.isdigit()):
                return None
            sign = "-" * word.startswith("-")
            whole, point, rest = word.removeprefix("-").partition(".")
            return sign + whole.zfill(int(argument)) + point + rest
        case "date":
            moment = _moment(value, word)
            if moment is None:
                return None
            return (
                argument.replace("%Y", f"{moment.year:04}").replace("%m", f"{moment.month:02}").replace(
                    "%d", f"{moment.day:02}"
                )
            )  # fmt: skip
    raise AssertionError(f"the grammar has no format {form}")


def _moment(value: Value, word: str) -> datetime | None:
    try:
        if "N" in value:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=math.floor(Decimal(word)))
        moment = datetime.fromisoformat(word) if word[:4].isdigit() and "-" in word else None
    except (ValueError, OverflowError):
        return None
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


# ---------------------------------------------------------------- path
@once
def path_link(spec: Spec, rule: Body) -> tuple[Entity, Link]:
    entity, _ = spec.ref(rule["path"])
    own = entity.identity[-1]
    return entity, {field: entity.spot(rule["parent"] if field == own else field) for field in entity.identity}


def path_of_ids(spec: Spec, rule: Body) -> Path:
    """The attribute with the ids: `path` itself, unless that has names."""
    path = spec.ref(rule["path"])[1]
    if "by" not in rule:
        return path
    return path_of(rule["ids"]) if "ids" in rule else (*path[:-1], f"{path[-1]}_ids")


def _name(entity: Entity, rule: Body, item: Item) -> str | None:
    """The name of an item in its breadcrumb: a text or a number of its key or else of its attribute."""
    by = rule["by"]
    value = entity.spot(by).read(item) if by in entity.identity else get(item, path_of(by))
    return word_of(value) or None


def _trail(spec: Spec, rule: Body, entity: Entity, parent: Item | None, item: Item) -> Wanted:
    """The breadcrumb of an item; a parent that still lacks its own keeps its children waiting."""
    if "by" not in rule:
        return {}
    crumb = spec.ref(rule["path"])[1]
    above = None if parent is None else (get(parent, crumb) or {}).get("S")
    if parent is not None and not above and _name(entity, rule, parent):
        return {}
    text = rule.get("separator", "|").join(filter(None, [above, _name(entity, rule, item)]))
    return {crumb: {"S": text} if text else None}


def _path(view: View, rule: Body) -> None:
    entity, link = path_link(view.spec, rule)
    path, own = path_of_ids(view.spec, rule), entity.identity[-1]
    separator = rule.get("ids_separator" if "by" in rule else "separator", "|")
    policy = rule.get("on_delete", "keep")
    carry = [path_of(text) for text in rule.get("carry", ())]
    given = {path_of(text): as_value(value) for text, value in rule.get("default", {}).items()}
    index = next((one for one in entity.table.indexes.values() if rule["parent"] in one.partition), None)
    needs = {} if index is None else {a: kind for a, kind in index.sort.items() if a in view.spec.said[entity.name]}

    def made(segments: list[str]) -> Wanted:
        wanted: Wanted = {path: {"S": separator.join(segments)}}
        if "graph" in rule:
            shard = 1 + _hash(segments[-1]) % rule.get("shards", 1)
            wanted[path_of(rule["graph"])] = {"S": f"{segments[0]}#{shard}"}
        if "depth" in rule:
            wanted[path_of(rule["depth"])] = {"N": str(len(segments) - 1)}
        return wanted

    for place, item in view.of(entity):
        own_id, parent_id = word_of(entity.spot(own).read(item)), link[own].read(item)
        named = view.spec.named(entity, link, item)
        if named is not None and named not in view.items and policy != "clear":
            view.verdict.orphans.add((rule["name"], place))
        if own_id is None:
            view.leave(rule, place, "no id")
            continue
        if named is not None and any(kind not in item.get(one, {}) for one, kind in needs.items()):
            view.leave(rule, place, NOT_IN_INDEX)
            continue
        if separator in own_id + separator[:-1]:
            view.leave(rule, place, "SeparatorInId")
            continue
        if parent_id is None or "NULL" in parent_id or parent_id.get("S") == "":
            view.require(rule, place, item, {**made([own_id]), **_trail(view.spec, rule, entity, None, item)})
            continue
        if word_of(parent_id) == own_id:
            view.leave(rule, place, "Cycle")
            continue
        parent = None if named is None else view.items.get(named)
        if parent is None:
            if policy == "clear":
                gone = [*made([own_id]), *_trail(view.spec, rule, entity, None, item), *carry]
                view.require(rule, place, item, {**dict.fromkeys(gone), **given})
            else:
                view.leave(rule, place, HISTORY)
                view.require(rule, place, item, {one: v for one, v in given.items() if get(item, one) is None})
            continue
        above = (get(parent, path) or {}).get("S")
        if not above:
            view.leave(rule, place, "ParentWithoutPath")
        elif own_id in above.split(separator):
            view.leave(rule, place, "Cycle")
        else:
            carried = {one: get(parent, one) or given.get(one) for one in carry}
            if "by" in rule and not _trail(view.spec, rule, entity, parent, item):
                view.leave(rule, place, "ParentWithoutBreadcrumb")
            wanted = {
                **made([*above.split(separator), own_id]),
                **_trail(view.spec, rule, entity, parent, item),
                **carried,
            }
            view.require(rule, place, item, wanted)


# ---------------------------------------------------------------- mirror
@dataclass(frozen=True)
class Mirror:
    """A rule of kind mirror, taken apart. `fields` is where the source has the fields of the mirror, `owner` where the
    mirror has the identity of its source.
    """

    source: Entity
    target: Entity
    fields: Mapping[str, Any]
    owner: Link
    each: tuple[str, Path] | None

    def named(self, rule: Body, item: Item) -> Iterator[tuple[Place | None, dict[str, Value]]]:
        """The mirrors of a source, each with its fields; None for a key that cannot be."""
        read = {name: value for name, spot in self.fields.items() if (value := spot.read(item)) is not None}
        elements: list[dict[str, Value]] = [{}]
        if self.each is not None:
            name, path = self.each
            ((kind, content),) = (get(item, path) or {"NULL": True}).items()
            lists = {"L": content} if kind == "L" else {}
            elements = [{name: one} for one in lists.get("L", ())]
            if kind in ("SS", "NS", "BS"):
                elements = [{name: {kind[0]: one}} for one in content]
        for element in elements:
            fields = {**read, **element}
            place = self.target.place(fields)
            given = all((v := fields.get(f)) is not None and "NULL" not in v and v.get("S") != "" for f in self.target.identity)  # fmt: skip
            if place is not None and self.target.fields(place) is not None:
                yield place, fields
            elif given:
                yield None, fields


@once
def mirror_of(spec: Spec, rule: Body) -> Mirror:
    source, target = spec.entities[rule["mirror"]], spec.entities[rule["into"]]
    given = rule.get("link", {})
    each = next(((name, path_of(text)) for name, text in rule.get("each", {}).items()), None)
    bound = [field for pattern in target.patterns.values() for field in pattern.fields]
    names = dict.fromkeys([*target.identity, *bound, *given])
    fields = {name: source.spot(given.get(name, name)) for name in names if each is None or name != each[0]}
    known = {spot: name for name, spot in reversed(fields.items())}
    owner = {}
    for name in source.identity:
        here = known.get(source.spot(name), name)
        owner[name] = target.spot(here) if here in target.identity else replace(target.spot(here), path=(here,), pattern=None)  # fmt: skip
    return Mirror(source, target, fields, owner, each)


def mirror_values(spec: Spec, rule: Body, mirror: Mirror, source: Item, fields: Mapping[str, Value]) -> Wanted:
    """The values that a mirror must hold beside its key."""
    chosen, key = rule.get("attributes"), mirror.target.table.key
    wanted: Wanted = {}
    if chosen == "all":
        wanted = {(name,): value for name, value in source.items() if name not in mirror.source.table.key}
    elif chosen is not None:
        pairs = chosen.items() if isinstance(chosen, Mapping) else [(text, path_of(text)[-1]) for text in chosen]
        wanted = {path_of(name): mirror.source.read(source, path_of(text)) for text, name in pairs}
    for name, spot in mirror.owner.items():
        wanted[spot.path] = mirror.source.spot(name).read(source)
    wanted = {path: value for path, value in wanted.items() if path[0] not in key}
    for name, (kind, most) in mirror.target.table.limits.items():
        pattern = mirror.target.patterns.get(name)
        if name in key or (pattern is None and name not in fields):
            continue
        held = {path[0]: value for path, value in wanted.items() if len(path) == 1 and value is not None}
        pattern = pattern or Pattern(("", ""), (name,))
        known = {f: v for f in pattern.fields if (v := fields.get(f) or held.get(f)) is not None}
        value = pattern.build(known, kind)
        wanted[(name,)] = value if value is not None and fits(value, most) else None
    return wanted


def _mirror(view: View, rule: Body) -> None:
    mirror = mirror_of(view.spec, rule)
    expected: dict[Place, list[tuple[Place, dict[str, Value]]]] = {}
    unsure: set[tuple[Place, Place]] = set()  # sources that may or may not have this mirror
    for at, source in view.of(mirror.source):
        try:
            if not lets_in(rule, mirror.source, source):
                continue
        except RaisingError:
            named = {place for place, _ in mirror.named(rule, source) if place is not None}
            unsure |= {(at, place) for place in named}
            view.leave(rule, at, "raises" if named else RAISES_FOR_NONE)
            continue
        for place, fields in mirror.named(rule, source):
            if place is None:
                view.leave(rule, at, "NoMirrorKey")
            else:
                expected.setdefault(place, []).append((at, fields))
    for place, item in view.of(mirror.target):
        owner = view.spec.named(mirror.source, mirror.owner, item)
        if owner is None or owner == place:
            continue  # the application's own
        if (owner, place) not in unsure and owner not in {at for at, _ in expected.get(place, ())}:
            view.wrong(rule, place, f"a mirror of {shown(owner)}, which has none of this key")
    for place, claims in expected.items():
        item = view.items.get(place)
        owner = None if item is None else view.spec.named(mirror.source, mirror.owner, item)
        if item is None:
            view.wrong(rule, place, f"no mirror of {shown(claims[0][0])}")
            continue
        for at, fields in claims:
            if owner != at or place == at:
                view.leave(rule, place, "KeyTaken")
                continue
            wanted = mirror_values(view.spec, rule, mirror, view.items[at], fields)
            if rule.get("attributes") == "all":
                wanted = {**{(name,): None for name in item if name not in mirror.target.table.key}, **wanted}
            view.require(rule, place, item, wanted)


def _history(view: View, rule: Body) -> None:
    from tests.simulation.kept_versions import look  # noqa: PLC0415 - it is made of what stands here

    look(view, rule)


# ---------------------------------------------------------------- count, sum, min, max
def _numbers(view: View, rule: Body) -> None:
    members, into = members_of(view.spec, rule), view.spec.ref(rule["into"])[1]
    groups = _grouped(view, members)
    recount, per = rule.get("mode") == "recount", rule.get("per")
    there = dict(view.of(members.parent))
    for at, child in view.of(members.child):
        if _misfit(members, child) or (members.parent.made and _misses(view.spec, members, child)):
            groups.setdefault(NOWHERE, []).append((at, child))
    for place in [*there, *groups.keys() - there]:
        amounts: dict[str, list[Decimal]] = {}
        sums = {path: Decimal(0) for path in sums_of(rule)}
        blocked = ""
        for at, child in groups.pop(place, ()):
            try:
                if not lets_in(rule, members.child, child):
                    continue
            except RaisingError:
                if (
                    not recount
                    and rule["kind"] in ("min", "max")
                    and _amount(rule, view.spec, members.child, child) is None
                ):
                    continue  # it has no place, whatever the condition says
                view.leave(rule, at, "perhaps" if recount else "raises")
                blocked = blocked or ("raises" if recount else "")
                continue
            amount = _amount(rule, view.spec, members.child, child)
            group = "" if per is None else _group(members.child.read(child, path_of(per)))
            nothing = amount == 0 and rule["kind"] in ("count", "sum") and not members.parent.made
            adds_nothing = amount is None or group is None or nothing
            if adds_nothing:
                continue  # it cannot block
            trouble = amount if isinstance(amount, str) else "NotAGroup" if group is NO_GROUP else ""
            more = {to: members.child.read(child, path) or {"N": "0"} for to, path in sums_of(rule).items()}
            trouble = trouble or ("NotANumber" if None in map(number_of, more.values()) else "")
            trouble = trouble or ((_misfit(members, child) or "NoParentKey") if place == NOWHERE else "")
            trouble = trouble or ("" if recount else _overflow(members, place))
            if trouble:
                view.leave(rule, at, "perhaps" if recount else trouble)
                blocked = blocked or (trouble if recount else "")
                continue
            assert isinstance(amount, Decimal), "what is no number is in trouble"
            amounts.setdefault(group, []).append(amount)
            sums = {to: total([held, Decimal(number_of(more[to]) or 0)]) for to, held in sums.items()}
        parent = there.get(place)
        if amounts and members.parent.made:
            view.with_members.add(place)
        if parent is None:
            continue
        if blocked:
            view.leave(rule, place, blocked)
            continue
        functions: Mapping[str, Callable[[list[Decimal]], Decimal]] = {
            "min": min, "max": max, "mean": partial(mean, places=rule.get("places", 2)),
        }  # fmt: skip
        function = functions.get(rule["kind"], total)
        adds = rule["kind"] in ("count", "sum")
        results = {group: function(some) for group, some in amounts.items()}
        if per is not None:
            shown = {group: {"N": spelt(number)} for group, number in results.items() if number or not adds}
            view.require(rule, place, parent, {into: {"M": shown}})
        else:
            number = results.get("", Decimal(0) if adds else None)
            shown_sums: Wanted = {to: {"N": spelt(held)} for to, held in sums.items()}
            view.require(rule, place, parent, {into: None if number is None else {"N": spelt(number)}, **shown_sums})


def sums_of(rule: Body) -> dict[Path, Path]:
    """By attribute of the parent, the further attribute of a child that a count adds up."""
    given = rule.get("sums", {})
    pairs = given.items() if isinstance(given, dict) else ((text, path_of(text)[-1]) for text in given)
    return {path_of(to): path_of(text) for text, to in pairs}


def mean(numbers: list[Decimal], places: int) -> Decimal:
    """The mean of exact numbers; a half goes away from zero."""
    many = sum(map(Fraction, numbers)) / len(numbers) * 10**places
    whole = int(abs(many) + Fraction(1, 2))
    return Decimal(whole if many > 0 else -whole).scaleb(-places)


def _overflow(members: Members, parent: Place) -> str:
    """Why an entry of a child with several groups has no key: the sort key holds the key of the parent."""
    size = sum(len(content.encode()) for kind, content in parent[1] if kind == "S")
    return "KeyTooLong" if size > SORT_MAX_BYTES and any(spot.each for spot in members.link.values()) else ""


def _misses(spec: Spec, members: Members, child: Item) -> bool:
    """True if a child names a group that cannot be: by what is no time, or by values that make no key."""
    spots = members.link.values()
    for one in views(members.link, child):
        if spec.named(members.parent, members.link, one) is not None:
            continue
        untimely = any(spot.first and get(one, spot.path) and not spot.read(one) for spot in spots)
        odd = any(spot.each and kind_of(spot.read(one) or {"NULL": True}) not in ("S", "N", "NULL") for spot in spots)
        if untimely or odd or all(word_of(spot.read(one)) for spot in spots):
            return True
    return False


def _made_items(view: View) -> None:
    """An item that rules make is there exactly if it has a member, and stays without one if it holds anything else."""
    for entity in view.spec.entities.values():
        makers = [rule for rule in view.spec.rules.values() if "into" in rule and _makes(view.spec, rule, entity)]
        if not entity.made:
            continue
        there = dict(view.of(entity))
        for place in view.with_members - there.keys():
            if view.spec.entity_of(place) is entity:
                view.wrong(makers[0], place, "it is missing, and has members")
        for place, item in there.items():
            view.require(makers[0], place, item, index_keys(entity, place))
            if place in view.with_members:
                continue
            if has_more(view.spec, entity, item):
                view.leave(makers[0], place, "unexpected")
            else:
                view.wrong(makers[0], place, "it is there, and has no members")


def _makes(spec: Spec, rule: Body, entity: Entity) -> bool:
    return rule["kind"] in ("count", "sum", "mean", "min", "max") and spec.ref(rule["into"])[0] is entity


def index_keys(entity: Entity, place: Place) -> Wanted:
    """The keys of indexes that follow from the key of an item."""
    found: Wanted = {}
    for name, pattern in index_patterns(entity).items():
        kind, most = entity.table.limits[name]
        value = pattern.build(entity.fields(place) or {}, kind)
        found[(name,)] = value if value is not None and fits(value, most) else None
    return found


def index_patterns(entity: Entity) -> dict[str, Pattern]:
    """The key attributes of indexes that are made of fields of the key alone."""
    found = {name: entity.patterns[name] for name in entity.table.limits if name in entity.patterns}
    identity = set(entity.identity)
    return {name: one for name, one in found.items() if name not in entity.table.key and set(one.fields) <= identity}


def has_more(spec: Spec, entity: Entity, item: Item) -> bool:
    """True if an item holds something that neither rules nor its key make."""
    for path in (path for some in owned_paths(spec, entity).values() for path in some):
        item = _without(item, path)
    return not item.keys() <= entity.table.key.keys()


def _without(item: Item, path: Path) -> Item:
    """The item without a path, and without maps that are empty then."""
    inner = item.get(path[0])
    others = {name: value for name, value in item.items() if name != path[0]}
    if inner is None or len(path) == 1:
        return others
    left = _without(inner["M"], path[1:]) if "M" in inner else {}
    return {**others, path[0]: {"M": left} if "M" in inner else inner} if left or "M" not in inner else others


def _group(value: Value | None) -> str | None:
    """The group that a value names; None for none."""
    if value is None:
        return None
    word = word_of(value)
    return NO_GROUP if word is None else word or None


def weights_of(rule: Body) -> tuple[str, Mapping[str, float], float]:
    """The attribute that weighs an item, the weight of each value, and that of all others."""
    whole = rule["weights"] if "values" in rule["weights"] else {"values": rule["weights"]}
    ((name, weights),) = whole["values"].items()
    return name, weights, whole.get("default", 0)


def weighed_as(value: Value | None, *, whole: bool) -> str | None:
    """The word that gives a value its weight. Truth values and NULL have one in the form that says `values`."""
    if whole and value is not None and kind_of(value) in ("BOOL", "NULL"):
        return "null" if "NULL" in value else "true" if value["BOOL"] else "false"
    return None if value is None else word_of(value)


def _amount(rule: Body, spec: Spec, child: Entity, item: Item) -> Decimal | str | None:
    """The amount that a child adds, or is compared by; a word where it cannot be said."""
    if rule["kind"] == "count":
        if "weights" not in rule:
            return Decimal(1)
        name, weights, default = weights_of(rule)
        word = weighed_as(child.read(item, path_of(name)), whole="values" in rule["weights"])
        return Decimal(repr(weights.get(word, default)))
    value = child.read(item, spec.ref(rule[rule["kind"]])[1])
    if value is None:
        return None
    number = number_of(value)
    return "NotANumber" if number is None else number


# ---------------------------------------------------------------- values of children
def _values(view: View, rule: Body) -> None:
    members, into = members_of(view.spec, rule), view.spec.ref(rule["into"])[1]
    groups = _grouped(view, members)
    of = view.spec.ref(rule["values"])[1]  # () with `fields`, which need an order
    order = path_of(rule["order"].removeprefix("-")) if "order" in rule else of
    for place, parent in view.of(members.parent):
        found: list[tuple[Any, list[str], Value]] = []
        for at, child in groups.pop(place, ()):
            if _valued(view, rule, members.child, at, child):
                key = [word_of({kind: content}) or "" for kind, content in at[1]]
                found.append((_rank(members.child.read(child, order)) or ("",), key, value_of(rule, view.spec, child)))
        found.sort(key=lambda one: one[:2], reverse=rule.get("order", "").startswith("-"))
        view.require(rule, place, parent, {into: _gathered(rule, [value for _, _, value in found])})
    for children in groups.values():
        for at, child in children:
            _valued(view, rule, members.child, at, child)


def value_of(rule: Body, spec: Spec, child: Item) -> Value | None:
    """The value of an item, or the map of its fields."""
    entity, path = spec.ref(rule[rule["kind"]])
    if "fields" not in rule:
        return entity.read(child, path)
    read = {path_of(name)[-1]: entity.read(child, path_of(name)) for name in rule["fields"]}
    return {"M": {name: value for name, value in read.items() if value is not None}}


def _valued(view: View, rule: Body, entity: Entity, at: Place, child: Item) -> bool:
    """True if an item has a value that is shown; what cannot be shown is left out, and reported."""
    value = value_of(rule, view.spec, child)
    by = entity.read(child, path_of(rule["order"].removeprefix("-"))) if "order" in rule else None
    if value is None or value == {"S": ""}:
        return False
    try:
        if not lets_in(rule, entity, child):
            return False
    except RaisingError:
        view.leave(rule, at, "raises")
        return False
    usable = kind_of(value) in (("N",) if rule.get("numbers") else ("M",) if "fields" in rule else ("N", "S"))
    if not usable or (by is not None and kind_of(by) not in ("N", "S")):
        view.leave(rule, at, "NotAValue")
        return False
    return True


def _gathered(rule: Body, values: list[Value]) -> Value | None:
    """The values as the rule shows them."""
    if "fields" in rule:
        return {"L": values[: rule.get("limit")]} if "as" in rule else next(iter(values), None)
    listed, words = rule.get("as") == "list", [word_of(value) or "" for value in values]
    if rule.get("distinct") or not (listed or "join" in rule):
        kinds = [kind_of(value) if listed else "" for value in values]
        seen = {one: number for number, one in reversed([*enumerate(zip(words, kinds, strict=True))])}
        values, words = ([some[number] for number in sorted(seen.values())] for some in (values, words))
    values, words = values[: rule.get("limit")], words[: rule.get("limit")]
    if listed:
        return {"L": values}
    if not words:
        return None
    return {"S": rule["join"].join(words)} if "join" in rule else {"NS" if rule.get("numbers") else "SS": words}


CHECKS: Final[Mapping[str, Callable[[View, Body], None]]] = {
    "copy": _copy,
    "embed": _embed,
    "collect": _collect,
    "derive": _derive,
    "path": _path,
    "mirror": _mirror,
    "history": _history,
    **dict.fromkeys(("count", "sum", "mean", "min", "max"), _numbers),
    "values": _values,
    **{trial.kind: trial.check for trial in TRIALS if trial.check is not None},
}


# ---------------------------------------------------------------- what rules write


def owned_paths(spec: Spec, entity: Entity) -> dict[str, list[Path]]:
    """The paths that each rule writes on the items of an entity, by the rule's name; for a mirror, those beside the
    application's own.
    """
    found: dict[str, list[Path]] = {}
    for name, rule in spec.rules.items():
        paths: list[Path] = []
        match rule["kind"]:
            case "copy":
                copy = copy_of(spec, rule)
                paths = [to for _, to in copy.pairs] if copy.target is entity else []
            case "derive":
                of, path = spec.ref(rule["derive"])
                paths = [path] if of is entity else []
            case "path":
                of, path = spec.ref(rule["path"])
                made = [
                    path,
                    path_of_ids(spec, rule),
                    *(path_of(rule[name]) for name in ("graph", "depth") if name in rule),
                ]
                paths = [*made, *map(path_of, rule.get("carry", ()))] if of is entity else []
            case "mirror" | "history" | "call":
                paths = []
            case _:
                of, path = spec.ref(rule["into"])
                made = index_patterns(entity) if of.made else ()
                paths = [path, *sums_of(rule), *((name,) for name in made)] if of is entity else []
        if paths:
            found[name] = paths
    return found
