"""Compile the access patterns of a rules file.

Invariant: it refuses a pattern with two options that no request can combine. The prover decides which request answers a
pattern, if any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from sync_rules.extras.design.patterns.condition_parts import list_equalities
from sync_rules.extras.design.patterns.declarations import (
    Direction,
    GetPattern,
    GraphPattern,
    Operation,
    Pattern,
    Range,
    RangeForm,
    SearchPattern,
    TreePattern,
    WritePattern,
)
from sync_rules.extras.design.patterns.pattern_forms import (
    DeleteForm,
    GetForm,
    GraphForm,
    KeyedForm,
    PatternForm,
    PutForm,
    ReadForm,
    SearchForm,
    TreeForm,
    UpdateForm,
)
from sync_rules.language.compiler import NEARLY, Known, list_key_types
from sync_rules.language.kinds.options import Model
from sync_rules.language.lint import list_named_attributes
from sync_rules.language.problems import Location
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import parse_path
from sync_rules.model.where import Where, compile_where
from sync_rules.rules.ruleset import Rules

RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?/ ?(s|min|h|day)")
RATE_MAX: Final = 10**9  # calls per second: more than any table takes
SECONDS: Final = {"s": 1, "min": 60, "h": 3_600, "day": 86_400}
HOURS: Final = re.compile(r"([01][0-9]|2[0-3])-([01][0-9]|2[0-4])")
SHOWN: Final = "name one of those shown"
SHARE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?%")
RANGES: Final[tuple[RangeForm, ...]] = ("between", "at_least", "at_most", "begins_with")
WAYS: Final = ("table", "mirror")


def compile_patterns(known: Known, forms: Mapping[str, Model], rules: Rules) -> dict[str, Pattern]:
    found: dict[str, Pattern] = {}
    named = list_named_attributes(rules) if forms else {}
    for name, one in forms.items():
        compiler = PatternCompiler(known, name, rules, named)
        pattern = compiler.compile_form(one)
        if pattern is not None and compiler.sound:
            found[name] = pattern
    return found


@dataclass
class PatternCompiler:
    """The compiler of one pattern; `sound` until it finds an error. `named` holds, by entity, the attributes that the
    rest of the file names.
    """

    known: Known
    name: str
    rules: Rules
    named: Mapping[str, set[str]]
    sound: bool = field(default=True, init=False)

    def compile_form(self, form: Model) -> Pattern | None:
        """Return the pattern of a form; None if an entity is missing."""
        match form:
            case GetForm():
                return self._compile_get(form)
            case GraphForm():
                return self._compile_graph(form)
            case TreeForm():
                return self._compile_tree(form)
            case SearchForm():
                return self._compile_search(form)
            case PutForm() | UpdateForm() | DeleteForm():
                return self._compile_write(form)
        raise AssertionError("a form without a compiler")

    # ------------------------------------------------------------ problems and values
    def at(self, *key_path: str | int) -> Location:
        return self.known.document.value("patterns", self.name, *key_path)

    def add(self, code: str, option: str | Location, message: str, cure: str | None = None) -> None:
        """Report a problem, of an option by its name."""
        self.known.problems.add(code, self.at(option) if isinstance(option, str) else option, message, cure)
        if not code.startswith("SR4"):
            self.sound = False

    def entity(self, text: str, location: str | Location) -> Entity | None:
        entity = self.rules.entities.get(text)
        if entity is None or "." in text:
            self.sound = False
            if text not in self.known.broken:
                self.add("SR102", location, explain_unknown_name("entity", text, self.known.document.names("entities")))
            return None
        return entity

    def rate(self, text: str | None) -> float | None:
        """Return a rate as calls per second; None if it is not given or wrong."""
        if text is None:
            return None
        found = RATE.fullmatch(text)
        if found is None:
            self.add("SR501", "rate", f"expected a number and a unit, found {text!r}")
            return None
        rate = float(found[1]) / SECONDS[found[2]]
        if rate > RATE_MAX:
            self.add(
                "SR501", "rate", f"expected at most {RATE_MAX:,} calls a second, found {text!r}", "write a lower rate"
            )
            return None
        return rate

    def share(self, text: str | None, option: str) -> float | None:
        """Return a share from 0 to 1; None if it is not given or wrong."""
        if text is None:
            return None
        found = SHARE.fullmatch(text)
        if found is None or not 0 < float(found[1]) <= 100:  # noqa: PLR2004 - per cent
            self.add("SR106", option, f"expected a share such as 5%, more than 0% and at most 100%; found {text!r}")
            return None
        return float(found[1]) / 100

    def attribute(self, entity: Entity, text: str, *at: str | int) -> None:
        """Warn of an attribute that the file does not name, but whose spelling is close to a named attribute."""
        first = text.partition(".")[0]
        names = self.named[entity.name]
        if first in names:
            return
        close = get_close_matches(first, names, n=1, cutoff=NEARLY)
        if close:
            message = f"nothing else in the file names {first!r} of {entity.name!r}. Did you mean {close[0]!r}?"
            self.add("SR480", self.at(*at), message)

    def path(self, text: str, location: Location) -> None:
        """Report a name that is not a path."""
        try:
            parse_path(text)
        except UserError as error:
            self.add("SR108", location, error.found, error.cure or None)

    def check_returns(self, entity: Entity, texts: list[str] | None, option: str) -> tuple[str, ...] | None:
        if texts is not None and not texts:
            self.add("SR106", option, "expected at least one attribute, found none", "leave it out: all are returned")
        for index, text in enumerate(texts or ()):
            self.path(text, self.at(option, index))
            other, dot, rest = text.partition(".")
            if dot and other in self.rules.entities and other != entity.name and other not in self.named[entity.name]:
                self.attribute(self.rules.entities[other], rest, option, index)
            else:
                self.attribute(entity, text, option, index)
        return None if texts is None else tuple(dict.fromkeys(texts))

    def _compile_read_options(self, form: ReadForm | SearchForm, entity: Entity) -> dict[str, Any]:
        paged = {"page": form.page, "items": form.items} if isinstance(form, ReadForm) else {}
        return {"returns": self.check_returns(entity, form.attributes, "attributes"), **paged, **self._of_any(form)}

    def _of_any(self, form: PatternForm) -> dict[str, Any]:
        stated = {name: getattr(form, name) or "" for name in ("description", "priority", "peak_hours")}
        if form.peak_hours is not None and not HOURS.fullmatch(form.peak_hours):
            self.add(
                "SR106", "peak_hours", f"expected two hours of two digits, such as 09-17; found {form.peak_hours!r}"
            )
        busiest = form.busiest if isinstance(form, KeyedForm) else None
        return {"name": self.name, "rate": self.rate(form.rate), "busiest": self.share(busiest, "busiest"), **stated}

    # ------------------------------------------------------------ get
    def _compile_get(self, form: GetForm) -> GetPattern | None:
        several = not isinstance(form.get, str)
        names = [form.get] if isinstance(form.get, str) else form.get
        if several and not names[1:]:
            self.add("SR106", "get", f"expected several entities, found {len(names)}", "for one, write get: ENTITY")
            return None
        entities = [self.entity(name, self.at("get", at) if several else "get") for at, name in enumerate(names)]
        entity = entities[0]
        if entity is None or None in entities:
            return None
        if several:
            self._check_several(form, [one for one in entities if one is not None])
        for index, name in enumerate(form.by):
            if name in form.by[:index]:
                self.add("SR120", self.at("by", index), f"{name!r} is in `by` twice", "leave one of them out")
            self.path(name, self.at("by", index))
            self.attribute(entity, name, "by", index)
        within = self._compile_range(form, entity)
        order, backward = self._compile_order(form, entity, within)
        where, fixed = self._compile_where(form, entity)
        self._check_combinations(form, where)
        return GetPattern(
            entity=entity.name,
            beside=tuple(names[1:]),
            by=tuple(dict.fromkeys(form.by)),
            within=within,
            order=order,
            backward=backward,
            one=form.one,
            keys=form.keys,
            where=where,
            fixed=fixed,
            keeps=self.share(form.keeps, "keeps"),
            consistent=form.consistent,
            via=self._check_via(form.via, entity),
            **self._compile_read_options(form, entity),
        )

    def _check_several(self, form: GetForm, entities: list[Entity]) -> None:
        """Report what does not go with several entities."""
        for at, one in enumerate(entities):
            if one in entities[:at]:
                self.add("SR120", self.at("get", at), f"{one.name!r} is in `get` twice", "leave one of them out")
            if one.table is not entities[0].table:
                tables = f"{one.name!r} is in table {one.table.name!r}, and {entities[0].name!r} is not"
                self.add("SR120", self.at("get", at), f"{tables}: a Query reads one table", "write a pattern for each")
        given = {
            "one": form.one,
            **{name: getattr(form, name) is not None for name in ("keys", "attributes", "where", "order")},
        }
        for option in (name for name, is_given in given.items() if is_given):
            self.add("SR120", option, f"`{option}` and several entities do not go together", "write a pattern for each")
        keys = entities[0].table.key[1:], *(index.sort[:1] for index in entities[0].table.indexes)
        names = [attribute.name for key in keys for attribute in key]
        for option in (one for one in RANGES if getattr(form, one) not in (None, *names)):
            message = f"{getattr(form, option)!r} is not a sort key, which several entities have in common"
            self.add("SR120", option, message, f"{option}: {names[0]}" if names else "write a pattern for each")
        if form.via == "mirror":
            self.add("SR120", "via", "a mirror holds items of one entity", "leave `via` out")

    def _compile_range(self, form: GetForm, entity: Entity) -> Range | None:
        given = [(one, name) for one in RANGES if (name := getattr(form, one)) is not None]
        for _, name in given:
            self.attribute(entity, name, given[0][0])
        if len(given) > 1:
            words = " and ".join(one for one, _ in given)
            both = {one for one, _ in given} == {"at_least", "at_most"} and given[0][1] == given[1][1]
            cure = f"for both ends, write between: {given[0][1]}" if both else "keep one of them"
            self.add("SR120", given[1][0], f"{words}: a Query takes one range", cure)
        if given and given[0][1] in form.by:
            message = f"{given[0][1]!r} is given by equality, in `by`, and as a range too"
            self.add("SR502", given[0][0], message, f"remove it from `by`, or remove `{given[0][0]}`")
        return Range(given[0][1], given[0][0]) if given else None

    def _compile_order(self, form: GetForm, entity: Entity, within: Range | None) -> tuple[str | None, bool]:
        if form.order is None:
            return None, False
        name, _, way = form.order.partition(" ")
        ranged = f"order: {within.attribute} {way}".rstrip() if within is not None else ""
        if way not in ("", "asc", "desc") or not name:
            self.add("SR106", "order", f"expected an attribute, and desc or nothing after it; found {form.order!r}")
        elif name in form.by:
            message = f"all items that are found have the same {name!r}: it is given in `by`"
            cure = "order by an attribute that is not in `by`, or remove `order`"
            self.add("SR502", "order", message, f"{ranged}, or remove `order`" if within is not None else cure)
        elif within is not None and within.attribute != name:
            message = f"a Query sorts by the attribute of its range, {within.attribute!r}, and not by {name!r}"
            self.add("SR502", "order", message, f"{ranged}, or remove `order` and sort each page in the application")
        else:
            self.attribute(entity, name, "order")
        return name, way == "desc"

    def _compile_where(self, form: GetForm, entity: Entity) -> tuple[Where | None, tuple[tuple[str, Any], ...]]:
        if form.where is None:
            return None, ()
        try:
            where = compile_where(form.where, "", list_key_types(entity))
        except UserError as error:
            self.add("SR114", "where", error.found, error.cure or None)
            return None, ()
        fixed = list_equalities(form.where)
        for name, _ in fixed:
            if name in form.by:
                self.add("SR502", "where", f"{name!r} is given in `by`, and has a value here", "leave one of them out")
        return where, fixed

    def _check_combinations(self, form: GetForm, where: Where | None) -> None:
        """Report options that would do nothing beside another option."""
        alone = {"one": form.one, "keys": form.keys is not None}
        several = {
            "page": form.page is not None,
            "items": form.items is not None,
            **({"one": form.one} if form.keys is not None else {}),
            **({one: getattr(form, one) is not None for one in RANGES} if form.keys is not None else {}),
            **({"order": form.order is not None} if form.keys is not None else {}),
        }
        for option in (name for name, given in alone.items() if given):
            for other in (name for name, given in several.items() if given and name != option):
                self.add("SR120", other, f"`{option}` and `{other}` do not go together", "remove one of them")
        if form.keeps is not None and where is None:
            message = "`keeps` states the share of items that satisfy `where`, and there is no `where`"
            self.add("SR120", "keeps", message, "remove `keeps`, or add `where`")

    def _check_via(self, via: str | None, entity: Entity) -> str | None:
        names = [*WAYS, *(index.name for index in entity.table.indexes)]
        if via is not None and via not in names:
            self.add("SR102", "via", explain_unknown_name("way", via, names, f"table {entity.table.name!r}"))
        return via

    # ------------------------------------------------------------ graph, tree, writes
    def _compile_graph(self, form: GraphForm) -> GraphPattern | None:
        node, start = self.entity(form.graph, "graph"), self.entity(form.start, "from")
        edge = self.entity(form.through, "through")
        around = [self.entity(name, self.at("neighbours", at)) for at, name in enumerate(form.neighbours)]
        if node is None or start is None or edge is None or None in around:
            return None
        ends = (start, *(one for one in around if one is not None))
        known = {name for one in ends for name in (*one.identity, *(attribute.name for attribute in one.table.key))}
        for name in form.link:
            if name not in known:
                of = ", ".join(dict.fromkeys(one.name for one in ends))
                location = self.known.document.key("patterns", self.name, "link", name)
                message = explain_unknown_name("field or key attribute", name, sorted(known), of)
                self.add("SR102", location, message, SHOWN)
        if form.at_least is not None and form.begins_with is not None:
            self.add("SR120", "begins_with", "at_least and begins_with: a Query takes one range", "keep one of them")
        ranges: dict[RangeForm, str | None] = {"at_least": form.at_least, "begins_with": form.begins_with}
        within = next(((one, text) for one, text in ranges.items() if text is not None), None)
        return GraphPattern(
            node=node.name,
            start=start.name,
            edge=edge.name,
            within=within,
            backward=form.order == "desc",
            neighbours=tuple(form.neighbours),
            link=tuple(form.link.items()),
            via=self._check_via(form.via, edge),
            **self._compile_read_options(form, node),
        )

    def _compile_tree(self, form: TreeForm) -> TreePattern | None:
        entity = self.entity(form.tree, "tree")
        if entity is None:
            return None
        given: dict[Direction, str | None] = {"under": form.under, "above": form.above, "children": form.children}
        named = [(direction, text) for direction, text in given.items() if text is not None]
        if len(named) != 1:
            found = " and ".join(direction for direction, _ in named) or "none"
            such = "".join(f", such as under: {field}" for field in entity.identity[-1:])
            cure = "keep one of them" if named else f"add one of them{such}"
            self.add("SR120", "tree", f"expected one of under, above and children; found {found}", cure)
            return None
        ((direction, text),) = named
        if text not in entity.identity:
            message = explain_unknown_name("key field", text, entity.identity, f"entity {entity.name!r}")
            self.add("SR102", direction, message, SHOWN)
        if form.depth is not None and direction != "under":
            message = f"`depth` counts levels down: it does not go with `{direction}`"
            self.add("SR120", "depth", message, f"remove it, or write under in place of {direction}")
        if form.itself and direction == "children":
            self.add("SR120", "itself", "`itself` does not go with `children`: they have pages", "say under, depth: 1")
        return TreePattern(
            entity=entity.name,
            direction=direction,
            field=text,
            depth=form.depth,
            itself=form.itself,
            **self._compile_read_options(form, entity),
        )

    def _compile_search(self, form: SearchForm) -> SearchPattern | None:
        entity = self.entity(form.search, "search")
        if entity is None:
            return None
        names = [one.index.name for one in entity.table.vectors]
        if form.via is not None and form.via not in names:
            self.add(
                "SR102", "via", explain_unknown_name("vector index", form.via, names, f"table {entity.table.name!r}")
            )
        return SearchPattern(
            entity=entity.name,
            by=self.check_returns(entity, form.by or None, "by") or (),
            top=form.top,
            via=form.via,
            **self._compile_read_options(form, entity),
        )

    def _compile_write(self, form: PutForm | UpdateForm | DeleteForm) -> WritePattern | None:
        operation: Operation = (
            "put" if isinstance(form, PutForm) else "update" if isinstance(form, UpdateForm) else "delete"
        )
        name = getattr(form, operation)
        entity = self.entity(name, operation)
        if entity is None:
            return None
        sets = form.sets if isinstance(form, UpdateForm) else None
        keys = {attribute.name for attribute in entity.table.key}
        for index, text in enumerate(sets or ()):
            if text in keys or (text in entity.bound_fields and entity.bound_fields[text].path[0] in keys):
                message = f"{text!r} is in the key of {name!r}: no update changes it"
                self.add("SR503", self.at("sets", index), message)
            self.attribute(entity, text, "sets", index)
        return WritePattern(
            operation=operation, entity=name, sets=None if sets is None else tuple(sets), **self._of_any(form)
        )
