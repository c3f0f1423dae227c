"""The reader for applications, on a client in memory whose pages and batches end where a test wants them to."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError
from hypothesis import example, given
from hypothesis import strategies as st

from sync_rules.language.load import parse_rules
from sync_rules.model.entities import KeyAttribute, Ref
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.lookups import Find, KeyConditions
from sync_rules.model.semantics import make_identity
from sync_rules.model.templates import parse_template
from sync_rules.read import Graph, Hierarchy, Listing, Reader, UnprocessedKeysError
from sync_rules.read.key_range import KeyRange
from sync_rules.rules.formula import compute_stable_hash
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.element import parse_element
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.ruleset import Rules
from tests.support.builders import entity, index, key, n, of_partition, s, shop, table
from tests.support.memory_client import MemoryClient


class Fake(MemoryClient):
    """A client for tables in memory. `leaves` says, of each batch, which of its keys are left unprocessed. Errors in
    `errors` are raised first.
    """

    def __init__(self, *tables, page_items=1000, leaves=lambda keys: [], errors=()):
        super().__init__(tables, {}, page_items)
        self.leaves = leaves
        self.errors = list(errors)
        self.calls = []

    def put(self, name, *items):
        self.items[name] += items
        return self

    def query(self, **p):
        self._called("Query", p)
        return super().query(**p)

    def batch_get_item(self, **p):
        self._called("BatchGetItem", p)
        ((name, request),) = p["RequestItems"].items()
        assert 0 < len(request["Keys"]) <= 100
        mine = self.tables[name]
        distinct = {make_identity(mine.key_of(k)) for k in request["Keys"]}
        assert len(distinct) == len(request["Keys"]), "keys of a batch are distinct"
        left = self.leaves(request["Keys"])
        there = {make_identity(mine.key_of(item)): item for item in self.items[name]}
        wanted = [make_identity(mine.key_of(k)) for k in request["Keys"] if k not in left]
        answer = {"Responses": {name: [there[k] for k in reversed(wanted) if k in there]}}
        return {**answer, "UnprocessedKeys": {name: {**request, "Keys": left}} if left else {}}

    def _called(self, operation, parameters):
        self.calls.append((operation, parameters))
        if self.errors:
            raise self.errors.pop(0)

    def count(self, operation):
        return sum(operation == name for name, _ in self.calls)


def failed(code):
    return ClientError({"Error": {"Code": code, "Message": "secret"}, "ResponseMetadata": {}}, "call")


def reader(client, **options):
    return Reader(client, **{"sleep": lambda seconds: None, **options})


# ---------------------------------------------------------------- nodes by key
NODES = table("nodes", {"id": "S"})
BY_NUMBER = table("numbers", {"id": "N"})


def keys_of(*ids):
    return [key(NODES, i) for i in ids]


def ids_of(found):
    return [None if item is None else item["id"]["S"] for item in found]


def nodes_client(count, **options):
    return Fake(NODES, **options).put("nodes", *({"id": s(str(i))} for i in range(count)))


@given(
    asked=st.lists(st.integers(0, 400), max_size=300),
    left=st.lists(st.integers(0, 100), max_size=6),
)
def test_get_gives_one_result_per_key_in_order(asked, left):
    """`get` returns one result per key in order, duplicates and missing ones included."""
    script = list(left)
    client = nodes_client(200, leaves=lambda keys: keys[: script.pop()] if script else [])
    found = reader(client).get(NODES, keys_of(*map(str, asked)))
    assert ids_of(found) == [str(i) if i < 200 else None for i in asked]


def test_get_knows_equal_numbers_for_one_key():
    """1 and 1.0 are the key of one item."""
    client = Fake(BY_NUMBER).put("numbers", {"id": n(1)})
    assert reader(client).get(BY_NUMBER, [key(BY_NUMBER, "1"), key(BY_NUMBER, "1.0")]) == ({"id": n(1)},) * 2


def test_get_says_how_many_keys_stay_unprocessed():
    """When nothing comes any more, the error names the table and the keys left, those not asked for included."""
    client = nodes_client(250, leaves=lambda keys: keys[-40:])
    with pytest.raises(UnprocessedKeysError, match="table nodes: 190 of 250 keys") as caught:
        reader(client).get(NODES, keys_of(*map(str, range(250))))
    assert (caught.value.table, caught.value.left) == ("nodes", 190)


def test_get_is_consistent_when_asked():
    """`consistent` reads the base table strongly consistently; the default does not."""
    for consistent in (False, True):
        client = nodes_client(1)
        reader(client, consistent=consistent).get(NODES, keys_of("0"))
        assert client.calls[0][1]["RequestItems"]["nodes"]["ConsistentRead"] is consistent


# ---------------------------------------------------------------- errors
def with_config(client, **retries):
    client.meta = SimpleNamespace(config=SimpleNamespace(retries=retries or None))
    return client


@pytest.mark.parametrize(
    ("retries", "calls"), [(None, 2), ({"total_max_attempts": 1}, 2), ({"mode": "legacy"}, 1), ({}, 1)]
)
def test_reader_leaves_retries_to_a_client_that_has_its_own(retries, calls):
    """A throttled call is tried again here, unless the client has done so before it gave up."""
    client = nodes_client(1, errors=[failed("ThrottlingException")])
    if retries is not None:
        with_config(client, **retries)
    if calls == 1:
        with pytest.raises(StoreError, match="ThrottlingException"):
            reader(client).get(NODES, keys_of("0"))
    else:
        assert ids_of(reader(client).get(NODES, keys_of("0"))) == ["0"]
    assert len(client.calls) == calls


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("ResourceNotFoundException", "TableNotFound: table nodes: correct its name"),
        ("AccessDeniedException", "AccessDeniedException: table nodes: the role lacks"),
        ("ItemCollectionSizeLimitExceededException", "ItemCollectionSizeLimitExceededException: table nodes"),
    ],
)
def test_reader_errors_name_the_table_and_no_value(code, said):
    """A failed read names the reason, the table and the cure, and no value that the service quoted."""
    with pytest.raises(StoreError) as caught:
        reader(nodes_client(1, errors=[failed(code)])).get(NODES, keys_of("0"))
    assert str(caught.value).startswith(said)
    assert "secret" not in str(caught.value)


def test_reader_errors_name_the_index():
    """A Query of an index that is not there says which."""
    client = Fake(EDGES, errors=[failed("ValidationException")])
    with pytest.raises(StoreError, match="ValidationException: index by_b of table edges: the table has other keys"):
        list(listing(client))


# ---------------------------------------------------------------- listings
EDGES = table("edges", {"a": "S", "b": "S"}, index("by_b", {"b": "S"}, {"rank": "B"}))


def edge(a, b="x"):
    return {"a": s(a), "b": s(b), "rank": {"B": a.encode()}}


def listing(client, b="x", **options):
    return Listing(reader(client), EDGES, of_partition("b", s(b)), "by_b", **options)


EVEN = frozenset("bdfhjl")


@given(
    count=st.integers(0, 12),
    page_items=st.integers(1, 13),
    limit=st.integers(1, 13),
    backward=st.booleans(),
    filtered=st.booleans(),
)
@example(count=9, page_items=2, limit=3, backward=False, filtered=False)  # a page that two and a half queries fill
def test_listing_pages_are_what_iterating_gives(count, page_items, limit, backward, filtered):
    """Page after page by their tokens, each full but the last: every item once, in order, whatever a page of it holds."""
    letters = "abcdefghijklm"[:count]
    client = Fake(EDGES, page_items=page_items).put("edges", *map(edge, letters), edge("z", "y"))
    keep = {"keep": lambda item: item["a"]["S"] in EVEN} if filtered else {}
    these = listing(client, backward=backward, **keep)
    expected = [a for a in (reversed(letters) if backward else letters) if not filtered or a in EVEN]
    assert [item["a"] for item in these] == expected
    found, cursor = [], None
    while True:
        page = these.page(limit, cursor)
        found += page.items
        cursor = page.cursor
        assert len(page.items) <= limit
        if cursor is None:
            break
        assert len(page.items) == limit
        assert re.fullmatch(r"[\w-]+", cursor), "a token can stand in a URL as it is"
    assert [item["a"] for item in found] == expected


def test_listing_refuses_a_cursor_of_another_query():
    """A token continues its own query in its own direction."""
    client = Fake(EDGES).put("edges", *map(edge, "abc"))
    cursor = listing(client).page(1).cursor
    for other in (listing(client, "y"), listing(client, backward=True)):
        with pytest.raises(UserError, match="of another listing"):
            other.page(1, cursor)


@pytest.mark.parametrize("cursor", ["", "x", "W10", "bm90IGpzb24", "eyJhIjoxfQ", "WyJhIiwxXQ", "\N{SNOWMAN}"])
def test_listing_refuses_what_is_no_cursor(cursor):
    """Anything but a token is refused, never taken for the beginning."""
    with pytest.raises(UserError, match="cursor"):
        listing(Fake(EDGES)).page(1, cursor)


def test_listing_refuses_a_cursor_that_leads_elsewhere():
    """An altered cursor outside of the query's partition or prefix is refused."""
    conditions = KeyConditions((("a", s("1")),), ("b", "T-"))
    these = Listing(reader(Fake(EDGES)), EDGES, conditions)
    for start in ({"a": s("2"), "b": s("T-1")}, {"a": s("1"), "b": s("U-1")}, {"b": s("T-1")}):
        with pytest.raises(UserError, match="cursor"):
            these.page(1, these.encode(start))
    assert these.page(1, these.encode({"a": s("1"), "b": s("T-1")})).items == []
    within = replace(these, conditions=of_partition("a", s("1")), within=KeyRange("b", s("T-2"), s("T-4")))
    for beyond in ("T-1", "T-5"):
        with pytest.raises(UserError, match="cursor"):
            within.page(1, within.encode({"a": s("1"), "b": s(beyond)}))


