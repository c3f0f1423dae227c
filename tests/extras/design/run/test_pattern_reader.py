"""Each declared pattern finds what a filter over all items finds, in the requests that its proof names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.design.patterns.declarations import find_design
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.lab.recompute import recompute
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.python_values import make_plain_value, make_raw_value
from sync_rules.read import Patterns, Reader, requests_of
from tests.extras.design.patterns.test_prove import BASE, SERVED
from tests.support.depth import deep, spread_over_night
from tests.support.memory_client import MemoryClient


def kept(rules, items):
    """The items of all tables after the rules were applied, by table."""
    store = MemoryStore(rules.tables)
    for table, some in items.items():
        for item in some:
            store.put(table, {name: make_raw_value(value) for name, value in item.items()})
    right = recompute(rules, store)
    return {name: [*right.items(name)] for name in rules.tables}


WIDE = BASE.replace(
    "      newest:", "      by_spot: {partition: {shelf: S}, sort: {spot: S}, projection: [name]}\n      newest:"
)
WIDE += '  spot: {derive: ware.spot, as: "{row}|{ware_id}"}\n'


def rules_of(*patterns, base=WIDE):
    """The rules of the tests with patterns p0, p1 and so on."""
    lines = "\n".join(f"  p{number}: {one}" for number, one in enumerate(patterns))
    return parse_rules(f"{base}\npatterns:\n{lines}")


# ---------------------------------------------------------------- data
IDS = st.sampled_from(
    ["1", "10", "1#0", "1#", "#", "a", "A", "ä", "z\U0001f600", "é#1", "2", "-1", "1|2", "\U0010ffff"]
)
WORDS = st.sampled_from(["A", "A!", "AB", "B", "Ä", "a b", "\U0010ffff", "ZZ"])
NUMBERS = st.sampled_from([9, 10, -1, Decimal("1.5"), 100, 0])
DATES = st.sampled_from(["2026-01", "2026-01-05", "2026-01-31", "2026-02-01", "2025"])


ROLES = st.sampled_from(["LEAD", "CONTRIBUTOR"])


def drawn(entity, **fields):
    return st.lists(st.fixed_dictionaries(fields), max_size=5).map(lambda some: [(entity, one) for one in some])


DRAWN = {
    "user": drawn("user", user_id=IDS, name=WORDS, email=IDS, city=WORDS),
    "order": drawn(
        "order", user_id=IDS, order_id=IDS, made=DATES, total=NUMBERS, status=st.sampled_from(["OPEN", "PAID"])
    ),
    "store": drawn("store", store_id=IDS, state=WORDS, city=WORDS, city_code=WORDS, zip=IDS, name=WORDS),
    "version": drawn("version", thing_id=IDS, number=st.sampled_from([0, 1, 9, 10, 999_999])),
    "product": drawn("product", product_id=IDS, category=WORDS, price=NUMBERS),
    "house": drawn("house", house_id=IDS, country=WORDS, street=WORDS, town=WORDS),
    "ware": drawn("ware", ware_id=IDS, shelf=WORDS, row=WORDS, name=WORDS),
    "crate": drawn("crate", crate_id=IDS, shelf=WORDS, row=WORDS),
    "goal": drawn("goal", goal_id=IDS, title=WORDS),
    "member": drawn("member", user_id=IDS, name=WORDS),
    "membership": drawn("membership", goal_id=IDS, user_id=IDS, memberRole=ROLES),
    "component": drawn("component", ComponentId=st.sampled_from(["1", "10", "a", "A", "ä"]), ParentId=IDS, name=WORDS),
    "game": drawn("game", game_id=IDS, map=WORDS, started=DATES, status=st.sampled_from(["OPEN", "DONE"])),
}


def data_of(*names):
    """Items of these entities."""
    return st.tuples(*(DRAWN[name] for name in names)).map(lambda lists: [one for some in lists for one in some])


def stored(rules, data):
    """The application's items of some data, by table; of two with one key the last."""
    found = {}
    parents = {}
    for name, drawn_fields in data:
        fields = {**drawn_fields}
        entity = rules.entities[name]
        raw = {field: make_raw_value(value) for field, value in fields.items()}
        made = {one: template.build(raw, "S") for one, template in entity.templates.items()}
        if name == "component":
            parent, own = fields["ParentId"], fields["ComponentId"]
            if parent not in parents or own in parents:  # of those that are there, so no circle
                del fields["ParentId"]
            parents.setdefault(own, None)
            if any(one["ComponentId"] == own for one in found.get("components", {}).values()):
                continue
        if name == "user" and any(one.get("email") == fields["email"] for one in found.get("shop", {}).values()):
            continue  # a mirror has one key
        if None in made.values():
            continue
        keys = {one.name for one in entity.table.key_attributes}
        inside = {field for one in entity.table.key for field in entity.templates[one.name].fields}
        own = {field: value for field, value in fields.items() if field in keys or field not in inside}
        item = {**own, **{one: value["S"] for one, value in made.items()}}
        key = tuple(item[one.name] for one in entity.table.key)
        found.setdefault(entity.table.name, {})[key] = item
    return {table: [*some.values()] for table, some in found.items()}


