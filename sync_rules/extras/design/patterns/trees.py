"""Serve `tree`: descendants by path or level by level, children by the index on the parent, ancestors by key."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from sync_rules.extras.design.patterns import gets
from sync_rules.extras.design.patterns.answers import RESPONSE_MAX_BYTES, PatternAnswer, PatternUse, ProvedRequest, Term
from sync_rules.extras.design.patterns.declarations import TreePattern
from sync_rules.extras.design.patterns.key_access import AccessPath
from sync_rules.extras.design.patterns.key_makers import Maker
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.model.entities import Entity, Index
from sync_rules.model.values import show_path
from sync_rules.rules.kinds.path import TreeRule

LEVELS_ITEMS: Final = 100  # on the way down, where nothing is stated


def find_tree_rule(model: ProofInput, entity: Entity) -> TreeRule | None:
    """Return the rule that keeps the paths of a hierarchy, or None."""
    found = (rule for rule in model.rules.rules.values() if isinstance(rule, TreeRule) and rule.target is entity)
    return next(found, None)


def serve(model: ProofInput, pattern: TreePattern) -> PatternAnswer | None:
    """Return the cheapest answer to a pattern; None if a needed rule or index is missing."""
    entity = model.rules.entities[pattern.entity]
    rule = find_tree_rule(model, entity)
    if rule is None:
        return None
    if pattern.field != rule.link[0][0]:
        return None
    match pattern.direction:
        case "children":
            return _answer_children(model, pattern, entity, rule)
        case "above":
            return _answer_above(model, pattern, rule)
    answers = [*_list_descendant_answers(model, pattern, entity, rule)]
    return min(answers, key=lambda one: one.requests, default=None)


def find_parent_index(rule: TreeRule) -> Index | None:
    """Return the index that lists the children of an item, or None."""
    name = None if rule.find is None else rule.find.index
    return next((index for index in rule.target.table.indexes if index.name == name), None)


def _make_item_read(model: ProofInput, pattern: TreePattern, follows: str) -> ProvedRequest:
    items = pattern.page_items if pattern.direction == "children" else pattern.items
    return model.make_batch_read(model.rules.entities[pattern.entity], items, follows, pattern.returns)


def _make_own_read(model: ProofInput, pattern: TreePattern) -> ProvedRequest:
    return model.by_key(model.rules.entities[pattern.entity], "GetItem")


def _make_use(pattern: TreePattern, rule: TreeRule, *indexes: Index, paths: bool = True) -> PatternUse:
    entity = rule.target
    read = {(entity.name, name) for name in pattern.returns or (None,)}
    kept = {(entity.name, show_path(path)) for path in (rule.path, rule.graph) if path is not None and paths}
    titles = frozenset({rule.title}) if paths else frozenset[str]()
    return PatternUse(frozenset(read | kept), frozenset((entity.table.name, index.name) for index in indexes), titles)


def _answer_children(model: ProofInput, pattern: TreePattern, entity: Entity, rule: TreeRule) -> PatternAnswer | None:
    index = find_parent_index(rule)
    if index is None:
        return None
    steps: tuple[ProvedRequest, ...] = (_make_level_query(model, pattern, entity, rule, index),)
    if gets.list_missing_attributes(AccessPath(entity.table, index), entity, pattern.returns, ()):
        steps = (*steps, _make_item_read(model, pattern, "the keys of the rows"))
    return PatternAnswer(pattern, steps, use=_make_use(pattern, rule, index, paths=False))


def _make_level_query(
    model: ProofInput, pattern: TreePattern, entity: Entity, rule: TreeRule, index: Index
) -> ProvedRequest:
    find = rule.find
    assert find is not None, "an index lists the children"
    given = {ref.field for _, ref in rule.link}
    listed = [*find.partition, *(one for one in find.sort if set(one[1].fields) <= given)]
    terms = tuple(Term(Maker(attribute, template), "equals", template.fields) for attribute, template in listed)
    return ProvedRequest(
        "Query",
        entity,
        index,
        terms,
        limit=pattern.page,
        renames=tuple((f"{{{ref.field}}}", f"{{{own}}}") for own, ref in rule.link),
        items=pattern.page_items if pattern.direction == "children" else pattern.items,
        size_bytes=model.find_size(entity),
    )


def _count_megabytes(model: ProofInput, pattern: TreePattern, entity: Entity) -> int:
    """The requests that all items together take: one response has at most 1 MB."""
    size = model.find_size(entity)
    return 1 if size is None or pattern.items is None else math.ceil(pattern.items * size / RESPONSE_MAX_BYTES)


def _answer_above(model: ProofInput, pattern: TreePattern, rule: TreeRule) -> PatternAnswer:
    ancestors = _make_item_read(model, pattern, f"the ids in {show_path(rule.path)}")
    return PatternAnswer(pattern, (_make_own_read(model, pattern), ancestors), use=_make_use(pattern, rule))


def _list_descendant_answers(
    model: ProofInput, pattern: TreePattern, entity: Entity, rule: TreeRule
) -> Iterator[PatternAnswer]:
    by_parent = find_parent_index(rule)
    if by_parent is not None and pattern.depth is not None:
        level = _make_level_query(model, pattern, entity, rule, by_parent)
        itself = (_make_own_read(model, pattern),) if pattern.itself else ()
        many = 1 + (LEVELS_ITEMS if pattern.items is None else pattern.items) if pattern.depth > 1 else 1
        remark = "one Query for each item on the way down" if pattern.depth > 1 else ""
        from_above: tuple[ProvedRequest, ...] = (*itself, ProvedRequest(**{**level.__dict__, "requests": many}))
        if gets.list_missing_attributes(AccessPath(entity.table, by_parent), entity, pattern.returns, ()):
            from_above = (*from_above, _make_item_read(model, pattern, "the keys of the rows"))
        answer = PatternAnswer(pattern, from_above, use=_make_use(pattern, rule, by_parent, paths=False))
        yield answer.add_remarks(remark)
    index = rule.find_index()
    if index is not None and rule.graph is not None:
        partition, sort = Maker(index.partition[0]), Maker(index.sort[0])
        named = f"the shards of the item's {show_path(rule.graph)}"
        terms = (Term(partition, "equals", (show_path(rule.graph),)),
                 Term(sort, "begins_with", text=f"{{{show_path(rule.path)}}}{rule.separator}"))  # fmt: skip
        query = ProvedRequest(
            "Query",
            entity,
            index,
            terms,
            limit=pattern.page,
            filters="" if pattern.depth is None else f"at most {pattern.depth} levels below",
            requests=max(rule.shards, _count_megabytes(model, pattern, entity)),
            items=pattern.items,
            size_bytes=model.find_size(entity),
        )
        steps: tuple[ProvedRequest, ...] = (_make_own_read(model, pattern), query)
        remarks = [] if rule.shards == 1 else [f"{rule.shards} Queries, one for each of {named}"]
        if gets.list_missing_attributes(AccessPath(entity.table, index), entity, pattern.returns, ()):
            steps = (*steps, _make_item_read(model, pattern, "the keys of the rows"))
            remarks.append(f"index {index.name} does not project all that is needed: more requests read the items")
        yield PatternAnswer(pattern, steps, remarks=tuple(remarks), use=_make_use(pattern, rule, index))