def test_listing_of_an_impossible_key_asks_nothing():
    """A listing of a key that no item can have makes no request."""
    client = Fake(EDGES)
    these = Listing(reader(client), EDGES, None)
    assert list(these) == these.page(1).items == client.calls == []


# ---------------------------------------------------------------- graphs
RECORDS = table(
    "records", {"source": "S", "target": "S"}, index("gsi0", {"target": "S"}, {"gsi0": "S"}, projection="all")
)
TEMPLATES = {
    "edge": {"source": "{source}", "target": "GOALMEMBERSHIP-{type}-{id}"},
    "node": {"source": "{source}", "target": "{source}"},
    "neighbour": {"source": "{type}-{id}", "target": "{type}-{id}"},
}


def node_item(name, /, **values):
    return {"source": s(name), "target": s(name), **values}


def membership(goal, member, role, rank="500"):
    target = f"GOALMEMBERSHIP-{member}"
    return {"source": s(goal), "target": s(target), "memberRole": s(role), "gsi0": s(f"{rank}-{role}")}


def records(**options):
    """Two goals of user U1; G2 has one more member, and one who is gone."""
    return Fake(RECORDS, **options).put(
        "records",
        node_item("GOAL-G1", edges={"SS": ["GOALMEMBERSHIP-USER-U1-LEAD"]}),
        node_item(
            "GOAL-G2",
            edges={
                "SS": [f"GOALMEMBERSHIP-{m}" for m in ("USER-U9-LEAD", "USER-U1-CONTRIBUTOR", "TEAM-T1-CONTRIBUTOR")]
            },
        ),
        node_item("GOAL-G3"),
        node_item("GOAL-G4", edges={"NULL": True}),
        node_item("USER-U1", name=s("Dora")),
        node_item("TEAM-T1", name=s("Press")),
        membership("GOAL-G1", "USER-U1", "LEAD"),
        membership("GOAL-G2", "USER-U1", "CONTRIBUTOR", "400"),
        membership("GOAL-G2", "TEAM-T1", "CONTRIBUTOR", "400"),
        membership("GOAL-G2", "USER-U9", "LEAD"),
    )


