"""Serve `get`: by the cheapest of a GetItem, a Query of a table or an index, and the same through a mirror."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from sync_rules.extras.design.patterns import remarks
from sync_rules.extras.design.patterns.answers import (
    RESPONSE_MAX_BYTES,
    PatternAnswer,
    PatternUse,
    ProvedRequest,
    count_batches,
    list_used_indexes,
)
from sync_rules.extras.design.patterns.condition_parts import list_conjuncts, list_equalities, list_names
from sync_rules.extras.design.patterns.declarations import GetPattern, SearchPattern
from sync_rules.extras.design.patterns.key_access import (
    AccessPath,
    Reach,
    find_reach,
    find_shared_reach,
    list_access_paths,
    list_strangers,
)
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.model.entities import Entity
from sync_rules.model.values import show_path
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.ruleset import Rules


def find_cheapest_answer(model: ProofInput, pattern: GetPattern) -> PatternAnswer | None:
    """Return the cheapest answer to a pattern; None if no request serves it."""
    answers = [*_list_answers(model, pattern)]
    return min(answers, key=_rank_answer, default=None)


def _rank_answer(answer: PatternAnswer) -> tuple[int, bool, float, int]:
    """The order of answers: requests first, then filters, units, and rules or indexes that they need."""
    filters = any(step.filters for step in answer.steps)
    units = answer.units
    return answer.requests, filters, math.inf if units is None else units, len(answer.use.indexes | answer.use.rules)


def _list_answers(model: ProofInput, pattern: GetPattern) -> Iterator[PatternAnswer]:
    entity = model.rules.entities[pattern.entity]
    if pattern.via != "mirror":
        yield from list_direct_answers(model, pattern, entity)
    if pattern.via in (None, "mirror") and not pattern.consistent and not pattern.beside:  # a mirror follows its source
        yield from _list_mirror_answers(model, pattern, entity)


def list_direct_answers(model: ProofInput, pattern: GetPattern, entity: Entity) -> Iterator[PatternAnswer]:
    """List the answers by keys of the entity's own table and its indexes."""
    given = list_given_fields(pattern)
    for way in list_access_paths(entity.table):
        if pattern.via == "table" and way.index is not None:
            continue
        if pattern.via not in (None, "table") and (way.index is None or way.index.name != pattern.via):
            continue
        if pattern.consistent and way.eventual:
            continue
        if pattern.beside:
            found = find_shared_reach(model.makers, list_entities(model, pattern), way, given, pattern.within)
        else:
            found = find_reach(model.makers, entity, way, given, pattern.within)
        if found is None or not set(pattern.by) <= found.used:
            continue
        if pattern.order is not None and not found.item and pattern.order not in found.sorts:
            continue
        answer = _make_answer(model, pattern, entity, found)
        if answer is not None:
            yield answer


def list_entities(model: ProofInput, pattern: GetPattern) -> list[Entity]:
    """The entities whose items a pattern finds."""
    return [model.rules.entities[name] for name in pattern.entities]


def list_given_fields(pattern: GetPattern) -> frozenset[str]:
    """List the fields that a call or the pattern gives a value that keys can have: not true and false."""
    return frozenset((*pattern.by, *(name for name, value in pattern.fixed if "BOOL" not in value)))


def list_wanted_attributes(model: ProofInput, pattern: GetPattern) -> PatternUse:
    entity = model.rules.entities[pattern.entity]
    own = {*pattern.by, *(name for name in (pattern.order, pattern.within and pattern.within.attribute) if name)}
    beside = PatternUse(frozenset((name, None) for name in pattern.beside))
    return (
        beside
        | list_needed_attributes(model, pattern, entity)[2]
        | PatternUse(frozenset((entity.name, name) for name in own))
    )


