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


def of_all(tables: Mapping[str, Table], entities: Mapping[str, Entity], rules: Mapping[str, Rule]) -> str:
    """A SHA-256 over tables, entities and rules."""
    return _digest(
        {
            "tables": {name: _table_body(table) for name, table in tables.items()},
            "entities": {name: _entity_body(entity) for name, entity in entities.items()},
            "rules": {name: _rule_body(rule) for name, rule in rules.items()},
        }
    )


def of_each(rules: Rules) -> dict[str, str]:
    """A SHA-256 over each rule of the file, by its title: its body, its items, and their keys."""
    bodies: dict[str, dict[str, Any]] = {}
    for name, rule in rules.rules.items():
        about = {
            side.name: [_entity_body(side), [(a.name, a.type) for a in side.table.key]]
            for side in (rule.source, rule.target)
        }
        bodies.setdefault(rule.title, {})[name] = [_rule_body(rule), about]
    return {title: _digest(body) for title, body in bodies.items()}


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _rule_body(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, "source": rule.source.name, "target": rule.target.name, **rule.body()}


def _entity_body(entity: Entity) -> dict[str, Any]:
    return {"table": entity.table.name, "key": {name: template.text for name, template in entity.templates.items()}}


def _table_body(table: Table) -> dict[str, Any]:
    return {
        "key": [(a.name, a.type) for a in table.key],
        "indexes": {
            index.name: [[(a.name, a.type) for a in part] for part in (index.partition, index.sort)]
            for index in table.indexes
        },
    }