def graph_on(client, table=RECORDS, *, element="{target}-{memberRole}", **templates):
    """The graph of a rule on one table; the edges of a node lie under its key if that names the node."""
    made = {name: entity(name, table, **one) for name, one in {**TEMPLATES, **templates}.items() if one}
    edges, nodes = made["edge"], made["node"]
    by = [(attribute, edges.templates[attribute.name]) for attribute in table.key]
    rule = CollectRule(
        name="edges",
        source=edges,
        target=nodes,
        find=Find(None, (by[0],), (by[1],)) if {*by[0][1].fields} <= {*nodes.identity} else None,
        into="edges",
        element=parse_element(element),
        numbers=False,
        where=None,
        omit=None,
        link=tuple((field, edges.ref(field)) for field in nodes.identity),
        strict=False,
    )
    rules = Rules({table.name: table}, made, {"edges": rule})
    return Graph.of(rules, "edges", client, neighbour="neighbour" if "neighbour" in made else None)


def names_of(neighbours):
    return [(found.item and found.item["source"], found.fields["memberRole"]) for found in neighbours.found]


def test_graph_reads_in_three_steps():
    """The edges of a user, best first, their goals, and who else is in them: three requests."""
    client = records()
    graph = graph_on(client)
    edges = graph.edges({"target": "GOALMEMBERSHIP-USER-U1"}, index="gsi0", backward=True)
    result = graph.three_steps(edges)
    assert [edge["gsi0"] for edge in result.edges] == ["500-LEAD", "400-CONTRIBUTOR"]
    assert [node["source"] for node in result.nodes] == ["GOAL-G1", "GOAL-G2"]
    first, second = result.neighbours
    assert names_of(first) == [("USER-U1", "LEAD")]
    assert names_of(second) == [("TEAM-T1", "CONTRIBUTOR"), ("USER-U1", "CONTRIBUTOR"), (None, "LEAD")]
    assert (result.omitted, result.cursor) == ([], None)
    assert [name for name, _ in client.calls] == ["Query", "BatchGetItem", "BatchGetItem"]


