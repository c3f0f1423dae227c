"""Each pattern gets the request that an engineer would write, or a true reason and a cure that serves it."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from sync_rules.extras.design.patterns.answers import merge_entries
from sync_rules.extras.design.patterns.keepers import list_keepers
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.language.problems import Problems, list_errors
from sync_rules.language.yaml_source import read_document
from sync_rules.rules import compiled_file, fingerprints
from tests.support.depth import take_share

BASE = """
tables:
  shop:
    key: {PK: S, SK: S}
    indexes:
      GSI1: {GSI1PK: S, GSI1SK: S}
      by_place: {partition: {state: S}, sort: {place: S}, projection: [name]}
      by_code: {partition: {state: S}, sort: {code: S}, projection: [name]}
      by_price: {partition: {category: S}, sort: {price: N, product_id: S}}
      newest: {partition: {PK: S}, sort: {made: S}, projection: keys, local: true}
  records: {key: {source: S, target: S}, indexes: {gsi0: {target: S, gsi0: S}}}
  components: {key: {ComponentId: S}, indexes: {GSI1: {ParentId: S, ComponentId: S}, GSI2: {GraphId: S, Path: S}}}
  games: {key: {game_id: S}, indexes: {by_map: {map: S, started: S}}}
  devices: {key: {PK: S}, indexes: {by_shard: {shard: S, at: S}, by_kind: {kind: S}}}
  houses: {key: {house_id: S}, indexes: {by_address: {country: S, address: S}}}
  parts: {key: {tenant: S, part_id: S}, indexes: {kids: {tenant: S, parent: S}}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}, size: 1.6KB, items: 1000}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}, size: 1KB}
  user_by_email: {table: shop, key: {PK: "EMAIL#{email}", SK: USER}}
  store: {table: shop, key: {PK: "STORE#{store_id}", SK: STORE}}
  product: {table: shop, key: {PK: "PRODUCT#{product_id}", SK: PRODUCT}}
  ware: {table: shop, key: {PK: "WARE#{ware_id}", SK: WARE, GSI1PK: "SHELF#{shelf}", GSI1SK: "{row}#{ware_id}"}}
  crate: {table: shop, key: {PK: "CRATE#{crate_id}", SK: CRATE, GSI1PK: "SHELF#{shelf}", GSI1SK: "{row}#{crate_id}"}}
  goal: {table: records, key: {source: "GOAL-{goal_id}", target: "GOAL-{goal_id}"}}
  member: {table: records, key: {source: "USER-{user_id}", target: "USER-{user_id}"}}
  membership:
    table: records
    key: {source: "GOAL-{goal_id}", target: "GOALMEMBERSHIP-USER-{user_id}"}
    required: [gsi0]
  component: {table: components}
  game: {table: games, size: 500, items: 1000}
  version: {table: shop, key: {PK: "THING#{thing_id}", SK: "V#{number:pad(6)}"}}
  person: {table: shop, key: {PK: "PERSON#{person_id}", SK: PERSON}}
  group: {table: shop, key: {PK: "GROUP#{group_id}", SK: GROUP}}
  club: {table: shop, key: {PK: "CLUB#{club_id}", SK: CLUB}}
  device: {table: devices}
  news: {table: shop, key: {PK: NEWS, SK: "{made}"}, items: 100}
  house: {table: houses}
  part: {table: parts}
  belonging: {table: shop, key: {PK: "CLUB#{club_id}", SK: "OF#{who}", GSI1PK: "OF#{who}", GSI1SK: "{club_id}"}}
rules:
  user-name-on-orders: copy user.name into order.user_name
  user-by-email: {mirror: user, into: user_by_email, attributes: [name]}
  place: {derive: store.place, as: "{city:upper}#{zip}"}
  rank: {derive: membership.gsi0, as: "{memberRole:rank}-{memberRole}", map: {rank: {LEAD: 500, CONTRIBUTOR: 400}}}
  goal-edges: {collect: membership, into: goal.edges, as: "{target}-{memberRole}"}
  code: {derive: store.code, as: "{city_code}#{zip}"}
  shards: {derive: device.shard, as: "{device_id:shard(10)}"}
  address: {derive: house.address, join: [street, town], separator: ", "}
  tree: {path: part.path, parent: parent, via: kids}
  members: {collect: belonging, into: club.members, as: "{who}"}
  parts: {path: component.Path, parent: ParentId, graph: GraphId}
