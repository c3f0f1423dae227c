"""Lints between rules: what is refused, and above all what is not."""

import re

import pytest

from sync_rules.language.load import check_rules

TABLES = """
tables: {things: {key: {kind: S, id: S}}}
entities:
  a: {table: things, key: {kind: a, id: "{id}"}}
  b: {table: things, key: {kind: b, id: "{id}"}}
  c: {table: things, key: {kind: c, id: "{id}"}}
rules:
"""
MANY = """
tables:
  things: {key: {kind: S, id: S}, indexes: {by_parent: {parent: S}, by_rank: {rank: S, way: S}}}
  edges: {key: {from: S, to: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  a: {table: things, key: {kind: a, id: "{id}"}}
  b: {table: things, key: {kind: b, id: "{id}"}}
  c: {table: things, key: {kind: "C#{id}", id: "{no}"}}
  node: {table: edges, key: {from: "{node}", to: "{node}"}}
  edge: {table: edges, key: {from: "{node}", to: "E-{other}"}}
rules:
"""


def problems(*rules, base=TABLES):
    _, found = check_rules(base + "".join(f"  r{index}: {rule}\n" for index, rule in enumerate(rules)), {})
    return [problem for problem in found if problem.code not in ("SR406", "SR407")]


def codes(*rules, base=TABLES):
    return [problem.code for problem in problems(*rules, base=base)]


@pytest.mark.parametrize(
    ("base", "rules"),
    [
        (TABLES, ["copy a.x into b.x", "copy b.x into c.x"]),
        (TABLES, ["copy a.x into b.x", "copy b.y into a.y"]),
        (TABLES, ["copy a.x, a.y into b", "copy b.x into a.z"]),
        (TABLES, ["copy a.x into b.m.x", "copy a.y into b.m.y", "copy b.m into c.m"]),
        (TABLES, ["copy a.x into b.x", "copy a.x into c.x", "copy b.x into c.y"]),
        (TABLES, ["{copy: a.x, into: b.x, where: open}", "copy b.x into c.open"]),
        (MANY, ["{derive: a.x, as: '{y}'}", "copy a.x into b.x", "sum c.n into a.n", "copy a.n into b.n"]),
        (MANY, ["{derive: c.label, as: '{no:pad(4)}-{name}'}", "copy a.name into c.name",
                "{embed: c, into: a.cs, limit: {items: 9}}", "count c into a.count", "max c.price into a.best"]),
        (MANY, ["{path: a.way, parent: parent, graph: rank, depth: deep, carry: [tenant]}", "{derive: a.label, as: '{way}'}"]),
        (MANY, ["{count: a, into: a.children, link: {id: parent}}", "{sum: a.price, into: a.total, link: {id: parent}}"]),
        (MANY, ["{collect: edge, into: node.edges, as: '{to}'}", "count edge into node.degree", "copy node.degree into edge.n"]),
        (MANY, ["mirror a into c", "copy c.x into b.x"]),
        (MANY, ["{mirror: a, into: c, attributes: [x]}", "{derive: c.y, as: '{x}'}"]),
        (MANY, ["{call: m.f, on: a, watch: [x]}", "{call: m.g, on: a, when: [created]}", "copy a.x into b.x"]),
    ],
)  # fmt: skip
def test_rules_that_feed_each_other_without_a_cycle_are_well(base, rules):
    """Cascades, both directions on other attributes, neighbours in one map, copies within an item; rules of other kinds."""
    assert codes(*rules, base=base) == []


BY_REF = TABLES.replace("id: S}}}", "id: S}, indexes: {by_ref: {ref: S}}}}")


@pytest.mark.parametrize(
    ("base", "rules", "drawn"),
    [
        (TABLES, ["copy a.x into a.x"], "a.x -> a.x (rules r0)"),
        (TABLES, ["copy a.m into b.m", "copy b.m.x into a.m.x"], "b.m -> a.m.x -> b.m (rules r0, r1)"),
        (TABLES, ["{copy: a.x, into: b.x, where: open}", "{copy: c.x, into: b.open, where: c.go}", "copy b.x into c.go"],
         "b.x -> c.go -> b.open -> b.x (rules r0, r2, r1)"),
        (BY_REF, ["{copy: a.x, into: b.x, link: {id: ref}, via: by_ref}", "copy b.x into c.ref", "copy c.ref into b.ref"],
         "b.x -> c.ref -> b.ref -> b.x (rules r0, r1, r2)"),
        (MANY, ["{derive: a.x, as: '{y}'}", "{derive: a.y, join: [x, z]}"], "a.x -> a.y -> a.x (rules r0, r1)"),
        (MANY, ["sum c.n into a.n", "copy a.n into c.n"], "a.n -> c.n -> a.n (rules r0, r1)"),
        (MANY, ["max c.n into a.n", "copy a.n into c.n"], "a.n -> c.n -> a.n (rules r0, r1)"),
        (MANY, ["{sum: a.n, into: a.n, link: {id: parent}}"], "a.n -> a.n (rules r0)"),
        (MANY, ["{embed: c, into: a.cs, limit: {items: 9}}", "copy a.cs into c.siblings"],
         "a.cs -> c.siblings -> a.cs (rules r0, r1)"),
        (MANY, ["{mirror: a, into: c, attributes: [x]}", "{copy: c.x, into: a.x, link: {no: no}}"],
         "c.x -> a.x -> c.x (rules r0, r1)"),
    ],
)  # fmt: skip
def test_cycles_are_drawn(base, rules, drawn):
    """Through copies, through what `where` reads on either side, links, formulas, ledgers and embedded children."""
    messages = [problem.message for problem in problems(*rules, base=base) if problem.code == "SR305"]
    assert [rotations(message) for message in messages] == [rotations(drawn)]


