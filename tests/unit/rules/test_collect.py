"""The collect kind: the elements of a node's set are those of the edges that point to it, whatever happened."""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Ref
from sync_rules.model.items import Change
from sync_rules.model.lookups import Find
from sync_rules.model.where import compile_where
from sync_rules.model.writes import Update
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.collect import NOT_A_SET, CollectRule
from sync_rules.rules.kinds.element import parse_element
from sync_rules.rules.rule import Blocked
from tests.support.builders import entity, exists, key, n, s, table

# ---------------------------------------------------------------- a graph in one table: nodes are self-edges
GRAPH = table("graph", {"PK": "S", "SK": "S"})
GOAL = entity("goal", GRAPH, PK="{goal_id}", SK="{goal_id}")
MEMBERSHIP = entity("membership", GRAPH, PK="{goal}", SK="{target}")
G1 = key(GRAPH, "G1", "G1")
U1 = key(GRAPH, "G1", "GOALMEMBERSHIP-USER-U1")
LEAD = "GOALMEMBERSHIP-USER-U1-LEAD"


def graph(**given) -> CollectRule:
    rule = {
        "name": "goal-edges", "source": MEMBERSHIP, "target": GOAL, "into": "edges", "numbers": False,
        "element": parse_element("{target}-{memberRole}"), "where": None, "omit": None, "strict": False,
        "link": (("goal_id", Ref("goal", ("PK",))),),
        "find": Find(None, ((GRAPH.partition, MEMBERSHIP.templates["PK"]),)),
    }  # fmt: skip
    return CollectRule(**{**rule, **given})


def goal(goal_id="G1", **values):
    return {"PK": s(goal_id), "SK": s(goal_id), **values}


def member(user="U1", role="LEAD", goal_id="G1", **values):
    return {"PK": s(goal_id), "SK": s(f"GOALMEMBERSHIP-USER-{user}"), "memberRole": s(role), **values}


def bare(text):
    return compile_where(text, "")


def adds(at, attribute, value):
    return Update(at, (), (), (exists(GRAPH),), adds=(((attribute,), value),))


def discards(at, attribute, value):
    return Update(at, (), (), (exists(GRAPH),), discards=(((attribute,), value),))


# ---------------------------------------------------------------- judging one part


@pytest.mark.parametrize(
    ("given", "edge"),
    [
        ({}, None),
        ({}, member(role="CONTRIBUTOR")),
        ({}, {**member(), "memberRole": {"BOOL": True}}),
        ({"where": bare("active")}, member()),
        ({"omit": bare("memberRole == 'LEAD'")}, member()),
        ({"omit": bare("starts_with(target, 'GOAL')")}, member()),  # a field that only its key holds
    ],
)
def test_collect_discards_what_its_edge_does_not_ask_for(given, edge):
    """An element goes out when its edge is gone, has another element, none at all, or is left out."""
    rule = graph(**given)
    part = Part(rule, G1, U1, LEAD)
    assert rule.write_for(part, goal(edges={"SS": [LEAD, "other"]}), edge) == discards(G1, "edges", {"SS": [LEAD]})
    assert rule.write_for(part, goal(edges={"SS": ["other"]}), edge) is None


@pytest.mark.parametrize("value", [s("x"), {"NULL": True}, {"L": []}, {"NS": ["1"]}])
def test_collect_reports_what_is_no_set(value):
    """An attribute that is no set blocks an element that belongs there; without one it is reported for itself, once."""
    rule = graph()
    part = Part(rule, G1, U1, LEAD)
    assert rule.write_for(part, goal(edges=value), member()) == NOT_A_SET
    own = Part(rule, G1, None)
    assert [*rule.parts(Change(G1, goal(), goal(edges=value)), rule.target)] == [own]
    assert [*rule.parts(Change(G1, goal(edges=value), goal(edges=value, name=s("x"))), rule.target)] == []
    assert [*rule.expand_part(own, goal(edges=value), None)] == [own]
    assert (rule.write_for(own, goal(edges=value), None), rule.write_for(own, goal(), None)) == (NOT_A_SET, None)
    assert rule.write_for(part, goal(edges=value), None) is None


# ---------------------------------------------------------------- parts of a node


@pytest.mark.parametrize(
    ("template", "element", "expected"),
    [
        ("{target}-{memberRole}", "x-y-LEAD", ("G1", "x-y")),
        ("{SK}-{memberRole}", "x-LEAD", ("G1", "x")),  # the key attribute by its own name
        ("{goal}-{target}-{memberRole}", "G1-x-LEAD", ("G1", "x")),
        ("{goal}-{target}-{memberRole}", "G2-x-LEAD", None),  # another node's
        ("{PK}-{target}-{memberRole}", "G2-x-LEAD", None),
        ("{memberRole}-{target}", "LEAD", None),
        ("{memberRole}", "LEAD", None),  # does not name its edge
    ],
)
def test_collect_an_element_and_its_node_name_the_edge(template, element, expected):
    """The key of an edge is made of the values in the element and of the node's identity, or there is none."""
    found = graph(element=parse_element(template)).edge_key(G1, element)
    assert found == (None if expected is None else key(GRAPH, *expected))


