"""Serve `get`: the cheapest of a GetItem, a Query of a table or an index, and the same through a mirror."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sync_rules.model.entities import Entity
from sync_rules.model.values import show_path
from sync_rules.patterns.answers import (
    BATCH_KEYS_MAX,
    RESPONSE_MAX_BYTES,
    Answer,
    Step,
    Use,
    places_of,
)
from sync_rules.patterns.makers import Makers
from sync_rules.patterns.ways import Reach, Way, reach, strangers, ways_of
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.linked import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.patterns import GetPattern
from sync_rules.rules.ruleset import Rules

HALF = 0.5


@dataclass(frozen=True)
class Model:
    """A rules file as the prover reads it."""

    rules: Rules
    makers: Makers

    def size_of(self, entity: Entity) -> int | None:
        """The stated size of an item, in bytes."""
        volume = self.rules.volumes.get(entity.name)
        return None if volume is None else volume.size_bytes

    def count_of(self, entity: Entity) -> int | None:
        """The stated number of items."""
        volume = self.rules.volumes.get(entity.name)
        return None if volume is None else volume.items

    def required(self, entity: Entity) -> frozenset[str]:
        """The attributes that every item of an entity has, as the file states it, or by a rule."""
        volume = self.rules.volumes.get(entity.name)
        stated = () if volume is None else volume.required
        given = (name for rule in self.rules.into_target(entity) for name in rule.always_writes)
        return frozenset((*stated, *given, *(attribute.name for attribute in entity.table.key)))


def served(model: Model, pattern: GetPattern) -> Answer | None:
    """The cheapest answer to a pattern; None where there is none."""
    answers = [*_answers(model, pattern)]
    return min(answers, key=_price, default=None)


def _price(answer: Answer) -> tuple[int, bool, float, int]:
    """The order of answers: requests first, then filters, units, and rules or indexes that they need."""
    filters = any(step.filters for step in answer.steps)
    units = answer.units
    return answer.requests, filters, math.inf if units is None else units, len(answer.use.indexes | answer.use.rules)


def _answers(model: Model, pattern: GetPattern) -> Iterator[Answer]:
    entity = model.rules.entities[pattern.entity]
    if pattern.via != "mirror":
        yield from direct(model, pattern, entity)
    if pattern.via in (None, "mirror") and not pattern.consistent:  # a mirror follows its source
        yield from _by_mirrors(model, pattern, entity)


def direct(model: Model, pattern: GetPattern, entity: Entity) -> Iterator[Answer]:
    """The answers by keys of the entity's own table and its indexes."""
    given = frozenset((*pattern.by, *(name for name, _ in pattern.fixed)))
    for way in ways_of(entity.table):
        if pattern.via == "table" and way.index is not None:
            continue
        if pattern.via not in (None, "table") and (way.index is None or way.index.name != pattern.via):
            continue
        if pattern.consistent and way.eventual:
            continue
        found = reach(model.makers, entity, way, given, pattern.within)
        if found is None or not set(pattern.by) <= found.used:
            continue
        if not _sorted(pattern, found):
            continue
        answer = _answer(model, pattern, entity, found)
        if answer is not None:
            yield answer


def _sorted(pattern: GetPattern, found: Reach) -> bool:
    """True if items come in the order that is asked for."""
    return pattern.order is None or found.whole or pattern.order in found.sorts


def wanted(model: Model, pattern: GetPattern) -> Use:
    """The attributes that a pattern asks for."""
    entity = model.rules.entities[pattern.entity]
    own = {*pattern.by, *(name for name in (pattern.order, pattern.within and pattern.within.attribute) if name)}
    return _needed(model, pattern, entity)[2] | Use(frozenset((entity.name, name) for name in own))