def rotations(drawn):
    """A cycle may be drawn from any of its attributes on."""
    circle, _, rules = drawn.partition(" (rules ")
    names = circle.split(" -> ")[1:]
    return {tuple(names[turn:] + names[:turn]) for turn in range(len(names))}, set(rules.strip(")").split(", "))


def test_warnings_about_an_index_need_a_projection_that_is_said():
    """Warnings about an index are given only if the file states the projection."""
    for projection, expected in (("", []), (", projection: keys", []), (", projection: [x]", ["SR401"]),
                                 (", projection: all", ["SR401"]), (", projection: [y]", [])):  # fmt: skip
        index = f"by_ref: {{partition: {{ref: S}}{projection}}}"
        base = TABLES.replace("id: S}}}", f"id: S}}, indexes: {{{index}}}}}}}")
        assert codes("copy a.x into b.x", base=base) == expected


REGIONS = """
tables:
  regions: {key: {region_id: S}}
  customers: {key: {customer_id: S}}
  orders: {key: {order_id: S}, indexes: {by_customer: {customer_id: S}, by_region: {customer_region_id: S}}}
  ledger: {key: {PK: S, SK: S}}
entities: {region: {table: regions}, customer: {table: customers}, order: {table: orders, required: [customer_region_id]}}
rules:
"""


@pytest.mark.parametrize(
    "rule",
    [
        "{copy: region.name, into: order.region_name, link: LINK}",
        "{count: order, into: region.orders, link: LINK, on_delete: delete}",
        "{collect: order.size, into: region.sizes, link: LINK, on_delete: delete}",
        "{embed: order, into: region.recent, fields: [order_id], limit: {items: 5}, link: LINK}",
    ],
)
@pytest.mark.parametrize("given", ["order.customer.region", "{customer: {}, region: {}}"])
def test_a_link_over_several_items_is_refused_with_a_cure_that_works(rule, given):
    """The cure is a rule and a link. With both, the file has no problem, not even for the index by the copy."""
    found = problems(rule.replace("LINK", given), base=REGIONS)
    (cure,) = {problem.cure for problem in found}
    before, link = re.fullmatch(r".*?({copy.*?}).* link: ({.*})", cure).groups()
    assert problems(before, rule.replace("LINK", link), base=REGIONS) == []


def test_a_node_may_look_like_an_edge_if_it_is_declared_first():
    """Nodes are the edges from themselves to themselves; the other way round every node would be an edge."""
    base = MANY.replace('"E-{other}"', '"{other}"')
    rule = "copy node.x into edge.x"
    assert codes(rule, base=base) == []
    node, edge = (line + "\n" for line in base.splitlines() if line.startswith(("  node", "  edge: {t")))
    (problem,) = problems(rule, base=base.replace(node + edge, edge + node))
    assert (problem.code, problem.cure) == ("SR306", "declare 'node' before 'edge'")


def test_a_link_through_an_unfilled_key_is_told_once_with_cures_that_work():
    """A rule that lists its items by that key cannot go by an attribute instead. A count lists nothing."""
    base = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  cart: {table: shop, key: {PK: "CART#{cart_id}", SK: CART}}
  order: {table: shop, key: {PK: "ORDER#{order_id}", SK: ORDER, GSI1PK: "USER#{user_id}"}, required: [GSI1PK]}
