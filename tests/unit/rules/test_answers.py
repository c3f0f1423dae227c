"""Answers of rules: what each kind says of itself where the rest of the product asks."""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.rules.description import Moment, Operation
from sync_rules.rules.families import EffectRule
from tests.support.builders import s
from tests.support.every_kind import part, rules_of

RULES = rules_of(
    seen="{copy: user.name, into: order.seen, mode: snapshot}",
    gone="{copy: user.x, into: order.x, on_delete: delete}",
    titles="{collect: post, into: user.titles, as: '{post_id}'}",
)
EACH = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  tag:   {table: shop, key: {PK: "TAG#{tag}", SK: "{user_id}/{order_id}"}}
rules:
  tags: {mirror: order, into: tag, each: {tag: tags}, attributes: [total]}
"""
# by rule: the entities it owns, the most rounds, and whether its source and its target are known by key
ANSWERS = {
    "names": ((), 1, True, True),
    "seen": ((), 1, True, True),
    "gone": ((), 1, True, True),
    "heads": ((), 1, True, True),
    "posts": ((), 1, False, True),
    "tags": ((), 1, True, True),
    "titles": ((), 1, False, True),
    "paths": ((), 1_000, True, True),
    "mails": (("by_email",), 3, False, False),
    "counted": (("counted.total",), 1, True, True),
    "counted.ledger": (("counted.ledger", "counted.books"), 1, True, True),
    "spent": (("spent.total",), 1, True, True),
    "spent.ledger": (("spent.ledger", "spent.books"), 1, True, True),
    "least": ((), 1, True, True),
    "least.ledger": (("least.rank", "least.books"), 1, False, True),
    "totals": ((), 1, True, True),
    "totals.ledger": (("totals.rank", "totals.books"), 1, False, True),
    "recounted": ((), 1, True, True),
    "told": ((), 1, True, True),
    "kept": ((), 1, True, True),
    "called": ((), 1, True, True),
}


@pytest.mark.parametrize("name", RULES.rules)
def test_answers_of_every_kind(name):
    """Each kind gives exactly the answers listed here."""
    rule = RULES.rules[name]
    owned = tuple(entity.name for entity in rule.owned_entities)
    assert (owned, rule.rounds_max, rule.is_known_by_key(rule.source), rule.is_known_by_key(rule.target)) == ANSWERS[
        name
    ]
    assert rule.snapshot == (name == "seen")
    assert rule.hierarchical == (name == "paths")
    assert rule.fills_index_keys == (rule.kind in {"derive", "path", "mirror"})
    assert bool(rule.swept_entities) != isinstance(rule, EffectRule)


def test_answers_of_a_mirror_for_each_element():
    """The key of an item does not say which elements it had, and so neither which mirrors; a mirror's names its item."""
    rule = parse_rules(EACH).rules["tags"]
    assert not rule.is_known_by_key(rule.source)
    assert rule.is_known_by_key(rule.target)


def test_answers_of_the_whole_file():
    """Functions and the rules that keep something, by the names of the rules."""
    assert RULES.functions == {"called": "tests.support.every_kind.told"}
    assert RULES.keeper_names == RULES.rules.keys() - {"called"}


def test_answers_of_a_hierarchy_by_item():
    """Levels are counted on the path; what a root carries is its own."""
    rule = rules_of(paths="{path: part.path, parent: parent_id, carry: [owner]}").rules["paths"]
    root, child = part("a"), {**part("c", "b"), "path": s("a|b|c")}
    key = rule.target.table.key_of(child)
    assert (rule.levels(root), rule.levels(child)) == (0, 3)
    assert rule.list_own_copies(key, child) == (("path",), ("owner",))
    assert rule.list_own_copies(key, root) == (("path",),)


def test_answers_about_deletes_are_those_of_the_rule_that_deletes():
    """Only a rule whose targets go with their source may delete what it does not own."""
    allowed = {name for name, rule in RULES.rules.items() if any(use.moment is Moment.DELETED for use in rule.uses())}
    assert allowed == {"gone"}
    owners = {
        name for name, rule in RULES.rules.items() if any(use.operation is Operation.DELETE for use in rule.uses())
    }
    assert owners - allowed == {"mails", "counted.ledger", "spent.ledger", "least.ledger", "totals.ledger"}
