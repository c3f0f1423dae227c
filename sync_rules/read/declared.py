"""Finds the rule, or makes the table and entities, that the constructor of a `Graph` or `Hierarchy` names.

A mistake is an error when the object is made, not at its first answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sync_rules.model.entities import Entity, Index, KeyAttribute, KeyType, Table
from sync_rules.model.errors import UserError
from sync_rules.model.templates import parse_template
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

Templates = Mapping[str, str]  # key templates by key attribute, as in the rules file
Kind = TypeVar("Kind", bound=Rule)
KEY_MAX_ATTRIBUTES = 2


def rule_of(rules: Rules, name: str, kind: type[Kind]) -> Kind:
    """The rule of this name and kind.

    Raises:
        UserError: when there is none; the message lists the rules of that kind.
    """
    rule = rules.rules.get(name)
    if not isinstance(rule, kind):
        known = ", ".join(other.name for other in rules.rules.values() if isinstance(other, kind)) or "none"
        found = "no rule" if rule is None else f"a rule of kind {rule.kind}"
        raise UserError(f"{name!r} is {found}: expected one of kind {kind.kind}. Known: {known}")
    return rule


def table_on(name: str, key: Mapping[str, KeyType], *indexes: Index) -> Table:
    """Make a table of its name in DynamoDB and its key, partition key first."""
    attributes = [KeyAttribute(attribute, kind) for attribute, kind in key.items()]
    if not 1 <= len(attributes) <= KEY_MAX_ATTRIBUTES or any(a.type not in ("S", "N", "B") for a in attributes):
        raise UserError(f'key of table {name}: expected a partition key and at most a sort key, such as {{"PK": "S"}}')
    return Table(name, name, attributes[0], attributes[1] if len(attributes) > 1 else None, indexes)


def entity_on(name: str, table: Table, templates: Templates | None) -> Entity:
    """Make an entity of a table; without templates its key attributes are its fields."""
    texts = templates or {attribute.name: f"{{{attribute.name}}}" for attribute in table.key}
    missing = [attribute.name for attribute in table.key if attribute.name not in texts]
    if missing:
        raise UserError(f"{name} of table {table.physical_name}: no template for {', '.join(missing)}")
    return Entity(name, table, {attribute: parse_template(text, pads=True) for attribute, text in texts.items()})
