"""Designs that are known from guides and articles, with the access patterns that they were made for: each pattern gets
the request that its author wrote for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML

from sync_rules.extras.design.patterns.answers import Answer
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.language.load import parse_rules
from tests.support.engines import ROOT
from tests.support.shared import case

Told = tuple[int, list[str]]  # the number of requests, and the requests in words


def told(answer: Answer) -> Told:
    """The requests of an answer: operation, table or index, key condition, direction, filter."""
    words = [
        f"{step.request} {step.place}: {step.condition}"
        + (" desc" if step.backward else "")
        + (f" filter {step.filters}" if step.filters else "")
        for step in answer.steps
    ]
    return answer.requests, words or [answer.reason]


def proved(rules: str, patterns: Mapping[str, str]) -> dict[str, Told]:
    """The answers to patterns by their names."""
    lines = "\n".join(f"  {name}: {pattern}" for name, pattern in patterns.items())
    proof = prove(parse_rules(f"{rules}\npatterns:\n{lines}\n", environ={}))
    return {name: told(answer) for name, answer in proof.answers.items()}


def example(name: str) -> str:
    """The rules file of an example, without its own patterns."""
    return (ROOT / "examples" / name / "rules.yaml").read_text(encoding="utf-8").partition("\npatterns:")[0]


def given(expected: Mapping[str, tuple[str, int, list[str]]]) -> tuple[dict[str, str], dict[str, Told]]:
    """Patterns, and what is expected of each, of one table."""
    patterns = {name: pattern for name, (pattern, _, _) in expected.items()}
    return patterns, {name: (requests, words) for name, (_, requests, words) in expected.items()}


# ---------------------------------------------------------------- an online shop
SHOP = """
tables:
  shop: {key: {PK: S, SK: S}}