# ---------------------------------------------------------------- one way
def _answer(model: Model, pattern: GetPattern, entity: Entity, found: Reach) -> Answer | None:
    way = found.way
    by_key = found.whole and way.index is None
    if pattern.keys is not None and not by_key:
        return None
    needed, others, use = _needed(model, pattern, entity)
    rest = tuple(name for name, _ in pattern.fixed if name not in found.used)
    paths = () if pattern.where is None else tuple(path[0] for path in pattern.where.paths)
    filters = pattern.where.text if pattern.where is not None and (rest or set(paths) - found.used) else ""
    linked = tuple(name for other in others for name in links_of(model.rules, other, entity))
    missing = _missing(way, entity, needed, (*(paths if filters else ()), *linked))
    first = _first(model, pattern, entity, found, by_key=by_key, filters=filters)
    again = bool(missing) and way.eventual  # a local index fetches from the table what it does not have
    first = replace(first, projects=None if needed is None or again else tuple(dict.fromkeys((*needed, *paths))))
    steps = [first]
    remarks = [*_on_filter(model, pattern, entity, first, strangers(model.rules, model.makers, entity, found))]
    remarks += _on_absent(model, entity, way, found)
    keyed = {one.name for one in (*way.partition, *way.sort)} & {entity.stored((name,))[0] for name in paths}
    if filters and keyed:
        remarks.append(f"no FilterExpression may name {', '.join(sorted(keyed))}, a key: filter in the application")
    if missing:
        told = ", ".join(missing)
        if not again:
            remarks.append(f"{way.shown} does not project {told}: each item is read from the table as well")
        else:
            steps.append(_again(model, pattern, entity, first, needed))
            cure = f"projection: {_projection(way, entity, needed)}"
            remarks.append(f"{way.shown} does not project {told}: a second request reads the items. Cure: {cure}")
    for other, names in others.items():
        steps.append(_of_other(model, other, first, names))
        target = f"{other.name}_{names[0].replace('.', '_')}"
        cure = f"copy {other.name}.{names[0]} into {entity.name}.{target}"
        remarks.append(
            f"{', '.join(f'{other.name}.{name}' for name in names)}: one more request per page reads the {other.name} "
            f"of each item. Cure: {cure}"
        )
    if pattern.consistent:
        remarks += _on_copies(model, entity, needed)
    remarks += _on_size(pattern, first)
    use |= Use(
        frozenset((entity.name, name) for name in (*found.used, *paths)),
        frozenset(places_of(tuple(steps))),
        found.rules,
    )
    return Answer(pattern, tuple(steps), remarks=tuple(remarks), use=use)


def _first(model: Model, pattern: GetPattern, entity: Entity, found: Reach, *, by_key: bool, filters: str) -> Step:
    size = model.size_of(entity)
    step = Step(
        "Query",
        entity,
        found.way.index,
        found.terms,
        backward=pattern.backward,
        filters=filters,
        consistent=pattern.consistent,
        fixed=tuple((name, str(*value.values())) for name, value in pattern.fixed if name in found.used),
        size_bytes=size,
    )
    if by_key and pattern.keys is not None:
        chunks = math.ceil(pattern.keys / BATCH_KEYS_MAX)
        return replace(step, request="BatchGetItem", requests=chunks, items=pattern.keys)
    if by_key:
        return replace(step, request="GetItem", items=1)
    if pattern.one and not filters:
        return replace(step, limit=1, items=1)
    asked = pattern.page if pattern.page is not None and pattern.items is None else pattern.items
    if pattern.page is not None and pattern.items is not None:
        asked = min(pattern.page, pattern.items)
    read = asked
    if filters and asked is not None and pattern.keeps:
        read = math.ceil(asked / pattern.keeps)
    requests = 1 if read is None or size is None else max(1, math.ceil(read * size / RESPONSE_MAX_BYTES))
    return replace(step, limit=pattern.page, items=read, requests=requests)