# ---------------------------------------------------------------- the filter over all items
FORMATS = {("store", "city"): str.upper}


class World:
    """All items, and a filter over them that knows no key conditions."""

    def __init__(self, rules, items):
        self.rules = rules
        self.items = items

    def of(self, name):
        entity = self.rules.entities[name]
        return [item for item in self.items[entity.table.name] if entity.has(entity.table.key_of(item))]

    def field(self, name, item, field):
        entity = self.rules.entities[name]
        value = entity.view(item, [(field,)]).get(field)
        return None if value is None else make_plain_value(value)

    def found(self, pattern, given):
        for name, item in ((one, item) for one in pattern.entities for item in self.of(one)):
            read = {one: self.field(name, item, one) for one in given}
            form = {one: FORMATS.get((name, one), lambda value: value) for one in given}
            equal = all(read[one] is not None and form[one](read[one]) == form[one](given[one]) for one in pattern.by)
            if (
                equal
                and self.inside(pattern, read, given)
                and (pattern.where is None or pattern.where.holds_for(item, self.rules.entities[name]))
            ):
                yield item

    def inside(self, pattern, read, given):
        if pattern.within is None:
            return True
        value, asked = read[pattern.within.attribute], given[pattern.within.attribute]
        if value is None:
            return False
        match pattern.within.form:
            case "between":
                return asked[0] <= value <= asked[1]
            case "at_least":
                return asked <= value
            case "at_most":
                return value <= asked
        return value.startswith(asked)

    def seen(self, pattern, item):
        """An item as the pattern returns it, with its entity's name if the pattern is of several."""
        if pattern.beside:
            name = next(name for name in pattern.entities if any(one is item for one in self.of(name)))
            return [name, self.seen(replace(pattern, beside=()), item)]
        if pattern.returns is None:
            return {name: make_plain_value(value) for name, value in item.items()}
        found = {}
        for text in pattern.returns:
            other, _, rest = text.partition(".")
            if rest:
                (source,) = [
                    one
                    for one in self.of(other)
                    if all(
                        self.field(other, one, field) == self.field(pattern.entity, item, field)
                        for field in self.rules.entities[other].identity
                    )
                ] or [{}]
                found[text] = None if not source else self.field(other, source, rest)
            else:
                found[text] = self.field(pattern.entity, item, text)
        return {name: value for name, value in found.items() if value is not None}


def plain(item):
    return json.dumps(item, default=lambda v: sorted(v) if isinstance(v, set) else str(v), sort_keys=True)


def texts(items):
    return sorted(map(plain, items))


def call_of(draw, world, pattern):
    """Arguments of a call, mostly of an item that exists."""
    items = world.of(pattern.entity)
    item = draw(st.sampled_from(items)) if items else {}

    def one(field):
        return (
            draw(st.just(value))
            if (value := world.field(pattern.entity, item, field)) is not None and draw(st.integers(0, 5))
            else draw(NUMBERS if field == "price" else IDS)
        )

    given = {field: one(field) for field in pattern.by}
    if pattern.within is not None:
        field = pattern.within.attribute
        ends = draw(st.sampled_from([tuple, list]))  # JSON has no tuples
        given[field] = ends(sorted((one(field), one(field)))) if pattern.within.form == "between" else one(field)
    return given