entities:
  user:           {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order:          {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  line:           {table: shop, key: {PK: "ORDER#{order_id}", SK: "LINE#{line_id}"}}
  user_by_email:  {table: shop, key: {PK: "EMAIL#{email}", SK: USER}}
  order_by_id:    {table: shop, key: {PK: "ORDER#{order_id}", SK: ORDER}}
rules:
  user-name-on-orders: copy user.name into order.user_name
  users-by-email:      {mirror: user, into: user_by_email, attributes: [name]}
  orders-by-id:        {mirror: order, into: order_by_id, attributes: [user_name, total, status]}
"""
SHOP_PATTERNS = {
    "a1-profile-of-a-user": (
        "{get: user, by: [user_id], one: true}",
        1,
        ["GetItem shop: PK = USER#{user_id} and SK = PROFILE"],
    ),
    "a2-orders-of-a-user": (
        "{get: order, by: [user_id], order: order_id desc, attributes: [user_name, total], rate: 120/s}",
        1,
        ["Query shop: PK = USER#{user_id} and begins_with(SK, ORDER#) desc"],
    ),
    "a3-user-by-email": (
        "{get: user, by: [email], one: true, attributes: [name], via: mirror}",
        1,
        ["GetItem shop: PK = EMAIL#{email} and SK = USER"],
    ),
    "a4-order-by-its-id": (
        "{get: order, by: [order_id], one: true, attributes: [user_name, total]}",
        1,
        ["GetItem shop: PK = ORDER#{order_id} and SK = ORDER"],
    ),
    "a5-lines-of-an-order": (
        "{get: line, by: [order_id]}",
        1,
        ["Query shop: PK = ORDER#{order_id} and begins_with(SK, LINE#)"],
    ),
    "whole-user-by-email": (
        "{get: user, by: [email], one: true, via: mirror}",
        2,
        ["GetItem shop: PK = EMAIL#{email} and SK = USER", "GetItem shop: the user that each mirror names"],
    ),
    "month-of-orders": (
        "{get: order, by: [user_id], between: order_id, consistent: true}",
        1,
        ["Query shop: PK = USER#{user_id} and SK between ORDER#{order_id from} and ORDER#{order_id to}"],
    ),
}


def test_online_shop_is_answered_by_one_request_each():
    """A user, the orders of a user, look-ups by e-mail and by order, the lines of an order."""
    patterns, expected = given(SHOP_PATTERNS)
    assert proved(SHOP, patterns) == expected


# The table of AWS's design patterns, with its prefixes: c customer, p product, w warehouse, o order, i invoice, sh shipment.
# https://github.com/aws-samples/amazon-dynamodb-design-patterns
ONLINE_SHOP = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S, GSI1SK: S}, GSI2: {GSI2PK: S, GSI2SK: S}}}
entities:
  customer:  {table: shop, key: {PK: "c#{customer_id}", SK: "c#{customer_id}"}}
  product:   {table: shop, key: {PK: "p#{product_id}", SK: "p#{product_id}"}}
  warehouse: {table: shop, key: {PK: "w#{warehouse_id}", SK: "w#{warehouse_id}"}}
  stock:
    table: shop
    key: {PK: "p#{product_id}", SK: "w#{warehouse_id}", GSI2PK: "w#{warehouse_id}", GSI2SK: "p#{product_id}"}
  order:     {table: shop, key: {PK: "o#{order_id}", SK: "c#{customer_id}"}}
  order_item:
    table: shop
    key:
      PK: "o#{order_id}"
      SK: "p#{product_id}"
      GSI1PK: "p#{product_id}"
      GSI1SK: "{date}"
      GSI2PK: "c#{customer_id}"
      GSI2SK: "p#{date}"
  invoice:
    table: shop
    key:
      PK: "o#{order_id}"
      SK: "i#{invoice_id}"
      GSI1PK: "i#{invoice_id}"
      GSI1SK: "i#{invoice_id}"
      GSI2PK: "c#{customer_id}"
      GSI2SK: "i#{date}"
  payment:
    {table: shop, key: {PK: "o#{order_id}", SK: "pmn#{payment_id}", GSI1PK: "i#{invoice_id}", GSI1SK: "pmn#{payment_id}"}}
  shipment:
    table: shop
    key:
      PK: "o#{order_id}"
      SK: "sh#{shipment_id}"
      GSI1PK: "sh#{shipment_id}"
      GSI1SK: "sh#{shipment_id}"
      GSI2PK: "w#{warehouse_id}"
      GSI2SK: "sh#{shipment_id}"
  shipment_item:
    {table: shop, key: {PK: "o#{order_id}", SK: "shp#{item_id}", GSI1PK: "sh#{shipment_id}", GSI1SK: "p#{product_id}"}}
rules: {}
"""
ONLINE_SHOP_PATTERNS = {
    "customer": ("{get: customer, by: [customer_id], one: true}", 1,
                 ["GetItem shop: PK = c#{customer_id} and SK = c#{customer_id}"]),
    "product": ("{get: product, by: [product_id], one: true}", 1,
                ["GetItem shop: PK = p#{product_id} and SK = p#{product_id}"]),
    "warehouse": ("{get: warehouse, by: [warehouse_id], one: true}", 1,
                  ["GetItem shop: PK = w#{warehouse_id} and SK = w#{warehouse_id}"]),
    "inventory-of-product": ("{get: stock, by: [product_id]}", 1,
                             ["Query shop: PK = p#{product_id} and begins_with(SK, w#)"]),
    "order": ("{get: order, by: [order_id]}", 1,
              ["Query shop: PK = o#{order_id} and begins_with(SK, c#)"]),
    "products-of-order": ("{get: order_item, by: [order_id]}", 1,
                          ["Query shop: PK = o#{order_id} and begins_with(SK, p#)"]),
    "invoice-of-order": ("{get: invoice, by: [order_id]}", 1,
                         ["Query shop: PK = o#{order_id} and begins_with(SK, i#)"]),
    "shipments-of-order": ("{get: shipment, by: [order_id]}", 1,
                           ["Query shop: PK = o#{order_id} and begins_with(SK, sh#)"]),
    "orders-of-product-by-date": ("{get: order_item, by: [product_id], between: date}", 1,
                                  ["Query shop/GSI1: GSI1PK = p#{product_id} and GSI1SK between {date from} and {date to}"]),
    "invoice": ("{get: invoice, by: [invoice_id]}", 1,
                ["Query shop/GSI1: GSI1PK = i#{invoice_id} and GSI1SK = i#{invoice_id}"]),
    "payments-of-invoice": ("{get: payment, by: [invoice_id]}", 1,
                            ["Query shop/GSI1: GSI1PK = i#{invoice_id} and begins_with(GSI1SK, pmn#)"]),
    "shipment": ("{get: shipment, by: [shipment_id]}", 1,
                 ["Query shop/GSI1: GSI1PK = sh#{shipment_id} and GSI1SK = sh#{shipment_id}"]),
    "items-of-shipment": ("{get: shipment_item, by: [shipment_id]}", 1,
                          ["Query shop/GSI1: GSI1PK = sh#{shipment_id} and begins_with(GSI1SK, p#)"]),
    "shipments-of-warehouse": ("{get: shipment, by: [warehouse_id]}", 1,
                               ["Query shop/GSI2: GSI2PK = w#{warehouse_id} and begins_with(GSI2SK, sh#)"]),
    "inventory-of-warehouse": ("{get: stock, by: [warehouse_id]}", 1,
                               ["Query shop/GSI2: GSI2PK = w#{warehouse_id} and begins_with(GSI2SK, p#)"]),
    "invoices-of-customer-by-date": ("{get: invoice, by: [customer_id], between: date}", 1,
                                     ["Query shop/GSI2: GSI2PK = c#{customer_id} and GSI2SK between i#{date from} and i#{date to}"]),
    "products-of-customer-by-date": ("{get: order_item, by: [customer_id], between: date}", 1,
                                     ["Query shop/GSI2: GSI2PK = c#{customer_id} and GSI2SK between p#{date from} and p#{date to}"]),
}  # fmt: skip


def test_aws_s_online_shop_is_answered_as_its_authors_say():
    """All access patterns of the design, with the table or index and the key condition of their list."""
    patterns, expected = given(ONLINE_SHOP_PATTERNS)
    assert proved(ONLINE_SHOP, patterns) == expected


# ---------------------------------------------------------------- stores by place
def test_stores_are_found_by_state_city_and_zip_through_one_index():
    """The composite sort key narrows from the large to the small; a ZIP code without its city finds nothing."""
    country = "Query stores/by_place: country = {country}"
    patterns, expected = given({
        "in-country": ("{get: store, by: [country]}", 1, [country]),
        "in-state": ("{get: store, by: [country, state]}", 1, [f"{country} and begins_with(place, {{state:upper}}#)"]),
        "in-city": (
            "{get: store, by: [country, state, city]}", 1,
            [f"{country} and begins_with(place, {{state:upper}}#{{city:nospace:upper}}#)"],
        ),
        "in-zip": (
            "{get: store, by: [country, state, city, zip]}", 1,
            [f"{country} and place = {{state:upper}}#{{city:nospace:upper}}#{{zip}}"],
        ),
        "cities-that-begin-so": (
            "{get: store, by: [country, state], begins_with: city}", 1,
            [f"{country} and begins_with(place, {{state:upper}}#{{city:nospace:upper}})"],
        ),
        "in-zip-alone": (
            "{get: store, by: [country, zip]}", 0,
            ["index by_place finds by country, and not by zip"],
        ),
    })  # fmt: skip
    assert proved(example("store-locations"), patterns) == expected


# ---------------------------------------------------------------- a hierarchy
def test_hierarchy_is_read_down_both_ways_and_up():
    """Children and one level by GSI1, all descendants by the path in GSI2, ancestors by the ids in the path."""
    itself = "GetItem components: ComponentId = {ComponentId}"
    below = "Query components/GSI2: GraphId = {GraphId} and begins_with(Path, {Path}|)"
    patterns, expected = given({
        "children": ("{tree: component, children: ComponentId}", 1, ["Query components/GSI1: ParentId = {ComponentId}"]),
        "one-level": (
            "{tree: component, under: ComponentId, depth: 1}", 1, ["Query components/GSI1: ParentId = {ComponentId}"],
        ),
        "descendants": ("{tree: component, under: ComponentId}", 2, [itself, below]),
        "two-levels": (
            "{tree: component, under: ComponentId, depth: 2, items: 8}", 2,
            [itself, f"{below} filter at most 2 levels below"],
        ),
        "ancestors": (
            "{tree: component, above: ComponentId, attributes: [name]}", 2,
            [itself, "BatchGetItem components: the ids in Path"],
        ),
    })  # fmt: skip
    assert proved(example("car-parts"), patterns) == expected
    by_level = example("car-parts").replace("      GSI2: {GraphId: S, Path: S}", "      #")
    patterns = {"levels": "{tree: component, under: ComponentId, depth: 2, items: 8}",
                "all": "{tree: component, under: ComponentId}"}  # fmt: skip
    assert proved(by_level, patterns) == {
        "levels": (9, ["Query components/GSI1: ParentId = {ComponentId}"]),
        "all": (0, ["no index has the graph and the path as its keys: each level would cost a Query for each item"]),
    }


# ---------------------------------------------------------------- a graph
def test_goals_users_and_teams_take_three_requests():
    """A Query of the edges, one BatchGetItem of the goals, one of all their members; from a user, a team or a goal."""
    nodes = "BatchGetItem graph: the goal of each goal-membership"
    around = "BatchGetItem graph: the member that goal.edges names"
    patterns, expected = given({
        "goals-of-member": (
            "{graph: goal, from: member, through: goal-membership, neighbours: [member], page: 20}", 3,
            ["Query graph/by_target: target = GOALMEMBERSHIP-{member_id} and begins_with(source, GOAL-)", nodes, around],
        ),
        "members-of-goal": (
            "{graph: member, from: goal, through: goal-membership, at_least: 400-CONTRIBUTOR, order: desc, page: 20}", 2,
            [
                "Query graph/gsi0: source = GOAL-{goal_id} and gsi0 >= 400-CONTRIBUTOR desc",
                "BatchGetItem graph: the member of each goal-membership",
            ],
        ),
        "edges-of-goal": (
            "{get: goal-membership, by: [goal_id], attributes: [memberName]}", 1,
            ["Query graph: source = GOAL-{goal_id} and begins_with(target, GOALMEMBERSHIP-)"],
        ),
    })  # fmt: skip
    assert proved(example("goals-users-teams"), patterns) == expected


# ---------------------------------------------------------------- game players
GAMES = """
tables:
  games:
    key: {PK: S, SK: S}
    indexes: {open_games: {game_status: S, started: S}, open_by_map: {map_status: S, started: S}}
entities:
  player: {table: games, key: {PK: "PLAYER#{username}", SK: PLAYER}, size: 1KB, items: 1000000}
  game:   {table: games, key: {PK: "GAME#{game_id}", SK: GAME}, size: 1KB, items: 6000000}
  seat:   {table: games, key: {PK: "GAME#{game_id}", SK: "PLAYER#{username}"}, size: 1KB, items: 300000000}
rules:
  map-and-status: {derive: game.map_status, as: "{map}#{game_status}"}
"""
GAME_PATTERNS = {
    "Create user profile": ("{put: player, rate: 10000/day}", 1,
                            ["PutItem games: PK = PLAYER#{username} and SK = PLAYER"]),
    "Update user profile": ("{update: player, sets: [email], rate: 10000/day}", 1,
                            ["UpdateItem games: PK = PLAYER#{username} and SK = PLAYER"]),
    "Get user profile": ("{get: player, by: [username], one: true}", 1,
                         ["GetItem games: PK = PLAYER#{username} and SK = PLAYER"]),
    "Create a game": ("{put: game, rate: 300000/day}", 1,
                      ["PutItem games: PK = GAME#{game_id} and SK = GAME"]),
    "Find open games": ("{get: game, by: [game_status], order: started desc, page: 25}", 1,
                        ["Query games/open_games: game_status = {game_status} desc"]),
    "Find open games by map": ("{get: game, by: [map, game_status], order: started desc, page: 25}", 1,
                               ["Query games/open_by_map: map_status = {map}#{game_status} desc"]),
    "View game": ("{get: game, by: [game_id], one: true}", 1,
                  ["GetItem games: PK = GAME#{game_id} and SK = GAME"]),
    "View users in a game": ("{get: seat, by: [game_id], items: 50}", 1,
                             ["Query games: PK = GAME#{game_id} and begins_with(SK, PLAYER#)"]),
    "Join user to a game": ("{put: seat, rate: 1800000000/day}", 1,
                            ["PutItem games: PK = GAME#{game_id} and SK = PLAYER#{username}"]),
}  # fmt: skip


def test_game_players_all_nine_patterns_are_served():
    """The nine access patterns of the guide, each by one request."""
    patterns, expected = given({name.lower().replace(" ", "-"): one for name, one in GAME_PATTERNS.items()})
    assert proved(GAMES, patterns) == expected


def test_game_players_are_those_of_the_guide():
    """The patterns above have the names of the guide's list."""
    listed: Any = YAML(typ="safe").load(case("tables", "pg_game_player_requirements.yaml"))
    assert [one["name"] for one in listed["access_patterns"]] == [*GAME_PATTERNS]


def test_open_games_may_be_a_constant_of_the_pattern():
    """A condition that a key serves is no filter; one that no key serves is."""
    patterns = {
        "open": "{get: game, where: \"game_status == 'OPEN'\", order: started desc}",
        "open-and-small": "{get: game, where: \"game_status == 'OPEN' && seats < `50`\", keeps: 50%}",
    }
    open_games = "Query games/open_games: game_status = OPEN"
    assert proved(GAMES, patterns) == {
        "open": (1, [f"{open_games} desc"]),
        "open-and-small": (1, [f"{open_games} filter seats < `50`"]),
    }