# ---------------------------------------------------------------- one way
def _make_answer(model: ProofInput, pattern: GetPattern, entity: Entity, found: Reach) -> PatternAnswer | None:
    """The answer by one way; None where `keys` asks for items that it does not name."""
    way = found.way
    if pattern.keys is not None and not found.item:
        return None
    needed, others, use = list_needed_attributes(model, pattern, entity)
    if any(list_missing_link_fields(model, entity, other) for other in others):
        return None
    filters, paths = _find_filters(pattern, found)
    linked = tuple(name for other in others for name in list_link_fields(model.rules, other, entity))
    missing = list_missing_attributes(way, entity, needed, (*paths, *linked))
    again = bool(missing) and way.eventual  # a local index fetches from the table what it does not have
    alien = tuple(
        one for one in list_strangers(model.rules, model.makers, entity, found) if one.name not in pattern.beside
    )
    first = _make_first_request(model, pattern, entity, found, filters=filters, alien=bool(alien))
    first = replace(
        first,
        projects=None if needed is None or again else tuple(dict.fromkeys((*needed, *paths))),
        fetches=bool(missing) and not again,
    )
    steps = [first]
    notes = [
        *remarks.remark_filters(model, pattern, entity, first, alien, free=not set(paths) <= found.used),
        *remarks.remark_key_filters(entity, found, first, paths),
        *remarks.remark_partial_copies(model, pattern, entity),
        *dict.fromkeys(
            note for one in (entity, *first.beside) for note in remarks.remark_absent_items(model, one, found)
        ),
        *remarks.remark_loose_keys(entity, found),
        *remarks.remark_full_listing(entity, first),
    ]
    if again:
        steps.append(replace(make_second_read(model, pattern, entity, first, needed), size_bytes=first.size_bytes))
        told, cure = ", ".join(missing), f"projection: {format_projection(way, entity, needed, paths)}"
        notes.append(f"{way.place_name} does not project {told}: a second request reads the items. Cure: {cure}")
    elif missing:
        notes.append(
            f"{way.place_name} does not project {', '.join(missing)}: each item is read from the table as well"
        )
    for other, names in others.items():
        steps.append(make_other_read(model, pattern, other, first, names))
        cure = f"copy {other.name}.{names[0]} into {entity.name}.{other.name}_{names[0].replace('.', '_')}"
        told = ", ".join(f"{other.name}.{name}" for name in names)
        notes.append(f"{told}: one more request per page reads the {other.name} of each item. Cure: {cure}")
    if pattern.consistent:
        notes += remarks.remark_late_copies(model, entity, needed)
    notes += remarks.remark_page_size(pattern, first)
    read = (*found.used, *paths, *found.sorts)
    index = () if way.index is None else way.index.attributes
    made = model.makers.list_rule_titles(entity, index)
    use |= PatternUse(frozenset((name, None) for name in pattern.beside))
    use |= PatternUse(frozenset((entity.name, name) for name in read), frozenset(list_used_indexes(tuple(steps))), made)
    return PatternAnswer(pattern, tuple(steps), remarks=tuple(notes), use=use)


def _find_filters(pattern: GetPattern, found: Reach) -> tuple[str, tuple[str, ...]]:
    """The conditions that no key serves, as text, and the attributes that they read."""
    if pattern.where is None:
        return "", ()
    served = {name for name, _ in pattern.fixed if name in found.as_written}
    left: list[str] = []
    for text in list_conjuncts(pattern.where.text):
        names = [name for name, _ in list_equalities(text)] if len(list_names(text)) == 1 else []
        if names and names[0] in served:
            served.discard(names[0])  # a second value of the same field excludes the first
            continue
        left.append(text)
    paths = tuple(dict.fromkeys(name for text in left for name in list_names(text)))
    return " && ".join(left), paths


def _make_first_request(
    model: ProofInput, pattern: GetPattern, entity: Entity, found: Reach, *, filters: str, alien: bool
) -> ProvedRequest:
    """The request that finds items, or rows of an index."""
    entities = list_entities(model, pattern) if pattern.beside else [entity]
    sizes = [model.find_size(one) for one in entities]
    size = None if None in sizes else max(one for one in sizes if one is not None)
    step = ProvedRequest(
        "Query",
        entity,
        found.way.index,
        found.terms,
        backward=pattern.backward,
        filters=filters,
        consistent=pattern.consistent,
        fixed=tuple((name, str(*value.values())) for name, value in pattern.fixed if name in found.used),
        renames=tuple(_list_fixed_fields(pattern, found)),
        size_bytes=size,
        beside=tuple(entities[1:]),
    )
    if found.item and pattern.keys is not None:
        return replace(step, request="BatchGetItem", requests=count_batches(pattern.keys), items=pattern.keys)
    if found.item:
        return replace(step, request="GetItem", items=1)
    if pattern.one:
        return step if filters or alien else replace(step, limit=1, items=1)
    counts = [model.find_item_count(one) for one in entities]
    free = step.partition and not step.fixed and None not in counts
    everything = sum(one for one in counts if one is not None) if free else None
    asked = everything if pattern.page_items is None else pattern.page_items
    read = math.ceil(asked / pattern.keeps) if filters and asked is not None and pattern.keeps else asked
    requests = 1 if read is None or size is None else max(1, math.ceil(read * size / RESPONSE_MAX_BYTES))
    return replace(step, limit=pattern.page, items=read, requests=requests)


