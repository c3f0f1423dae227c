"""The path kind: where an item stands in a hierarchy."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise, permutations
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sync_rules.audit.verifier import Verifier
from sync_rules.language.load import parse_rules
from sync_rules.model.entities import KeyAttribute, Ref
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import Find
from sync_rules.model.semantics import apply_update, holds
from sync_rules.model.templates import parse_template
from sync_rules.model.values import Item
from sync_rules.model.writes import differences, update_of
from sync_rules.rules.formula import stable_hash
from sync_rules.rules.kinds.path import CYCLE, PARENT_WITHOUT_PATH, SEPARATOR_IN_ID, TreeRule
from sync_rules.rules.rule import Blocked, causes
from tests.support.builders import entity, index, key, n, s, table
from tests.support.worlds import Scene

SHARED = Path(os.environ.get("SHARED_CASES", Path(__file__).parents[4] / "shared" / "cases"))
HIERARCHY = SHARED / "tables" / "pg_hierarchical_components.yaml"
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


def at(own: str) -> ItemKey:
    return key(PARTS, own)


class Forest:
    """Items, and workers that look at them as reconcile does: image, then parent, then a guarded write. Each step of a
    worker may come at any time after the one before. Only what a record says is looked at.
    """

    def __init__(self, rule: TreeRule, randoms: random.Random | None = None) -> None:
        self.rule = rule
        self.randoms = randoms or random.Random(0)
        self.items: dict[ItemKey, Item] = {}
        self.waiting: list[ItemKey] = []
        self.workers: list[Iterator[None]] = []
        self.written: list[ItemKey] = []
        self.troubles: dict[ItemKey, Blocked] = {}

    def become(self, which: ItemKey, new: Item | None) -> None:
        """An item changes, and its record hints."""
        change = Change(which, self.items.get(which), new)
        self.items = {k: item for k, item in self.items.items() if k != which}
        if new is not None:
            self.items[which] = new
        if self.rule.pulls(change):
            self.waiting.append(which)
        if self.rule.pushes(change):
            self.waiting += [k for k, item in self.items.items() if self.rule.source_key(item) == which]

    def put(self, *items: Item) -> None:
        for item in items:
            self.become(self.rule.target.table.key_of(item), item)

    def move(self, own: str, parent: str | None) -> None:
        kept = {name: value for name, value in self.items[at(own)].items() if name != "ParentId"}
        self.put(kept if parent is None else {**kept, "ParentId": s(parent)})

    def look(self, which: ItemKey) -> Iterator[None]:
        image = self.items.get(which)
        if image is None:
            return
        yield
        sources = [self.items.get(k) for k in self.rule.source_keys(image)]
        yield
        desired = self.rule.desired(sources, image)
        self.troubles.pop(which, None)
        if isinstance(desired, Blocked):
            self.troubles[which] = desired
        elif desired is not None and (changes := differences(image, desired)):
            write = update_of(which, image, changes, self.rule.link_guard(image))
            if holds(write.guard, self.items.get(which)):
                self.written.append(which)
                self.become(which, apply_update(self.items[which], write))

    def step(self) -> None:
        if self.waiting and (len(self.workers) < 4 or self.randoms.random() < 0.3):
            self.workers.append(self.look(self.waiting.pop(self.randoms.randrange(len(self.waiting)))))
        elif self.workers:
            worker = self.randoms.choice(self.workers)
            if next(worker, "done") == "done":
                self.workers.remove(worker)

    def rest(self, steps: int = 100_000) -> Forest:
        for _ in range(steps):
            if not self.waiting and not self.workers:
                return self
            self.step()
        pytest.fail("the forest does not come to rest")

    def column(self, name: str, *owns: str) -> dict[str, str | None]:
        """One attribute of these items, or of all items, by component."""
        items = [self.items[at(own)] for own in owns] if owns else self.items.values()
        return {item["ComponentId"]["S"]: item.get(name, {}).get("S", item.get(name, {}).get("N")) for item in items}


# ---------------------------------------------------------------- the table of the Prescriptive Guidance
@pytest.fixture(scope="module")
def guide():
    if not HIERARCHY.is_file():
        pytest.skip("the shared cases are not beside this checkout")
    return YAML(typ="safe").load(HIERARCHY.read_text())


@pytest.fixture
def components(guide) -> Forest:
    """CM1 to CM10 as the guide has them, at rest."""
    forest = Forest(tree(carry=()))
    forest.put(*(part(**bare(row)) for row in guide["items"]))
    forest.rest().written.clear()
    return forest


def bare(row) -> dict[str, str]:
    return {"own": row["ComponentId"], **({"parent": row["ParentId"]} if "ParentId" in row else {})}


def test_path_makes_the_guides_table(guide, components):
    """Every row of the guide's table comes out exactly, from nothing but ids and parents."""
    assert len(guide["items"]) == 10
    for row in guide["items"]:
        made = components.items[at(row["ComponentId"])]
        assert {name: made[name] for name in made if name != "Depth"} == {name: s(text) for name, text in row.items()}
        assert made["Depth"] == n(row["Path"].count("|"))


