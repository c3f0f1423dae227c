"""How the application reads it: three steps for a whole neighbourhood, and one Query for the members of a goal."""

from __future__ import annotations

from typing import Any

from sync_rules.read import Graph
from sync_rules.rules.ruleset import Rules


def read(rules: Rules, client: Any) -> dict[str, Any]:
    """Names of goals and their members, by question."""
    graph = Graph.of(rules, "edges-of-goals", client, neighbour="member")
    # 1: a Query for the edges that lead to U1. 2: a BatchGetItem for their goals. 3: one for the members of these.
    steps = graph.three_steps(graph.edges({"target": "GOALMEMBERSHIP-USER-U1"}, index="by_target"))
    goals: dict[str, list[str]] = {}
    for goal, around in zip(steps.nodes, steps.neighbours, strict=True):
        if goal is not None and around is not None:
            goals[goal["title"]] = [
                f"{member.fields['memberRole']} {member.item['name']}"
                for member in around.found
                if member.item is not None
            ]
    ranked = graph.edges({"source": "GOAL-G1"}, index="gsi0", backward=True)
    return {
        "the goals of U1, and who else works for them": goals,
        "who matters for goal G1, the most important first (index gsi0)": [
            f"{edge['gsi0']} {edge['memberName']}" for edge in ranked
        ],
    }