def _list_fixed_fields(pattern: GetPattern, found: Reach) -> Iterator[tuple[str, str]]:
    """The fields that the pattern itself gives, as a key condition shows them, and as the key has them."""
    fixed = dict(pattern.fixed)
    for term in found.terms:
        for part in term.maker.parts:
            if not isinstance(part, str) and part.name in fixed:
                yield part.placeholder, term.maker.inner(part, fixed[part.name]) or str(*fixed[part.name].values())


def list_missing_attributes(
    way: AccessPath, entity: Entity, needed: tuple[str, ...] | None, paths: tuple[str, ...]
) -> tuple[str, ...]:
    """List the needed attributes that a row does not show."""
    if needed is None:
        whole = way.index is None or way.index.projection in ("all", None)
        return () if whole else ("all attributes",)
    return tuple(name for name in dict.fromkeys((*needed, *paths)) if not way.shows(entity, name))


def format_projection(way: AccessPath, entity: Entity, needed: tuple[str, ...] | None, paths: tuple[str, ...]) -> str:
    """Return the projection, as in a rules file, that would show the needed attributes and those of a filter."""
    if needed is None:
        return "all"
    keys = {one.name for one in (*way.table.key, *(way.index.attributes if way.index else ()))}
    before = way.index.projection if way.index is not None and isinstance(way.index.projection, tuple) else ()
    more = [name.partition(".")[0] for name in (*needed, *paths) if not way.shows(entity, name)]
    return f"[{', '.join(name for name in dict.fromkeys((*before, *more)) if name not in keys)}]"


def make_second_read(
    model: ProofInput,
    pattern: GetPattern | SearchPattern,
    entity: Entity,
    first: ProvedRequest,
    needed: tuple[str, ...] | None,
) -> ProvedRequest:
    """Make the read of the items themselves, by the keys that an index shows."""
    follows = "the keys of the rows"
    return model.make_batch_read(entity, first.items, follows, needed, one=pattern.one, consistent=pattern.consistent)


def make_other_read(
    model: ProofInput, pattern: GetPattern | SearchPattern, other: Entity, first: ProvedRequest, names: tuple[str, ...]
) -> ProvedRequest:
    """Make the read of other items, which the found items name."""
    follows = (
        f"the {other.name} that each item names by {', '.join(list_link_fields(model.rules, other, first.entity))}"
    )
    one = first.items == 1
    return model.make_batch_read(other, first.items, follows, names, one=one, consistent=pattern.consistent)


# ---------------------------------------------------------------- what is needed
Others = dict[Entity, tuple[str, ...]]


def list_needed_attributes(
    model: ProofInput, pattern: GetPattern | SearchPattern, entity: Entity
) -> tuple[tuple[str, ...] | None, Others, PatternUse]:
    """Return the attributes of the entity that a pattern needs (None for all), those of other entities that no rule
    copies, and what this uses. An attribute of another entity is taken from its copy if a rule keeps it.
    """
    if pattern.returns is None:
        return None, {}, PatternUse(frozenset({(entity.name, None)}))
    own: list[str] = []
    others: Others = {}
    for text in pattern.returns:
        name, _, rest = text.partition(".")
        other = model.rules.entities.get(name)
        if other is None or not rest or other is entity:
            own.append(text)
            continue
        copied = find_copy(model.rules, other, rest, entity)
        if copied is not None:
            own.append(copied)
        else:
            others[other] = (*others.get(other, ()), rest)
    more = [(other.name, name) for other, names in others.items() for name in names]
    read = ((entity.name, name.partition(".")[0]) for name in own)
    return tuple(dict.fromkeys(own)), others, PatternUse(frozenset((*read, *more)))


def find_copy(rules: Rules, source: Entity, attribute: str, target: Entity) -> str | None:
    """Return the attribute of a target that holds a current copy of a source's attribute; None if no rule keeps it."""
    for rule in rules.into_target(target):
        if isinstance(rule, CopyRule) and rule.source is source and not rule.snapshot:
            for read, written in rule.mapping:
                if show_path(read) == attribute:
                    return show_path(written)
    return None


def list_missing_link_fields(model: ProofInput, entity: Entity, other: Entity) -> tuple[str, ...]:
    """List the fields that an item lacks, as far as the file says, to name an item of another entity."""
    known = model.list_known_attributes(entity)
    return tuple(name for name in list_link_fields(model.rules, other, entity) if name not in known)


