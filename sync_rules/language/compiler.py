"""Compile one rule: look up the names it uses in the file, and report what is wrong with it.

Invariant: everything wrong with a rule is reported, each problem at its location; a rule with an error is not compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Final, ParamSpec, TypeVar

from sync_rules.language import links
from sync_rules.language.problems import Location, Problem, Problems, find_severity
from sync_rules.language.variables import VARIABLE
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import Entity, Table
from sync_rules.model.errors import UserError
from sync_rules.model.lookups import Find, Link
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Path, parse_path, show_path
from sync_rules.model.where import Where, compile_where
from sync_rules.rules.ruleset import Rules

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
PATH_LEVELS_MAX: Final = 32
TWICE: Final = "remove one of them, or give each a name of its own in a map: {attribute: name}"
NEARLY: Final = 0.8  # how much a name must be like an entity's to be taken for it
Choose = Callable[[list[links.Way], str | None], links.Way | None]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class AttributeRef:
    """An attribute named in the rules file: its entity, and its path in the items; () is the item itself."""

    entity: Entity
    path: Path


def list_key_types(entity: Entity) -> Mapping[str, str]:
    """List the types of the key's attributes and of the fields in them, which every item has."""
    templates = [(attribute, entity.templates[attribute.name]) for attribute in entity.table.key]
    types = {name: one.type for one, template in templates for name in (*template.fields, one.name)}
    return types | {field: "N" for _, template in templates for field, _ in template.pads}


@dataclass(frozen=True)
class Known:
    """The file that rules are compiled against. `broken` and `broken_tables`: unusable declarations, already reported.
    `written`: by entity, the attributes that rules give to all its items. `own_names`: paths to check once all rules
    are compiled.
    """

    document: Document
    problems: Problems
    tables: Mapping[str, Table]
    entities: Mapping[str, Entity]
    broken: frozenset[str]
    broken_tables: frozenset[str]
    written: dict[str, set[str]] = field(default_factory=dict)
    like: dict[str, tuple[str, ...]] = field(default_factory=dict)
    own_names: list[OwnName] = field(default_factory=list)

    def find_similar(self, name: str) -> tuple[str, ...]:
        """Find up to two entities whose names are most like a name."""
        if name not in self.like:
            self.like[name] = tuple(get_close_matches(name, self.entities, n=2, cutoff=NEARLY))
        return self.like[name]

    @cached_property
    def first_entities(self) -> Mapping[str, str]:
        """The first entity of each table that has one."""
        return {entity.table.name: entity.name for entity in reversed([*self.entities.values()])}

    def list_sure_attributes(self, entity: Entity) -> frozenset[str]:
        """List the attributes that every item of an entity has, besides those of its key templates."""
        return frozenset(entity.required) | self.written.get(entity.name, set())