def test_graph_reads_three_steps_by_page():
    """With a limit, `three_steps` returns that many edges and a cursor for the others."""
    graph = graph_on(records())
    edges = graph.edges({"target": "GOALMEMBERSHIP-USER-U1"}, begins_with=("gsi0", "4"), index="gsi0")
    first = graph.three_steps(edges, limit=1)
    assert [node["source"] for node in first.nodes] == ["GOAL-G2"]
    assert graph.three_steps(edges, limit=1, cursor=first.cursor).nodes == []
    with pytest.raises(UserError, match="limit"):
        graph.three_steps(edges, cursor=first.cursor)


def test_graph_tells_no_edges_from_too_many():
    """Without a set a node has no neighbours; with NULL in its place they were left out, and edges_of has them."""
    graph = graph_on(records())
    nodes = graph.nodes([{"source": g, "target": g} for g in ("GOAL-G3", "GOAL-G4", "GOAL-G5")])
    none, omitted, missing = graph.neighbours(nodes)
    assert (none.found, none.omitted) == ((), False)
    assert (omitted.found, omitted.omitted) == ((), True)
    assert missing is None


def test_graph_shows_elements_that_name_no_edge():
    """An element that names no edge is not read, but returned as strange."""
    client = Fake(RECORDS)
    node = {"source": "G", "target": "G", "edges": {"nonsense", "USER-U1-LEAD", "GOALMEMBERSHIP-USER-U1-LEAD"}}
    (around,) = graph_on(client).neighbours([node])
    assert around.strange == ("USER-U1-LEAD", "nonsense")
    assert [found.element for found in around.found] == ["GOALMEMBERSHIP-USER-U1-LEAD"]


def test_graph_takes_and_gives_raw_items():
    """With a raw reader, keys, items, elements and fields are as the client has them."""
    graph = graph_on(reader(records(), raw=True))
    result = graph.three_steps(graph.edges({"target": s("GOALMEMBERSHIP-USER-U1")}, index="gsi0", backward=True))
    assert result.nodes[0] == node_item("GOAL-G1", edges={"SS": ["GOALMEMBERSHIP-USER-U1-LEAD"]})
    (found,) = result.neighbours[0].found
    assert found.element == s("GOALMEMBERSHIP-USER-U1-LEAD")
    assert found.fields["memberRole"] == s("LEAD")
    assert graph.neighbours(result.nodes) == result.neighbours
    with pytest.raises(UserError, match="raw"):
        graph.nodes([{"source": "GOAL-G1", "target": "GOAL-G1"}])


def test_graph_without_neighbour_says_so_before_it_reads():
    """`three_steps` without a `neighbour` is refused before any request."""
    client = records()
    graph = graph_on(client, neighbour=None)
    with pytest.raises(UserError, match="no `neighbour`"):
        graph.three_steps(graph.edges({"target": "GOALMEMBERSHIP-USER-U1"}, index="gsi0"))
    assert client.calls == []


# ---------------------------------------------------------------- graphs by rule
def number_rules():
    """The numbers of a goal's members on the goal: three tables, a number set."""
    return parse_rules("""
tables: {users: {key: {user_no: N}}, goals: {key: {goal_id: S}}, members: {key: {goal: S, member: N}}}
entities: {membership: {table: members}, goal: {table: goals}, user: {table: users}}
rules: {goal-members: {collect: membership, into: goal.members, as: "{member}", numbers: true, link: {goal_id: goal}}}
""")


def test_graph_of_a_rule_knows_its_names():
    """Tables, keys, set and element are the rule's; number sets come in the order of their numbers."""
    client = Fake(*number_rules().tables.values())
    client.put("goals", {"goal_id": s("G1"), "members": {"NS": ["10", "9"]}}).put("users", {"user_no": n(9)})
    client.put("members", {"goal": s("G1"), "member": n(9)}, {"goal": s("G2"), "member": n(9)})
    graph = Graph.of(number_rules(), "goal-members", client, neighbour="user", link={"user_no": "member"})
    result = graph.three_steps(graph.edges({"goal": "G1"}))
    assert [(found.element, found.item) for found in result.neighbours[0].found] == [(9, {"user_no": 9}), (10, None)]
    assert list(graph.edges_of(result.nodes[0])) == result.edges == [{"goal": "G1", "member": 9}]