def _missing(way: Way, entity: Entity, needed: tuple[str, ...] | None, paths: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes that are needed and that a row does not show."""
    if needed is None:
        whole = way.index is None or way.index.projection in ("all", None)
        return () if whole else ("all attributes",)
    return tuple(name for name in dict.fromkeys((*needed, *paths)) if not way.shows(entity, name))


def _projection(way: Way, entity: Entity, needed: tuple[str, ...] | None) -> str:
    """The projection that would show what is needed."""
    if needed is None:
        return "all"
    keys = {one.name for one in (*way.table.key, *(way.index.attributes if way.index else ()))}
    before = way.index.projection if way.index is not None and isinstance(way.index.projection, tuple) else ()
    more = [name.partition(".")[0] for name in needed if not way.shows(entity, name)]
    return f"[{', '.join(name for name in dict.fromkeys((*before, *more)) if name not in keys)}]"


def _again(model: Model, pattern: GetPattern, entity: Entity, first: Step, needed: tuple[str, ...] | None) -> Step:
    """A read of the items themselves, by the keys that an index shows."""
    one = pattern.one
    chunks = 1 if first.items is None else max(1, math.ceil(first.items / BATCH_KEYS_MAX))
    return Step(
        "GetItem" if one else "BatchGetItem",
        entity,
        projects=needed,
        follows="the keys of the rows",
        requests=chunks,
        items=first.items,
        size_bytes=model.size_of(entity),
    )


def _of_other(model: Model, other: Entity, first: Step, names: tuple[str, ...]) -> Step:
    """A read of other items that the items found name."""
    chunks = 1 if first.items is None else max(1, math.ceil(first.items / BATCH_KEYS_MAX))
    return Step(
        "GetItem" if first.items == 1 else "BatchGetItem",
        other,
        projects=names,
        follows=f"the {other.name} that each item names by {', '.join(links_of(model.rules, other, first.entity))}",
        requests=chunks,
        items=first.items,
        size_bytes=model.size_of(other),
    )


# ---------------------------------------------------------------- what is needed
Others = dict[Entity, tuple[str, ...]]


def _needed(model: Model, pattern: GetPattern, entity: Entity) -> tuple[tuple[str, ...] | None, Others, Use]:
    """The attributes of the entity that a pattern needs, None for all; those of other items, which no rule copies; and
    what this uses. An attribute of another entity is taken from its copy where a rule keeps one.
    """
    if pattern.returns is None:
        return None, {}, Use(frozenset({(entity.name, None)}))
    own: list[str] = []
    others: Others = {}
    for text in pattern.returns:
        name, _, rest = text.partition(".")
        other = model.rules.entities.get(name)
        if other is None or not rest or other is entity:
            own.append(text)
            continue
        copied = copy_of(model.rules, other, rest, entity)
        if copied is not None:
            own.append(copied)
        else:
            others[other] = (*others.get(other, ()), rest)
    more = [(other.name, name) for other, names in others.items() for name in names]
    read = ((entity.name, name.partition(".")[0]) for name in own)
    return tuple(dict.fromkeys(own)), others, Use(frozenset((*read, *more)))


def copy_of(rules: Rules, source: Entity, attribute: str, target: Entity) -> str | None:
    """The attribute of a target that holds a copy of an attribute of a source."""
    for rule in rules.into_target(target):
        if isinstance(rule, CopyRule) and rule.source is source:
            for read, written in rule.mapping:
                if show_path(read) == attribute:
                    return show_path(written)
    return None


def links_of(rules: Rules, source: Entity, target: Entity) -> tuple[str, ...]:
    """The fields of a target by which it names a source: those of a rule that links them, else the source's own."""
    for rule in rules.into_target(target):
        if isinstance(rule, LinkedRule) and rule.source is source:
            return tuple(ref.field for _, ref in rule.link)
    return source.identity


# ---------------------------------------------------------------- remarks
def _on_filter(
    model: Model, pattern: GetPattern, entity: Entity, first: Step, others: tuple[Entity, ...]
) -> Iterator[str]:
    if first.filters and pattern.keeps is not None and pattern.keeps < HALF:
        share = 1 - pattern.keeps
        yield f"the filter throws away more than it keeps: {share:.0%} of what is read and paid for"
    elif first.filters and pattern.keeps is None:
        yield "the filter costs what it throws away: say `keeps`, the share that it lets in"
    if first.request != "Query" or not others:
        return
    names = ", ".join(other.name for other in others)
    counts = [model.count_of(other) for other in others]
    own = model.count_of(entity)
    more = None not in counts and own is not None and sum(filter(None, counts)) > own
    text = f"the Query reads items of {names} too, and drops them"
    yield text + (": it throws away more than it keeps" if more else "")


def _on_absent(model: Model, entity: Entity, way: Way, found: Reach) -> Iterator[str]:
    """An item without a key attribute is not in the index, and so is not found."""
    if way.index is None:
        return
    asked = {name for term in found.terms for name in term.maker.fields if term.form == "equals"}
    sure = model.required(entity)
    lacking = []
    for attribute in way.index.attributes:
        maker = model.makers.best(entity, attribute, found.used)
        inside = set() if maker.source is None else set(entity.identity)  # a field in the key is no attribute yet
        if attribute.name in sure or (maker.fields and set(maker.fields) <= asked | sure | inside):
            continue
        if attribute in way.sort:
            lacking.append(attribute.name)
    if lacking:
        names = " or ".join(lacking)
        yield f"items without {names} are not in {way.shown}; if every item has it: required: [{', '.join(lacking)}]"


def _on_copies(model: Model, entity: Entity, needed: tuple[str, ...] | None) -> Iterator[str]:
    """A copy follows its source, however consistently it is read."""
    for rule in model.rules.into_target(entity):
        kept = [path for path in rule.copies if needed is None or show_path(path[:1]) in needed]
        if kept and rule.source is not entity:
            names = ", ".join(show_path(path) for path in kept)
            yield f"{names} follows its source a moment later, also in a consistent read: rule {rule.title} keeps it"


def _on_size(pattern: GetPattern, first: Step) -> Iterator[str]:
    if first.requests > 1 and first.request == "Query":
        yield f"{first.requests} requests for one page: a Query reads at most 1 MB at once"
    elif first.request == "Query" and pattern.page is not None and pattern.items is not None:
        pages = math.ceil(pattern.items / pattern.page)
        if pages > 1:
            yield f"all items of one call are {pages} pages"


# ---------------------------------------------------------------- through a mirror
def _by_mirrors(model: Model, pattern: GetPattern, entity: Entity) -> Iterator[Answer]:
    for rule in model.rules.rules.values():
        if not isinstance(rule, MirrorRule) or rule.source is not entity or rule.kind != "mirror" or rule.moves:
            continue
        if rule.where is not None and (pattern.where is None or rule.where.text != pattern.where.text):
            continue
        names = named_there(rule)
        asked = {*pattern.by, *([pattern.within.attribute] if pattern.within else ())}
        asked |= {pattern.order} if pattern.order else set()
        if not asked <= names.keys() or pattern.keys is not None:
            continue
        shown = _shown_there(rule, pattern)
        if rule.where is None and pattern.where is not None and shown is not None and rule.attributes is not None:
            tested = {path[0] for path in pattern.where.paths}
            shown = shown if tested <= names.keys() else None
        there = replace(
            pattern,
            entity=rule.target.name,
            by=tuple(names[name] for name in pattern.by),
            within=pattern.within and replace(pattern.within, attribute=names[pattern.within.attribute]),
            order=pattern.order and names[pattern.order],
            returns=shown if shown is not None or rule.attributes is None else rule.target.identity,
            where=None if rule.where is not None else pattern.where,
            fixed=() if rule.where is not None else pattern.fixed,
            via=None,
        )
        for answer in direct(model, there, rule.target):
            steps = answer.steps
            if shown is None and rule.attributes is not None:
                steps = (*steps, *_sources_of(model, rule, pattern, steps[0]))
            uses = Use(frozenset(), frozenset(), frozenset({rule.title}))
            *_, taken = _needed(model, pattern, entity)
            remark = "" if len(steps) == len(answer.steps) else _on_mirror(rule, pattern)
            mirrored = replace(answer, pattern=pattern, steps=steps, use=answer.use | uses | taken)
            yield mirrored.remarked(remark)


def _on_mirror(rule: MirrorRule, pattern: GetPattern) -> str:
    """The price of attributes that a mirror does not hold."""
    names = "all" if pattern.returns is None else f"[{', '.join(pattern.returns)}]"
    return (
        f"{rule.target.name} does not hold all that is needed: one more request reads the {rule.source.name}. Cure: "
        f"attributes: {names} in rule {rule.title}"
    )


def named_there(rule: MirrorRule) -> dict[str, str]:
    """The fields of a source by the names that a mirror has for them."""
    names = {show_path(read): show_path(written) for read, written in rule.attributes or ()}
    names |= {ref.field: there for there, ref in rule.fields}
    if rule.each is not None:
        names |= {show_path(rule.each[1]): rule.each[0]}
    return names


def _shown_there(rule: MirrorRule, pattern: GetPattern) -> tuple[str, ...] | None:
    """The attributes that are needed, as a mirror has them; None where it lacks one."""
    if rule.attributes is None:
        return pattern.returns
    names = named_there(rule)
    if pattern.returns is None or not set(pattern.returns) <= names.keys() | set(rule.source.identity):
        return None
    return tuple(names.get(name, name) for name in pattern.returns)


def _sources_of(model: Model, rule: MirrorRule, pattern: GetPattern, first: Step) -> Iterator[Step]:
    """A read of the sources of mirrors, and of other items that these name."""
    needed, others, _ = _needed(model, pattern, rule.source)
    chunks = 1 if first.items is None else max(1, math.ceil(first.items / BATCH_KEYS_MAX))
    step = Step(
        "GetItem" if first.items == 1 else "BatchGetItem",
        rule.source,
        projects=needed,
        follows=f"the {rule.source.name} that each mirror names",
        consistent=pattern.consistent,
        requests=chunks,
        items=first.items,
        size_bytes=model.size_of(rule.source),
    )
    yield step
    yield from (_of_other(model, other, step, names) for other, names in others.items())