def list_link_fields(rules: Rules, source: Entity, target: Entity) -> tuple[str, ...]:
    """List the fields of a target that name its source: those of a rule that links them, else the source's own."""
    for rule in rules.into_target(target):
        if isinstance(rule, LinkedRule) and rule.source is source:
            return tuple(ref.field for _, ref in rule.link)
    return source.identity


# ---------------------------------------------------------------- through a mirror
def _list_mirror_answers(model: ProofInput, pattern: GetPattern, entity: Entity) -> Iterator[PatternAnswer]:
    for rule in model.rules.rules.values():
        if not isinstance(rule, MirrorRule) or rule.source is not entity or rule.kind != "mirror":
            continue
        alike = rule.where is not None and pattern.where is not None and rule.where.text == pattern.where.text
        if rule.where is not None and not alike:
            continue
        names = map_mirror_names(rule)
        held = {name for name in names if rule.each is None or name != show_path(rule.each[1])}
        asked = {*pattern.by, *([pattern.within.attribute] if pattern.within else ())}
        asked |= {pattern.order} if pattern.order else set()
        read = set() if pattern.where is None or alike else {path[0] for path in pattern.where.paths}
        if not asked <= names.keys():
            continue
        tested = not read & (names.keys() - held) and (rule.attributes is None or read <= held)
        shown = _list_mirror_attributes(rule, pattern) if tested else None
        there = replace(
            pattern,
            entity=rule.target.name,
            by=tuple(names[name] for name in pattern.by),
            within=pattern.within and replace(pattern.within, attribute=names[pattern.within.attribute]),
            order=pattern.order and names[pattern.order],
            returns=shown if shown is not None or rule.attributes is None else rule.target.identity,
            where=None if alike or not tested else pattern.where,
            fixed=() if alike or not tested else pattern.fixed,
            via=None,
        )
        alone = set(entity.identity) <= {ref.field for _, ref in rule.fields} or pattern.one or pattern.keys is not None
        if not alone and set(rule.target.identity) <= {*there.by, *(name for name, _ in there.fixed)}:
            continue  # of several items with one key, only one has a mirror
        for answer in list_direct_answers(model, there, rule.target):
            steps = answer.steps
            if shown is None and rule.attributes is not None:
                steps = (*steps, *_list_source_reads(model, rule, pattern, steps[0], tested=tested))
            uses = PatternUse(frozenset(), frozenset(), frozenset({rule.title}))
            *_, taken = list_needed_attributes(model, pattern, entity)
            mirrored = replace(answer, pattern=pattern, steps=steps, use=answer.use | uses | taken)
            lacks = len(steps) > len(answer.steps)
            renamed = {name: names[name] for name in sorted(read) if tested and names.get(name, name) != name}
            yield mirrored.add_remarks(*remarks.remark_mirror(rule, pattern, renamed, lacks=lacks))


def map_mirror_names(rule: MirrorRule) -> dict[str, str]:
    """Return a map from a source's fields to the names that its mirrors have for them."""
    names = {show_path(read): show_path(written) for read, written in rule.attributes or ()}
    names |= {ref.field: there for there, ref in rule.fields}
    if rule.each is not None:
        names |= {show_path(rule.each[1]): rule.each[0]}
    return names


def _list_mirror_attributes(rule: MirrorRule, pattern: GetPattern) -> tuple[str, ...] | None:
    """The attributes that are needed, as a mirror has them; None where it lacks one."""
    if rule.attributes is None and (rule.each is None or show_path(rule.each[1]) not in (pattern.returns or ())):
        return pattern.returns
    names = map_mirror_names(rule)
    held = names.keys() - ({show_path(rule.each[1])} if rule.each is not None else set())
    if pattern.returns is None or not set(pattern.returns) <= held | set(rule.source.identity):
        return None
    return tuple(names.get(name, name) for name in pattern.returns)


def _list_source_reads(
    model: ProofInput, rule: MirrorRule, pattern: GetPattern, first: ProvedRequest, *, tested: bool
) -> Iterator[ProvedRequest]:
    """A read of the sources of mirrors, with the condition if mirrors do not hold what it reads, and of other items
    that these name.
    """
    needed, others, _ = list_needed_attributes(model, pattern, rule.source)
    step = model.make_batch_read(
        rule.source,
        first.items,
        f"the {rule.source.name} that each mirror names",
        needed,
        one=first.items == 1,
        consistent=pattern.consistent,
        filters="" if tested or pattern.where is None else pattern.where.text,
    )
    yield step
    yield from (make_other_read(model, pattern, other, step, names) for other, names in others.items())