def test_path_answers_the_guides_queries(guide, components):
    """Children by parent and descendants by the beginning of a path are those of the guide."""
    paths = components.column("Path")
    parents = components.column("ParentId")
    children, deeper, below, also_itself = (set(query["result"]) for query in guide["queries"])
    assert children == {own for own, parent in parents.items() if parent == "CM2"}
    assert deeper == {own for own, parent in parents.items() if parent == "CM4"}
    assert below == {own for own, path in paths.items() if path.startswith("CM1|CM2|")}
    assert also_itself == {own for own, path in paths.items() if path.startswith("CM1|CM2")}


def case(guide, name: str):
    return next(one for one in guide["derived_cases"] if one["name"].startswith(name))


def test_path_of_a_moved_subtree(guide, components):
    """Moving an item rewrites it and all below it, each once, and nothing else."""
    given = case(guide, "re-parent")
    components.move(given["change"]["ComponentId"], given["change"]["set"]["ParentId"])
    components.rest()
    assert components.column("Path", *given["expect_paths"]) == given["expect_paths"]
    assert sorted(components.written, key=str) == sorted(map(at, given["expect_paths"]), key=str)


def test_path_of_a_detached_subtree(guide, components):
    """An item without a parent is the root of a graph of its own."""
    given = case(guide, "detach")
    components.move(given["change"]["ComponentId"], None)
    components.rest()
    assert components.column("Path", *given["expect_paths"]) == given["expect_paths"]
    assert components.column("GraphId", *given["expect_graph_ids"]) == given["expect_graph_ids"]


def test_path_of_a_cycle_is_left_as_it_was(guide, components):
    """An item that came under its own descendant is reported; every path stays, and nothing grows."""
    before = components.column("Path")
    given = case(guide, "cycle")["change"]
    components.move(given["ComponentId"], given["set"]["ParentId"])
    components.rest()
    assert components.column("Path") == before
    assert components.written == []
    assert components.troubles == {at("CM2"): Blocked(CYCLE, patient=True)}
    components.move("CM2", "CM3")
    components.rest()
    assert components.column("Path", "CM8") == {"CM8": "CM1|CM3|CM2|CM4|CM8"}
    assert components.troubles == {}


def test_path_of_a_look_alike_is_not_touched(guide, components):
    """Moving CM2 and its descendants does not change CM20 and CM21."""
    for row in case(guide, "prefix trap")["setup_add"]:
        components.put(part(**bare(row)))
    components.rest().written.clear()
    components.become(at("CM2"), None)
    components.put(part("CM2X", "CM1"))
    components.move("CM4", "CM2X")
    components.move("CM5", "CM2X")
    components.rest()
    assert components.column("Path", "CM8", "CM10", "CM20", "CM21") == {
        "CM8": "CM1|CM2X|CM4|CM8",
        "CM10": "CM1|CM2X|CM5|CM10",
        "CM20": "CM1|CM20",
        "CM21": "CM1|CM20|CM21",
    }
    assert not {at("CM20"), at("CM21")} & set(components.written)