MORE = {
    "{get: ware, by: [shelf], at_most: row}",
    "{get: ware, by: [shelf], between: row}",
    "{get: ware, by: [shelf], at_least: row}",
    "{get: ware, by: [shelf], begins_with: row}",
    "{get: order, by: [user_id], begins_with: order_id}",
    "{get: order, by: [user_id], at_most: order_id}",
    "{get: order, by: [user_id], between: made}",
    "{get: order, by: [user_id], attributes: [order_id, total, user.name, user.email]}",
    "{get: order, by: [user_id], where: \"status == 'OPEN'\", keeps: 50%}",
    "{get: game, by: [map], between: started, where: \"status == 'OPEN'\", keeps: 10%}",
    "{get: ware, by: [shelf], between: row, via: by_spot, attributes: [name]}",
    "{get: ware, by: [shelf], at_most: row, via: by_spot, attributes: [name]}",
    "{get: ware, by: [shelf], at_least: row, via: by_spot, attributes: [name]}",
    "{get: product, by: [category], at_least: price, attributes: [price, product_id]}",
    "{get: [ware, crate], by: [shelf], page: 2}",
    "{get: [ware, crate], by: [shelf], begins_with: GSI1SK}",
    "{get: [ware, crate], by: [shelf], at_least: GSI1SK}",
    "{get: [ware, crate], by: [shelf], at_most: GSI1SK}",
}
GETS = [one for one in (*SERVED, *sorted(MORE)) if one.startswith("{get") and "keys" not in one]


@pytest.mark.parametrize("pattern", spread_over_night(GETS, share=12))
@settings(max_examples=deep(30), deadline=None)
@given(data=st.data())
def test_gets_find_what_a_filter_over_all_items_finds(pattern, data):
    """The same items, in the order of the sort key, in the requests of the proof; also page by page."""
    rules = rules_of(pattern)
    declared, answer = find_design(rules).patterns["p0"], prove(rules).answers["p0"]
    others = {"order": ["user"], "user": ["order"], "store": ["ware"]}.get(declared.entity, [])
    items = kept(rules, stored(rules, data.draw(data_of(*others, *declared.entities))))
    world, client = World(rules, items), MemoryClient(rules.tables.values(), items)
    patterns = Patterns(rules, client)
    asked = call_of(data.draw, world, declared)
    expected = texts(world.seen(declared, item) for item in world.found(declared, asked))
    with requests_of(client) as requests:
        found = [*patterns.all("p0", asked)]
    assert texts(found) == expected
    assert requests.operations == [step.request for step in answer.steps][: requests.count]
    assert requests.count == len(answer.steps) or not found
    if declared.order is not None and declared.returns is None:
        order = [
            world.field(declared.entity, {name: make_raw_value(value) for name, value in item.items()}, declared.order)
            for item in found
        ]
        assert order == sorted(order, reverse=declared.backward)
    client.page_items = data.draw(st.integers(1, 5))
    paged, cursor = [], None
    while True:
        page = patterns.page("p0", asked, limit=data.draw(st.integers(1, 4)), cursor=cursor)
        paged += page.items
        cursor = page.cursor
        if cursor is None:
            break
    assert [*map(plain, paged)] == [*map(plain, found)]
    assert [*map(plain, patterns.all("p0", asked))] == [*map(plain, found)]
    if declared.one:
        assert patterns.one("p0", asked) == (found[0] if found else None)


# ---------------------------------------------------------------- graphs, trees, keys
GRAPH = "graph: goal, from: member, through: membership, neighbours: [member]"


