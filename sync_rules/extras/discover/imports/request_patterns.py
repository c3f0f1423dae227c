"""From requests to access patterns: the kind of items that a request is for, and the fields that it asks by.

Invariant: a field is one that each key in the request binds by the template of its kind. A request that fits no kind is
refused with the reason; one that reads several kinds is a pattern of each, which says so. Filters become conditions in
JMESPath (https://jmespath.org/specification.html).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sync_rules.extras.discover.imports.cli_requests import Request
from sync_rules.extras.discover.imports.foreign_document import quoted
from sync_rules.extras.discover.imports.identifiers import words
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundPattern, FoundTable, RangeForm, Verb
from sync_rules.extras.discover.imports.request_expressions import RequestCondition, Value
from sync_rules.language.links import default_template
from sync_rules.model.entities import KeyAttribute
from sync_rules.model.errors import UserError
from sync_rules.model.templates import CANONICAL_NUMBER, Template, parse_template

KEYS_AT_ONCE: Final = 25
KEYS_MAX: Final = 100
TOGETHER: Final = "one call does this {number} times in the example"
RANGES: Final[Mapping[str, RangeForm]] = {
    "between": "between",
    "begins_with": "begins_with",
    ">=": "at_least",
    ">": "at_least",
    "<=": "at_most",
    "<": "at_most",
}
SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RAW: Final = re.compile(r"[^'`\\\x00-\x1f]{1,80}")  # a text that needs no escape
SIGNS: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
OF_EXAMPLE: Final = "its filter has the values of the example: each call may give others"
NO_KIND: Final = "no kind of items of {table} has such a key"
SEVERAL: Final = "one request also reads {others}: each is a pattern here, and their costs add up"
OPEN_END: Final = "its range leaves out the value itself, and this one does not"
NO_ORDER: Final = "it asks for the last ones first, and all that it finds have one sort key: say its order, if any"
HOW_MANY: Final = f"how many keys one call asks for is not said: {KEYS_AT_ONCE} here"


def template_of(entity: FoundEntity, attribute: str) -> Template | None:
    """The template of a key attribute; None where it cannot be parsed."""
    try:
        return (
            parse_template(entity.key[attribute], pads=True) if attribute in entity.key else default_template(attribute)
        )
    except UserError:
        return None


def fields_of(entity: FoundEntity, attributes: Iterable[KeyAttribute]) -> list[str]:
    """The fields of key attributes, each once."""
    templates = (template_of(entity, one.name) for one in attributes)
    return list(dict.fromkeys(name for template in templates if template for name in template.fields))


def may_hold(entity: FoundEntity, attribute: str) -> bool:
    """False where it is known that an entity's items do not hold an attribute."""
    held = {*entity.key, *entity.attributes, *entity.required, *(one.name for one in entity.table.key)}
    return attribute in held or not entity.attributes


@dataclass
class Fit:
    """A request as the templates of one entity parse it. `literals`: the fixed letters in its keys."""

    entity: FoundEntity
    by: list[str] = field(default_factory=list)
    within: tuple[RangeForm, str] | None = None
    checks: list[str] = field(default_factory=list)
    literals: int = 0

    def add(self, names: Iterable[str]) -> None:
        """Ask by these fields too."""
        self.by = list(dict.fromkeys([*self.by, *names]))


def patterns_of_all(
    requests: Sequence[Request], tables: Sequence[FoundTable], entities: Sequence[FoundEntity], called: str, said: str
) -> list[FoundPattern]:
    """The patterns of the requests of one access pattern. Those that differ in values alone are one."""
    made = [(one, request) for request in requests for one in patterns_of(request, tables, entities, called, said)]
    same: dict[tuple[object, ...], list[FoundPattern]] = {}
    for one, request in made:
        kind = (one.verb, id(one.entity), *one.by, *one.sets, one.within, one.refused, request.table, request.batch)
        same.setdefault(kind, []).append(one)
    batched = {id(one) for one, request in made if request.batch}
    for alike in same.values():
        first = alike[0]
        if id(first) in batched and not first.refused:
            first.one, first.keys = False, min(max(len(alike), 2), KEYS_MAX) if len(alike) > 1 else KEYS_AT_ONCE
            first.checks += [] if len(alike) > 1 else [HOW_MANY]
        elif len(alike) > 1:
            first.checks.append(TOGETHER.format(number=len(alike)))
        if len(same) > 1 and len(requests) > 1:
            name = first.entity.called if first.entity else "items"
            first.called = "-".join([called, first.verb, *words(name)])
    return [alike[0] for alike in same.values()]