@pytest.mark.parametrize(
    ("rules", "name", "neighbour", "said"),
    [
        (number_rules(), "goal-member", None, "'goal-member' is no rule: expected one of kind collect. Known: goal-members"),
        (shop(), "user-name-on-orders", None, "is a rule of kind copy: expected one of kind collect. Known: none"),
        (number_rules(), "goal-members", "usr", "no entity 'usr'. Known: membership, goal, user"),
        (number_rules(), "goal-members", "user", "no edge names its neighbour by user_no. Known: goal, member"),
    ],
)  # fmt: skip
def test_graph_of_refuses_names_that_do_not_fit(rules, name, neighbour, said):
    """A rule or entity that is not there, or of another kind, is said with those that are."""
    with pytest.raises(UserError, match=re.escape(said)):
        Graph.of(rules, name, Fake(), neighbour=neighbour)


GOAL_RULES = """
tables: {records: {key: {source: S, target: S}, indexes: {gsi0: {target: S, gsi0: S}}}}
entities:
  goal: {table: records, key: {source: "GOAL-{goal_id}", target: "GOAL-{goal_id}"}}
  user: {table: records, key: {source: "USER-{user_id}", target: "USER-{user_id}"}}
  team: {table: records, key: {source: "TEAM-{team_id}", target: "TEAM-{team_id}"}}
  membership: {table: records, key: {source: "GOAL-{goal_id}", target: "GOALMEMBERSHIP-{member}"}}
rules: {goal-edges: {collect: membership, into: goal.edges, as: "{target}-{memberRole}"}}
"""


def test_graph_of_mixed_nodes_reads_each_neighbour_of_its_entity():
    """Users and teams in one set: the key in the edge says which."""
    rules = parse_rules(GOAL_RULES)
    graph = Graph.of(rules, "goal-edges", records(), neighbour=["team", "user"], link={"source": "member"})
    [around] = graph.neighbours(graph.nodes([{"source": "GOAL-G2", "target": "GOAL-G2"}]))
    assert [found.item and found.item["name"] for found in around.found] == ["Press", "Dora", None]
    only = Graph.of(rules, "goal-edges", records(), neighbour="user", link={"source": "member"})
    [around] = only.neighbours(only.nodes([{"source": "GOAL-G2", "target": "GOAL-G2"}]))
    assert ([found.item and found.item["name"] for found in around.found], len(around.strange)) == (["Dora", None], 1)


@pytest.mark.parametrize(
    ("option", "roles"),
    [
        ({"gte": ("gsi0", "400-CONTRIBUTOR")}, ["CONTRIBUTOR", "LEAD"]),
        ({"lte": ("gsi0", "400-CONTRIBUTOR")}, ["CONTRIBUTOR"]),
        ({"between": ("gsi0", "4", "5")}, ["CONTRIBUTOR"]),
        ({"between": ("gsi0", "400-CONTRIBUTOR", "500-LEAD")}, ["CONTRIBUTOR", "LEAD"]),
    ],
)
def test_graph_lists_a_range_of_edges(option, roles):
    """The ends belong to it, page by page too; a token is of its own range."""
    graph, of = graph_on(records()), {"target": "GOALMEMBERSHIP-USER-U1"}
    edges = graph.edges(of, index="gsi0", **option)
    assert [edge["memberRole"] for edge in edges] == roles
    first = edges.page(1)
    assert first.items[0]["memberRole"] == roles[0]
    assert [one["memberRole"] for one in edges.page(5, first.cursor).items] == roles[1:]
    for other in (graph.edges(of, index="gsi0"), graph.edges(of, index="gsi0", gte=("gsi0", "1"))):
        with pytest.raises(UserError, match="of another listing"):
            other.page(1, first.cursor)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gte": ("gsi0", "1"), "lte": ("gsi0", "2")}, "give one of begins_with, between, gte and lte"),
        ({"gte": ("gsi0", "1"), "begins_with": ("gsi0", "2")}, "give one of begins_with, between, gte and lte"),
        ({"between": ("gsi0", "2", "1")}, "ends before it begins"),
        ({"between": ("gsi0", "2", 3)}, "of N and S: expected texts, numbers or binary"),
        ({"gte": ("gsi0", None)}, "of NULL: expected"),
        ({"gte": "x"}, r"gte: expected \(ATTRIBUTE, least\), the sort key's attribute first; found str"),
        ({"lte": ("gsi0", "1", "2")}, r"lte: expected \(ATTRIBUTE, greatest\), .* found 3 values"),
        ({"between": ("gsi0", "1")}, r"between: expected \(ATTRIBUTE, least, greatest\), .* found 2 values"),
        ({"begins_with": "400-"}, r"begins_with: expected \(ATTRIBUTE, beginning\), .* found str"),
    ],
)
def test_graph_refuses_a_range_that_is_none(options, said):
    """Before anything is read."""
    with pytest.raises(UserError, match=said):
        graph_on(Fake()).edges({"target": "x"}, index="gsi0", **options)