@pytest.mark.parametrize(
    ("pattern", "meets"),
    [
        (f"{{{GRAPH}, at_least: 400-CONTRIBUTOR}}", lambda _key: True),
        (f"{{{GRAPH}, order: desc}}", lambda _key: True),
        (f"{{{GRAPH}, at_least: 500-LEAD}}", lambda key: key >= "500-LEAD"),
        (f"{{{GRAPH}, begins_with: 400-, attributes: [title]}}", lambda key: key.startswith("400")),
    ],
)
@settings(max_examples=deep(25))
@given(data=st.data())
def test_graphs_find_goals_and_the_members_around_them(pattern, meets, data):
    """The edges in their order, each with its goal and the goal's members, in three requests; also page by page."""
    rules = rules_of(pattern)
    declared = find_design(rules).patterns["p0"]
    of_one = st.fixed_dictionaries({"goal_id": IDS, "user_id": st.just(data.draw(IDS)), "memberRole": ROLES})
    edges_of_one = [("membership", one) for one in data.draw(st.lists(of_one, max_size=4))]
    items = kept(rules, stored(rules, data.draw(data_of("goal", "member", "membership")) + edges_of_one))
    world, client = World(rules, items), MemoryClient(rules.tables.values(), items)
    users_with_edges = {world.field("membership", one, "user_id") for one in world.of("membership")}
    user = data.draw(st.sampled_from(sorted(users_with_edges)) if users_with_edges else IDS)
    of_user = [one for one in world.of("membership") if world.field("membership", one, "user_id") == user]
    edges = [one for one in of_user if meets(one["gsi0"]["S"])]
    goals = {world.field("goal", one, "goal_id"): one for one in world.of("goal")}
    users = {world.field("member", one, "user_id"): one for one in world.of("member")}
    patterns = Patterns(rules, Reader(client, raw=True))
    read, batch_get_item = [], client.batch_get_item
    client.batch_get_item = lambda **p: read.extend(p["RequestItems"].values()) or batch_get_item(**p)
    with requests_of(client) as requests:
        found = patterns.graph("p0", user_id={"S": user})
    assert requests.operations == ["Query", "BatchGetItem", "BatchGetItem"][: requests.count]
    named = [world.field("membership", edge, "goal_id") for edge in found.edges]
    assert sorted(named) == sorted(world.field("membership", edge, "goal_id") for edge in edges)
    order = sorted((edge["gsi0"]["S"] for edge in edges), reverse=declared.backward)
    assert [edge["gsi0"]["S"] for edge in found.edges] == order
    shown = [goals.get(name) for name in named]
    if declared.returns is not None:
        shown = [one and {name: one[name] for name in declared.returns if name in one} for one in shown]
        assert all("ProjectionExpression" in request for request in read[:1]), "goals are read as far as asked for"
    assert found.nodes == shown
    paged, cursor, limit = [], None, data.draw(st.integers(1, 3))
    while True:
        page = patterns.graph("p0", user_id={"S": user}, limit=limit, cursor=cursor)
        assert len(page.edges) <= limit
        paged += zip(page.edges, page.nodes, page.neighbours, strict=True)
        assert len(paged) <= len(found.edges), "a cursor leads on"
        cursor = page.cursor
        if cursor is None:
            break
    assert paged == [*zip(found.edges, found.nodes, found.neighbours, strict=True)]
    for name, around in zip(named, found.neighbours, strict=True):
        if name in goals:
            beside = [one for one in world.of("membership") if world.field("membership", one, "goal_id") == name]
            members = sorted(world.field("membership", one, "user_id") for one in beside)
            assert sorted(make_plain_value(one.fields["user_id"]) for one in around.found) == members
            assert all(one.item == users.get(make_plain_value(one.fields["user_id"])) for one in around.found)


NUMBERED = """
tables:
  users: {key: {user_no: N}}
  goals: {key: {goal_id: S}}
  members: {key: {goal_id: S, member: N}, indexes: {by_member: {member: N, goal_id: S}}}
entities: {membership: {table: members}, goal: {table: goals}, user: {table: users}}
rules: {goal-members: {collect: membership, into: goal.members, as: "{member}", numbers: true}}
"""


def test_graph_whose_edges_name_users_by_another_field_is_read_by_page():
    """`link` leads from the user to the edges, and from each edge to its users, on each page."""
    rules = rules_of(
        "{graph: goal, from: user, through: membership, neighbours: [user], link: {user_no: member}}", base=NUMBERED
    )
    edges = [{"goal_id": goal, "member": number} for goal, number in (("a", 7), ("b", 7), ("b", 9))]
    items = {"users": [{"user_no": 7}], "goals": [{"goal_id": "a"}, {"goal_id": "b"}], "members": edges}
    patterns = Patterns(rules, MemoryClient(rules.tables.values(), kept(rules, items)))
    first = patterns.graph("p0", user_no=7, limit=1)
    then = patterns.graph("p0", user_no=7, limit=1, cursor=first.cursor)
    assert [one.edges for one in (first, then)] == [[edges[0]], [edges[1]]]
    around = [[(one.element, one.item) for one in page.neighbours[0].found] for page in (first, then)]
    assert around == [[(7, {"user_no": 7})], [(7, {"user_no": 7}), (9, None)]]


