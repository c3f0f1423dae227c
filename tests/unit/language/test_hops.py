"""Links over several items: the chain that one would write by hand, and what happens along it."""

from __future__ import annotations

import pytest

from sync_rules.language.load import check_rules, parse_rules
from sync_rules.rules.ruleset import Rules
from tests.support.builders import m, n, s
from tests.support.worlds import Scene

TABLES = """
tables:
  countries: {key: {country_id: S}}
  regions: {key: {region_id: S}, indexes: {by_country: {country_id: S}}}
  customers: {key: {customer_id: S}, indexes: {by_region: {region_id: S}}}
  orders:
    key: {order_id: S}
    indexes: {by_customer: {customer_id: S}, by_region: {customer_region_id: S}, by_country: {region_country_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  country: {table: countries}
  region: {table: regions}
  customer: {table: customers}
  order: {table: orders}
rules:
"""
SEVERAL = """
  names: {copy: country.name, into: order.country_name, on_delete: clear, link: order.customer.region.country}
  orders: {count: order, into: region.orders, link: {region_id: customer_region_id}}
"""
BY_HAND = """
  names: {copy: country.name, into: order.country_name, on_delete: clear, link: {country_id: region_country_id}}
  to_region: {copy: customer.region_id, into: order.customer_region_id, on_delete: clear}
  to_country:
    copy: region.country_id
    into: order.region_country_id
    link: {region_id: customer_region_id}
    on_delete: clear
  orders: {count: order, into: region.orders, link: {region_id: customer_region_id}}
"""


def bodies(rules: Rules) -> list[dict]:
    return sorted(
        ({"of": rule.source.name, "into": rule.target.name, **rule.body()} for rule in rules.rules.values()), key=str
    )


def test_hops_are_the_chain_written_by_hand():
    """The same rules; another one links by what is kept."""
    assert bodies(parse_rules(TABLES + SEVERAL)) == bodies(parse_rules(TABLES + BY_HAND))


def test_hops_have_the_names_that_the_file_gives():
    """Names that differ on a hop, and names for what is kept, by the field or with its entity."""
    named = """
  names:
    copy: country.name
    into: order.country_name
    on_delete: clear
    link: {customer: {customer_id: buyer}, region: {}, country: {country_id: land}}
    through: {region_id: customer_region_id, country.country_id: region_country_id}
"""
    tables = TABLES.replace("{customer_id: S}, by_region", "{buyer: S}, by_region")
    (by_hand,) = (rule for rule in parse_rules(TABLES + BY_HAND).rules.values() if rule.name == "names")
    rules = parse_rules(tables + named).rules
    assert rules["names"].body() == by_hand.body()
    assert rules["names.through_customer"].body()["link"] == [("customer_id", ("buyer",))]
    assert rules["names.through_region"].body()["mapping"] == [(("land",), ("region_country_id",))]


@pytest.fixture
def scene() -> Scene:
    """Two countries, a region in each, a customer and two orders in the first."""
    scene = Scene(parse_rules(TABLES + SEVERAL))
    for number in "12":
        scene.put("countries", {"country_id": s(f"c{number}"), "name": s(f"land {number}")})
        scene.put("regions", {"region_id": s(f"r{number}"), "country_id": s(f"c{number}")})
    scene.put("customers", {"customer_id": s("k"), "region_id": s("r1")})
    scene.put("orders", {"order_id": s("1"), "customer_id": s("k")}, {"order_id": s("2"), "customer_id": s("k")})
    scene.rest()
    return scene


def seen(scene: Scene) -> tuple[list, list]:
    """The country on each order, and the orders of each region."""
    names = [item.get("country_name", {}).get("S") for item in scene.memory.items("orders")]
    return names, sorted(item.get("orders", {}).get("N", "0") for item in scene.memory.items("regions"))


def test_hops_follow_the_source_and_every_item_between(scene):
    """A renamed country, a region in another country, a customer in another region, no customer at all."""
    assert seen(scene) == (["land 1"] * 2, ["0", "2"])
    scene.put("countries", {"country_id": s("c1"), "name": s("new")})
    scene.rest()
    assert seen(scene) == (["new"] * 2, ["0", "2"])
    scene.put("customers", {"customer_id": s("k"), "region_id": s("r2")})
    scene.rest()
    assert seen(scene) == (["land 2"] * 2, ["0", "2"])
    (region,) = (item for item in scene.memory.items("regions") if item["region_id"] == s("r2"))
    assert region["orders"] == {"N": "2"}
    scene.put("regions", {**region, "country_id": s("c1")})
    scene.rest()
    assert seen(scene) == (["new"] * 2, ["0", "2"])
    scene.memory.delete(scene.at("customers", "k"))
    scene.rest()
    assert seen(scene) == ([None] * 2, ["0", "0"])


