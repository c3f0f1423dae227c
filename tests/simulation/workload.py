"""The writes of applications to the items of a rules file: everything is derived from the file as its reader understands it.

Invariant: an application owes the pipeline nothing. It writes wrong types, odd names, stale copies and items of no
entity. It meddles with what rules keep, deletes and recreates items, and points them elsewhere and back.
"""

# ruff: noqa: C901, PLR0912, PLR0915 -- a choice is a branch

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.kept_versions import history_of
from tests.simulation.oracle import (
    children_of,
    copy_of,
    expiry_of,
    members_of,
    mirror_of,
    owned_paths,
    path_link,
    sums_of,
    weights_of,
)
from tests.simulation.plots import Step, Tie, fill, race, ties_of
from tests.simulation.spec import Entity, Item, Path, Pattern, Place, Spec, Value, get, path_of, put

Pick = Callable[[int], int]
IDS: Final[Mapping[str, tuple[Value, ...]]] = {
    "S": ({"S": "1"}, {"S": "12"}, {"S": "2"}, {"S": "é ü"}, {"S": "a#b"}, {"S": "x-y|z"}),
    "N": ({"N": "1"}, {"N": "12"}, {"N": "2"}, {"N": "-4.5"}),
    "B": ({"B": b"\x01"}, {"B": b"\x02"}, {"B": b"\xff\x00"}),
}
MORE_IDS: Final[tuple[Value, ...]] = ({"S": "3"}, {"S": "4"}, {"S": "5"}, {"S": "6"})
LINKS: Final = re.compile(r"'([^']*)'|`(-?[\d.]+)`")
NAME: Final = re.compile(r'"[^"]+"|[A-Za-zß-ÿ_][\wß-ÿ]*(?:\.[A-Za-z_][\w]*)*')
WORDS: Final = frozenset({"contains", "true", "false", "null", "length", "starts_with"})
ODD: Final[tuple[Value, ...]] = (
    {"N": "7"}, {"S": "odd"}, {"S": ""}, {"NULL": True}, {"BOOL": False}, {"BOOL": True}, {"M": {}}, {"L": []},
    {"M": {"city": {"S": "rome"}}}, {"L": [{"S": "1"}, {"N": "2"}, {"BOOL": True}]}, {"SS": ["1", "2"]},
    {"NS": ["1", "2"]}, {"B": b"\x01"}, {"N": "-0.5"}, {"S": "12"}, {"S": "#"},
)  # fmt: skip
IMPOSSIBLE: Final[tuple[Value, ...]] = ({"S": "x" * 1_100},)  # too long for a key
AMOUNTS: Final = ("1", "2", "3", "0", "-1.5", "100", "0.000001", "12345678901234567890")
BOOLS: Final = ({"BOOL": True}, {"BOOL": False}, {"NULL": True})
TIMES: Final[tuple[Value, ...]] = (
    {"S": "2026-11-27T09:31:33Z"}, {"S": "2026-11-27T23:59:59.5Z"}, {"S": "2026-11-28T00:00+00:00"},
    {"S": "2026-11-28T00:30:00+02:00"}, {"S": "2026-11-31T00:00:00Z"}, {"S": "2026-11-27"},
)  # fmt: skip
DATES: Final = ("2024-03-01", "2024-12-31T23:30:00-02:00", "garbage", "2023-07-09T01:02:03")


@dataclass(frozen=True)
class Kind:
    """An entity as an application writes its items: the attributes in play, and what each may hold."""

    entity: Entity
    values: Mapping[Path, tuple[Value, ...]]  # few values to choose from; () for a text of its own
    links: tuple[Path, ...]
    owned: tuple[Path, ...]
    mirrored: bool
    scarce: frozenset[Path] = frozenset()  # keys of an index that not every item has
    pointing: Mapping[Path, tuple[Value, ...]] = field(default_factory=dict)  # links that rules write, and their values


