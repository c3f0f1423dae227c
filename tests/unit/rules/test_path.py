"""The path kind: where an item stands in a hierarchy."""

from __future__ import annotations

import pytest

from sync_rules.model.entities import KeyAttribute, Ref
from sync_rules.model.lookups import Find
from sync_rules.model.templates import parse_template
from sync_rules.model.values import Item
from sync_rules.rules.formula import compute_stable_hash
from sync_rules.rules.kinds.path import CYCLE, PARENT_WITHOUT_PATH, SEPARATOR_IN_ID, TreeRule
from sync_rules.rules.rule import Blocked
from tests.support.builders import entity, index, n, s, table

NAMES = ("Path", "GraphId", "Depth", "tenant")
PATH, GRAPH, DEPTH, TENANT = ((name,) for name in NAMES)
BY_PARENT = index("GSI1", {"ParentId": "S"}, {"ComponentId": "S"})
PARTS = table("parts", {"ComponentId": "S"}, BY_PARENT, index("GSI2", {"GraphId": "S"}, {"Path": "S"}))
COMPONENT = entity("component", PARTS)


def tree(**given) -> TreeRule:
    fields = {
        "name": "parts",
        "source": COMPONENT,
        "target": COMPONENT,
        "link": (("ComponentId", Ref("ParentId", ("ParentId",))),),
        "find": Find("GSI1", ((KeyAttribute("ParentId", "S"), parse_template("{ParentId}")),)),
        "path": PATH,
        "separator": "|",
        "own": COMPONENT.ref("ComponentId"),
        "graph": GRAPH,
        "depth": DEPTH,
        "carry": (TENANT,),
    }
    return TreeRule(**{**fields, **given})


def part(own: str, parent: str | None = None, **values: str) -> Item:
    given = {"ComponentId": own, **({} if parent is None else {"ParentId": parent}), **values}
    return {name: s(text) for name, text in given.items()}


# ---------------------------------------------------------------- one item
ROOT = part("A", Path="A", GraphId="A#1", tenant="t1")


@pytest.mark.parametrize("parent", [None, s(""), {"NULL": True}])
def test_path_of_a_root_is_its_own_id(parent):
    """Without a parent, an empty or null one included, the path is the own id; what is carried is the root's own."""
    item = {**part("A", tenant="t1"), **({} if parent is None else {"ParentId": parent})}
    assert tree().source_keys(item) == ()
    assert tree().compute_values((), item) == {PATH: s("A"), GRAPH: s("A#1"), DEPTH: n(0)}


def test_path_of_a_child_continues_its_parents():
    """Path, graph and depth follow from the parent's path alone; what is carried is the parent's."""
    expected = {PATH: s("A|B"), GRAPH: s("A#1"), DEPTH: n(1), TENANT: s("t1")}
    assert tree().compute_values((ROOT,), part("B", "A", tenant="own")) == expected
    misled = {**ROOT, "GraphId": s("wrong"), "Depth": n(7)}
    assert tree().compute_values((misled,), part("B", "A")) == expected
    untenanted = {name: value for name, value in ROOT.items() if name != "tenant"}
    assert tree().compute_values((untenanted,), part("B", "A")) == {**expected, TENANT: None}


@pytest.mark.parametrize("path", [None, s(""), n(1)])
def test_path_waits_for_its_parents(path):
    """An item below a parent without a path waits for the path, and is parked if none appears."""
    parent = {**part("A"), **({} if path is None else {"Path": path})}
    assert tree().compute_values((parent,), part("B", "A")) == Blocked(PARENT_WITHOUT_PATH, patient=True)


@pytest.mark.parametrize(("policy", "expected"), [("keep", None), ("delete", None), ("restrict", None), ("clear", dict.fromkeys((PATH, GRAPH, DEPTH, TENANT)))])  # fmt: skip
def test_path_without_its_parent_follows_the_policy(policy, expected):
    """A parent that is not there, or that cannot be, leaves it to `on_delete`."""
    assert tree(on_delete=policy).compute_values((None,), part("B", "A")) == expected
    impossible = {**part("B"), "ParentId": {"L": []}}
    assert tree(on_delete=policy).source_keys(impossible) == ()
    assert tree(on_delete=policy).compute_values((), impossible) == expected


@pytest.mark.parametrize(
    ("own", "parents_path", "is_cycle"),
    [
        ("CM1", "CM10", False),
        ("CM1", "CM11|CM10|XCM1", False),
        ("CM1", "CM10|CM1|CM2", True),
        ("CM1", "CM10|CM1", True),
    ],
)
def test_path_compares_whole_segments(own, parents_path, is_cycle):
    """An id is in a path when it is one of its segments, not when it looks like one."""
    parent = part("P", Path=parents_path)
    expected = Blocked(CYCLE, patient=True) if is_cycle else s(f"{parents_path}|{own}")
    found = tree().compute_values((parent,), part(own, "P"))
    assert (found if isinstance(found, Blocked) else found[PATH]) == expected


@pytest.mark.parametrize(
    ("separator", "own", "fits"),
    [
        ("|", "a|b", False),
        ("|", "a#b", True),
        ("::", "a:b", True),
        ("::", "a::b", False),
        ("::", "a:", False),  # a:::b could be a: and b, or a and :b
        ("::", ":a", True),
    ],
)
def test_path_keeps_the_separator_out_of_ids(separator, own, fits):
    """An id that a path could not be taken apart around is trouble, for a root too."""
    for sources, item in (((), part(own)), ((ROOT,), part(own, "A"))):
        found = tree(separator=separator).compute_values(sources, item)
        assert (not isinstance(found, Blocked)) if fits else found == Blocked(SEPARATOR_IN_ID)


def test_path_spreads_a_graph_over_its_shards():
    """The graph of an item is its root's id and a number from 1 to `shards` that its own id decides, for ever."""
    one = tree(shards=4)
    graphs = [one.compute_values((ROOT,), part(f"B{i}", "A"))[GRAPH]["S"] for i in range(200)]
    assert {graph.partition("#") for graph in graphs} == {("A", "#", str(i)) for i in range(1, 5)}
    assert graphs[7] == f"A#{1 + compute_stable_hash('B7') % 4}"


def test_path_takes_numbers_for_ids():
    """Number ids make the same segments however they are spelt; binary ids make none."""
    numbers = table("parts", {"id": "N"})
    part_of = entity("part", numbers)
    one = tree(
        source=part_of, target=part_of, link=(("id", Ref("parent", ("parent",))),), own=part_of.ref("id"), find=None
    )
    assert one.compute_values(({"id": n(1), "Path": s("1")},), {"id": n("2.0"), "parent": n(1)})[PATH] == s("1|2")
    assert one.compute_values((), {"id": n("2.0"), "parent": n(2)}) == Blocked(CYCLE)
    assert one.compute_values((), {"id": {"B": b"x"}}) is None