@pytest.mark.parametrize(("policy", "path"), [("keep", "CM1|CM2|CM5|CM10"), ("clear", None), ("restrict", "CM1|CM2|CM5|CM10")])  # fmt: skip
def test_path_of_an_orphan_follows_the_policy(guide, policy, path):
    """The path of an item below a deleted parent follows `on_delete`, and is right again once the parent is back."""
    forest = Forest(tree(carry=(), on_delete=policy))
    forest.put(*(part(**bare(row)) for row in guide["items"]))
    forest.rest()
    forest.become(at(case(guide, "orphan")["change"]["delete"]), None)
    forest.rest()
    assert forest.column("Path", "CM10") == {"CM10": path}
    forest.put(part("CM5", "CM3"))
    forest.rest()
    assert forest.column("Path", "CM10") == {"CM10": "CM1|CM3|CM5|CM10"}


# ---------------------------------------------------------------- one item
ROOT = part("A", Path="A", GraphId="A#1", tenant="t1")


@pytest.mark.parametrize("parent", [None, s(""), {"NULL": True}])
def test_path_of_a_root_is_its_own_id(parent):
    """Without a parent, an empty or null one included, the path is the own id; what is carried is the root's own."""
    item = {**part("A", tenant="t1"), **({} if parent is None else {"ParentId": parent})}
    assert tree().source_keys(item) == ()
    assert tree().desired((), item) == {PATH: s("A"), GRAPH: s("A#1"), DEPTH: n(0)}


def test_path_of_a_child_continues_its_parents():
    """Path, graph and depth follow from the parent's path alone; what is carried is the parent's."""
    expected = {PATH: s("A|B"), GRAPH: s("A#1"), DEPTH: n(1), TENANT: s("t1")}
    assert tree().desired((ROOT,), part("B", "A", tenant="own")) == expected
    misled = {**ROOT, "GraphId": s("wrong"), "Depth": n(7)}
    assert tree().desired((misled,), part("B", "A")) == expected
    untenanted = {name: value for name, value in ROOT.items() if name != "tenant"}
    assert tree().desired((untenanted,), part("B", "A")) == {**expected, TENANT: None}


def test_path_writes_only_what_is_asked_for():
    """Graph, depth and what is carried are optional."""
    one = tree(graph=None, depth=None, carry=())
    assert one.copies == (PATH,)
    assert one.desired((ROOT,), part("B", "A")) == {PATH: s("A|B")}
    assert one.desired((), part("B")) == {PATH: s("B")}


@pytest.mark.parametrize("path", [None, s(""), n(1)])
def test_path_waits_for_its_parents(path):
    """An item below a parent without a path waits for the path, and is parked if none appears."""
    parent = {**part("A"), **({} if path is None else {"Path": path})}
    assert tree().desired((parent,), part("B", "A")) == Blocked(PARENT_WITHOUT_PATH, patient=True)


PART_RULES = """
tables:
  parts: {key: {part_id: S}, indexes: {by_parent: {parent: S}}}
entities:
  part: {table: parts}
rules:
  paths: {path: part.path, parent: parent}
"""


@pytest.mark.parametrize(
    ("parents", "troubles"),
    [
        ({"a": "b", "b": "a"}, {"a": PARENT_WITHOUT_PATH, "b": PARENT_WITHOUT_PATH}),
        ({"a|b": None, "c": "a|b", "d": "c"}, {"a|b": SEPARATOR_IN_ID, "c": PARENT_WITHOUT_PATH, "d": PARENT_WITHOUT_PATH}),
        ({"c": "b", "b": "a", "a": None}, {}),
    ],
    ids=["ring", "below a bad id", "children first"],
)  # fmt: skip
def test_path_that_never_comes_is_told(parents, troubles):
    """An item in a ring, or below one without a path, is parked and stuck; one older than its parent is not."""
    scene = Scene(parse_rules(PART_RULES))
    for own, parent in parents.items():
        scene.put("parts", {"part_id": s(own), **({} if parent is None else {"parent": s(parent)})})
    scene.rest()
    for _ in range(3):
        scene.receive()
        scene.rest()
    assert {failure.key.values[0][2]: failure.reason for failure in scene.parked.failures} == troubles
    verifier = Verifier(scene.rules, scene.world, frozenset(["paths"]), grace_seconds=0, sleep=lambda _: None)
    assert {found.difference.target.values[0][2] for found in verifier.sweep()} == set(troubles)