@dataclass
class RuleCompiler:
    """The compiler of one rule. `sound` is True until an error is found."""

    known: Known
    name: str
    sound: bool = field(default=True, init=False)

    def at(self, *key_path: str | int) -> Location:
        return self.known.document.value("rules", self.name, *key_path)

    def at_key(self, *key_path: str | int) -> Location:
        return self.known.document.key("rules", self.name, *key_path)

    def add(self, code: str, location: Location | str, message: str, cure: str | None = None) -> None:
        """Report a problem. A location given by an option's name is that of the option's value."""
        location = self.at(location) if isinstance(location, str) else location
        self.known.problems.add(code, location, message, cure)
        if find_severity(code) == "error":
            self.sound = False

    def refuse(self, option: str, message: str, cure: str) -> None:
        """Report an option that has no meaning together with the other options."""
        self.add("SR120", self.at_key(option), message, cure)

    def parse(
        self, code: str, location: Location | str, function: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T | None:
        """Call a function, and return its answer. If it raises UserError, report the problem and return None."""
        try:
            return function(*args, **options)
        except UserError as error:
            self.add(code, location, error.found, error.cure or None)
            return None

    def resolve(self, text: str, location: Location | str, *, attribute: bool = False) -> AttributeRef | None:
        """Return the entity and the path that a text names. With `attribute`, the path must not be empty. Return None
        after a reported problem.
        """
        names = self.path(text, location, entity=True)
        if names is None:
            return None
        name, *path = names
        entity = self.known.entities.get(name)
        if entity is None:
            self.sound = False
            if name not in self.known.broken:
                self.add("SR102", location, explain_unknown_name("entity", name, self.known.document.names("entities")))
            return None
        if attribute and not path:
            message = f"{text!r} is an entity: expected one of its attributes, such as {text}.name"
            self.add("SR108", location, message)
            return None
        return AttributeRef(entity, tuple(path))

    def entity(self, text: str, option: str) -> Entity | None:
        ref = self.resolve(text, option)
        if ref is not None and ref.path:
            message = f"{text!r} is an attribute: expected an entity, such as {ref.entity.name}"
            self.add("SR108", option, message, f"write the entity alone: {ref.entity.name}")
            return None
        return None if ref is None else ref.entity

    def into(self, text: str) -> AttributeRef | None:
        """Return the attribute, or the key in a map, that the rule writes; None after a reported problem."""
        return self.resolve(text, "into", attribute=True)

    def path(self, text: str, location: Location | str, *, entity: bool = False) -> Path | None:
        """Parse a path; None after a reported problem. `entity`: the path begins with the name of an entity."""
        if VARIABLE.search(text):
            message = f"{text!r} has a variable, which a path cannot have: it is part of the rules, like a table's key"
            self.add("SR108", location, message, "write the name of the attribute")
            return None
        path = self.parse("SR108", location, parse_path, text)
        if path is not None and len(path) - entity > PATH_LEVELS_MAX:
            message = f"a path of {len(path) - entity} levels: DynamoDB holds maps in at most {PATH_LEVELS_MAX}"
            self.add("SR108", location, message, "use a map that is less deep")
            return None
        return path

    def parse_option_path(self, text: str | None, option: str) -> Path | None:
        return None if text is None else self.path(text, option)

    def paths(self, texts: Iterable[str] | None, option: str) -> tuple[Path, ...]:
        """Parse the paths in an optional list. Texts that are not paths are reported."""
        found = [self.path(text, self.at(option, index)) for index, text in enumerate(texts or ())]
        return tuple(path for path in found if path is not None)

    def parse_renames(self, given: list[str] | Mapping[str, str], option: str) -> tuple[tuple[Path, Path], ...]:
        """Return pairs of (source path, path to write). Attributes in a list keep their last name."""
        pairs: list[tuple[Path, Path]] = []
        for index, text in enumerate(given):
            location = self.at(option, index) if isinstance(given, list) else self.at_key(option, text)
            path = self.path(text, location)
            name = path and (path[-1:] if isinstance(given, list) else self.path(given[text], location))
            if path is not None and name is not None:
                pairs.append((path, name))
        names = [name for _, name in pairs]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            alike = len({path for path, written in pairs if written == name}) == 1
            message = f"{'.'.join(name)} is written twice by this rule"
            self.add("SR301", self.at(option), message, "remove one of them" if alike else TWICE)
        return tuple(pairs)

    def own(
        self,
        entity: Entity | None,
        given: str | Iterable[str] | None,
        *at: str | int,
        written: bool = False,
        quotes: bool = True,
    ) -> None:
        """Note the paths of an option that begin with the unquoted name of their own entity, for `doubt_own_names`."""
        texts = [given] if isinstance(given, str) else [*(given or ())]
        for index, text in enumerate(texts):
            plain = text.removeprefix("-")
            if entity is None or not plain.startswith(f"{entity.name}."):
                continue
            location = self.at(*at, index) if isinstance(given, list) else self.at(*at)
            if isinstance(given, Mapping):
                location = self.at_key(*at, text)
            with suppress(UserError):
                name, *rest = parse_path(plain)
                sign = text[: len(text) - len(plain)]
                quoted = f"'{sign}\"{name}\".{show_path(tuple(rest))}'" if quotes else ""
                self.known.own_names.append(OwnName(entity, (name, *rest), location, quoted, sign, written))

    def compile_own_where(
        self, text: str | None, source: Entity, option: str = "where", place: Location | None = None
    ) -> Where | None:
        """Compile a condition on one item, whose names are all attributes of that item. `place`: the location, if not
        that of `option`.
        """
        if text is None:
            return None
        place = place or self.at(option)
        where = self.parse("SR114", place, compile_where, text, "", list_key_types(source))
        if where is None:
            return None
        if (source.name,) in where.target_paths:
            self.add("SR412", place, f"{source.name!r} is read as an attribute of {source.name!r} itself")
        for (name,) in where.target_paths:
            if not re.search(rf"(?<![\w.\"]){re.escape(name)}\s*\.|\"{re.escape(name)}\"\s*\.", text):
                continue
            if meant := [other for other in self.known.find_similar(name) if other != source.name]:
                hint = "" if meant[0] == name else f". If {meant[0]!r} is meant: it is another item"
                message = f"{name!r} is read as an attribute of {source.name!r}, and `{option}` reads no other item"
                self.add("SR414", place, message + hint)
        return where

    def link(self, given: Mapping[str, str], one: Entity, many: Entity, *, within: bool = False) -> Link | None:
        """Compile the link from items of `many` to the item of `one` that each names. `within`: an item may link to
        itself.
        """
        sound = True
        for name in given:
            if name not in one.identity:
                message = explain_unknown_name("key field", name, one.identity, f"entity {one.name!r}")
                self.add("SR202", self.at_key("link", name), message)
                sound = False
        for name, text in given.items():
            sound = self.path(text, self.at("link", name)) is not None and sound
            self.own(many, text, "link", name)
        if not sound:
            return None
        link = links.infer_link(one, many, given)
        if not given and not within and links.is_self_link(one, many, link):
            message = f"expected an attribute that names another {one.name!r}, found each item linked to itself"
            self.add("SR231", self.at_key("link"), message, links.suggest_other_item(one))
            return None
        return link if self.link_matches(one, many, link) else None

    def link_matches(self, one: Entity, many: Entity, link: Link) -> bool:
        """Report link fields whose types can never be equal. Return True if there are none."""
        sound = True
        for name, ours, theirs in links.find_mismatches(one, many, link):
            message = f"{name!r} is of type {ours} on {one.name!r} and of type {theirs} on {many.name!r}"
            self.add("SR204", self.at("link", name), message)
            sound = False
        return sound

    def find(
        self,
        link: Link,
        one: Entity,
        many: Entity,
        via: str | None,
        at: str,
        *,
        sparse: bool = False,
        choose: Choose = links.choose_closest,
    ) -> Find | None:
        """Find the Query for the items of `many` that point to one item. Problems are reported at the option `at`. An
        index that may lack some items needs `sparse`.
        """
        known = ", ".join(f"{{{ref.field}}}" for _, ref in link) or f"nothing ({one.name!r} has a fixed key)"
        indexes = [index.name for index in many.table.indexes]
        if via is not None and via not in indexes:
            self.add("SR102", "via", explain_unknown_name("index", via, indexes, f"table {many.table.name!r}"))
            return None
        ways = links.list_ways(one, many, link, self.known.list_sure_attributes(many))
        nearest = choose(ways, via)
        if nearest is None and via is not None:
            self.add("SR203", "via", f"the partition key of index {via!r} is not filled by {known}")
            return None
        if nearest is None:
            message = f"no key of table {many.table.name!r} lists the items of {many.name!r} by {known}"
            meant = links.find_near_index(many, link)
            hint = f". Did you mean {meant[0]!r} (index {meant[1]!r})?" if meant else ""
            self.add("SR201", at, message + hint, links.suggest_way(one, many, link))
            return None
        if sparse and not nearest.missing:
            message = f"`sparse` leaves out nothing: {nearest.place_name} lists all items of {many.name!r}"
            self.refuse("sparse", message, "remove it, or name another index with via")
            return None
        way = nearest.make_sparse() if sparse else choose([way for way in ways if not way.missing], via)
        if way is None:
            names = " and ".join(repr(attribute.name) for attribute in nearest.missing)
            message = f"{nearest.place_name} lists only the items of {many.name!r} that have {names}"
            cure = self._suggest_full_listing(nearest, one, many, link) + ("" if via is None else ", and drop via")
            self.add("SR217", at if via is None else "via", message, cure)
            return None
        if not way.narrow:
            message = f"the Query of {way.place_name} is the same for every {one.name!r}: it does not hold {known}"
            self.add(
                "SR409", at, message, self._suggest_full_listing(nearest if nearest.narrow else way, one, many, link)
            )
        return way.find

    def _suggest_full_listing(self, way: links.Way, one: Entity, many: Entity, link: Link) -> str:
        """Return the cure for a key that does not list all items, or lists items of other sources."""
        if not way.missing:
            return links.suggest_index(one, many, link)
        missing = [attribute.name for attribute in way.missing]
        required = ", ".join(dict.fromkeys((*many.required, *missing)))
        return (
            f"if every item has {' and '.join(missing)}, say entities.{many.name}.required: [{required}]; if the rule "
            f"means only the items in the index, say sparse: true in it; else {links.suggest_index(one, many, link)}"
        )


@dataclass(frozen=True)
class OwnName:
    """A path of an entity that begins with the entity's own name. `quoted`: the path with that name in quotes, or "".
    `sign`: - before an order. `written`: the rule writes there.
    """

    entity: Entity
    path: Path
    location: Location
    quoted: str
    sign: str
    written: bool


def doubt_own_names(
    names: Iterable[OwnName], rules: Rules, said: Callable[[Entity], Collection[str]]
) -> Iterator[Problem]:
    """Warn of these paths, unless a rule writes the map, or the file says that all items have it (`said`)."""
    made = {(rule.target, path[0]) for rule in rules.rules.values() for path in rule.copies}
    for one in names:
        name, *rest = one.path
        if name in said(one.entity) or ((one.entity, name) in made and not one.written):
            continue
        short = show_path(tuple(rest))
        message = f"{show_path(one.path)!r} is {short!r} in a map {name!r} of each {one.entity.name!r}"
        instead = one.quoted or f"entities.{name}.required: [{name}]"
        yield Problem(
            "SR421", message, one.location, f"write {one.sign}{short}; or, if its items have that map, {instead}"
        )
