"""Answers of rules: what each kind says of itself where the rest of the product asks."""

from __future__ import annotations

import pytest

from sync_rules.rules.families import EffectRule
from tests.support.every_kind import rules_of

RULES = rules_of(
    seen="{copy: user.name, into: order.seen, mode: snapshot}",
    gone="{copy: user.x, into: order.x, on_delete: delete}",
    titles="{collect: post, into: user.titles, as: '{post_id}'}",
)
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
