"""Remarks about the requests of a `get` that cost something or leave something out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from sync_rules.extras.design.patterns.answers import ProvedRequest
from sync_rules.extras.design.patterns.declarations import GetPattern
from sync_rules.extras.design.patterns.key_access import Reach
from sync_rules.extras.design.patterns.key_makers import Maker
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.model.entities import Entity
from sync_rules.model.values import show_path
from sync_rules.rules.formula import Formula
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.mirror import MirrorRule

HALF = 0.5


def remark_filters(
    model: ProofInput,
    pattern: GetPattern,
    entity: Entity,
    step: ProvedRequest,
    others: tuple[Entity, ...],
    *,
    free: bool,
) -> Iterator[str]:
    """Remark on a filter, and on items of other entities that a Query reads too. `free`: the key does not narrow what
    the filter tests.
    """
    if step.filters and step.request == "GetItem":
        yield "GetItem takes no filter: the application drops the item"
    elif step.filters and pattern.keeps is not None and pattern.keeps < HALF:
        yield f"the filter throws away more than it keeps: {1 - pattern.keeps:.0%} of what is read and paid for"
    elif step.filters and pattern.keeps is None and free:
        yield "the filter costs what it throws away: say `keeps`, the share that it lets in"
    if step.request != "Query" or not others:
        return
    names = ", ".join(other.name for other in others)
    counts = [model.find_item_count(other) for other in others]
    own = model.find_item_count(entity)
    more = None not in counts and own is not None and sum(filter(None, counts)) > own
    text = f"the Query reads items of {names} too, and drops them"
    yield text + (": it throws away more than it keeps" if more else "")


def remark_key_filters(entity: Entity, found: Reach, step: ProvedRequest, paths: tuple[str, ...]) -> Iterator[str]:
    """Remark on a filter that names a key attribute, or a field inside it, which no FilterExpression may name."""
    keys = {one.name for one in (*found.way.partition, *found.way.sort)}
    left = sorted(name for name in paths if entity.locate_field((name,))[0] in keys)
    if left and step.request == "Query":
        yield f"no FilterExpression may name {', '.join(left)}, a part of the key: filter in the application"


def remark_partial_copies(model: ProofInput, pattern: GetPattern, entity: Entity) -> Iterator[str]:
    """Remark on an attribute of another entity whose copy not every item has, or that comes from one of several
    links.
    """
    for text in pattern.returns or ():
        name, _, rest = text.partition(".")
        other = model.rules.entities.get(name)
        rules = [
            (rule, show_path(to))
            for rule in model.rules.into_target(entity)
            if isinstance(rule, CopyRule) and rule.source is other and not rule.snapshot
            for read, to in rule.mapping
            if show_path(read) == rest
        ]
        if other is None or other is entity or not rules:
            continue
        rule, to = rules[0]
        if rule.where is not None or rule.defaults or len(rules) > 1:
            yield f"{text} is {to}, as rule {rule.title} keeps it"


def remark_absent_items(model: ProofInput, entity: Entity, found: Reach) -> Iterator[str]:
    """Remark on items without a key attribute, which are not in the index, and on items that are found under a
    default.
    """
    way = found.way
    sure = model.list_required_attributes(entity)
    if way.index is not None:
        asked = {name for term in found.terms for name in term.maker.fields if term.form == "equals"}
        keys = [(one, model.makers.choose_maker(entity, one, found.used)) for one in way.index.attributes]
        lacking = [
            one.name for one, maker in keys if one.name not in sure and not _is_always_there(maker, asked, sure, entity)
        ]
        if lacking:
            names, cure = " or ".join(lacking), f"required: [{', '.join(lacking)}]"
            yield f"items without {names} are not in {way.place_name}; if every item has it: {cure}"
    for attribute in (*way.partition, *way.sort):
        default = model.makers.find_default_rule(entity, attribute)
        if default is not None:
            yield f"items that get no {attribute.name} from {default.title} are there under its default"


def _is_always_there(maker: Maker, asked: set[str], sure: frozenset[str], entity: Entity) -> bool:
    """True if every item that a call asks for has an attribute."""
    inside = set() if maker.source is None else set(entity.identity)  # a field in the key is no attribute by itself
    known = asked | sure | inside
    if isinstance(maker.source, Formula):
        return maker.source.is_total(known)
    return set(maker.fields) <= known


def remark_loose_keys(entity: Entity, found: Reach) -> Iterator[str]:
    """Remark on keys that find more values than a call gives.

    A key that holds a field in another form finds all values of that form. A key of several fields also finds other
    values that make the same text; a row that does not show the fields cannot tell them apart.
    """
    for term in found.terms:
        hidden = sorted(name for name in term.given if not found.way.shows(entity, name))
        if isinstance(term.maker.source, Formula) and len(term.maker.parts) > 1 and hidden:
            told = f"{found.way.place_name} does not project {', '.join(hidden)}"
            yield f"{told}: a value that holds the text between the fields is taken for another one"
    loose = sorted(
        found.used - found.as_written - {term.ranged.name for term in found.terms if term.ranged is not None}
    )
    if loose:
        yield f"{', '.join(loose)} is compared as the key has it, in another case or without spaces"


def remark_late_copies(model: ProofInput, entity: Entity, needed: tuple[str, ...] | None) -> Iterator[str]:
    """Remark that a copy follows its source later, even in a consistent read."""
    for rule in model.rules.into_target(entity):
        kept = [path for path in rule.copies if needed is None or show_path(path[:1]) in needed]
        if kept and rule.source is not entity:
            names = ", ".join(show_path(path) for path in kept)
            yield f"{names} follows its source a moment later, also in a consistent read: rule {rule.title} keeps it"


def remark_page_size(pattern: GetPattern, step: ProvedRequest) -> Iterator[str]:
    """Remark on a page that takes several requests, and on a call with several pages."""
    if step.requests > 1 and step.request == "Query":
        yield f"{step.requests} requests for one page: a Query reads at most 1 MB at once"
    elif step.request == "Query" and pattern.page is not None and pattern.items is not None:
        pages = math.ceil(pattern.items / pattern.page)
        if pages > 1:
            yield f"all items of one call are {pages} pages"


def remark_full_listing(entity: Entity, step: ProvedRequest) -> Iterator[str]:
    """Remark on a Query that reads all items of an entity."""
    free = all(term.ranged is None and term.text is None for term in step.terms)
    if step.request == "Query" and step.limit is None and step.partition and free and not step.fixed:
        names = " and ".join(one.name for one in (entity, *step.beside))
        yield f"every {names} is read: as many requests as they have megabytes, all from one partition"


def remark_mirror(rule: MirrorRule, pattern: GetPattern, renamed: Mapping[str, str], *, lacks: bool) -> Iterator[str]:
    """Remark on attributes that a mirror lacks or renames, and on items without a mirror."""
    for name, there in renamed.items():
        yield f"{rule.target.name} calls {name} {there}: so must the filter"
    if lacks:
        names = "all" if pattern.returns is None else f"[{', '.join(pattern.returns)}]"
        cure = f"attributes: {names} in rule {rule.title}"
        yield (
            f"{rule.target.name} does not hold all that is needed: one more request reads the {rule.source.name}. "
            f"Cure: {cure}"
        )
    given = {*pattern.by, *rule.source.identity}
    absent = [ref.field for _, ref in rule.fields if ref.field not in given]
    if absent:
        yield f"a {rule.source.name} without {' or '.join(dict.fromkeys(absent))} has no mirror"