@pytest.mark.parametrize(("policy", "expected"), [("keep", None), ("delete", None), ("restrict", None), ("clear", dict.fromkeys((PATH, GRAPH, DEPTH, TENANT)))])  # fmt: skip
def test_path_without_its_parent_follows_the_policy(policy, expected):
    """A parent that is not there, or that cannot be, leaves it to `on_delete`."""
    assert tree(on_delete=policy).desired((None,), part("B", "A")) == expected
    impossible = {**part("B"), "ParentId": {"L": []}}
    assert tree(on_delete=policy).source_keys(impossible) == ()
    assert tree(on_delete=policy).desired((), impossible) == expected


@pytest.mark.parametrize(
    ("own", "parents_path", "is_cycle"),
    [
        ("CM1", "CM10", False),
        ("CM10", "CM1", False),
        ("CM1", "CM11|CM10|XCM1", False),
        ("CM1", "CM10|CM1|CM2", True),
        ("CM1", "CM1|CM10", True),
        ("CM1", "CM10|CM1", True),
    ],
)
def test_path_compares_whole_segments(own, parents_path, is_cycle):
    """An id is in a path when it is one of its segments, not when it looks like one."""
    parent = part("P", Path=parents_path)
    expected = Blocked(CYCLE, patient=True) if is_cycle else s(f"{parents_path}|{own}")
    found = tree().desired((parent,), part(own, "P"))
    assert (found if isinstance(found, Blocked) else found[PATH]) == expected


def test_path_of_an_item_that_is_its_own_parent_is_trouble():
    """An item that is its own parent is blocked as a cycle, with or without a path."""
    for item in (part("A", "A"), part("A", "A", Path="A")):
        assert tree().desired((item,), item) == Blocked(CYCLE)


