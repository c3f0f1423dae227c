"""Serve `search`: SearchVectors on a vector index that filters by all attributes that a call gives.

Invariant: DynamoDB filters a search only by top-level attributes of the item itself, by equality, that the vector index
was made with. An attribute of another item can filter only as a copy.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/VectorSearchFilterReference.html
"""

from __future__ import annotations

from collections.abc import Iterator

from sync_rules.extras.design.patterns import gets
from sync_rules.extras.design.patterns.answers import PatternAnswer, PatternUse, ProvedRequest, list_used_indexes
from sync_rules.extras.design.patterns.declarations import SearchPattern
from sync_rules.extras.design.patterns.key_access import AccessPath
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.model.entities import Entity, VectorIndex


def serve(model: ProofInput, pattern: SearchPattern) -> PatternAnswer | None:
    """Return the answer with the fewest requests; None if no vector index serves the pattern."""
    entity = model.rules.entities[pattern.entity]
    answers = (_make_answer(model, pattern, entity, one) for one in list_vector_indexes(model, pattern))
    return min((one for one in answers if one is not None), key=lambda one: one.requests, default=None)


def list_wanted_attributes(model: ProofInput, pattern: SearchPattern) -> PatternUse:
    """List the attributes that a pattern requests."""
    entity = model.rules.entities[pattern.entity]
    own = (find_attribute(model, entity, text) for text in pattern.by)
    return gets.list_needed_attributes(model, pattern, entity)[2] | PatternUse(
        frozenset((entity.name, name) for name in own if name)
    )


def list_vector_indexes(model: ProofInput, pattern: SearchPattern) -> Iterator[VectorIndex]:
    """List the vector indexes that a pattern may search."""
    table = model.rules.entities[pattern.entity].table
    return (one for one in table.vectors if pattern.via in (None, one.index.name))


def find_attribute(model: ProofInput, entity: Entity, text: str) -> str | None:
    """Return the attribute of an item that holds what a pattern names: its own, or the copy of another entity's
    attribute. None if no rule keeps that copy.
    """
    name, _, rest = text.partition(".")
    other = model.rules.entities.get(name)
    if other is None or not rest or other is entity:
        return text
    return gets.find_copy(model.rules, other, rest, entity)


def _make_answer(
    model: ProofInput, pattern: SearchPattern, entity: Entity, vector: VectorIndex
) -> PatternAnswer | None:
    """The answer by one vector index; None where it does not filter by what is given, or needs more."""
    held = [find_attribute(model, entity, text) for text in pattern.by]
    names = [name for name in held if name is not None]
    required = [one.name for one in vector.index.partition]
    if None in held or not {*required} <= {*names} <= {one.name for one in vector.index.attributes}:
        return None
    needed, others, use = gets.list_needed_attributes(model, pattern, entity)
    if any(gets.list_missing_link_fields(model, entity, other) for other in others):
        return None
    way = AccessPath(entity.table, vector.index)
    linked = tuple(name for other in others for name in gets.list_link_fields(model.rules, other, entity))
    missing = gets.list_missing_attributes(way, entity, needed, linked)
    condition = " and ".join(f"{name} = {{{name}}}" for name in names)
    first = ProvedRequest(
        "SearchVectors",
        entity,
        vector.index,
        limit=pattern.top,
        projects=None if needed is None or missing else needed,
        follows=condition or "all vectors",
        items=pattern.top,
        size_bytes=model.find_size(entity),
    )
    steps, notes = [first], [f"{one}: an item without it is in no search" for one in required]
    notes = [
        note for note, one in zip(notes, required, strict=True) if one not in model.list_required_attributes(entity)
    ]
    if missing:
        steps.append(gets.make_second_read(model, pattern, entity, first, needed))
        notes.append(f"{way.place_name} does not project {', '.join(missing)}: a second request reads the items")
    steps += [gets.make_other_read(model, pattern, other, first, names) for other, names in others.items()]
    use |= PatternUse(frozenset((entity.name, name) for name in names), frozenset(list_used_indexes(tuple(steps))))
    return PatternAnswer(pattern, tuple(steps), remarks=tuple(notes), use=use)