"""


def answers(*patterns: str, base: str = BASE):
    """The answers to patterns p0, p1 and so on."""
    lines = "\n".join(f"  p{number}: {one}" for number, one in enumerate(patterns))
    proof = prove(parse_rules(f"{base}\npatterns:\n{lines}"))
    return [*proof.answers.values()]


def told(answer):
    """The requests in words."""
    return [
        f"{step.request} {step.place}: {step.condition}" + (" desc" if step.backward else "") for step in answer.steps
    ]


SERVED = {
    "{get: order, by: [user_id, order_id]}": ["GetItem shop: PK = USER#{user_id} and SK = ORDER#{order_id}"],
    "{get: user, by: [user_id]}": ["GetItem shop: PK = USER#{user_id} and SK = PROFILE"],
    "{get: user, by: [user_id], keys: 25}": ["BatchGetItem shop: PK = USER#{user_id} and SK = PROFILE"],
    "{get: [user, order], by: [user_id]}": ["Query shop: PK = USER#{user_id}"],
    "{get: [goal, membership], by: [goal_id]}": [
        "Query records: source = GOAL-{goal_id} and begins_with(target, GOAL)"
    ],
    "{get: [ware, crate], by: [shelf]}": ["Query shop/GSI1: GSI1PK = SHELF#{shelf}"],
    "{get: [user, order], by: [user_id], begins_with: SK}": [
        "Query shop: PK = USER#{user_id} and begins_with(SK, {SK})"
    ],
    "{get: [ware, crate], by: [shelf], between: GSI1SK}": [
        "Query shop/GSI1: GSI1PK = SHELF#{shelf} and GSI1SK between {GSI1SK from} and {GSI1SK to}"
    ],
    "{get: order, by: [user_id], order: order_id desc}": [
        "Query shop: PK = USER#{user_id} and begins_with(SK, ORDER#) desc"
    ],
    "{get: order, by: [user_id], between: order_id}": [
        "Query shop: PK = USER#{user_id} and SK between ORDER#{order_id from} and ORDER#{order_id to}"
    ],
    "{get: order, by: [user_id], at_least: order_id, consistent: true}": [
        "Query shop: PK = USER#{user_id} and SK between ORDER#{order_id} and ORDER#~"
    ],
    "{get: order, by: [user_id], order: made, consistent: true, attributes: [made]}": [
        "Query shop/newest: PK = USER#{user_id}"
    ],
    "{get: order, by: [user_id], attributes: [user.name]}": [
        "Query shop: PK = USER#{user_id} and begins_with(SK, ORDER#)"
    ],
    "{get: order, by: [user_id], attributes: [user.email]}": [
        "Query shop: PK = USER#{user_id} and begins_with(SK, ORDER#)",
        "BatchGetItem shop: the user that each item names by user_id",
    ],
    "{get: user, by: [email], one: true, attributes: [name]}": ["GetItem shop: PK = EMAIL#{email} and SK = USER"],
    "{get: user, by: [email], one: true, via: mirror}": [
        "GetItem shop: PK = EMAIL#{email} and SK = USER",
        "GetItem shop: the user that each mirror names",
    ],
    "{get: store, by: [state], attributes: [name]}": ["Query shop/by_place: state = {state}"],
    "{get: store, by: [state, city], attributes: [name]}": [
        "Query shop/by_place: state = {state} and begins_with(place, {city:upper}#)"
    ],
    "{get: store, by: [state, city, zip], attributes: [name]}": [
        "Query shop/by_place: state = {state} and place = {city:upper}#{zip}"
    ],
    "{get: store, by: [state, city], begins_with: zip, attributes: [name]}": [
        "Query shop/by_place: state = {state} and begins_with(place, {city:upper}#{zip})"
    ],
    "{get: store, by: [state]}": ["Query shop/by_place: state = {state}", "BatchGetItem shop: the keys of the rows"],
    "{get: product, by: [category], between: price}": [
        "Query shop/by_price: category = {category} and price between {price from} and {price to}"
    ],
    "{get: product, by: [category, price], at_most: product_id}": [
        "Query shop/by_price: category = {category} and price = {price} and product_id <= {product_id}"
    ],
    "{get: ware, by: [shelf, row]}": ["Query shop/GSI1: GSI1PK = SHELF#{shelf} and begins_with(GSI1SK, {row}#)"],
    "{get: game, by: [map], where: \"status == 'OPEN'\", order: started desc}": [
        "Query games/by_map: map = {map} desc"
    ],
    "{graph: goal, from: member, through: membership, at_least: 400-CONTRIBUTOR, neighbours: [member]}": [
        "Query records/gsi0: target = GOALMEMBERSHIP-USER-{user_id} and gsi0 >= 400-CONTRIBUTOR",
        "BatchGetItem records: the goal of each membership",
        "BatchGetItem records: the member that goal.edges names",
    ],
    "{tree: component, under: ComponentId}": [
        "GetItem components: ComponentId = {ComponentId}",
        "Query components/GSI2: GraphId = {GraphId} and begins_with(Path, {Path}|)",
    ],
    "{tree: component, children: ComponentId}": ["Query components/GSI1: ParentId = {ComponentId}"],
    "{tree: component, above: ComponentId, attributes: [name]}": [
        "GetItem components: ComponentId = {ComponentId}",
        "BatchGetItem components: the ids in Path",
    ],
    "{get: store, by: [state], at_most: city_code, attributes: [name]}": [
        "Query shop/by_code: state = {state} and code <= {city_code}#~"
    ],
    "{get: store, by: [state], between: city_code, attributes: [name]}": [
        "Query shop/by_code: state = {state} and code between {city_code from} and {city_code to}#~"
    ],
    "{get: store, by: [state], order: place, attributes: [name]}": ["Query shop/by_place: state = {state}"],
    "{get: version, by: [thing_id], order: number desc}": [
        "Query shop: PK = THING#{thing_id} and begins_with(SK, V#) desc"
    ],
    "{get: user, by: [PK, SK]}": ["GetItem shop: PK = {PK} and SK = {SK}"],
    "{graph: club, from: person, through: belonging, neighbours: [person, group], link: {PK: who}}": [
        "Query shop/GSI1: GSI1PK = OF#{who}",
        "BatchGetItem shop: the club of each belonging",
        "BatchGetItem shop: the person and group that club.members names",
    ],
    "{tree: part, children: part_id}": ["Query parts/kids: tenant = {tenant} and parent = {part_id}"],
    "{get: house, by: [country, street, town]}": [
        "Query houses/by_address: country = {country} and address = {street}, {town}"
    ],
    "{get: user, by: [email], keys: 5, attributes: [name]}": ["BatchGetItem shop: PK = EMAIL#{email} and SK = USER"],
    "{put: order, rate: 20/s}": ["PutItem shop: PK = USER#{user_id} and SK = ORDER#{order_id}"],
    "{update: user, sets: [email]}": ["UpdateItem shop: PK = USER#{user_id} and SK = PROFILE"],
    "{graph: member, from: goal, through: membership, order: desc}": [
        "Query records: source = GOAL-{goal_id} and begins_with(target, GOALMEMBERSHIP-USER-) desc",
        "BatchGetItem records: the member of each membership",
    ],
    "{tree: component, under: ComponentId, depth: 1}": ["Query components/GSI1: ParentId = {ComponentId}"],
    "{tree: part, under: part_id, depth: 2, items: 8}": ["Query parts/kids: tenant = {tenant} and parent = {part_id}"],
}


@pytest.mark.parametrize("pattern", SERVED)
def test_patterns_are_served_by_the_request_that_fits(pattern):
    """The cheapest request, with its key condition."""
    (answer,) = answers(pattern)
    assert told(answer) == SERVED[pattern], answer.reason


REASONS = {
    "{get: order, by: [order_id]}": "no key finds order by order_id: table shop by USER#{user_id}",
    "{get: order, by: [user_id, status]}": "table shop finds by user_id, and not by status",
    "{get: order, by: [user_id], order: total}": "table shop finds by user_id and is sorted by order_id, not by total",
    "{get: product, by: [category], consistent: true}": "shop/by_price serves it, and no index is strongly consistent",
    "{get: user, by: [user_id], returns: [name, order.total]}": "user has no order_id, which would name the order of order.total",
    "{get: order}": "nothing says which order: a Scan would read all of table shop",
    "{get: order, by: [user_id], keys: 3}": "`keys` reads items by their whole key, user_id, order_id; given is user_id",
    "{get: order, by: [user_id], via: GSI1}": "via index GSI1 does not serve it; shop does",
    "{graph: goal, from: goal, through: membership}": "membership names the start by goal_id, and so its goal too",
    "{graph: goal, from: member, through: order}": "order has no goal_id, which would name its goal",
    "{get: device, by: [device_id], order: at desc, one: true}": "index by_shard holds device_id in a form that other values share",
    "{get: device, by: [kind], order: at desc, one: true}": "index by_kind finds by kind and is sorted by nothing more",
    "{get: house, by: [country, street]}": "index by_address finds by country, and not by street",
    '{get: component, where: "active == `true`"}': "nothing says which component",
    "{tree: part, under: part_id}": "no index has the graph and the path as its keys: each level would cost a Query",
    "{get: store, by: [state, zip], returns: [name]}": "index by_place finds by state, and not by zip",
    "{tree: part, under: tenant}": "the id of a part in its hierarchy is part_id, and not tenant",
    "{get: user, by: [email], one: true, attributes: [name], consistent: true}": "shop serves it, and a mirror follows its source",
    "{get: store, by: [state], order: city, attributes: [name]}": "index by_place finds by state and is sorted by place",
    "{get: store, by: [state], at_least: city, attributes: [name]}": "index by_place finds by state and is sorted by place",
    "{get: version, by: [thing_id], begins_with: number}": "table shop finds by thing_id, and begins_with is for texts",
    "{graph: club, from: person, through: belonging, neighbours: [user], link: {PK: who}, via: table}": "via table does not serve it; shop/GSI1 does",
    "{graph: club, from: person, through: belonging, neighbours: [user]}": "no key finds belonging by person_id",
    "{graph: goal, from: member, through: membership, neighbours: [user, order]}": "goal.edges names edges by goal_id",
    "{graph: member, from: goal, through: membership, neighbours: [goal]}": "no set on member names its goal",
}


@pytest.mark.parametrize("pattern", REASONS)
def test_patterns_that_nothing_serves_have_a_reason(pattern):
    """The reason names the nearest way, and what it lacks."""
    (answer,) = answers(pattern)
    assert not answer.is_served
    assert answer.reason.startswith(REASONS[pattern])


NOTED = {
    "{get: user, by: [user_id], where: \"status == 'X'\"}": "GetItem takes no filter",
    "{get: game, by: [map], where: \"starts_with(started, '2026') && players > `3`\"}": "no FilterExpression may name started, a part of the key",
    '{get: store, by: [state], returns: [name], where: "size > `5`"}': "by_place does not project size",
    "{get: store, by: [state, city], returns: [name]}": "city is compared as the key has it",
    "{get: store, by: [state], returns: [name]}": "items without place are not in index by_place",
    "{get: order, by: [user_id, order_id], consistent: true, returns: [user_name]}": "user_name follows its source",
    "{get: product, by: [category], between: price}": "items without price or product_id are not in index by_price",
    "{get: news, order: made}": "every news is read",
    "{get: ware, by: [shelf]}": "the Query reads items of crate too, and drops them",
}


@pytest.mark.parametrize("pattern", NOTED)
def test_patterns_note_what_a_request_costs_or_leaves_out(pattern):
    """A request that costs more, or leaves something out, says so."""
    (answer,) = answers(pattern)
    assert any(NOTED[pattern] in remark for remark in answer.remarks), answer.remarks


def test_patterns_keep_the_rest_of_a_condition():
    """A value that a key serves is no filter any more; a second one is, and one that the key holds in another form."""
    told = [
        "{get: game, by: [map], where: \"players > `3` && started == '2026'\"}",
        "{get: game, where: \"map == 'A' && map == 'B'\"}",
        "{get: store, by: [state], where: \"city == 'Rome'\", attributes: [name]}",
    ]
    assert [answer.steps[0].filters for answer in answers(*told)] == ["players > `3`", "map == 'B'", "city == 'Rome'"]


def test_levels_of_a_tree_are_a_filter_or_a_query_each():
    """The path serves levels by a filter; without it there is a Query for each item above the last level."""
    by_path, by_level = answers(
        "{tree: component, under: ComponentId, depth: 2, items: 8}", "{tree: part, under: part_id, depth: 2, items: 8}"
    )
    assert (by_path.requests, by_path.steps[1].filters) == (2, "at most 2 levels below")
    assert by_level.requests == 9


def test_children_of_a_tree_cost_a_page():
    """A page of children is priced as a page of other reads is: 20 items of 1 KB, or all if there are fewer."""
    base = BASE.replace("component: {table: components}", "component: {table: components, size: 1KB}")
    kids = "{tree: component, children: ComponentId, %s}"
    found = answers(*(kids % one for one in ("page: 20", "page: 20, items: 400", "page: 20, items: 4")), base=base)
    assert [one.steps[0].units for one in found] == [2.5, 2.5, 0.5]


def test_patterns_with_items_of_others_between_read_until_one_is_found():
    """No limit where the first row may be of another entity."""
    (alone, among) = answers("{get: order, by: [user_id], one: true}", "{get: ware, by: [shelf], one: true}")
    assert alone.steps[0].limit == 1
    assert among.steps[0].limit is None


def test_patterns_add_what_a_local_index_fetches():
    """A row of the local index shows keys alone: each item costs a read of its own."""
    base = BASE.replace("size: 1KB}", "size: 1KB, items: 100}")
    (answer,) = answers("{get: order, by: [user_id], order: made, items: 50}", base=base)
    assert answer.steps[0].units == 6.5 + 50 * 0.5


def test_patterns_take_no_attribute_of_the_application_for_a_free_index():
    """A cure fills an existing index only if no other pattern names its attributes."""
    title = "index GSI1, whose keys order does not fill yet"
    assert title in [cure.title for cure in answers("{get: order, by: [status]}")[0].cures]
    for other in ("{update: order, sets: [GSI1PK]}", "{get: order, by: [user_id], attributes: [GSI1SK]}"):
        assert title not in [cure.title for cure in answers("{get: order, by: [status]}", other)[0].cures]


SECOND = (
    BASE.replace(
        "entities:\n",
        """  books: {key: {PK: S, SK: S}}