# ---------------------------------------------------------------- hierarchies
PARENTS = {"CM2": "CM1", "CM3": "CM1", "CM4": "CM2", "CM5": "CM2", "CM6": "CM3", "CM7": "CM3", "CM8": "CM4", "CM9": "CM4", "CM10": "CM5"}  # fmt: skip
TRAP = {"CM20": "CM1", "CM21": "CM20"}  # CM20 begins like CM2
INDEXES = (
    index("GSI1", {"ParentId": "S"}, {"ComponentId": "S"}),
    index("GSI2", {"GraphId": "S"}, {"Path": "S"}),
)
COMPONENTS = table("components", {"ComponentId": "S"}, *INDEXES)


def component(ident, parents, shards=1, separator="|"):
    """The item with what a path rule makes of it."""
    path = [ident]
    while path[0] in parents:
        path.insert(0, parents[path[0]])
    made = {"ComponentId": s(ident), "GraphId": s(f"{path[0]}#{1 + compute_stable_hash(ident) % shards}")}
    parent = {"ParentId": s(parents[ident])} if ident in parents else {}
    return {**made, **parent, "Path": s(separator.join(path))}


def cars(parents, shards=1, **options):
    """A table of components and a hierarchy on it."""
    names = dict.fromkeys([*parents.values(), *parents])
    client = Fake(COMPONENTS, **options).put("components", *(component(name, parents, shards) for name in names))
    return client, tree_on(client, COMPONENTS, shards=shards)


def tree_on(client, table, shards=1):
    """The hierarchy of a rule on a table whose key is the id, in the layout of the car."""
    (own,) = table.key
    items = entity("item", table)
    rule = TreeRule(
        name="path",
        source=items,
        target=items,
        find=Find("GSI1", ((KeyAttribute("ParentId", own.type), parse_template("{ParentId}")),)),
        link=((own.name, Ref("ParentId", ("ParentId",))),),
        path=("Path",),
        own=items.ref(own.name),
        graph=("GraphId",),
        shards=shards,
    )
    return Hierarchy.of(Rules({table.name: table}, {"item": items}, {"path": rule}), "path", client)


def names(items):
    return [item and item["ComponentId"] for item in items]


def item_of(hierarchy, ident):
    (item,) = hierarchy.items([ident])
    return item


def test_hierarchy_asks_each_shard_once():
    """Descendants of every shard are one Query each, by graph and prefix, and nothing else."""
    client, cars_of = cars(PARENTS, shards=3, page_items=1000)
    item = item_of(cars_of, "CM2")
    client.calls.clear()
    client.items["components"] = [i for i in client.items["components"] if i["ComponentId"] != s("CM1")]
    list(cars_of.descendants(item))
    starts = [p["ExpressionAttributeValues"] for _, p in client.calls if "ExclusiveStartKey" not in p]
    assert [values[":v0"]["S"] for values in starts] == ["CM1#1", "CM1#2", "CM1#3"]
    assert {values[":v1"]["S"] for values in starts} == {"CM1|CM2|"}
    assert client.count("Query") == len(client.calls)


@st.composite
def forests(draw):
    """Parents by item, without circles; ids of which many begin alike."""
    ids = draw(st.lists(st.text("1|2", min_size=1, max_size=3).map(lambda t: t.replace("|", "0")), unique=True))
    return {ident: draw(st.sampled_from(ids[:i])) for i, ident in enumerate(ids) if i and draw(st.booleans())}


@given(parents=forests(), shards=st.integers(1, 3), page_items=st.integers(1, 4))
def test_hierarchy_descendants_are_those_that_lead_up_to_the_item(parents, shards, page_items):
    """Descendants are exactly the items whose parents lead to this one, each once and after its parent."""
    _, forest = cars(parents, shards, page_items=page_items)
    for ident in {*parents, *parents.values()}:
        item = item_of(forest, ident)

        def leads_up(name, ident=ident):
            return name in parents and (parents[name] == ident or leads_up(parents[name]))

        expected = {name for name in parents if leads_up(name)}
        by_path = names(forest.descendants(item))
        by_level = [name for level in forest.levels(ident) for name in names(level)]
        for found in (by_path, by_level):
            assert sorted(found) == sorted(expected)
            assert all(parents[name] == ident or parents[name] in found[:i] for i, name in enumerate(found))
        assert [above["Path"] for above in forest.ancestors(item)] == [
            item["Path"][:i] for i, sign in enumerate(item["Path"]) if sign == "|"
        ]