@pytest.mark.parametrize(
    ("separator", "own", "fits"),
    [
        ("|", "a|b", False),
        ("|", "|", False),
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
        found = tree(separator=separator).desired(sources, item)
        assert (not isinstance(found, Blocked)) if fits else found == Blocked(SEPARATOR_IN_ID)


def test_path_of_any_ids_can_be_taken_apart():
    """Splitting a path gives the ids it was made of, for every separator and all short ids that are let through."""
    for separator in ("|", "::", ":.:"):
        one = tree(separator=separator)
        for own, parent in permutations(["a", ":", ".", ":a", "a:", "a:.", ":.", ".:", "a.", "|", "a|"], 2):
            root = one.desired((), part(parent))
            if isinstance(root, Blocked):
                continue
            child = one.desired(({**part(parent), "Path": root[PATH]},), part(own, parent))
            if not isinstance(child, Blocked):
                assert child[PATH]["S"].split(separator) == [parent, own]


def test_path_spreads_a_graph_over_its_shards():
    """The graph of an item is its root's id and a number from 1 to `shards` that its own id decides, for ever."""
    one = tree(shards=4)
    graphs = [one.desired((ROOT,), part(f"B{i}", "A"))[GRAPH]["S"] for i in range(200)]
    assert {graph.partition("#") for graph in graphs} == {("A", "#", str(i)) for i in range(1, 5)}
    assert graphs[7] == f"A#{1 + stable_hash('B7') % 4}"


def test_path_takes_numbers_for_ids():
    """Number ids make the same segments however they are spelt; binary ids make none."""
    numbers = table("parts", {"id": "N"})
    part_of = entity("part", numbers)
    one = tree(
        source=part_of, target=part_of, link=(("id", Ref("parent", ("parent",))),), own=part_of.ref("id"), find=None
    )
    assert one.desired(({"id": n(1), "Path": s("1")},), {"id": n("2.0"), "parent": n(1)})[PATH] == s("1|2")
    assert one.desired((), {"id": n("2.0"), "parent": n(2)}) == Blocked(CYCLE)
    assert one.desired((), {"id": {"B": b"x"}}) is None


def test_path_reads_ids_out_of_composite_keys():
    """Own id and shared fields may lie in the key: trees of two tenants do not meet."""
    shop = table("shop", {"PK": "S", "SK": "S"})
    component = entity("part", shop, PK="T#{tenant_id}", SK="PART#{part_id}")
    link = (("part_id", Ref("parent", ("parent",))), ("tenant_id", component.ref("tenant_id")))
    one = tree(source=component, target=component, link=link, own=component.ref("part_id"), find=None)
    item = {"PK": s("T#t1"), "SK": s("PART#b"), "parent": s("a")}
    assert one.source_key(item) == key(shop, "T#t1", "PART#a")
    assert one.desired(({"PK": s("T#t1"), "SK": s("PART#a"), "Path": s("a")},), item)[PATH] == s("a|b")
    assert one.deciding_paths == (("parent",),)


# ---------------------------------------------------------------- what matters, and guards
@pytest.mark.parametrize(
    ("change", "pushed"),
    [
        ({"Path": s("X|A")}, True),
        ({"tenant": s("t2")}, True),
        ({"GraphId": s("X#1")}, False),
        ({"Depth": n(3)}, False),
        ({"ParentId": s("X")}, False),  # its path will change, and push
        ({"name": s("x")}, False),
    ],
)
def test_path_pushes_what_children_take(change, pushed):
    """A change of a parent's path or of what is carried is a reason to look at its children, and no other."""
    assert tree().pushes(Change(at("A"), ROOT, {**ROOT, **change})) is pushed


def test_path_pushes_when_a_parent_comes_or_goes():
    """A parent that comes with a path, or gets one, pushes; one without gives nothing; one that goes, by its policy."""
    bare_root = part("A", tenant="t1")
    assert tree().pushes(Change(at("A"), None, ROOT))
    assert tree().pushes(Change(at("A"), bare_root, ROOT))
    assert not tree().pushes(Change(at("A"), None, bare_root))
    assert not tree().pushes(Change(at("A"), ROOT, bare_root))
    pushed = {
        policy: tree(on_delete=policy).pushes(Change(at("A"), ROOT, None))
        for policy in ("keep", "clear", "delete", "restrict")
    }
    assert pushed == {"keep": False, "clear": True, "delete": True, "restrict": True}


@pytest.mark.parametrize("name", ["ParentId", *NAMES])
def test_path_pulls_on_link_and_copies(name):
    """An item is pulled if its parent or an attribute of the rule changed, by whichever writer."""
    old = part("B", "A", Path="A|B")
    assert tree().pulls(Change(at("B"), old, {**old, name: s("foreign")}))
    assert not tree().pulls(Change(at("B"), old, {**old, "name": s("foreign")}))


def test_path_guards_parent_and_source():
    """A write is refused once the parent named, its path or what is carried is another; siblings do not matter."""
    one, child = tree(), part("B", "A")
    assert holds(one.link_guard(child), {**child, "name": s("x"), "Path": s("x")})
    assert not holds(one.link_guard(child), part("B", "C"))
    assert not holds(one.link_guard(child), part("B"))
    assert not holds(one.link_guard(part("B")), child)
    assert holds(one.source_guard(ROOT), {**ROOT, "GraphId": s("x")})
    for changed in ({**ROOT, "Path": s("X|A")}, {**ROOT, "tenant": s("t2")}, None):
        assert not holds(one.source_guard(ROOT), changed)


def test_path_causes_no_cycle_by_itself():
    """A hierarchy is not a cycle of rules; a rule that makes the parent out of the path is one."""
    nodes = {node.writes[1]: node for node in tree().nodes()}
    assert set(nodes) == {PATH, GRAPH, DEPTH, TENANT}
    assert not any(causes(one, two) and causes(two, one) for one in nodes.values() for two in nodes.values())
    assert causes(nodes[PATH], nodes[DEPTH])
    other = tree(path=("ParentId",), graph=None, depth=None, carry=())
    assert causes(other.nodes()[0], nodes[PATH])


def test_path_bodies_differ_with_what_is_written():
    """Each option that changes paths or listings changes the body."""
    given = [
        {},
        {"shards": 2},
        {"separator": "/"},
        {"graph": None},
        {"depth": None},
        {"carry": ()},
        {"on_delete": "clear"},
        {"find": None},
    ]
    bodies = [tree(**one).body() for one in given]
    assert all(left != right for i, left in enumerate(bodies) for right in bodies[:i])


# ---------------------------------------------------------------- any forest
OWNS = ("CM1", "CM10", "CM11", "CM2", "CM21", "M1", "1")


def true_paths(items: Iterable[Item]) -> dict[str, list[str] | None]:
    """Each id's path by walking up; None where the walk ends in a cycle, or at a parent that is not there."""
    parents = {item["ComponentId"]["S"]: item.get("ParentId", s(""))["S"] for item in items}
    paths: dict[str, list[str] | None] = {}
    for own in parents:
        walk = [own]
        while parents.get(walk[0]) and parents[walk[0]] not in walk:
            walk.insert(0, parents[walk[0]])
        paths[own] = walk if parents.get(walk[0]) == "" else None
    return paths


def right(forest: Forest) -> None:
    """Wherever there is a true path it stands, with all that goes with it; no path names an item twice."""
    tenants = forest.column("tenant")
    for own, path in true_paths(forest.items.values()).items():
        item = forest.items[at(own)]
        segments = item["Path"]["S"].split("|") if "Path" in item else []
        assert len(set(segments)) == len(segments)
        if path is not None:
            assert segments == path
            assert item["GraphId"] == s(f"{path[0]}#{1 + stable_hash(own) % 3}")
            assert item["Depth"] == n(len(path) - 1)
            assert tenants[own] == tenants[path[0]]


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_path_converges_in_any_order_of_looks(order):
    """Looking at the items of a chain round after round, in any order, ends in as many rounds as there are levels."""
    forest = Forest(tree())
    chain = [part("A"), part("B", "A"), part("C", "B"), part("D", "C")]
    forest.put(*chain)
    for _ in chain:
        for which in order:
            for _step in forest.look(at(chain[which]["ComponentId"]["S"])):
                pass
    assert forest.column("Path") == {"A": "A", "B": "A|B", "C": "A|B|C", "D": "A|B|C|D"}
    assert len(forest.written) == 4


@pytest.mark.parametrize("seed", range(150))
def test_path_converges_whatever_moves_while_it_works(seed):
    """Any history of moves, cycles and overwrites comes to rest with every possible path right."""
    randoms = random.Random(seed)
    forest = Forest(tree(shards=3), randoms)
    owns = randoms.sample(OWNS, randoms.randint(2, len(OWNS)))
    for _ in range(randoms.randint(1, 40)):
        own = randoms.choice(owns)
        parent = randoms.choice([None, *owns])
        match randoms.choice(("move", "move", "put", "stale", "delete", "tenant")):
            case "move" if at(own) in forest.items:
                forest.move(own, parent)
            case "delete" if at(own) in forest.items:
                forest.become(at(own), None)
            case "tenant" if at(own) in forest.items:
                forest.put({**forest.items[at(own)], "tenant": s(f"t{randoms.random()}")})
            case "stale":
                ids = randoms.sample(owns, randoms.randint(1, len(owns)))
                forest.put(part(own, parent, Path="|".join(ids), GraphId="X#9"))
            case _:
                forest.put(part(own, parent))
        for _step in range(randoms.choice((0, 1, 5, 50))):
            forest.step()
    forest.rest()
    right(forest)
    for own in forest.column("ComponentId"):
        if true_paths(forest.items.values())[own] is None:
            forest.move(own, None)
    forest.rest()
    assert None not in true_paths(forest.items.values()).values()
    right(forest)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_path_ends_on_a_ring(size):
    """A ring of items with paths comes to rest after less than one write per member, and is reported."""
    for seed in range(20):
        forest = Forest(tree(shards=3), random.Random(seed))
        owns = [f"CM{i}" for i in range(size)]
        forest.put(part(owns[0]), *(part(own, above) for above, own in pairwise(owns)))
        forest.rest().written.clear()
        forest.move(owns[0], owns[-1])
        forest.rest()
        assert len(forest.written) < size
        right(forest)
        assert any(trouble.reason == CYCLE for trouble in forest.troubles.values())


def test_path_carries_a_default_where_a_parent_has_nothing():
    """Children of a parent without what is carried have the default, and hand it down; a root's own is not touched."""
    given = {TENANT: s("nobody")}
    root, child = part("r", Path="r"), part("c", "r")
    assert tree(defaults=given).desired([root], child)[TENANT] == s("nobody")
    assert tree(defaults=given).desired([{**root, "tenant": s("x")}], child)[TENANT] == s("x")
    assert TENANT not in tree(defaults=given).desired([], root)
    assert tree(defaults=given, on_delete="clear").desired([None], child) == {
        PATH: None, GRAPH: None, DEPTH: None, TENANT: s("nobody"),
    }  # fmt: skip
    assert tree(defaults=given).desired([None], child) == given
    assert tree(defaults=given).desired([None], {**child, "tenant": s("x")}) is None