def patterns_of(
    request: Request, tables: Sequence[FoundTable], entities: Sequence[FoundEntity], called: str, said: str
) -> list[FoundPattern]:
    """The patterns of a request: one for each kind of items that it is for, or one that is refused."""
    table = next((one for one in tables if one.physical == request.table), None)
    if table is None:
        return [FoundPattern(called, said=said, refused=f"there is no table {quoted(request.table)} here")]
    if request.index and all(one.name != request.index for one in table.indexes):
        refused = f"{quoted(request.table)} has no index {quoted(request.index)}"
        return [FoundPattern(called, said=said, refused=refused)]
    key = _key(table, request.index)
    fits = [fit for one in entities if one.table is table and (fit := _fit(request, one, key)) is not None]
    if not fits:
        return [FoundPattern(called, said=said, refused=NO_KIND.format(table=table.called))]
    if request.operation != "query":
        fits = [max(fits, key=lambda fit: fit.literals)]
    made = [_pattern(request, fit, key, called, said) for fit in fits]
    if len(made) > 1:
        for one, fit in zip(made, fits, strict=True):
            one.called = "-".join([called, *words(fit.entity.called)])
            others = ", ".join(other.entity.called for other in fits if other is not fit)
            one.checks.append(SEVERAL.format(others=others))
    return made


def _key(table: FoundTable, index: str) -> tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]:
    """The partition and the sort key of a table or its index."""
    found = next((one for one in table.indexes if one.name == index), None)
    return (found.partition, found.sort) if found is not None else (table.key[:1], table.key[1:])


# ---------------------------------------------------------------- fit
def _fit(
    request: Request, entity: FoundEntity, key: tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]
) -> Fit | None:
    """The request as one for items of an entity; None if it is for others."""
    partition, sort = key
    equal = request.equal or {}
    own = (*partition, *sort)
    if any(one.name not in equal for one in (partition if request.operation == "query" else own)):
        return None
    if not all(may_hold(entity, one.name) for one in own):
        return None
    fit = Fit(entity)
    for one in own:
        if one.name not in equal:
            continue
        template = template_of(entity, one.name)
        if template is None or template.parse(equal[one.name]) is None:
            return None
        fit.literals += sum(map(len, template.literals))
        fit.add(template.fields)
    if request.within is None:
        return fit
    return fit if _narrow(fit, request.within, sort) else None


def _narrow(fit: Fit, within: RequestCondition, sort: Sequence[KeyAttribute]) -> bool:
    """Add a range of the sort key to a fit. False if no item of the entity is in it."""
    (attribute,) = within.path
    form = RANGES.get(within.operator)
    template = template_of(fit.entity, attribute)
    if form is None or template is None or all(one.name != attribute for one in sort):
        return False
    if within.operator in (">", "<"):
        fit.checks.append(OPEN_END)
    if template.whole is not None:
        fit.within = form, template.whole
        return True
    texts = [text for value in within.values if isinstance(text := value.get("S"), str)]
    if len(texts) < len(within.values):
        return False
    fit.literals += len(template.literals[0])
    if form == "begins_with":
        return _begin(fit, template, texts[0])
    low = texts[0] if form != "at_most" else None
    return _bound(fit, template, low, texts[-1] if form != "at_least" else None)


def _begin(fit: Fit, template: Template, text: str) -> bool:
    """Add the beginning of a sort key to a fit."""
    first = template.literals[0]
    if not text.startswith(first):
        return first.startswith(text)
    given, rest = _walk(template, text)
    fit.add(name for name, _ in given)
    left = _left(template, given)
    if rest and left:
        fit.within = "begins_with", left
    return True


def _bound(fit: Fit, template: Template, low: str | None, high: str | None) -> bool:
    """Add the ends of a range of the sort key to a fit; None: there is no such end. An end beyond all keys of the kind,
    or at their beginning, narrows nothing.
    """
    first = template.literals[0]
    if low is not None and not low.startswith(first):
        if low > first:
            return False
        low = None
    if high is not None and not high.startswith(first):
        if high < first:
            return False
        high = None
    lower, upper = (None if end is None else _walk(template, end) for end in (low, high))
    given = lower[0] if lower and upper and lower[0] == upper[0] else []
    if lower is not None and len(lower[0]) == len(given) and not lower[1]:
        lower = None  # from the first one on
    fit.add(name for name, _ in given)
    left = _left(template, given)
    if left and (lower or upper):
        fit.within = ("between" if lower and upper else "at_least" if lower else "at_most"), left
    return True


