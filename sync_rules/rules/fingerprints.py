"""Fingerprints: digests of a rules file and of each of its rules, to find the rules that changed.

Invariant: a digest depends on all that matters to the pipeline and on nothing else: not on the order of entries, on
comments, or on physical table names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sync_rules.model.entities import Entity, Table
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules


def compute_file_fingerprint(
    tables: Mapping[str, Table], entities: Mapping[str, Entity], rules: Mapping[str, Rule]
) -> str:
    """Compute a SHA-256 over tables, entities and rules. It leaves out the marks of books, which follow from the
    rules.
    """
    sides = {side.name for rule in rules.values() for side in (rule.source, rule.target)}
    marks = {entity.name for rule in rules.values() for entity in rule.owned_entities} - sides
    return _compute_digest(
        {
            "tables": {name: _make_table_body(table) for name, table in tables.items()},
            "entities": {name: _make_entity_body(entity) for name, entity in entities.items() if name not in marks},
            "rules": {name: _make_rule_body(rule) for name, rule in rules.items()},
        }
    )


def compute_rule_fingerprints(rules: Rules) -> dict[str, str]:
    """Compute a SHA-256 over each rule of the file, by its title: its body, its items, and their keys."""
    return _compute_title_fingerprints({name: (rule.title, rule) for name, rule in rules.rules.items()})


def map_former_titles(rules: Rules) -> dict[str, tuple[str, str]]:
    """Return, by the title of each renamed rule, its former title, and its digest computed with its former name."""
    former = {rule.former_name: rule for rule in rules.rules.values()}
    prints = _compute_title_fingerprints(
        {name: (rule.title, rule) for name, rule in former.items() if name is not None}
    )
    return {rule.title: (rule.renamed_from, prints[rule.title]) for rule in former.values() if rule.renamed_from}


def _compute_title_fingerprints(named: Mapping[str, tuple[str, Rule]]) -> dict[str, str]:
    bodies: dict[str, dict[str, Any]] = {}
    for name, (title, rule) in named.items():
        about = {
            side.name: [_make_entity_body(side), [(a.name, a.type) for a in side.table.key]]
            for side in (rule.source, rule.target)
        }
        bodies.setdefault(title, {})[name] = [_make_rule_body(rule), about]
    return {title: _compute_digest(body) for title, body in bodies.items()}


def compute_books_fingerprint(rule: Rule, parent: Entity) -> str:
    """Compute a SHA-256 over all that decides what the books of a rule hold: its body, its items, its parents and their
    keys. The names of the rule and of its entities do not count.
    """
    keys = [[_make_entity_body(side), [(a.name, a.type) for a in side.table.key]] for side in (rule.source, parent)]
    return _compute_digest({"kind": rule.kind, "keys": keys, **rule.body()})


def _compute_digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _make_rule_body(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, "source": rule.source.name, "target": rule.target.name, **rule.body()}


def _make_entity_body(entity: Entity) -> dict[str, Any]:
    return {"table": entity.table.name, "key": {name: template.text for name, template in entity.templates.items()}}


def _make_table_body(table: Table) -> dict[str, Any]:
    return {
        "key": [(a.name, a.type) for a in table.key],
        "indexes": {
            index.name: [[(a.name, a.type) for a in part] for part in (index.partition, index.sort)]
            for index in table.indexes
        },
    }
