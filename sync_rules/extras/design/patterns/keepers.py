"""Name the rule that keeps each attribute that a pattern's requests read, and the attributes from which the rule makes
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sync_rules.extras.design.patterns.answers import PatternAnswer, ProvedRequest
from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, TreePattern
from sync_rules.extras.design.patterns.gets import find_copy
from sync_rules.extras.design.patterns.graphs import find_ends, find_set_rule
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.extras.design.patterns.trees import find_tree_rule
from sync_rules.model.entities import Entity
from sync_rules.model.values import Path, has_overlap, show_path
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

Role = Literal["item", "key", "returned", "tested", "path", "set"]


@dataclass(frozen=True)
class Keeper:
    """An attribute that a pattern reads: the pattern's name for it, its place on an entity, and the rule that keeps it
    (None for the application). `made_of`: the attributes that the rule reads for it.
    """

    role: Role
    name: str
    place: str
    rule: Rule | None
    made_of: tuple[str, ...] = ()


def list_keepers(rules: Rules, answer: PatternAnswer) -> tuple[Keeper, ...]:
    """List the attributes that the requests of a pattern read, each once, with their rules; none if no request serves
    it.
    """
    found: dict[tuple[str, str], Keeper] = {}
    for role, name, entity, path in _list_read_attributes(rules, answer):
        for keeper in _list_attribute_keepers(rules, role, name, entity, path):
            found.setdefault((keeper.place, "" if keeper.rule is None else keeper.rule.title), keeper)
    return tuple(found.values())


Attribute = tuple[Role, str, Entity, Path | None]  # None: the whole item


def _list_read_attributes(rules: Rules, answer: PatternAnswer) -> Iterator[Attribute]:
    if not answer.is_served:
        return
    pattern = answer.pattern
    for step in answer.steps:
        yield from (("item", one.name, one, ()) for one in (step.entity, *step.beside))
        if not step.writes:
            yield from (
                ("key", term.maker.attribute.name, step.entity, (term.maker.attribute.name,)) for term in step.terms
            )
    model = ProofInput.of(rules)
    match pattern:
        case GetPattern():
            yield from _list_get_attributes(rules, answer, pattern)
        case GraphPattern():
            ends = find_ends(model, pattern)
            rule = find_set_rule(model, ends)
            yield from _list_attributes("returned", ends.node, pattern.returns)
            if rule is not None and pattern.neighbours:
                yield "set", rule.into, ends.node, (rule.into,)
        case TreePattern():
            entity = rules.entities[pattern.entity]
            tree = find_tree_rule(model, entity)
            yield from _list_attributes("returned", entity, pattern.returns)
            if tree is not None and answer.steps[0].request == "GetItem":
                yield from (("path", show_path(path), entity, path) for path in (tree.path, tree.graph) if path)
        case _:
            return


def _list_attributes(role: Role, entity: Entity, names: tuple[str, ...] | None) -> Iterator[Attribute]:
    if names is None:
        yield role, entity.name, entity, None
    else:
        yield from ((role, name, entity, entity.ref(name).path) for name in names)


def _list_get_attributes(rules: Rules, answer: PatternAnswer, pattern: GetPattern) -> Iterator[Attribute]:
    steps = [step for step in answer.steps if step.entity.name == pattern.entity]
    entity = (steps or [*answer.steps])[0].entity
    others = {step.entity.name: step for step in answer.steps if step.entity is not entity}
    if pattern.returns is None:
        for one in (entity, *(rules.entities[name] for name in pattern.beside)):
            yield "returned", one.name, one, None
    for name in pattern.returns or ():
        yield from _find_returned_attribute(rules, name, entity, others)
    for path in pattern.where.paths if pattern.where is not None else ():
        yield "tested", path[0], entity, entity.locate_field(path)


def _find_returned_attribute(
    rules: Rules, name: str, entity: Entity, others: dict[str, ProvedRequest]
) -> Iterator[Attribute]:
    first, _, rest = name.partition(".")
    other = rules.entities.get(first)
    if other is None or not rest or other is entity:
        yield "returned", name, entity, entity.ref(name).path
    elif (copied := find_copy(rules, other, rest, entity)) is not None:
        yield "returned", name, entity, entity.ref(copied).path
    elif first in others:
        yield "returned", name, other, other.ref(rest).path


def _list_attribute_keepers(rules: Rules, role: Role, name: str, entity: Entity, path: Path | None) -> Iterator[Keeper]:
    """The rules that keep an attribute; the application, where none does and the attribute is asked for by name."""
    into = [rule for rule in rules.rules.values() if rule.target is entity]
    if role == "item":
        yield from (Keeper(role, name, entity.name, rule) for rule in into if entity in rule.owned_entities)
        return
    kept = False
    for rule in into:
        for put in rule.puts:
            if path is None or has_overlap(put, path):
                kept = True
                place = f"{entity.name}.{show_path(put)}"
                yield Keeper(role, show_path(put) if path is None else name, place, rule, _list_origins(rule, put))
    if not kept and path is not None and not any(attribute.name == path[0] for attribute in entity.table.key):
        yield Keeper(role, name, f"{entity.name}.{show_path(path)}", None)


def _list_origins(rule: Rule, path: Path) -> tuple[str, ...]:
    reads = (read for node in rule.nodes() if has_overlap(node.writes[1], path) for read in node.reads)
    return tuple(dict.fromkeys(f"{entity.name}.{show_path(read)}" if read else entity.name for entity, read in reads))