@pytest.mark.parametrize("road", ["node", "raw node", "set", "raw set", "item of a tree", "text of a tree"])
def test_read_refuses_half_a_surrogate_pair(road):
    """Half an emoji in a key or a set is the caller's mistake. It is refused before a request, and is not shown."""
    half = "cut \ud83d"
    client, tree = cars(PARENTS)
    plain, raw = graph_on(client), graph_on(reader(client, raw=True))
    roads = {
        "node": lambda: plain.nodes([{"source": half, "target": "G"}]),
        "raw node": lambda: raw.nodes([{"source": s(half), "target": s("G")}]),
        "set": lambda: plain.neighbours([{"source": "G", "target": "G", "edges": {half}}]),
        "raw set": lambda: raw.neighbours([{"source": s("G"), "target": s("G"), "edges": {"SS": [half]}}]),
        "item of a tree": lambda: tree.items([{"ComponentId": half}]),
        "text of a tree": lambda: tree.items([half]),
    }
    client.calls.clear()
    with pytest.raises(UserError, match="surrogate") as raised:
        roads[road]()
    assert half not in str(raised.value)
    assert client.calls == []


def test_hierarchy_levels_end_at_max_depth():
    """No level beyond the last that was asked for is read."""
    client, cars_of = cars(PARENTS)
    assert [names(level) for level in cars_of.levels("CM1", max_depth=1)] == [["CM2", "CM3"]]
    assert all(p["ExpressionAttributeValues"][":v0"] == s("CM1") for _, p in client.calls)
    assert list(cars_of.levels("CM1", max_depth=0)) == []


def test_hierarchy_levels_end_on_a_circle():
    """Items that are their own ancestors come once, and the walk ends."""
    client = Fake(COMPONENTS)
    for ident, parent in {"A": "B", "B": "A", "C": "B"}.items():
        client.put("components", {"ComponentId": s(ident), "ParentId": s(parent)})
    circle = tree_on(client, COMPONENTS)
    assert [names(level) for level in circle.levels("A")] == [["B"], ["C"]]


def test_hierarchy_says_which_ancestor_is_gone():
    """An ancestor that is not there is None in its place."""
    client, cars_of = cars(PARENTS)
    item = item_of(cars_of, "CM8")
    client.items["components"] = [i for i in client.items["components"] if i["ComponentId"] != s("CM2")]
    assert names(cars_of.ancestors(item)) == ["CM1", None, "CM4"]


@pytest.mark.parametrize("read", [Hierarchy.ancestors, Hierarchy.descendants])
def test_hierarchy_says_that_a_path_is_not_written_yet(read):
    """An item without a path is not taken for a root, or for one with nothing below."""
    _, cars_of = cars(PARENTS)
    with pytest.raises(StoreError, match="PathNotWritten: an item of table components has no path"):
        read(cars_of, {"ComponentId": "CM2"})


def test_hierarchy_below_the_longest_path_there_is_nothing():
    """A path as long as a sort key can be has none below it, and no Query is asked that DynamoDB would refuse."""
    client, cars_of = cars(PARENTS)
    item = {"ComponentId": "X", "Path": "x" * 1024}
    assert list(cars_of.descendants(item)) == client.calls == []


# ---------------------------------------------------------------- hierarchies by rule
def tenant_rules(**options):
    """Parts of several tenants with ids that are numbers, in composite keys, children through an index of the parent."""
    rules = parse_rules("""
tables: {parts: {key: {PK: S, SK: S}, indexes: {children: {ParentId: N}, paths: {GraphId: S, Path: S}}}}
entities: {part: {table: parts, key: {PK: "TENANT#{tenant}", SK: "PART#{part_id}"}}}
rules: {parts: {path: part.Path, parent: ParentId, graph: GraphId}}
""")
    return replace(rules, rules={"parts": replace(rules.rules["parts"], **options)})


def part_item(tenant, ident, parent=None, path=None):
    item = {"PK": s(f"TENANT#{tenant}"), "SK": s(f"PART#{ident}"), "GraphId": s("1#1"), "Path": s(path or str(ident))}
    return {**item, **({} if parent is None else {"ParentId": n(parent)})}


def tenants():
    client = Fake(*tenant_rules().tables.values())
    for tenant in "ab":
        client.put("parts", part_item(tenant, 1), part_item(tenant, 2, 1, "1|2"), part_item(tenant, 3, 2, "1|2|3"))
    client.put("parts", {**part_item("a", 9, 1, "1|9"), "SK": s("NOTE#9")})  # an item of another entity
    return client


