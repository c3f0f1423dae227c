"""Prove the access patterns of a rules file: an answer to each pattern, and what no pattern uses.

Invariant: an answer is a request that DynamoDB can serve from the file's tables and indexes. Otherwise it is a true
reason why no request serves the pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sync_rules.extras.design.patterns import cures, gets, graphs, searches, trees
from sync_rules.extras.design.patterns.answers import PatternAnswer, PatternUse, Request
from sync_rules.extras.design.patterns.declarations import (
    GetPattern,
    GraphPattern,
    Operation,
    Pattern,
    SearchPattern,
    TreePattern,
    WritePattern,
    find_design,
)
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.rules.families import EffectRule
from sync_rules.rules.rule import list_causes
from sync_rules.rules.ruleset import Rules

WRITES: Final[Mapping[Operation, Request]] = {"put": "PutItem", "update": "UpdateItem", "delete": "DeleteItem"}


@dataclass(frozen=True)
class Proof:
    """The answers by the names of patterns; the rules whose copies no pattern reads; the unused indexes, each with its
    table.
    """

    answers: Mapping[str, PatternAnswer]
    unread: tuple[str, ...]
    idle: tuple[tuple[str, str], ...]

    @property
    def unserved_answers(self) -> tuple[PatternAnswer, ...]:
        """The patterns that no request serves."""
        return tuple(answer for answer in self.answers.values() if not answer.is_served)


def prove(rules: Rules) -> Proof:
    model = ProofInput.of(rules)
    answers = {name: answer_pattern(model, pattern) for name, pattern in find_design(rules).patterns.items()}
    use = PatternUse()
    for answer in answers.values():
        use |= answer.use if answer.is_served else _list_wanted_attributes(model, answer.pattern)
    read = _list_read_rules(rules, use)
    kept = (rule for rule in rules.rules.values() if rule.puts and not rule.times_to_live)
    unread = tuple(dict.fromkeys(rule.title for rule in kept if rule.title not in read))
    used = use.indexes | {
        (rule.listed_entity.table.name, rule.find.index)
        for rule in rules.rules.values()
        if rule.find and rule.find.index
    }
    declared = {entity.table.name for entity in rules.entities.values()}
    idle = tuple(
        (table.name, index.name)
        for table in rules.tables.values()
        for index in (*table.indexes, *(one.index for one in table.vectors))
        if table.name in declared and (table.name, index.name) not in used
    )
    return Proof(answers, unread, idle)


def answer_pattern(model: ProofInput, pattern: Pattern) -> PatternAnswer:
    match pattern:
        case GetPattern():
            found = gets.find_cheapest_answer(model, pattern)
            if found is None and pattern.beside:
                fields = (*pattern.by, *([pattern.within.attribute] if pattern.within else []))
                names = f"{' and '.join(pattern.entities)} by {' and '.join(fields) or 'nothing'}"
                cure = "give them one partition key by these fields, in `key`, or write a pattern for each"
                return PatternAnswer(pattern, reason=f"no Query finds {names}: {cure}")
            return found or cures.explain_get(model, pattern)
        case GraphPattern():
            return graphs.serve(model, pattern) or cures.explain_graph(model, pattern)
        case TreePattern():
            return trees.serve(model, pattern) or cures.explain_tree(model, pattern)
        case SearchPattern():
            return searches.serve(model, pattern) or cures.explain_search(model, pattern)
        case WritePattern():
            step = model.by_key(model.rules.entities[pattern.entity], WRITES[pattern.operation])
            return PatternAnswer(pattern, (step,))


def _list_wanted_attributes(model: ProofInput, pattern: Pattern) -> PatternUse:
    """The attributes that a pattern asks for, though nothing serves it yet."""
    match pattern:
        case GetPattern():
            return gets.list_wanted_attributes(model, pattern)
        case GraphPattern():
            return PatternUse(frozenset((pattern.node, name) for name in pattern.returns or (None,)))
        case TreePattern():
            return PatternUse(frozenset((pattern.entity, name) for name in pattern.returns or (None,)))
        case SearchPattern():
            return searches.list_wanted_attributes(model, pattern)
        case WritePattern():
            return PatternUse()


def _list_read_rules(rules: Rules, use: PatternUse) -> frozenset[str]:
    """The titles of rules that keep something which patterns read, or which another such rule reads."""
    whole = {entity for entity, name in use.attributes if name is None}
    read = set(use.rules)
    for rule in rules.rules.values():
        kept = [path[0] for path in rule.puts if path]
        entity = rule.target.name
        if kept and (entity in whole or any((entity, name) in use.attributes for name in kept)):
            read.add(rule.title)
        if rule.owned_entities and any(of == entity for of, _ in use.attributes):
            read.add(rule.title)
        if any(isinstance(one, EffectRule) for one in rules.from_source(rule.target)):
            read.add(rule.title)  # a function has it
    causes = list_causes(node for rule in rules.rules.values() for node in rule.nodes())
    waiting = [*read]
    while waiting:
        title = waiting.pop()
        for node, writers in causes.items():
            for writer in writers if node.rule.title == title else ():
                if writer.rule.title not in read:
                    read.add(writer.rule.title)
                    waiting.append(writer.rule.title)
    return frozenset(read)
