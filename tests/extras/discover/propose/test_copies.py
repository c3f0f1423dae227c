"""Copies found in data: what is copied of what, how far it holds, and what only looks like it."""

from __future__ import annotations

import random

import pytest

from sync_rules.extras.discover.propose.proposal_writer import written
from sync_rules.extras.discover.propose.search import propose
from sync_rules.language.load import check_rules
from sync_rules.language.problems import errors
from tests.support.gathering import PlainTable, gathered


def shop(drift: float = 0.0):
    rand = random.Random(5)
    users = [
        {"user_id": f"u{n}", "name": f"Name {rand.random():.6f}", "active": rand.random() < 0.5, "number": n}
        for n in range(60)
    ]
    orders = []
    for n in range(500):
        user = rand.choice(users)
        right = rand.random() >= drift
        orders.append({
            "order_id": f"o{n}", "user_id": user["user_id"], "user_name": user["name"] if right else "old",
            "active": rand.random() < 0.5, "total": rand.randint(1, 500), "number": n,
        })  # fmt: skip
    return PlainTable("users", {"user_id": "S"}, users), PlainTable("orders", {"order_id": "S"}, orders)


@pytest.mark.parametrize("drift", [0.0, 0.1])
def test_copies_are_found_with_their_drift_and_nothing_else(tmp_path, drift):
    """One copy, its drift to the item, its index; equal names, truth values and sequences are none."""
    tables = shop(drift)
    found = propose(gathered(tmp_path / "in", *tables), tmp_path / "work")
    (rule,) = [one for one in found.rules if one.held_back is None]
    assert dict(rule.rule) == {"copy": "user.name", "into": "order.user_name"}
    assert rule.differ == sum(item["user_name"] == "old" for item in tables[1].items)
    assert rule.checked == 500
    assert rule.index.text == "{user_id: S}"
    text = written(found)
    assert not errors(check_rules(text, {})[1])
    assert "Name 0." not in text
