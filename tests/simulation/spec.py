"""A rules file as its reader understands it: entities by their keys, links, listings; from the YAML, by own means.

Invariant: nothing here is code of the product, so that a fault of the product is not a fault of the oracle too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

Value = Mapping[str, Any]
Item = Mapping[str, Value]
Path = tuple[str, ...]
Key = tuple[tuple[str, Any], ...]  # (type, content) of each key attribute
Place = tuple[str, Key]  # a table's name in the file, and a key
Body = Mapping[str, Any]  # a rule as the file has it

CANONICAL = re.compile(r"0|-?([1-9]\d*(\.\d*[1-9])?|0\.\d*[1-9])")
SETS = ("SS", "NS", "BS")
SEGMENT = re.compile(r'"([^"]+)"|([^."]+)')
WHOLE = re.compile(r"\{([^{}]+)\}")
PADDED = re.compile(r"\{([^{}:]+):pad\((\d+)\)\}")
PARTITION_MAX_BYTES, SORT_MAX_BYTES = 2048, 1024


def path_of(text: str) -> Path:
    return tuple(quoted or plain for quoted, plain in SEGMENT.findall(text))


def get(item: Item | None, path: Path) -> Value | None:
    value: Value | None = {"M": item or {}}
    for name in path:
        if value is None or "M" not in value:
            return None
        value = value["M"].get(name)
    return value


def put(item: Item, path: Path, value: Value | None) -> Item:
    """The item with one path set or removed; maps on the way are made when needed."""
    inner = item.get(path[0])
    if len(path) > 1:
        value = {"M": put(inner["M"] if inner is not None and "M" in inner else {}, path[1:], value)}
    rest = {name: old for name, old in item.items() if name != path[0]}
    return rest if value is None else {**rest, path[0]: value}


def kind_of(value: Value) -> str:
    return next(iter(value))


def text_of(value: Value | None) -> str | None:
    """The text of a string or a number."""
    return None if value is None else value.get("S", value.get("N"))


def fits(value: Value, max_bytes: int) -> bool:
    """True if a key can hold the value."""
    ((kind, content),) = value.items()
    if kind == "N":
        return True
    return kind in "SB" and 0 < len(content.encode() if kind == "S" else content) <= max_bytes


@dataclass(frozen=True)
class Pattern:
    """A template: texts, with a field between each two."""

    texts: tuple[str, ...]
    fields: tuple[str, ...]
    pads: Mapping[str, int] = field(default_factory=dict, hash=False)

    @cached_property
    def whole(self) -> str | None:
        return self.fields[0] if self.texts == ("", "") and not self.pads else None

    @classmethod
    def of(cls, text: str) -> Pattern:
        pieces = WHOLE.split(text)
        return cls(tuple(pieces[::2]), tuple(pieces[1::2]))

    @classmethod
    def of_key(cls, text: str) -> Pattern:
        """The template of a key, whose fields may be padded."""
        pads = {name: int(digits) for name, digits in PADDED.findall(text)}
        plain = cls.of(PADDED.sub(r"{\1}", text))
        return cls(plain.texts, plain.fields, pads)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        text = re.escape(self.texts[0])
        for after in self.texts[1:]:
            text += f"((?:(?!{re.escape(after)}).)+){re.escape(after)}" if after else "(.+)"
        return re.compile(text, re.DOTALL)

    def parse(self, value: Value | None) -> dict[str, Value] | None:
        if value is None:
            return None
        if self.whole:
            return {self.whole: value}
        found = self._regex.fullmatch(value.get("S", "")) if "S" in value else None
        if found is None:
            return None
        bound: dict[str, Value] = {}
        for name, inner in zip(self.fields, found.groups(), strict=True):
            text = inner
            if name in self.pads:
                if not re.fullmatch(f"[0-9]{{{self.pads[name]}}}", inner):
                    return None
                text = str(int(inner))
            if bound.setdefault(name, {"S": text}) != {"S": text}:
                return None
        return bound

    def build(self, fields: Mapping[str, Value], kind: str) -> Value | None:
        if self.whole:
            value = fields.get(self.whole)
            if value is None or kind in value:
                return value
            if kind == "N" and CANONICAL.fullmatch(value.get("S", "")):
                return {"N": value["S"]}
            return {"S": value["N"]} if kind == "S" and "N" in value else None
        text = self.texts[0]
        for name, after in zip(self.fields, self.texts[1:], strict=True):
            inner = text_of(fields.get(name))
            if inner and name in self.pads:
                inner = _padded(fields[name], self.pads[name])
            if not inner or (after and after in inner + after[:-1]):
                return None
            text += inner + after
        return {"S": text} if kind == "S" else None


def _padded(value: Value, digits: int) -> str | None:
    """A whole number with zeros before it; None for anything else, or a longer one."""
    text = text_of(value) or ""
    if "N" in value and Decimal(text) == int(Decimal(text)):
        text = str(int(Decimal(text)))
    return text.zfill(digits) if re.fullmatch("0|[1-9][0-9]*", text) and len(text) <= digits else None


@dataclass(frozen=True)
class Index:
    """The key of an index: its partition, then its sort key."""

    partition: Mapping[str, str]
    sort: Mapping[str, str]

    @property
    def key(self) -> Mapping[str, str]:
        return {**self.partition, **self.sort}


@dataclass(frozen=True)
class Table:
    """A table: its name in the file and in DynamoDB, its key, its indexes."""

    name: str
    physical: str
    key: Mapping[str, str]
    indexes: Mapping[str, Index]

    @cached_property
    def limits(self) -> Mapping[str, tuple[str, int]]:
        """Type and greatest length of each attribute of an index key."""
        found: dict[str, tuple[str, int]] = {}
        for index in self.indexes.values():
            for keys, most in ((index.partition, PARTITION_MAX_BYTES), (index.sort, SORT_MAX_BYTES)):
                for name, kind in keys.items():
                    found[name] = (kind, min(most, found.get(name, (kind, most))[1]))
        return found

    def place(self, item: Item) -> Place:
        return self.name, tuple((kind, item[name][kind]) for name, kind in self.key.items())

    def attributes(self, place: Place) -> dict[str, Value]:
        return {name: {kind: content} for name, (kind, content) in zip(self.key, place[1], strict=True)}


@dataclass(frozen=True)
class Spot:
    """The place of a field on an item: a path, and the part of a key that it is."""

    field: str
    path: Path
    pattern: Pattern | None = None
    first: int = 0  # characters of a time in UTC
    constant: str | None = None
    each: bool = False  # of a list: an item as seen with one element has that in its place
    separator: str = ""  # between the parts of a text that takes the place of a list

    def read(self, item: Item) -> Value | None:
        if self.constant is not None:
            return {"S": self.constant}
        value = get(item, self.path)
        if self.first:
            return {"S": value["S"][: self.first]} if value is not None and _is_utc(value.get("S", "")) else None
        if self.pattern is None or value is None:
            return value
        return (self.pattern.parse(value) or {}).get(self.field)


@dataclass(frozen=True, eq=False)
class Entity:
    """A kind of item."""

    name: str
    table: Table
    patterns: Mapping[str, Pattern]
    made: bool = False  # by rules alone

    @cached_property
    def identity(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(field for name in self.table.key for field in self.patterns[name].fields))

    def fields(self, place: Place) -> dict[str, Value] | None:
        """The fields in a key; None for one of another entity."""
        bound: dict[str, Value] = {}
        for name, (kind, content) in zip(self.table.key, place[1], strict=True):
            found = self.patterns[name].parse({kind: content})
            if found is None or any(bound.setdefault(field, value) != value for field, value in found.items()):
                return None
        return bound

    def place(self, fields: Mapping[str, Value]) -> Place | None:
        key = []
        for (name, kind), most in zip(self.table.key.items(), (PARTITION_MAX_BYTES, SORT_MAX_BYTES), strict=False):
            value = self.patterns[name].build(fields, kind)
            if value is None or not fits(value, most):
                return None
            key.append((kind, value[kind]))
        return self.table.name, tuple(key)

    @cached_property
    def inside(self) -> frozenset[str]:
        """The fields that stand inside a key attribute of another name."""
        return frozenset(field for name, one in self.patterns.items() for field in one.fields if field != name)

    def spot(self, text: str) -> Spot:
        for name in (*self.table.key, *self.patterns):
            pattern = self.patterns[name]
            if text in pattern.fields:
                return Spot(text, (name,), None if pattern.whole else pattern)
        return Spot(text, path_of(text))

    def read(self, item: Item, path: Path) -> Value | None:
        """The value of a field or an attribute."""
        if path[0] in self.inside:
            value = self.spot(path[0]).read(item)
            return value if len(path) == 1 else get({path[0]: value} if value else {}, path)
        return get(item, path)


def _is_utc(text: str) -> bool:
    """True for a time that ends with Z or +00:00, and whose date and minute there are."""
    found = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})(:[0-9]{2}([.,][0-9]+)?)?(Z|\+00:00)", text)
    try:
        return found is not None and bool(datetime.strptime(found[1], "%Y-%m-%dT%H:%M"))  # noqa: DTZ007 - its end says so
    except ValueError:
        return False


Link = Mapping[str, Spot]


@dataclass(frozen=True)
class Way:
    """The Query that lists items: `index` None for the base table. `needs` are the attributes that an item must have
    beside its key and its link to be listed, `missing` those of them that the file does not say all have.
    """

    index: Index | None
    name: str | None
    held: frozenset[str]
    needs: Mapping[str, str]
    missing: frozenset[str]

    def lists(self, item: Item) -> bool:
        """True if an item is in the index, as the file says all are; where it does not, none may be left out."""
        return bool(self.missing) or all(kind in item.get(name, {}) for name, kind in self.needs.items())


@dataclass
class Spec:
    """A rules file."""

    body: Mapping[str, Any]
    tables: dict[str, Table] = field(init=False)
    entities: dict[str, Entity] = field(init=False)
    rules: dict[str, Body] = field(init=False)

    def __post_init__(self) -> None:
        self.tables = {name: _table(name, form) for name, form in self.body["tables"].items()}
        self.entities = {name: _entity(name, form, self.tables) for name, form in self.body["entities"].items()}
        self.rules = {name: {"name": name, **_kinds(_long(form))} for name, form in self.body["rules"].items()}
        self.ledgers = {
            rule.get("ledger", "ledger")
            for rule in self.rules.values()
            if rule["kind"] in ("count", "sum", "mean", "min", "max", "values") and rule.get("mode") != "recount"
        }
        self.said = {name: set(form.get("required", ())) for name, form in self.body["entities"].items()}
        for rule in self.rules.values():
            if rule["kind"] == "derive":  # at least those that are made of the key alone
                name, _, attribute = rule["derive"].partition(".")
                self.said[name].add(attribute)
            if rule["kind"] == "copy" and "default" in rule and "where" not in rule and isinstance(rule["copy"], str):
                name, *path = path_of(rule["into"])
                self.said[name] |= set(path) if len(path) == 1 else set()
        self.at_table: dict[str, list[Entity]] = {}
        for entity in self.entities.values():
            self.at_table.setdefault(entity.table.name, []).append(entity)
        self._of: dict[Place, Entity | None] = {}
        self.known: dict[tuple[str, str], Any] = {}  # rules, taken apart

    def entity_of(self, place: Place) -> Entity | None:
        if place not in self._of:
            here = (one for one in self.at_table.get(place[0], ()) if one.fields(place) is not None)
            self._of[place] = next(here, None)
        return self._of[place]

    def ref(self, text: str) -> tuple[Entity, Path]:
        name, *path = path_of(text)
        return self.entities[name], tuple(path)

    # ---------------------------------------------------------------- links
    def link(self, one: Entity, many: Entity, given: Mapping[str, Any]) -> Link:
        """The places where items of `many` name the item of `one` that they point to."""
        return {field: _spot(many, field, given.get(field, field)) for field in one.identity}

    def named(self, one: Entity, link: Link, item: Item) -> Place | None:
        """The item that an item names."""
        fields: dict[str, Value] = {}
        for name, spot in link.items():
            value = spot.read(item)
            whole = get(item, spot.path) if spot.constant is None else value
            if whole is None or value is None or kind_of(whole) not in ("S", "N", "B"):
                return None
            fields[name] = value
        return one.place(fields)

    def all_named(self, one: Entity, link: Link, item: Item) -> set[Place | None]:
        """The items that an item names, one for each element of a list; None among them if an element names none."""
        return {self.named(one, link, seen) for seen in views(link, item)}

    def way(self, one: Entity, many: Entity, link: Link, rule: Body, *, first: bool = False) -> Way | None:
        """The Query that lists what points to an item: of the base table, or through an index. `first`: the first one
        that depends on the item is taken, else the one that holds most of what names it.
        """
        via, known = rule.get("via"), {spot.field for spot in link.values()}
        base = Index(dict([next(iter(many.table.key.items()))]), dict(list(many.table.key.items())[1:]))
        found: list[Way] = []
        for name, index in ((None, base), *many.table.indexes.items()):
            patterns = [many.patterns.get(a) or Pattern(("", ""), (a,)) for a in index.partition]
            if not all(set(pattern.fields) <= known for pattern in patterns):
                continue
            held = {field for pattern in patterns for field in pattern.fields}
            for attribute in index.sort:
                pattern = many.patterns.get(attribute) or Pattern(("", ""), (attribute,))
                if not set(pattern.fields) <= known:
                    break
                held |= set(pattern.fields)
            there = {*many.table.key, *(spot.path[0] for spot in link.values() if len(spot.path) == 1)}
            needs = {} if name is None else {one: kind for one, kind in index.key.items() if one not in there}
            missing = set() if rule.get("sparse") else needs.keys() - many.patterns.keys() - self.said[many.name]
            found.append(Way(None if name is None else index, name, frozenset(held), needs, frozenset(missing)))
        found = [way for way in found if not way.missing] or found
        if via is not None:
            return next((way for way in found if way.name == via), None)
        if first:
            return next((way for way in found if way.held), None) or next(iter(found), None)
        return max(found, key=lambda way: len(way.held), default=None)

    def shown(self, way: Way, entity: Entity, item: Item) -> bool:
        """True if an index has a row of an item."""
        if way.index is None:
            return True
        return all(kind in item.get(name, {}) for name, kind in way.index.key.items())


def views(link: Link, item: Item) -> list[Item]:
    """The item with each element of its list in place of the list; none for anything else than a list or a set."""
    for spot in link.values():
        if spot.each:
            ((kind, content),) = (get(item, spot.path) or {"NULL": True}).items()
            elements = content if kind == "L" else [{kind[0]: one} for one in content] if kind in SETS else []
            if spot.separator:
                elements = [{"S": one} for one in content.split(spot.separator)] if kind == "S" else []
            return [put(item, spot.path, one) for one in elements]
    return [item]


def _spot(entity: Entity, field: str, given: Any) -> Spot:
    if isinstance(given, str):
        return entity.spot(given)
    if "constant" in given:
        return Spot(field, (), constant=given["constant"])
    if "each" in given:
        return Spot(field, path_of(given["each"]), each=True, separator=given.get("separator", ""))
    return Spot(field, path_of(given["of"]), first=given["first"])


def _long(form: str | Body) -> dict[str, Any]:
    """A rule in its long form, with its kind."""
    if isinstance(form, str):
        kind, _, rest = form.partition(" ")
        what, _, into = rest.rpartition(" into ")
        parts = [part.strip() for part in what.split(",")]
        return {"kind": kind, kind: parts[0] if len(parts) == 1 else parts, "into": into}
    return {"kind": next(iter(form)), **form}


def _kinds(rule: dict[str, Any]) -> dict[str, Any]:
    """The same, with a kind of its own for the form of collect that names an attribute or fields."""
    values = rule["kind"] == "collect" and ("." in rule["collect"] or "fields" in rule)
    return {**rule, "kind": "values", "values": rule["collect"]} if values else rule


def _table(name: str, form: Mapping[str, Any]) -> Table:
    indexes = {}
    for index, one in form.get("indexes", {}).items():
        if "partition" in one and isinstance(one["partition"], dict):
            indexes[index] = Index(one["partition"], one.get("sort", {}))
        else:
            (first, *rest) = one.items()
            indexes[index] = Index(dict([first]), dict(rest))
    return Table(name, form.get("name", name), form["key"], indexes)


def _entity(name: str, form: Mapping[str, Any], tables: Mapping[str, Table]) -> Entity:
    table = tables[form["table"]]
    given = {attribute: Pattern.of_key(text) for attribute, text in form.get("key", {}).items()}
    own = {attribute: given.pop(attribute, Pattern(("", ""), (attribute,))) for attribute in table.key}
    return Entity(name, table, {**own, **given}, "made_by" in form)


def nested(pairs: Iterable[tuple[Path, Value]]) -> dict[str, Value]:
    """An item that holds these values at these paths."""
    item: dict[str, Any] = {}
    for path, value in pairs:
        inside = item
        for name in path[:-1]:
            inside = inside.setdefault(name, {"M": {}})["M"]
        inside[path[-1]] = value
    return item
