"""A small shop with a rule of every kind, for tests that go through all of them at once."""

from __future__ import annotations

from sync_rules.language.load import parse_rules
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules
from tests.support.builders import n, s

TABLES = """
tables:
  shop:   {{name: {prefix}shop, key: {{PK: S, SK: S}}, indexes: {{by_boss: {{boss_id: S}}}}}}
  posts:  {{name: {prefix}posts, key: {{post_id: S}}, indexes: {{by_user: {{user_id: S}}}}}}
  parts:  {{name: {prefix}parts, key: {{part_id: S}}, indexes: {{by_parent: {{parent_id: S}}}}}}
  ledger: {{name: {prefix}ledger, key: {{PK: S, SK: S}}}}
"""
ENTITIES = """
entities:
  user:     {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order:    {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  by_email: {table: shop, key: {PK: "EMAIL#{email}", SK: EMAIL}}
  post:     {table: posts}
  part:     {table: parts}
"""
RULES = {
    "names": "copy user.name into order.user_name",
    "heads": "{derive: user.head, as: '{name}-{rank}'}",
    "posts": "{embed: post, into: user.posts, fields: [title], limit: {items: 20}, settle_seconds: 60}",
    "tags": "{collect: order, into: user.orders, as: '{order_id}', omit: \"status == 'VOID'\"}",
    "paths": "{path: part.path, parent: parent_id, depth: depth}",
    "mails": "{mirror: user, into: by_email, attributes: [name]}",
    "counted": "count order into user.counted",
    "spent": "sum order.total into user.spent",
    "least": "min order.total into user.least",
    "totals": "{collect: order.total, into: user.totals, as: list, order: -total, limit: 2}",
    "recounted": "{max: order.total, into: user.most, mode: recount}",
    "told": "{copy: user.counted, into: order.counted}",
}
EFFECTS = {
    "called": "{call: tests.support.every_kind.told, on: order, when: [created]}",
}


def told(_change: object) -> None:
    """The function that the rule `called` calls, where calls are really made."""


def text_of(rules: dict[str, str], prefix: str = "", entities: str = ENTITIES) -> str:
    """A rules file with these rules."""
    lines = "".join(f"  {name}: {rule}\n" for name, rule in rules.items())
    return TABLES.format(prefix=prefix) + entities + ("rules:\n" + lines if lines else "rules: {}\n")


def rules_of(*without: str, prefix: str = "", effects: bool = True, **more: str) -> Rules:
    """All rules but some."""
    given = RULES | (EFFECTS if effects else {}) | more
    return parse_rules(text_of({name: rule for name, rule in given.items() if name not in without}, prefix))


def user(user_id: str, **values: object) -> Item:
    return {"PK": s(f"USER#{user_id}"), "SK": s("PROFILE"), **values}


def order(user_id: str, order_id: str, total: int, **values: object) -> Item:
    return {"PK": s(f"USER#{user_id}"), "SK": s(f"ORDER#{order_id}"), "total": n(total), **values}


def post(post_id: str, user_id: str, title: str) -> Item:
    return {"post_id": s(post_id), "user_id": s(user_id), "title": s(title)}


def part(part_id: str, parent_id: str | None = None) -> Item:
    return {"part_id": s(part_id)} | ({} if parent_id is None else {"parent_id": s(parent_id)})