TREES = {
    "{tree: component, under: ComponentId}": ["GetItem", "Query"],
    "{tree: component, under: ComponentId, itself: true}": ["GetItem", "Query"],
    "{tree: component, under: ComponentId, attributes: [name, ComponentId], depth: 1}": ["Query"],
    "{tree: component, children: ComponentId}": ["Query"],
    "{tree: component, above: ComponentId, attributes: [name, ComponentId]}": ["GetItem", "BatchGetItem"],
}


@pytest.mark.parametrize("pattern", TREES)
@settings(max_examples=deep(30))
@given(data=st.data())
def test_trees_find_the_items_below_and_above(pattern, data):
    """Descendants, children and ancestors by walking from parent to parent."""
    rules = rules_of(pattern)
    items = kept(rules, stored(rules, data.draw(data_of("component", "component"))))
    declared = find_design(rules).patterns["p0"]
    world, client = World(rules, items), MemoryClient(rules.tables.values(), items)
    by_id = {make_plain_value(one["ComponentId"]): one for one in world.of("component")}
    asked = data.draw(st.sampled_from([*by_id, "1", "ä"]))

    def above(name):
        parent = by_id[name].get("ParentId", {}).get("S")
        return [] if parent not in by_id else [*above(parent), parent]

    below = [name for name in by_id if asked in above(name)]
    if declared.direction == "children" or declared.depth == 1:
        below = [name for name in below if above(name)[-1] == asked]
    names = below if declared.direction != "above" else above(asked) if asked in by_id else []
    names += [asked] if declared.itself and asked in by_id else []
    patterns = Patterns(rules, client)
    with requests_of(client) as requests:
        found = [*patterns.all("p0", ComponentId=asked)]
    assert requests.operations == TREES[pattern][: requests.count]
    assert sorted(one["ComponentId"] for one in found) == sorted(names)
    if declared.returns is not None:
        assert all(one.keys() == {"name", "ComponentId"} for one in found)
    if declared.direction == "children":
        paged, cursor = [], None
        while cursor is not None or not paged:
            page = patterns.page("p0", ComponentId=asked, limit=1, cursor=cursor)
            paged += page.items or [None]
            cursor = page.cursor
            if cursor is None:
                break
        assert [one for one in paged if one] == found


SOME = [
    ("user", {"user_id": "1", "name": "Ann", "email": "a@x", "city": "A"}),
    ("user", {"user_id": "1#0", "name": "Bob", "email": "b@x", "city": "B"}),
    ("order", {"user_id": "1", "order_id": "1", "made": "2026-01", "total": 9, "status": "OPEN"}),
    ("order", {"user_id": "1", "order_id": "2", "made": "2026-02", "total": 8, "status": "PAID"}),
]


def some(*patterns, base=BASE, items=SOME, **options):
    """Patterns over a few items, and their client."""
    rules = rules_of(*patterns, base=base)
    client = MemoryClient(rules.tables.values(), kept(rules, stored(rules, items)))
    return Patterns(rules, options.pop("reader", Reader)(client), **options), client


def test_keys_are_read_at_once_in_their_order():
    """A batch has one item per key, None for one that does not exist, in one BatchGetItem."""
    patterns, client = some("{get: user, by: [user_id], keys: 25, attributes: [name]}")
    with requests_of(client) as requests:
        assert patterns.batch("p0", ["1#0", {"user_id": "9"}, "1"]) == [{"name": "Bob"}, None, {"name": "Ann"}]
    assert requests.by_operation == {"BatchGetItem": 1}


