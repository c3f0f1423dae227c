"""Serve `graph`: by a Query of the edges, a BatchGetItem of their nodes, and a BatchGetItem of the neighbours that a
set names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from sync_rules.extras.design.patterns.answers import PatternAnswer, PatternUse, ProvedRequest, Term, list_used_indexes
from sync_rules.extras.design.patterns.declarations import GraphPattern
from sync_rules.extras.design.patterns.key_access import Reach, find_reach, list_access_paths, list_strangers
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.extras.design.patterns.remarks import remark_absent_items
from sync_rules.model.entities import Entity
from sync_rules.rules.kinds.collect import CollectRule

AROUND: Final = 5  # neighbours of a node, where nothing is stated


@dataclass(frozen=True)
class Ends:
    """The entities of a graph pattern."""

    start: Entity
    edge: Entity
    node: Entity
    neighbours: tuple[Entity, ...]


def find_ends(model: ProofInput, pattern: GraphPattern) -> Ends:
    entities = model.rules.entities
    around = tuple(entities[name] for name in pattern.neighbours)
    return Ends(entities[pattern.start], entities[pattern.edge], entities[pattern.node], around)


def serve(model: ProofInput, pattern: GraphPattern) -> PatternAnswer | None:
    """Return the cheapest answer to a pattern; None if no key lists the edges, or a set of neighbours is missing."""
    ends = find_ends(model, pattern)
    rule = find_set_rule(model, ends)
    if ends.neighbours and (rule is None or list_unnamed_neighbours(rule, ends, pattern)):
        return None
    if explain_dead_end(model, pattern, ends):
        return None
    lists = [*list_reaches(model, pattern, ends)]
    if not lists:
        return None
    found = min(lists, key=lambda one: (one.way.index is not None, len(one.terms)))
    follows = f"the {ends.node.name} of each {ends.edge.name}"
    nodes = model.make_batch_read(ends.node, pattern.page_items, follows, pattern.returns)
    steps = [_make_edge_query(model, pattern, ends, found), nodes]
    index = found.way.index
    use = PatternUse(
        frozenset((ends.edge.name, name) for name in (*found.used, *found.sorts))
        | frozenset((ends.node.name, name) for name in pattern.returns or (None,)),
        frozenset(list_used_indexes((steps[0],))),
        model.makers.list_rule_titles(ends.edge, () if index is None else index.attributes),
    )
    alien = ", ".join(one.name for one in list_strangers(model.rules, model.makers, ends.edge, found))
    remarks = [f"the Query reads items of {alien} too, and drops them"] if alien else []
    remarks += remark_absent_items(model, ends.edge, found)
    if ends.neighbours and rule is not None:
        steps.append(_make_neighbour_read(model, pattern, ends, rule))
        use |= PatternUse(frozenset({(ends.node.name, rule.into), *((one.name, None) for one in ends.neighbours)}))
        use |= PatternUse(rules=frozenset({rule.title}))
        remarks.append(f"a node whose set was left out (NULL) needs one more Query: rule {rule.title}")
    return PatternAnswer(pattern, tuple(steps), remarks=tuple(remarks), use=use)


def map_end_names(end: Entity, pattern: GraphPattern) -> dict[str, str]:
    """Return a map from the fields of an edge to the item's fields, or key attributes, that they hold: of an item at
    one end.
    """
    link = dict(pattern.link)
    keys = [attribute.name for attribute in end.table.key if attribute.name in link]
    if keys:
        return {link[name]: name for name in keys}
    return {link.get(name, name): name for name in end.identity}


def list_node_names(model: ProofInput, ends: Ends) -> tuple[str, ...]:
    """List the fields of an edge that name its node: those of the rule that keeps sets on nodes, or of the node's
    key.
    """
    rule = find_set_rule(model, ends)
    if rule is not None:
        return tuple(ref.field for _, ref in rule.link)
    return ends.node.identity


def explain_dead_end(model: ProofInput, pattern: GraphPattern, ends: Ends) -> str:
    """Return the reason why an edge leads to no node: it names none, or the start itself; "" if it leads to a node."""
    names = list_node_names(model, ends)
    edge, known = ends.edge, model.list_known_attributes(ends.edge)
    lacking = [name for name in names if name not in known]
    if lacking:
        return f"{edge.name} has no {' and '.join(lacking)}, which would name its {ends.node.name}"
    if set(names) == set(map_end_names(ends.start, pattern)):
        return f"{edge.name} names the start by {' and '.join(names)}, and so its {ends.node.name} too: the same item"
    return ""


def list_edge_fields(rule: CollectRule) -> frozenset[str]:
    """List the fields of an edge that its node and its element give."""
    return frozenset((*rule.source.identity, *rule.element.fields))


def list_unnamed_neighbours(rule: CollectRule, ends: Ends, pattern: GraphPattern) -> tuple[Entity, ...]:
    """The neighbours that a set does not name."""
    held = list_edge_fields(rule)
    return tuple(one for one in ends.neighbours if not map_end_names(one, pattern).keys() <= held)


def find_set_rule(model: ProofInput, ends: Ends) -> CollectRule | None:
    """Return the rule that keeps the set of a node's edges, or None."""
    found = (
        rule
        for rule in model.rules.rules.values()
        if isinstance(rule, CollectRule) and rule.source is ends.edge and rule.target is ends.node
    )
    return next(found, None)


def list_reaches(model: ProofInput, pattern: GraphPattern, ends: Ends) -> Iterator[Reach]:
    """List the access paths that list the edges of the start, from the pattern's text on."""
    given = frozenset(map_end_names(ends.start, pattern))
    for way in list_access_paths(ends.edge.table):
        if pattern.via is not None and pattern.via != ("table" if way.index is None else way.index.name):
            continue
        found = find_reach(model.makers, ends.edge, way, given, None)
        if found is None or not given <= found.used:
            continue
        narrowed = found if pattern.within is None else _narrow_reach(model, ends.edge, found, *pattern.within)
        if narrowed is not None and all(way.shows(ends.edge, name) for name in list_node_names(model, ends)):
            yield narrowed


def _narrow_reach(model: ProofInput, edge: Entity, found: Reach, form: str, text: str) -> Reach | None:
    """A way with a term for the sort key, from a text of the pattern's own on."""
    way = found.way
    equal = sum(term.form == "equals" for term in found.terms) - len(way.partition)
    if equal >= len(way.sort) or way.sort[equal].type != "S":
        return None
    attribute = way.sort[equal]
    maker = model.makers.choose_maker(edge, attribute, found.used)
    if not text.startswith(maker.literal) and not maker.literal.startswith(text):
        return None
    term = Term(maker, "begins_with" if form == "begins_with" else "at_least", text=text)
    terms = (*(one for one in found.terms if one.form == "equals"), term)
    return replace(found, terms=terms, used=found.used | set(maker.fields))


def _make_edge_query(model: ProofInput, pattern: GraphPattern, ends: Ends, found: Reach) -> ProvedRequest:
    return ProvedRequest(
        "Query",
        ends.edge,
        found.way.index,
        found.terms,
        backward=pattern.backward,
        limit=pattern.page,
        items=pattern.page_items,
        size_bytes=model.find_size(ends.edge),
    )


def _make_neighbour_read(model: ProofInput, pattern: GraphPattern, ends: Ends, rule: CollectRule) -> ProvedRequest:
    most = None if pattern.page_items is None else pattern.page_items * AROUND
    names = " and ".join(one.name for one in ends.neighbours)
    return model.make_batch_read(ends.neighbours[0], most, f"the {names} that {ends.node.name}.{rule.into} names")