def _left(template: Template, given: Sequence[tuple[str, str]]) -> str:
    """The first field of a key that is not given whole; "" for none."""
    return next((name for name in template.fields if name not in dict(given)), "")


def _walk(template: Template, text: str) -> tuple[list[tuple[str, str]], str]:
    """The fields that the beginning of a key of the kind gives whole, and the rest of it."""
    rest, given = text[len(template.literals[0]) :], list[tuple[str, str]]()
    for name, after in zip(template.fields, template.literals[1:], strict=True):
        value, found, following = rest.partition(after) if after else (rest, "", "")
        if not found or not value:
            break
        given.append((name, value))
        rest = following
    return given, rest


# ---------------------------------------------------------------- pattern
def _pattern(
    request: Request,
    fit: Fit,
    key: tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]],
    called: str,
    said: str,
) -> FoundPattern:
    entity = fit.entity
    checks = [*fit.checks, *request.remarks]
    verb: Verb = "get" if request.operation == "query" else request.operation
    if verb != "get":
        sets = list(request.sets) if verb == "update" else []
        return FoundPattern(called, verb, entity, sets=sets, said=said, checks=checks)
    made = FoundPattern(called, "get", entity, fit.by, fit.within, said=said, checks=checks)
    own = [one.name for one in entity.table.key]
    made.one = not request.index and set(own) <= set(request.equal or {}) and not request.batch
    made.returns = _list_returned(entity, request.returns)
    made.consistent, made.via = request.consistent, request.index
    made.page = request.page if not made.one else None
    if request.backward and not made.one:
        left = [fit.within[1]] if fit.within else [name for name in fields_of(entity, key[1]) if name not in fit.by]
        made.order = f"{left[0]} desc" if left else ""
        if not left:
            made.checks.append(NO_ORDER)
    _add_filters(made, request.filters)
    return made


def _list_returned(entity: FoundEntity, attributes: Sequence[str]) -> list[str]:
    """The attributes of a projection: of a key attribute the fields that it is made of."""
    types = entity.table.types
    names: list[str] = []
    for attribute in attributes:
        template = template_of(entity, attribute) if attribute in types else None
        names += template.fields if template is not None else [attribute]
    return list(dict.fromkeys(names))


# ---------------------------------------------------------------- filters
def _add_filters(made: FoundPattern, filters: Sequence[RequestCondition]) -> None:
    """Say the filter of a request as the `where` of its pattern. A condition that cannot be said leaves a check."""
    texts = [_jmespath_of(one) for one in filters]
    made.where = " && ".join(text for text in texts if text)
    made.checks += [f"a filter is left out: {one.text}" for one, text in zip(filters, texts, strict=True) if not text]
    if any(text and one.values for one, text in zip(filters, texts, strict=True)):
        made.checks.append(OF_EXAMPLE)


def _jmespath_of(one: RequestCondition) -> str:
    """A condition in JMESPath; "" where it has a value that cannot be said."""
    path = ".".join(part if SIMPLE.fullmatch(part) else json.dumps(part) for part in one.path)
    literals = [_literal(value) for value in one.values]
    if "" in literals:
        return ""
    match one.operator:
        case "attribute_exists":
            return f"{path} != `null`"
        case "attribute_not_exists":
            return f"{path} == `null`"
        case "between":
            return f"{path} >= {literals[0]} && {path} <= {literals[1]}"
        case "in":
            return f"({' || '.join(f'{path} == {literal}' for literal in literals)})"
        case "begins_with":
            return f"({path} && starts_with({path}, {literals[0]}))"
        case "contains":
            return f"({path} && contains({path}, {literals[0]}))"
    return f"{path} {SIGNS[one.operator]} {literals[0]}"


def _literal(value: Value) -> str:
    """A value as JMESPath writes it; "" for a map, a list, a set, binary and a text that needs an escape."""
    ((kind, held),) = value.items()
    if kind == "BOOL" and isinstance(held, bool):
        return f"`{str(held).lower()}`"
    if not isinstance(held, str):
        return ""
    if kind == "N":
        return f"`{held}`" if CANONICAL_NUMBER.fullmatch(held) else ""
    return f"'{held}'" if kind == "S" and RAW.fullmatch(held) else ""