@dataclass
class Playground:
    """All that applications may write to."""

    spec: Spec
    dense: bool = False  # few keys
    often: bool = False  # most links name the first of all
    kinds: list[Kind] = field(default_factory=list)
    of_rules: list[list[Kind]] = field(default_factory=list)  # the entities of each rule
    pools: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    ties: list[Tie] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pools = _pools(self.spec)
        if self.dense:
            more, most = (MORE_IDS, 10) if self.often else ((), 4)
            self.pools = {name: (*some, *more)[: 1 if name == "team" else most] for name, some in self.pools.items()}
        self.ties = ties_of(self.spec)
        found = _attributes(self.spec, self.pools)
        mirrors = {rule["into"] for rule in self.spec.rules.values() if rule["kind"] == "mirror" and "mode" not in rule}
        versions = {rule["into"] for rule in self.spec.rules.values() if rule["kind"] == "history"}
        for name, entity in self.spec.entities.items():
            if name in versions:
                continue  # no application writes into the past
            owned = tuple(path for paths in owned_paths(self.spec, entity).values() for path in paths)
            owned += self._mirrored(name) if self.dense else ()
            values, links = found[name]
            plain = {path: some for path, some in values.items() if path not in owned}
            scarce = {(one,) for one in entity.table.limits if one not in entity.patterns}
            scarce -= {*links, *((one,) for one in self.spec.said[name])}
            pointing = {path: some for path, some in values.items() if path in owned and path in links}
            self.kinds.append(Kind(entity, plain, links, owned, name in mirrors, frozenset(scarce), pointing))
        for rule in self.spec.rules.values():
            named = _named(rule)
            self.of_rules.append([kind for kind in self.kinds if kind.entity.name in named])

    def _mirrored(self, name: str) -> tuple[Path, ...]:
        """The attributes that mirrors of an entity have of their sources."""
        chosen = [
            rule.get("attributes")
            for rule in self.spec.rules.values()
            if rule.get("into") == name and rule["kind"] == "mirror"
        ]
        texts = [
            one
            for some in chosen
            if some not in (None, "all")
            for one in (some.values() if isinstance(some, Mapping) else some)
        ]
        return tuple(map(path_of, texts)) or ((("name",),) if "all" in chosen else ())


def _named(rule: Mapping[str, Any]) -> set[str]:
    """The entities that a rule names."""
    what = rule[rule["kind"]] if rule["kind"] != "call" else rule["on"]
    texts = [what] if isinstance(what, str) else list(what)
    texts += [rule["into"]] if "into" in rule else []
    return {text.partition(".")[0] for text in texts}


def _pools(spec: Spec) -> dict[str, tuple[Value, ...]]:
    """The values of the fields of keys."""
    pools: dict[str, tuple[Value, ...]] = {}
    for entity in spec.entities.values():
        for name, kind in entity.table.key.items():
            pattern = entity.patterns[name]
            for one in pattern.fields:
                pools.setdefault(one, IDS[kind if pattern.whole else "S"])
    return pools