RENAMED = BASE.replace(
    "{mirror: user, into: user_by_email, attributes: [name]}",
    "{mirror: user, into: user_by_email, attributes: {name: called, city: town}}",
)
CODED = BASE.replace(
    "  user-by-email:", "  by-code: {mirror: order, into: coded, attributes: [total]}\n  user-by-email:"
).replace("  user_by_email: {", '  coded: {table: shop, key: {PK: "CODE#{code}", SK: CODE}}\n  user_by_email: {')
PAID = BASE.replace(
    "newest:",
    "by_payer: {payer: S}\n      by_status: {partition: {status: S}, sort: {made: S}, projection: [total]}\n      newest:",
).replace("copy user.name into order.user_name", "{copy: user.name, into: order.payer_name, link: {user_id: payer}}")
BARE = BASE.replace(
    "GSI1: {ParentId: S, ComponentId: S}",
    "GSI1: {partition: {ParentId: S}, sort: {ComponentId: S}, projection: keys}",
)
PARTS = [("component", {"ComponentId": "1", "ParentId": "", "name": "A"}),
         ("component", {"ComponentId": "2", "ParentId": "1", "name": "B"})]  # fmt: skip
MAIL = "get: user, by: [email], one: true, via: mirror, where: \"city == 'A'\""
ROADS = {  # rules, items, pattern, arguments, what is found, requests
    "a mirror has the names of its source": (
        RENAMED, SOME, f"{{{MAIL}, attributes: [name, city, user_id]}}",
        {"email": "a@x"}, [{"name": "Ann", "city": "A", "user_id": "1"}], ["GetItem"],
    ),
    "a condition is asked of a mirror": (
        RENAMED, SOME, f"{{{MAIL}, attributes: [name]}}", {"email": "b@x"}, [], ["GetItem"],
    ),
    "a mirror that lacks an attribute of the condition leads to its source": (
        BASE, SOME, f"{{{MAIL}, attributes: [name]}}", {"email": "a@x"}, [{"name": "Ann"}], ["GetItem"] * 2,
    ),
    "the source of a mirror leads to the item that it names": (
        CODED, [*SOME[:2], ("order", {**SOME[2][1], "code": "c"})],
        "{get: order, by: [code], one: true, via: mirror, attributes: [total, user.name, user.email]}",
        {"code": "c"}, [{"total": 9, "user.name": "Ann", "user.email": "a@x"}], ["GetItem"] * 3,
    ),
    "a link of a rule is followed, from the whole items if an index does not show it": (
        PAID, [*SOME[:2], ("order", {**SOME[2][1], "payer": "1#0"})],
        "{get: order, by: [status], attributes: [total, user.email]}",
        {"status": "OPEN"}, [{"total": 9, "user.email": "b@x"}], ["Query", "BatchGetItem", "BatchGetItem"],
    ),
    "a level of a tree is read by its keys if its index shows nothing else": (
        BARE, PARTS, "{tree: component, under: ComponentId, depth: 1, attributes: [name]}",
        {"ComponentId": "1"}, [{"name": "B"}], ["Query", "BatchGetItem"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("road", ROADS)
def test_road_from_one_item_to_another_takes_the_requests_that_it_needs(road):
    """Mirrors, sources, links and levels: what is found, and by how many requests."""
    base, items, pattern, given_arguments, expected, operations = ROADS[road]
    patterns, client = some(pattern, base=base, items=items)
    with requests_of(client) as requests:
        assert [*patterns.all("p0", **given_arguments)] == expected
    assert requests.operations == operations
    assert base is not CODED or "user-name-on-orders" not in prove(rules_of(pattern, base=base)).unread


def test_formulas_are_told_apart_where_rows_show_their_fields():
    """A separator inside a field makes one key of two items; the fields themselves say which is meant."""
    base = BASE.replace("projection: [name]}", "projection: all}")
    stores = [
        ("store", {"store_id": "1", "state": "S", "city": "A#B", "zip": "C", "name": "x"}),
        ("store", {"store_id": "2", "state": "S", "city": "A", "zip": "B#C", "name": "y"}),
    ]
    patterns, _ = some(
        "{get: store, by: [state, city]}", "{get: store, by: [state, city, zip]}", base=base, items=stores
    )
    assert [one["name"] for one in patterns.all("p0", state="S", city="a")] == ["y"]
    assert [one["name"] for one in patterns.all("p1", state="S", city="A#B", zip="C")] == ["x"]


class Order:
    def __init__(self, order_id, total):
        self.name = f"{order_id}: {total}"


def test_types_make_something_else_of_items():
    """A class takes the attributes by name, any other callable the item."""
    pattern = "{get: order, by: [user_id], order: order_id, attributes: [order_id, total]}"
    patterns, _ = some(pattern, types={"order": Order})
    assert [one.name for one in patterns.page("p0", user_id="1").items] == ["1: 9", "2: 8"]
    patterns, _ = some(pattern, types={"order": lambda item: item["total"]})
    assert [*patterns.all("p0", user_id="1")] == [9, 8]
    with pytest.raises(UserError, match="types: no entity 'ordr'"):
        some(pattern, types={"ordr": Order})


WRONG = {
    "missing": (lambda p: p.all("p0", {}), "expected user_id and order_id; missing: user_id, order_id"),
    "surplus": (
        lambda p: p.page("p0", user_id="secret", order_id=("1", "2"), city="secret"),
        "expected user_id and order_id; unknown: city",
    ),
    "one end": (lambda p: p.page("p0", user_id="1", order_id="secret"), "order_id: expected both ends"),
    "three ends": (lambda p: p.all("p0", user_id="1", order_id=("secret",) * 3), "found 3 values"),
    "two types": (lambda p: p.all("p0", user_id="1", order_id=("secret", 1)), "two ends of one type"),
    "backwards": (lambda p: [*p.all("p0", user_id="1", order_id=("secret2", "secret1"))], "ends before it begins"),
    "no key": (lambda p: p.page("p0", user_id=["secret"], order_id=("1", "2")), "found a list"),
    "unknown": (lambda p: p.page("p9"), "no pattern 'p9'. Known: p0, p1, p2, p3, p4, p5"),
    "a write": (lambda p: p.page("p2"), "pattern p2 is a write"),
    "not served": (lambda p: p.page("p1", order_id="1"), "pattern p1 is not served: no key finds order by order_id"),
    "a tree": (lambda p: p.page("p3", ComponentId="1"), "pattern p3 has no pages"),
    "a graph": (lambda p: p.all("p4", user_id="1"), "pattern p4 is not called by all: use graph"),
    "no graph": (lambda p: p.graph("p0", user_id="1"), "pattern p0 is not called by graph: use page, all or one"),
    "several": (lambda p: p.one("p0", user_id="1", order_id=("1", "2")), "may find several items"),
    "no keys": (lambda p: p.batch("p0", ["1"]), "reads one key at a time"),
    "limit": (lambda p: p.page("p0", user_id="1", order_id=("1", "2"), limit=0), "limit is 0"),
    "no text": (lambda p: p.all("p5", user_id="1", order_id=1), "order_id: expected a text, the beginning of others"),
    "cursor": (lambda p: p.page("p0", user_id="1", order_id=("1", "2"), cursor="secret"), "not a cursor"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_are_errors_that_say_what_was_expected(case):
    """The message names arguments and pattern, and no value; a pattern that nothing serves has its first cure."""
    call, message = WRONG[case]
    patterns, client = some(
        "{get: order, by: [user_id], between: order_id}",
        "{get: order, by: [order_id]}",
        "{put: order}",
        "{tree: component, under: ComponentId}",
        "{graph: goal, from: member, through: membership, neighbours: [member]}",
        "{get: order, by: [user_id], begins_with: order_id}",
    )
    with requests_of(client) as requests, pytest.raises(UserError, match=re.escape(message)) as raised:
        call(patterns)
    assert "secret" not in str(raised.value)
    assert requests.count == 0
    if case == "not served":
        assert '"derive"' in raised.value.cure


def test_cursors_are_of_one_call():
    """A cursor leads on in its own call, and is refused by another."""
    patterns, _ = some("{get: order, by: [user_id], page: 1}")
    first = patterns.page("p0", user_id="1")
    assert [one["SK"] for one in first.items] == ["ORDER#1"]
    assert [one["SK"] for one in patterns.page("p0", user_id="1", cursor=first.cursor).items] == ["ORDER#2"]
    with pytest.raises(UserError, match="of another listing"):
        patterns.page("p0", user_id="2", cursor=first.cursor)