def test_hops_of_two_rules_are_not_shared_unsaid():
    """The second rule is told by what to link: on which rule it builds stands in the file."""
    other = "  codes: {copy: region.code, into: order.code, link: order.customer.region}\n"
    _, problems = check_rules(TABLES + SEVERAL + other)
    (problem,) = (one for one in problems if one.code == "SR218")
    assert "rule names keeps order.customer_region_id already" in problem.message
    direct = other.replace("order.customer.region", "{region_id: customer_region_id}")
    assert check_rules(TABLES + SEVERAL + direct)[0] is not None


def test_hops_are_listed_by_the_indexes_that_the_file_chooses():
    """`via` names an index for each hop; one without an entity is for the last, as it is for a link without hops."""
    tables = """
tables:
  shop:
    key: {PK: S, SK: S}
    indexes:
      of_shop: {partition: {PK: S, customer_id: S}}
      of_tenant: {partition: {tenant: S, customer_region_id: S}}
      of_region: {partition: {PK: S, customer_region_id: S}}
entities:
  region: {table: shop, key: {PK: "T#{tenant}", SK: "REGION#{region_id}"}}
  customer: {table: shop, key: {PK: "T#{tenant}", SK: "CUSTOMER#{customer_id}"}}
  order: {table: shop, key: {PK: "T#{tenant}", SK: "ORDER#{order_id}"}}
rules:
  names: {copy: region.name, into: order.region_name, link: order.customer.region%s}
"""

    def indexes(via: str) -> list[str | None]:
        rules = parse_rules(tables % via).rules
        found = (rules["names.through_customer"].find, rules["names"].find)
        return [find and find.index for find in found]

    assert indexes("") == [None, None]  # each lists all orders of the tenant
    assert indexes(", via: {customer: of_shop, region: of_region}") == ["of_shop", "of_region"]
    assert indexes(", via: of_region") == indexes(", via: {region: of_region}") == [None, "of_region"]
    direct = tables.replace("link: order.customer.region%s", "link: {region_id: x}, via: {region: of_region}")
    assert "'of_region'" in check_rules(direct)[1][0].message  # it is asked for, and the link does not fill it


@pytest.mark.parametrize(
    ("rule", "code", "words"),
    [
        ("copy: region.name, into: order.x, link: region.customer.order", "SR218", "link: order.customer.region"),
        ("copy: region.name, into: order.x, link: customer.region", "SR218", "link: order.customer.region"),
        ("copy: region.name, into: order.x, link: order.customer", "SR218", "link: order.customer.region"),
        ("copy: region.name, into: order.x, link: order.customr.region", "SR102", "customer"),
        ("copy: region.name, into: order.x, link: order.customer.order.region", "SR218", "twice"),
        ("copy: region.name, into: order.x, link: buyer", "SR218", "link: {region_id: buyer}"),
        ("copy: region.name, into: order.x, link: {customer: {}, region: region_id}", "SR218", "'region' has one name"),
        ("copy: region.name, into: order.x, link: order.customer.region, through: {regon_id: y}", "SR202", "regon_id"),
        ("copy: region.name, into: order.x, link: order.customer.region, through: {region_id: a.b}", "SR218", "inside a map"),
        ("copy: region.name, into: order.x, link: order.customer.region, through: {region_id: other}", "SR201", "by_other: {other: S}"),
        ("copy: region.name, into: order.x, link: {region: {}, customer: {}}", "SR218", "in their order"),
        ("copy: region.name, into: order.x, link: order.customer.region, through: {region_id: order_id}", "SR218", "part of the key"),
        ("copy: region.name, into: order.x, link: {region_id: r}, through: {region_id: y}", "SR120", "remove it"),
        ("copy: region.name, into: order.x, link: order.customer.region, strict: true", "SR120", "one source"),
        ("count: order, into: region.n, mode: recount, link: order.customer.region", "SR206", "does not list"),
    ],
)  # fmt: skip
def test_hops_that_lead_nowhere_are_refused_with_a_cure(rule, code, words):
    """Place, code, and words that help."""
    rules, problems = check_rules(f"{TABLES}  it: {{{rule}}}")
    assert rules is None
    (problem,) = (one for one in problems if one.code == code)
    assert problem.location.line == TABLES.count("\n") + 1
    assert words in problem.render("rules.yaml")


