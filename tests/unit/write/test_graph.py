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


EDGE_KEY = {"goal_id": s("G1"), "member_id": s("USER-U1")}


def made() -> Shop:
    shop = Shop(RULES)
    with shop.transact() as tx:
        tx.put("goal", {"goal_id": s("G1"), "title": s("Ten press events")})
        tx.put("member", {"member_id": s("USER-U1"), "name": s("Dora")})
    assert shop.written_by_the_stream() == 0
    return shop


def test_graph_an_edge_is_whole_with_its_write():
    """Key for the sort, names of both ends and the element in the goal's set: four rules, three actions."""
    shop = made()
    with shop.transact() as tx:
        tx.put("goal-membership", edge("CONTRIBUTOR"))
    goal = shop.scene.memory.item(shop.scene.at("graph", "GOAL-G1", "GOAL-G1"))
    found = shop.scene.memory.item(shop.scene.at("graph", "GOAL-G1", "GOALMEMBERSHIP-USER-U1"))
    assert goal is not None
    assert found is not None
    assert goal["edges"] == {"SS": ["GOALMEMBERSHIP-USER-U1-CONTRIBUTOR"]}
    assert (found["gsi0"], found["memberName"], found["goalTitle"]) == (
        s("400-CONTRIBUTOR"), s("Dora"), s("Ten press events"),
    )  # fmt: skip
    assert tx.result.actions == 3
    assert shop.written_by_the_stream() == 0


def test_graph_a_role_that_changes_moves_its_element():
    """The old element goes and the new one comes, in the transaction that changes the role; then the edge goes."""
    shop = made()
    with shop.transact() as tx:
        tx.put("goal-membership", edge("CONTRIBUTOR"))
    with shop.transact() as tx:
        tx.update("goal-membership", EDGE_KEY, set={"memberRole": s("LEAD")})
    key = shop.scene.at("graph", "GOAL-G1", "GOAL-G1")
    assert (shop.scene.memory.item(key) or {})["edges"] == {"SS": ["GOALMEMBERSHIP-USER-U1-LEAD"]}
    with shop.transact() as tx:
        tx.delete("goal-membership", EDGE_KEY)
    assert "edges" not in (shop.scene.memory.item(key) or {})
    assert shop.written_by_the_stream() == 0


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
