"""The graph of the examples: an edge, its element in its node's set and its sort key, in one transaction."""

from __future__ import annotations

from sync_rules.language.load import load_rules
from sync_rules.model.values import Item
from sync_rules.read import Patterns, requests_of
from tests.support.builders import s
from tests.support.memory_client import MemoryClient
from tests.support.transacted import Shop
from tests.test_house import ROOT

RULES = load_rules(ROOT / "examples/goals-users-teams/rules.yaml")


def edge(role: str) -> Item:
    return {"goal_id": s("G1"), "member_id": s("USER-U1"), "memberRole": s(role)}


def made() -> Shop:
    shop = Shop(RULES)
    with shop.transact() as tx:
        tx.put("goal", {"goal_id": s("G1"), "title": s("Ten press events")})
        tx.put("member", {"member_id": s("USER-U1"), "name": s("Dora")})
    assert shop.written_by_the_stream() == 0
    return shop


def test_graph_is_read_back_in_three_requests():
    """Two goals of a member, and who else is in them: edges, goals, members. The other direction is one request."""
    shop = made()
    with shop.transact() as tx:
        tx.put("member", {"member_id": s("USER-U2"), "name": s("Eve")})
    with shop.transact() as tx:
        tx.put("goal", {"goal_id": s("G2"), "title": s("A fair")})
        tx.put("goal-membership", edge("CONTRIBUTOR"))
        tx.put("goal-membership", {**edge("LEAD"), "goal_id": s("G2")})
        tx.put("goal-membership", {**edge("LEAD"), "member_id": s("USER-U2")})
    assert tx.result.left == ()
    client = MemoryClient(RULES.tables.values(), {name: shop.scene.memory.items(name) for name in RULES.tables})
    patterns = Patterns(RULES, client)
    with requests_of(client) as asked:
        found = patterns.graph("goals-of-member", member_id="USER-U1")
    assert asked.count == 3
    assert sorted(node["title"] for node in found.nodes if node is not None) == ["A fair", "Ten press events"]
    with requests_of(client) as asked:
        page = patterns.page("members-of-goal", goal_id="G1")
    assert asked.count == 1
    assert [(one["memberName"], one["gsi0"]) for one in page.items] == [
        ("Eve", "500-LEAD"),
        ("Dora", "400-CONTRIBUTOR"),
    ]