def _attributes(
    spec: Spec, pools: Mapping[str, tuple[Value, ...]]
) -> dict[str, tuple[dict[Path, tuple[Value, ...]], tuple[Path, ...]]]:
    """The attributes that rules read of each entity, with the values that matter, and which of them are links."""
    values: dict[str, dict[Path, tuple[Value, ...]]] = {name: {} for name in spec.entities}
    links: dict[str, list[Path]] = {name: [] for name in spec.entities}

    def add(entity: Entity, path: Path, *some: Value) -> None:
        if path[0] not in entity.inside and path[0] not in entity.table.key:
            values[entity.name][path] = _once((*values[entity.name].get(path, ()), *some))

    def link(entity: Entity, path: Path, pool: tuple[Value, ...]) -> None:
        kind = entity.table.limits.get(path[0], ("", 0))[0]
        fit = tuple(value for value in pool if not kind or kind in value)
        add(entity, path, *(fit or IDS[kind]))
        if path[0] not in entity.inside and path[0] not in entity.table.key:
            links[entity.name].append(path)

    def of_condition(text: str | None, entity: Entity, source: Entity | None = None) -> None:
        if text is None:
            return
        given: list[Value] = [
            {"S": word} if word else {"N": number} for word, number in LINKS.findall(text) if word or number
        ]
        given += [{"S": "SENT"}, {"S": "OPEN"}] if "contains" in text else []
        for name in NAME.findall(LINKS.sub(" ", re.sub(r"`[^`]*`", " ", text))):
            path = path_of(name)
            of, path = (source, path[1:]) if source is not None and path[0] == source.name else (entity, path)
            if path and path[0] not in WORDS and of is not None:
                extra = [{"BOOL": True}] if path[-1] == "flag" else []
                extra += [{"N": "1"}, {"N": "3"}, {"N": "-2"}, {"S": "many"}] if path[-1] == "amount" else []
                extra += [{"SS": ["1", "2"]}, {"L": []}] if path[-1] == "tags" else []
                add(of, path, *(value for value in given if path[-1] not in ("flag", "amount", "tags")), *extra)

    for rule in spec.rules.values():
        match rule["kind"]:
            case "copy":
                copy = copy_of(spec, rule)
                for path, _ in copy.pairs:
                    add(copy.source, path)
                for name, spot in copy.link.items():
                    link(copy.target, spot.path, pools[name])
                of_condition(rule.get("where"), copy.target, copy.source)
            case "embed" | "collect" | "count" | "sum" | "mean" | "min" | "max" | "values":
                members = members_of(spec, rule)
                child = children_of(spec, rule)
                for name, spot in members.link.items():
                    if spot.separator:
                        some = [one["S"] for one in pools[name] if spot.separator not in one["S"]]
                        parted = (some[:2], [*some, *some, ""], some[1:], [""], map(str, range(101)))
                        add(child, spot.path, *({"S": spot.separator.join(parts)} for parts in parted))
                    elif spot.each:
                        texts, many = [one["S"] for one in pools[name][:3]], [str(n) for n in range(101)]
                        add(child, spot.path, {"SS": texts[:2]}, {"L": [*pools[name], pools[name][0], {"NULL": True}]})
                        add(child, spot.path, {"SS": texts[1:]}, {"L": [{"S": "1"}, {"N": "1"}]}, {"SS": many})
                    elif spot.constant is None:
                        link(child, spot.path, TIMES if spot.first else pools[name])
                of_condition(rule.get("where"), child)
                of_condition(rule.get("omit"), child)
                for text in rule.get("fields") or ():
                    add(child, path_of(text))
                for name in Pattern.of(rule["by"]).fields if rule["kind"] == "embed" and "by" in rule else ():
                    if name not in child.identity:
                        add(child, path_of(name), {"S": "OPEN"}, {"S": "a-b"})
                if rule.get("order"):
                    add(child, path_of(rule["order"].removeprefix("-")), *({"N": one} for one in AMOUNTS))
                if rule.get("per"):
                    add(child, path_of(rule["per"]), {"S": "OPEN"}, {"S": "SENT"})
                if "weights" in rule:
                    name, weights, _ = weights_of(rule)
                    add(child, path_of(name), *({"S": word} for word in weights), *(BOOLS if name == "flag" else ()))
                if rule["kind"] == "values":
                    extra = [*({"N": one} for one in AMOUNTS), {"S": "a-b"}, {"S": ""}, {"BOOL": True}]
                    for path in [] if "fields" in rule else [spec.ref(rule["values"])[1]]:
                        add(child, path, {"S": "OPEN"}, {"S": "SENT"}, *extra)
                if rule["kind"] in ("sum", "mean", "min", "max"):
                    add(child, spec.ref(rule[rule["kind"]])[1], *({"N": one} for one in AMOUNTS))
                for path in sums_of(rule).values():
                    add(child, path, *({"N": one} for one in AMOUNTS))
                if rule["kind"] == "collect":
                    for name in Pattern.of(rule["as"]).fields:
                        if name not in child.identity:
                            add(child, (name,), {"S": "OPEN"}, {"S": "a-b"}, {"N": "1"})
            case "derive":
                entity, _ = spec.ref(rule["derive"])
                of_condition(rule.get("where"), entity)
                for case in rule.get("cases", ()):
                    of_condition(case["where"], entity)
                formulas = [rule.get("as", ""), *(case["as"] for case in rule.get("cases", ()))]
                for text in [
                    *rule.get("join", ()),
                    *(one.partition(":")[0] for formula in formulas for one in Pattern.of(formula).fields),
                    *filter(None, [expiry_of(rule)]),
                ]:
                    extra = (
                        [{"S": one} for one in DATES]
                        if text == "at"
                        else [{"N": one} for one in AMOUNTS[:5]]
                        if text == "amount"
                        else []
                    )
                    add(entity, path_of(text), *extra)
            case "path":
                entity, up = path_link(spec, rule)
                own = entity.identity[-1]
                link(entity, up[own].path, (*pools[own], {"S": ""}) if "S" in pools[own][0] else pools[own])
                for text in (*rule.get("carry", ()), *([rule["by"]] if "by" in rule else [])):
                    add(entity, path_of(text))
            case "mirror":
                mirror = mirror_of(spec, rule)
                for name, spot in mirror.fields.items():
                    add(mirror.source, spot.path, *pools.get(name, ())[:4])
                if mirror.each:
                    ones = pools[mirror.each[0]]
                    texts = [one["S"] for one in ones if "S" in one]
                    add(
                        mirror.source,
                        mirror.each[1],
                        {"SS": texts[:2]},
                        {"L": [*ones[:3], {"NULL": True}]},
                        {"SS": texts[1:4]},
                    )
                of_condition(rule.get("where"), mirror.source)
                chosen = rule.get("attributes")
                for text in chosen if chosen not in (None, "all") else ():
                    add(mirror.source, path_of(text))
            case "history":
                one = history_of(spec, rule)
                version = one.fields["ver"].path
                numbers = version[-1] in ("amount", "rank")
                add(one.source, version, *({"N": str(number)} for number in range(1, 8 * numbers)))
                of_condition(rule.get("where"), one.source)
                for text in rule.get("attributes", ()):
                    add(one.source, path_of(text))
            case "call":
                entity = spec.entities[rule["on"]]
                of_condition(rule.get("where"), entity)
                for text in rule.get("watch", ()):
                    add(entity, path_of(text))
            case _:  # a kind on trial: an attribute of the child, and one that says which child
                child, path = spec.ref(rule[rule["kind"]])
                add(child, path, *({"N": one} for one in AMOUNTS))
                if rule.get("by"):
                    add(child, path_of(rule["by"]), {"S": "OPEN"}, {"S": "SENT"})
    for entity in spec.entities.values():
        of = values[entity.name]
        for name, (kind, _) in entity.table.limits.items():
            if (name,) not in of and name not in entity.table.key and name not in entity.patterns:
                add(entity, (name,), *IDS[kind][:3])
        of.setdefault(("idle",), ({"S": "a"}, {"S": "b"}))
        for path in list(of):
            if len(path) > 1 and path[:1] in of:
                del of[path]
    return {name: (values[name], tuple(dict.fromkeys(links[name]))) for name in values}


