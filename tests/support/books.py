"""A counter whose books are right, and the ways that it goes away and comes back."""

from __future__ import annotations

from sync_rules.language.load import parse_rules
from sync_rules.rules.ruleset import Rules

TABLES = """
tables: {users: {key: {user: S}}, orders: {key: {order: S}}, ledger: {key: {PK: S, SK: S}}, other: {key: {PK: S, SK: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules: {bystander: {count: order, into: user.others, where: "kind == 'other'"}, %s}
"""
COUNT = "orders: {count: order, into: user.number}"
AWAY = {
    "renamed": "renamed: {count: order, into: user.number}",
    "moved": "orders: {count: order, into: user.number, ledger: other}",
    "removed": "",
    "changed": "orders: {sum: order.total, into: user.number}",
    "changed, and counts nothing": "orders: {count: order, into: user.number, where: \"kind == 'none'\"}",
}
FIRST, LAST = 26, 29  # orders in the beginning and in the end


def rules_of(entry: str) -> Rules:
    """The rules, with this counter beside one that stays."""
    return parse_rules(TABLES % entry)