BY_KEY = """
tables:
  regions: {key: {region_id: S}}
  buyers: {key: {region_id: S, customer_id: S}}
  sales: {key: {sale_id: S}, indexes: {by_customer: {region_id: S, customer_id: S}, by_region: {customer_region_id: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  region: {table: regions}
  customer: {table: buyers}
  sale: {table: sales, required: [region_id, customer_id]}
rules:
"""


def test_hops_read_an_item_whose_own_key_names_the_next_one():
    """A sale of a customer who does not exist shows no region and counts in none; it does once the customer is there."""
    rules = """
  names: {copy: region.name, into: sale.region_name, link: sale.customer.region, on_delete: clear}
  sales: {count: sale, into: region.sales, link: {region_id: customer_region_id}}
"""
    scene = Scene(parse_rules(BY_KEY + rules))
    region = scene.put("regions", {"region_id": s("EU"), "name": s("Europe")})
    sale = scene.put("sales", {"sale_id": s("1"), "region_id": s("EU"), "customer_id": s("7")})
    scene.rest()
    assert "region_name" not in scene.item(sale)
    assert scene.item(region)["sales"] == n(0)
    customer = scene.put("buyers", {"region_id": s("EU"), "customer_id": s("7")})
    scene.rest()
    assert scene.item(sale)["region_name"] == s("Europe")
    assert scene.item(region)["sales"] == n(1)
    scene.memory.delete(customer)
    scene.rest()
    assert "region_name" not in scene.item(sale)
    assert scene.item(region)["sales"] == n(0)


def test_hops_that_another_rule_goes_are_linked_by_what_it_keeps():
    """The cure of a second rule that goes the same way names the link, which makes check pass."""
    text = (
        BY_KEY
        + """
  names: {copy: region.name, into: sale.region_name, link: sale.customer.region}
  sales: {count: sale, into: region.sales, link: sale.customer.region}
"""
    )
    (problem,) = (one for one in check_rules(text, {})[1] if one.severity == "error")
    assert problem.code == "SR218"
    link = problem.cure.partition("link by it: ")[2].partition(";")[0]
    _, problems = check_rules(text.replace("sales, link: sale.customer.region", f"sales, {link}"), {})
    assert [one for one in problems if one.severity == "error"] == []


def test_hops_to_an_item_with_a_fixed_key_are_refused():
    """Nothing on the item before names it, so nothing would say whether that one exists; the cure is a direct link."""
    text = (
        BY_KEY + "  names: {copy: settings.name, into: sale.settings_name, link: sale.customer.settings}\n"
    ).replace("entities:", "entities:\n  settings: {table: ledger, key: {PK: SETTINGS, SK: ALL}}")
    _, problems = check_rules(text)
    assert [(one.code, one.cure) for one in problems] == [("SR218", "remove 'customer' from the link")]
    _, problems = check_rules(text.replace(".customer.settings", ".settings"))
    assert "SR218" not in {one.code for one in problems}


def test_hops_by_a_name_inside_a_map_copy_it_from_there():
    """A name of a hop may be a place inside a map of the item before: what is kept is an attribute of its own."""
    tables = TABLES.replace(
        "customers: {key: {customer_id: S}, indexes: {by_region: {region_id: S}}}", "customers: {key: {customer_id: S}}"
    )
    link = "{customer: {}, region: {region_id: home.region}}"
    scene = Scene(parse_rules(f"{tables}  names: {{copy: region.name, into: order.region_name, link: {link}}}\n"))
    scene.put("regions", {"region_id": s("r1"), "name": s("Lowlands")})
    scene.put("customers", {"customer_id": s("1"), "home": m(region=s("r1"))})
    order = scene.put("orders", {"order_id": s("1"), "customer_id": s("1")})
    scene.rest()
    assert (scene.item(order)["customer_region_id"], scene.item(order)["region_name"]) == (s("r1"), s("Lowlands"))