Write = tuple[Place, Item | None]
OWN: Final = "own "  # the first letters of what only the application writes


@dataclass
class Application:
    """One application. `items` are those of the tables now, `past` all images of each item so far."""

    playground: Playground
    items: Callable[[], Mapping[Place, Item]]
    past: Mapping[Place, list[Item]]
    pick: Pick
    counter: int = 0
    focus: list[Kind] = field(default_factory=list)
    fills: bool = True  # items may become as large as they can be
    following: list[Step] = field(default_factory=list)  # the rest of the plots that have begun
    has_own: bool = False  # it writes values of its own where rules write
    own_texts: dict[str, tuple[Place, Path]] = field(default_factory=dict)  # each with its place

    def __post_init__(self) -> None:
        self.focus = self.playground.kinds
        self._kinds = {one.entity.name: one for one in self.playground.kinds}

    def kind_of(self, place: Place) -> Kind | None:
        entity = self.playground.spec.entity_of(place)
        return None if entity is None else self._kinds.get(entity.name)

    def put(self, item: Item, path: Path, value: Value | None) -> Item:
        return _put(item, path, value)

    # ---------------------------------------------------------------- values
    def one(self, some: Any) -> Any:
        return some[self.pick(len(some))]

    def value(self, kind: Kind, path: Path, *, odd: bool = True) -> Value | None:
        """A value of an attribute: most often one that rules expect."""
        if odd and self.pick(12) == 11:
            times = self.playground.dense * (4 if path in kind.links else 1)
            return self.one((*ODD, *IMPOSSIBLE * times, None))  # type: ignore[no-any-return]
        known = kind.values.get(path, ())
        if path in kind.links and self.pick(4):
            return self.one(known[: 1 if self.playground.often else 2])  # so that items meet
        if known and (path in kind.links or self.pick(5) < 4):
            return self.one(known)  # type: ignore[no-any-return]
        self.counter += 1
        return {"S": f"{kind.entity.name}.{path[-1]} #{self.counter}"}

    def new(self, kind: Kind) -> tuple[Place, Item] | None:
        """A new item of an entity, and its place."""
        often, last = self.playground.often, ("", *kind.entity.identity)[-1]  # a fixed key has no field
        few = {name: (1 if name != last else 10) if often else 2 for name in kind.entity.identity}
        fields = {
            name: self.one(self.playground.pools[name][: most if self.pick(4) else 10]) for name, most in few.items()
        }
        place = kind.entity.place(fields)
        if place is None:
            return None
        item: Item = kind.entity.table.attributes(place)
        for name, pattern in kind.entity.patterns.items():
            if name not in kind.entity.table.key and (name,) not in kind.values and (name,) not in kind.owned:
                item = {**item, **self.indexed(kind, name, pattern, fields)}
        for path in kind.values:
            if self.pick(2) if path in kind.scarce else self.pick(8) < 7:
                item = _put(item, path, self.value(kind, path))
        for path in kind.owned:
            if self.pick(2 if path in kind.pointing else 6) == (1 if path in kind.pointing else 5):
                item = _put(item, path, self.stale(kind, path))
        return place, {**item, **self.links(kind, item)}

    def links(self, kind: Kind, item: Item) -> Item:
        """The attributes of index keys that templates make, and that rules link by."""
        made: dict[str, Value] = {}
        for path in kind.links:
            pattern = kind.entity.patterns.get(path[0])
            if pattern is not None and path[0] not in kind.entity.table.key and not pattern.whole:
                fields = {
                    name: self.one(self.playground.pools.get(name, IDS["S"])[: 2 + self.pick(2)])
                    for name in pattern.fields
                }
                value = pattern.build(fields, "S")
                if value is not None and self.pick(8) < 7:
                    made[path[0]] = value
        return made

    def indexed(self, kind: Kind, name: str, pattern: Pattern, fields: Mapping[str, Value]) -> Item:
        value = pattern.build({**{one: self.one(IDS["S"][:3]) for one in pattern.fields}, **fields}, "S")
        return {name: value} if value is not None else {}

    def stale(self, kind: Kind, path: Path) -> Value | None:
        """Something in a place that a rule writes: a value of anybody's past, or any other; of a link, who is there."""
        if path in kind.pointing and self.pick(4):
            return self.one(kind.pointing[path][:3])  # type: ignore[no-any-return]
        if self.has_own:
            self.counter += 1
            return self.one(({"S": f"{OWN}{self.counter}"}, {"SS": [f"{OWN}{self.counter}"]}))  # type: ignore[no-any-return]
        found = [
            value for images in self.past.values() for item in images[-2:] if (value := get(item, path)) is not None
        ]
        return self.one((*found[-4:], *ODD, None))  # type: ignore[no-any-return]

    # ---------------------------------------------------------------- operations
    def there(self, *, mirrors: bool = False) -> tuple[Kind, Place, Item] | None:
        kinds = {one.entity.name: one for one in self.focus}
        found = []
        for place, item in self.items().items():
            entity = self.playground.spec.entity_of(place)
            if entity is not None and entity.name in kinds and (mirrors or not kinds[entity.name].mirrored):
                found.append((kinds[entity.name], place, item))
        return self.one(found) if found else None

    def insert(self) -> Write | None:
        kinds = [one for one in self.focus if not one.mirrored or self.pick(10) == 9]
        return self.new(self.one(kinds)) if kinds else None

    def change(self) -> Write | None:
        found = self.there(mirrors=self.pick(6) == 5)
        if found is None:
            return None
        kind, place, item = found
        path = self.one(list(kind.values))
        return place, _put(item, path, self.value(kind, path))

    def relink(self) -> Write | None:
        found = self.there()
        if found is None or not found[0].links:
            return self.change()
        kind, place, item = found
        path = self.one(kind.links)
        if path not in kind.values:
            return place, {**item, **self.links(kind, item)}
        value = self.value(kind, path) if self.pick(8) < 7 else None
        return place, _put(item, path, value)

    def follow(self) -> Write | None:
        """The next write of a plot that has begun."""
        return self.following.pop(0)(self)

    def delete(self) -> Write | None:
        found = self.there(mirrors=self.pick(6) == 5)
        return None if found is None else (found[1], None)

    def back(self) -> Write | None:
        """An item as it once was, whole: after it was changed, or deleted."""
        places = [
            place for place, images in self.past.items() if images and place[0] not in self.playground.spec.ledgers
        ]
        if not places:
            return None
        place = self.one(places)
        return place, self.one(self.past[place][-4:])

    def meddle(self) -> Write | None:
        """Change what a rule keeps, or the map around it."""
        found = self.there(mirrors=self.pick(3) == 2)
        if found is None or not found[0].owned:
            return None
        kind, place, item = found
        path = self.one(kind.owned)
        held = get(item, path)
        inner = held.get("M") if held is not None else None
        if inner and self.pick(2):  # an entry of a map
            name = self.one([*inner, "nobody's"])
            return place, put(
                item, (*path, name), None if name in inner and self.pick(2) else {"M": {"f0": {"S": "odd"}}}
            )
        if held is not None and ("SS" in held or "NS" in held) and self.pick(2):
            ((type_of, ones),) = held.items()
            some = [*ones[1:]] if self.pick(2) else [*ones, "999" if type_of == "NS" else "nobody's-x"]
            return place, put(item, path, {type_of: some} if some else None)
        if len(path) > 1 and self.pick(4) == 3:
            return place, put(item, path[:1], self.one(({"M": {}}, None, {"S": "a text"})))
        return place, _put(item, path, self.stale(kind, path))

    def foreign(self) -> Write | None:
        """An item that is of no entity."""
        name = self.one(list(self.playground.spec.tables))
        table = self.playground.spec.tables[name]
        if name in self.playground.spec.ledgers:
            return None
        key = {one: self.one(IDS[kind]) for one, kind in table.key.items()}
        if self.playground.spec.entity_of(table.place(key)) is not None:
            return None
        return table.place(key), {**key, "state": {"S": "OPEN"}, "amount": {"N": "5"}}


def _put(item: Item, path: Path, value: Value | None) -> Item:
    """The item with a value at a path, if the way to it is a way of maps."""
    for size in range(1, len(path)):
        held = get(item, path[:size])
        if held is not None and "M" not in held:
            return item
    return put(item, path, value)


OPERATIONS: Final[Mapping[str, tuple[int, Callable[[Application], Write | None]]]] = {
    "insert": (5, Application.insert),
    "change": (5, Application.change),
    "relink": (3, Application.relink),
    "delete": (2, Application.delete),
    "back": (1, Application.back),
    "meddle": (2, Application.meddle),
    "foreign": (1, Application.foreign),
    "race": (5, race),
    "fill": (1, fill),
}


def _once(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(value for at, value in enumerate(values) if value not in values[:at])