def test_hierarchy_of_a_rule_keeps_tenants_apart():
    """A hierarchy of one tenant never returns items of another, though ids and paths are the same."""
    parts = Hierarchy.of(tenant_rules(), "parts", tenants())
    three, one = parts.items([{"tenant": "a", "part_id": "3"}, {"tenant": "b", "part_id": "1"}])
    assert [item["PK"] + item["SK"] for item in parts.ancestors(three)] == ["TENANT#aPART#1", "TENANT#aPART#2"]
    below = [("TENANT#b", "PART#2"), ("TENANT#b", "PART#3")]
    assert [(item["PK"], item["SK"]) for item in parts.children(one)] == below[:1]
    assert [(item["PK"], item["SK"]) for item in parts.descendants(one)] == below
    assert [(i["PK"], i["SK"]) for level in parts.levels({"tenant": "b", "part_id": "1"}) for i in level] == below


def test_hierarchy_takes_ids_that_are_numbers():
    """An id may be given as the number it is."""
    made = table("numbered", {"id": "N"}, index("GSI1", {"ParentId": "N"}))
    client = Fake(made).put("numbered", {"id": n(2), "ParentId": n(10)}, {"id": n(10), "Path": s("10")})
    numbered = tree_on(client, made)
    assert [item["id"] for given_id in (10, Decimal("1E1"), "10") for item in numbered.children(given_id)] == [2] * 3
    assert numbered.items([10]) == [{"id": 10, "Path": "10"}]


# ---------------------------------------------------------------- mistakes of the caller
def bare():
    """A hierarchy whose rule has no index."""
    return Hierarchy.of(tenant_rules(find=None, graph=None), "parts", tenants())


def parts():
    return Hierarchy.of(tenant_rules(), "parts", tenants())


NO_KEY = r"not a key of table records: expected source \(S\), target \(S\)"
NO_ITEM = r"an item was expected, found str: read it first, items\(\[id\]\)"
ONE_ID = "a list of ids was expected, found one"
STRANGE = {"edge": {"source": "{member}", "target": "{goal}"}, "node": {"source": "{goal}", "target": "{goal}"}}
BOTH = {"neighbour": ["user", "team"], "link": {"user_id": "member", "team_id": "member"}}
MISTAKES = [
    (lambda: reader(SimpleNamespace(query=None, batch_get_item=None)).item(NODES, key(NODES, "0")), "get_item"),
    (lambda: listing(Fake(EDGES)).page(0), "limit is 0"),
    (lambda: graph_on(Fake()).neighbours([node("G", edges="U1")]), "'edges' of table records holds no set, nor NULL, but S"),
    (lambda: graph_on(Fake()).nodes([{"source": "G"}]), NO_KEY),
    (lambda: graph_on(Fake()).nodes([{"source": "G", "target": 1}]), NO_KEY),
    (lambda: graph_on(Fake()).nodes([{}]), NO_KEY),
    (lambda: graph_on(Fake(), neighbour=node("{user_id}")), r"by user_id\. Known: id, memberRole, source, target, type"),
    (lambda: graph_on(Fake(), **STRANGE, neighbour=None).edges_of(node("G")), "call `edges` with an index"),
    (lambda: Graph.of(parse_rules(GOAL_RULES), "goal-edges", Fake(), **BOTH), "of 'user' or of 'team': give in `link`"),
    (lambda: Hierarchy.of(number_rules(), "goal-members", Fake()), "is a rule of kind collect: expected one of kind path"),
    (lambda: cars(PARENTS)[1].ancestors("CM2"), NO_ITEM),
    (lambda: cars(PARENTS)[1].descendants("CM2"), NO_ITEM),
    (lambda: cars(PARENTS)[1].items("CM1"), ONE_ID),
    (lambda: cars(PARENTS)[1].items({"ComponentId": "CM1"}), ONE_ID),
    (lambda: parts().children(1), "named by tenant, part_id: give all of them"),
    (lambda: parts().ancestors({"PK": "TENANT#a", "SK": "NOTE#9", "Path": "1|9"}), "is not of entity 'part'"),
    (lambda: bare().children({"tenant": "a", "part_id": "1"}), "name one as `via`"),
    (lambda: bare().descendants({"PK": "TENANT#a", "SK": "PART#1", "Path": "1"}), "use `levels`"),
]  # fmt: skip


def node(name, **values):
    """A node, or its key, in plain values."""
    return {"source": name, "target": name, **values}


@pytest.mark.parametrize(("read", "said"), MISTAKES, ids=range(len(MISTAKES)))
def test_read_refuses_a_mistake_and_says_what_was_expected(read, said):
    """Nothing is taken for empty, for a root or for the beginning."""
    with pytest.raises(UserError, match=said):
        read()