rules:
"""
    owner = "{copy: cart.owner, into: order.user_id, mode: snapshot, link: {cart_id: cart_id}}"
    for rule, by_attribute in (
        ("{count: order, into: user.orders, on_delete: delete, via: GSI1}", True),
        ("{embed: order, into: user.cards, limit: {items: 9}}", False),
    ):
        (found,) = (problem for problem in problems(owner, rule, base=base) if problem.code == "SR461")
        assert ("itself" in found.cure) is by_attribute


ORDERS = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S, GSI1SK: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order:
    {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}", GSI1PK: "OPEN#{region}", GSI1SK: "{total}"}}
rules:
"""
VERSIONS = """
tables: {shop: {key: {PK: S, SK: S}, indexes: {by_name: {GSI1PK: S}}}}
entities:
  product: {table: shop, key: {PK: "PRODUCT#{id}", SK: PRODUCT}}
  edition: {table: shop, key: {PK: "PRODUCT#{id}", SK: "V#{version:pad(6)}"}}
rules:
"""
PATH, VERSION = "{path: a.way, parent: parent}", "history product into edition"
LISTING = "{copy: a.x, into: b.x, link: {id: parent}, via: by_parent}"
GONE = "{derive: a.gone, as: 'ttl(at, 1d)'}"


@pytest.mark.parametrize(
    ("base", "rules", "expected"),
    [
        (MANY, [PATH, "{derive: a.parent, as: '{x}'}"], []),
        (MANY, [PATH, "{derive: a.parent, as: '{way}'}"], ["SR305"]),
        (MANY, ["{derive: a.rank, as: '{x}'}"], []),  # composite keys of indexes are what derive is for
        (MANY, ["copy a.rank into b.rank"], ["SR403"]),  # a copy there is more often a slip
        (MANY, ["copy a.rank into b.rank", LISTING], ["SR403"]),
        (MANY, ["copy a.parent into b.parent", LISTING], []),  # unless a rule lists by it
        (MANY, ["{derive: a.id, as: '{x}'}"], ["SR302"]),
        (ORDERS, ["{sum: order.total, into: user.spent, where: status == 'CLOSED'}"], []),  # not in the index
        (ORDERS, ["{sum: order.order_id, into: user.spent}"], ["SR322"]),
        (VERSIONS, ["{derive: product.GSI1PK, as: 'NAME#{name}'}", VERSION], []),  # no part of a version
        (VERSIONS, ["{derive: product.label, as: 'NAME#{name}'}", VERSION], ["SR318"]),
        (TABLES, [GONE], []),
        (TABLES, [GONE, "{derive: b.gone, as: 'ttl(at, 1d)'}"], []),
        (TABLES, [GONE, "{derive: b.past, as: 'ttl(at, 1d)'}"], ["SR317"]),  # one attribute of a table
        (TABLES, ["{derive: a.m.gone, as: 'ttl(at, 1d)'}"], ["SR125"]),
        (TABLES, ["{derive: a.gone, as: 'ttl(at, 1d)', map: {x: {y: 1}}}"], ["SR120"]),
        (TABLES, ["{derive: a.gone, as: 'ttl(at, 1d)', default: soon}"], ["SR106"]),  # a number
        (TABLES, ["{derive: a.gone, as: 'ttl(at, 1d)', default: 4102444800}"], []),
        (TABLES, ["{derive: a.gone, as: 'ttl(gone, 1d)'}"], ["SR305"]),
    ],
)
def test_lint_refuses_what_cannot_be_and_nothing_else(base, rules, expected):
    """Derived parents and keys of indexes, numbers inside of keys, versions, and times to live."""
    assert codes(*rules, base=base) == expected


MEMBERS = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user:       {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  membership: {table: shop, key: {PK: "TEAM#{team_id}", SK: "MEMBER#{user_id}"}}
  order:      {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  line:       {table: shop, key: {PK: "ORDER#{order_id}", SK: "LINE#{line_no}"}}
  invoice:    {table: shop, key: {PK: "INVOICE#{invoice_id}", SK: "CUSTOMER#{customer_id}"}}
"""


@pytest.mark.parametrize(
    ("mirrored", "partition", "sort", "expected"),
    [
        ("user", "EMAIL#{email}", "USER", []),
        ("order", "DAY#{day}", "ORDER#{order_id}", []),
        ("order", "DAY#{day}", "SHOP#{shop}#{user_id}#{order_id}", []),
        ("invoice", "DAY#{day}", "INVOICE#{invoice_id}", []),
        ("line", "DAY#{day}", "LINE#{line_no}#{color}", ["SR423"]),
        ("membership", "OF#{user_id}", "LAST", ["SR423"]),
        ("order", "DAY#{day}", "SHOP#{shop}", ["SR423"]),
    ],
)
def test_a_mirror_whose_key_several_sources_make_is_doubted(mirrored, partition, sort, expected):
    """An email or an id of its own may make a key unique; ids of others, or two plain fields, hardly do."""
    base = f'{MEMBERS}  seen: {{table: shop, key: {{PK: "{partition}", SK: "{sort}"}}}}\nrules:\n'
    assert codes(f"{{mirror: {mirrored}, into: seen}}", base=base) == expected