def test_collect_a_number_in_an_element_is_the_number_of_its_node():
    """An element holds a number as text; it names an edge of the node that has this number, and of no other."""
    rules = parse_rules("""
tables: {nodes: {key: {id: N}}, edges: {key: {PK: S, SK: S}}}
entities: {node: {table: nodes}, edge: {table: edges, key: {PK: "NODE#{id}", SK: "EDGE#{other}"}}}
rules: {others: {collect: edge, into: node.others, as: "{id}-{other}"}}
""")
    node = key(rules.tables["nodes"], "5")
    assert rules.rules["others"].edge_key(node, "5-x") == key(rules.tables["edges"], "NODE#5", "EDGE#x")
    assert rules.rules["others"].edge_key(node, "6-x") is None


def test_collect_an_element_that_names_another_edge_is_reported():
    """An element that could name another edge, because a value holds the separator, is reported and never written."""
    rule = graph()
    dashed = member("U1", "CO-LEAD")
    (part,) = rule.parts(Change(U1, None, dashed), MEMBERSHIP)
    assert rule.write_for(part, goal(), dashed) == Blocked("ElementAmbiguous", member=U1)
    held = goal(edges={"SS": [part.element]})
    assert rule.write_for(part, held, None) is None  # whether it belongs there is for the other edge to say
    (of_node,) = rule.parts(Change(G1, None, held), GOAL)
    assert of_node.source == key(GRAPH, "G1", "GOALMEMBERSHIP-USER-U1-CO")
    assert rule.write_for(of_node, held, None) == discards(G1, "edges", {"SS": [part.element]})


# ---------------------------------------------------------------- parts that leave the process
def test_collect_part_without_an_element_stands_for_all_of_its_edge():
    """A part of a message or a report names no element with a value in it. It stands for what the edge should have in
    the set and for all that it has there; without an edge, for what names no edge at all.
    """
    rule, stray = graph(), "nobody"
    node = goal(edges={"SS": [LEAD, "GOALMEMBERSHIP-USER-U2-LEAD", stray]})
    now = member(role="OWNER")
    of_edge = Part(rule, G1, U1, "")
    elements = [one.element for one in rule.expand_part(of_edge, node, now)]
    assert elements == [LEAD, "GOALMEMBERSHIP-USER-U1-OWNER"]
    writes = [rule.write_for(one, node, now) for one in rule.expand_part(of_edge, node, now)]
    assert [bool(write.adds) for write in writes] == [False, True]
    assert [one.element for one in rule.expand_part(Part(rule, G1, None, ""), node, None)] == [stray]
    assert list(rule.expand_part(of_edge, None, None)) == []
    for element, label in ((LEAD, ""), (stray, "")):
        assert rule.label(Part(rule, G1, U1, element)) == label
    of_keys = graph(element=parse_element("{target}"))
    assert of_keys.label(Part(of_keys, G1, U1, "GOALMEMBERSHIP-USER-U1")) == "GOALMEMBERSHIP-USER-U1"
    assert of_keys.label(Part(of_keys, G1, None, stray)) == ""


@pytest.mark.parametrize(
    ("title", "kind", "failed"),
    [
        (s("n"), s("Y"), False),
        (s("m"), n(1), False),  # left out, whatever `omit` says
        (n(1), s("X"), True),
        (n(1), s("Y"), True),
        (s("n"), n(1), True),
    ],
)
def test_collect_and_the_rule_beside_it_judge_an_edge_alike(title, kind, failed):
    """`where` is asked first, and only then `omit`: if one of them fails, both rules say so."""
    rules = parse_rules("""
tables: {nodes: {key: {node: S}}, edges: {key: {node: S, edge: S}}}
entities: {node: {table: nodes}, edge: {table: edges}}
rules:
  edges:
    collect: edge
    into: node.edges
    as: "{edge}"
    where: starts_with(title, 'n')
    omit: starts_with(kind, 'X')
    on_delete: delete
""").rules
    edge = {"node": s("n"), "edge": s("e"), "title": title, "kind": kind}
    claim = rules["edges"].claim(key(rules["edges"].source.table, "n", "e"), edge)
    beside = rules["edges.parent"].where_holds({}, edge)
    assert isinstance(beside, Blocked) is failed
    assert (claim is not None and claim.unfit.startswith("WhereFailed")) is failed