entities:
  by_tag: {table: shop, key: {PK: "TAG#{tag}", SK: "{user_id}"}}
  by_city: {table: shop, key: {PK: "CITY#{city}", SK: USER}}
""",
        1,
    )
    .replace(
        "  parts: {path:",
        """  tags: {mirror: user, into: by_tag, each: {tag: tags}, attributes: [name]}
  cities: {mirror: user, into: by_city, attributes: [name]}
  spent: {sum: order.total, into: user.spent, ledger: books}
  sorted: {derive: order.made, as: "{total}"}
  due: {derive: store.code2, as: "{due}", default: NEVER}
  parts: {path:""",
        1,
    )
    .replace("by_code:", "by_due: {state: S, code2: S}\n      by_code:", 1)
)


def test_patterns_ask_a_mirror_for_no_more_than_it_says():
    """An element is not the list that it is of, and of several items with one key one has the mirror."""
    by_tag, listed, several, single = answers(
        "{get: user, by: [tags], where: \"contains(tags, 'b')\", attributes: [name]}",
        "{get: user, by: [tags], attributes: [tags]}",
        "{get: user, by: [city], attributes: [name]}",
        "{get: user, by: [city], one: true, attributes: [name]}",
        base=SECOND,
    )
    for answer in (by_tag, listed):
        assert [step.request for step in answer.steps] == ["Query", "BatchGetItem"]
    assert [step.filters for step in by_tag.steps] == ["", "contains(tags, 'b')"]
    assert not several.is_served
    assert single.is_served


def test_patterns_know_numbers_in_texts_and_defaults():
    """Text puts 10 before 9. Items without a value are listed under the default, and a remark says so."""
    by_total, by_due = answers(
        "{get: order, by: [user_id], order: total desc}", "{get: store, by: [state], order: due}", base=SECOND
    )
    assert not by_total.is_served
    assert "items that get no code2 from due are there under its default" in by_due.remarks


def test_patterns_need_numbers_where_rules_and_conditions_have_them():
    """The type of a new key: of what a sum adds, and of a number in a condition; true and false are no key."""
    base = BASE.replace(
        "  parts: {path:", "  spent: {sum: order.total, into: user.spent, ledger: books}\n  parts: {path:"
    )
    base = base.replace("entities:\n", "  books: {key: {PK: S, SK: S}}\nentities:\n", 1)
    by_total, by_size, by_flag = answers(
        "{get: order, by: [user_id], order: total}",
        '{get: store, where: "size == `5`"}',
        '{get: store, where: "open == `true`"}',
        base=base,
    )
    made = [cure.entries["tables"] for one in (by_total, by_size) for cure in one.cures if "tables" in cure.entries]
    assert made == [
        {"shop": {"indexes": {"by-PK-total": {"PK": "S", "total": "N"}}}},
        {"shop": {"indexes": {"by-size": {"size": "N"}}}},
    ]
    assert [cure.title for cure in by_flag.cures] == ["an index with every store in one partition"]


def asked():
    """Patterns of many forms. The file serves some of them."""
    fields = {
        "user": ["user_id", "email", "city"],
        "order": ["user_id", "order_id", "status", "made"],
        "store": ["store_id", "state", "city", "zip"],
        "product": ["product_id", "category", "price"],
        "ware": ["ware_id", "shelf", "row"],
        "membership": ["goal_id", "user_id", "memberRole"],
        "component": ["ComponentId", "ParentId", "kind"],
    }
    for entity, names in fields.items():
        for count in range(1, len(names)):
            for by in combinations(names, count):
                plain = {"get": entity, "by": [*by]}
                rest = [name for name in names if name not in by]
                yield plain
                yield {**plain, "one": True}
                yield {**plain, "order": f"{rest[0]} desc"}
                yield {**plain, "between": rest[-1]}
                yield {**plain, "consistent": True}
                yield {**plain, "consistent": True, "order": rest[0]}
                yield {**plain, "keys": 10}
                yield {**plain, "via": "table"}
        yield {"get": entity}
        yield {"get": entity, "order": names[-1]}
        yield {"get": entity, "where": f"{names[-1]} == 'A'"}
    for node, start in (("goal", "member"), ("member", "goal")):
        for around in ([], ["member"], ["goal"]):
            yield {"graph": node, "from": start, "through": "membership", "neighbours": around}
    for entity, name in (("component", "ComponentId"), ("user", "user_id"), ("game", "game_id")):
        for direction in ("under", "above", "children"):
            yield {"tree": entity, direction: name}


def test_patterns_are_served_by_each_of_their_cures():
    """A cure is merged into the file, which then passes check and serves the pattern: some of hundreds."""
    document = read_document(BASE, Problems())
    assert document is not None
    forms = {f"p{number}": form for number, form in enumerate(asked())}
    proof = prove(parse_rules(json.dumps({**document.data, "patterns": forms})))
    cures = [(name, cure) for name, answer in proof.answers.items() for cure in answer.cures]
    assert len(cures) > 300
    for name, cure in take_share(cures[::5]):  # all of them take a minute
        data = merge_entries({**document.data, "patterns": {name: forms[name]}}, cure.entries)
        rules, problems = check_rules(json.dumps(data))
        told = f"{forms[name]}: {cure.title} {cure.entries}"
        assert rules is not None, f"{told}: {[one.message for one in list_errors(problems)]}"
        assert prove(rules).answers[name].is_served, f"{told}: {prove(rules).answers[name].reason}"
    bare = [forms[name] for name, answer in proof.answers.items() if not answer.is_served and not answer.cures]
    assert bare == []


def test_patterns_change_nothing_of_the_rules():
    """No fingerprint depends on patterns, sizes or numbers; compiled rules have the patterns."""
    plain = parse_rules(BASE.replace(", size: 1.6KB, items: 1000", "").replace(", size: 1KB", ""))
    rules = parse_rules(f"{BASE}\npatterns:\n  order: {{get: order, by: [user_id, order_id]}}\n")
    assert rules.fingerprint == plain.fingerprint
    assert fingerprints.compute_rule_fingerprints(rules) == fingerprints.compute_rule_fingerprints(plain)
    again = compiled_file.read(compiled_file.dump(rules, {}), "rules.compiled", {})
    assert again.fingerprint == rules.fingerprint
    assert told(prove(again).answers["order"]) == told(prove(rules).answers["order"])


SEVERAL = """
tables: {shop: {key: {PK: S, SK: S}, indexes: {feed: {partition: {G1: S}, sort: {G2: S}, projection: keys}}}}
entities:
  org:    {table: shop, key: {PK: "ORG#{org_id}", SK: ORG, G1: "FEED#{org_id}"}, size: 500}
  ticket: {table: shop, key: {PK: "ORG#{org_id}", SK: "T#{ticket_id}", G1: "FEED#{org_id}"}, size: 40KB}
  config: {table: shop, key: {PK: CONFIG, SK: "C#{config_id}"}, size: 1KB, items: 10}
  event:  {table: shop, key: {PK: CONFIG, SK: "E#{event_id}"}, size: 1KB, items: 1000000}
rules: {name: copy org.name into ticket.org_name}
"""


@pytest.mark.parametrize(
    ("names", "options"),
    [(("org", "ticket"), "by: [org_id], items: 10"), (("org", "ticket"), "by: [org_id], items: 10, via: feed"),
     (("config", "event"), "")],
)  # fmt: skip
def test_several_entities_cost_the_same_in_any_order(names, options):
    """All of them count: no less than what the dearest costs alone, and with the same notes."""
    one, two, alone = answers(
        f"{{get: [{', '.join(names)}], {options}}}",
        f"{{get: [{', '.join(reversed(names))}], {options}}}",
        f"{{get: {names[1]}, {options}}}",
        base=SEVERAL,
    )
    assert (one.requests, one.units) == (two.requests, two.units)
    assert one.units >= alone.units
    assert {*one.remarks} == {*two.remarks} or not options


def test_several_entities_keep_the_mirrors_among_them():
    """A mirror that stands second is known to its rule, as one that stands first."""
    seen = '  seen: {table: shop, key: {PK: "ORG#{org_id}", SK: "SEEN#{org_id}"}}'
    base = SEVERAL.replace("rules: {", f"{seen}\nrules: {{seen: mirror org into seen, ")
    for names in ("org, seen", "seen, org"):
        rules = parse_rules(f"{base}\npatterns:\n  p0: {{get: [{names}], by: [org_id]}}")
        kept = list_keepers(rules, prove(rules).answers["p0"])
        assert ("item", "seen") in {(one.role, one.rule.title) for one in kept if one.rule}
