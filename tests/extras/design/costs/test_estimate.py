"""Estimates: by the report of AWS's modelling assistant, by hand, by what the pipeline does, and without silence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal

import pytest

from sync_rules.extras.design.costs.efforts import find_effort
from sync_rules.extras.design.costs.estimate import EstimateOptions, estimate
from sync_rules.extras.design.costs.loads import Place
from sync_rules.extras.design.costs.volumes import IndexRows, MeasuredEntity, Sizes, SizeSampler, replace_volumes
from sync_rules.extras.design.costs.workload import WriteEvent, follow_rules
from sync_rules.jobs.dryrun.money import MONTH_HOURS
from sync_rules.jobs.dryrun.prices import read_own_prices
from sync_rules.language.kinds.registry import KINDS
from sync_rules.language.load import parse_rules
from sync_rules.rules.rule import Rule
from tests.docs import test_costs as counted
from tests.support import every_kind
from tests.support.builders import s
from tests.support.worlds import Scene

VIRGINIA = read_own_prices().regions["us-east-1"]
# The model of awslabs/mcp, src/dynamodb-mcp-server/tests/cost_performance_calculator/test_integration.py, as rules.
AWSLABS = """
tables:
  users: {key: {user_id: S}, indexes: {email-index: {email: S}}}
  orders:
    key: {user_id: S, order_id: S}
    indexes: {status-index: {status: S}, date-index: {partition: {date: S}, projection: keys}}
  sessions: {key: {session_id: S}}
entities: {user: {table: users}, order: {table: orders}, session: {table: sessions}}
rules: {}
patterns:
  get-user-by-id: {get: user, by: [user_id], rate: 100/s}
  get-user-by-email: {get: user, by: [email], one: true, rate: 50/s}
  create-user: {put: user, rate: 20/s}
  get-orders-by-user: {get: order, by: [user_id], items: 5, consistent: true, rate: 80/s}
  get-orders-by-status: {get: order, by: [status], items: 10, rate: 60/s}
  create-order: {put: order, rate: 40/s}
  update-order-status: {update: order, sets: [status_text], rate: 30/s}
  get-session: {get: session, by: [session_id], rate: 150/s}
  create-session: {put: session, rate: 200/s}
"""
MILLION = 1_000_000
SIZES = {
    "user": MeasuredEntity(50 * MILLION, 200, {"email-index": IndexRows(50 * MILLION, 100)}),
    "order": MeasuredEntity(
        200 * MILLION,
        500,
        {"status-index": IndexRows(200 * MILLION, 150), "date-index": IndexRows(200 * MILLION, 200)},
    ),
    "session": MeasuredEntity(10 * MILLION, 300),
}


def made(text, **asked):
    return estimate(parse_rules(text, environ={}), EstimateOptions(VIRGINIA, **asked))


def line(lines, name):
    (found,) = (one for one in lines if one.name == name)
    return found


def cents(money) -> str:
    return str(money.quantize(Decimal("0.01"), ROUND_HALF_UP))


def test_estimate_is_that_of_awslabs():
    """The whole report of AWS's own modelling assistant, from a rules file: 837.69 USD for its months of 732 hours, of
    which 16.47 are for its first pattern. It counts one write for an index that a change touches, as here.
    """
    found = estimate(parse_rules(AWSLABS, environ={}), EstimateOptions(VIRGINIA), SIZES)
    assert found.gaps == ()
    of_732 = {one.name: one.money.on_demand * 732 / MONTH_HOURS for one in found.patterns}
    assert cents(of_732["get-user-by-id"]) == "16.47"
    assert cents(of_732["create-user"]) == "65.88"  # 32.94 in the table, and in the index
    assert cents(of_732["create-order"]) == "197.64"
    assert cents(of_732["update-order-status"]) == "98.82"
    assert cents(sum(of_732.values())) == "777.38"
    storage = sum(one.storage for one in found.stored)
    assert cents(storage) == "60.30"
    assert cents(storage + sum(of_732.values())) == "837.69"


SHOP = """
tables:
  ledger: {key: {PK: S, SK: S}}
  shop: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}, size: 1KB, items: 10000}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}, size: 1KB, items: 400000}
rules:
  user-name-on-orders: copy user.name into order.user_name
patterns:
  order: {get: order, by: [user_id, order_id], attributes: [user_name, total], rate: 240/s}
  orders-of-user: {get: order, by: [user_id], order: order_id desc, attributes: [total, user.name], rate: 120/s, items: 8}
  place-order: {put: order, rate: 1/s}
  rename: {update: user, sets: [name], rate: 0.1/s}
"""


@pytest.mark.parametrize(
    ("without", "named"),
    [
        ((", items: 400000",), "the number of order"),
        (("size: 1KB, items: 10000}",), "the size of user"),
        ((", rate: 240/s",), "pattern order does not say how often"),
        ((", items: 8",), "pattern orders-of-user does not say how many items"),
        (("\n  rename: {update: user, sets: [name], rate: 0.1/s}",), "updates that rule user-name-on-orders follows"),
        ((", sets: [name]",), "pattern rename does not say what it `sets`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_is_assumed_in_silence(without, named):
    """Whatever is taken out of the file is named, with the cure. With nothing taken out, nothing is missing."""
    assert made(SHOP).gaps == ()
    text = SHOP
    for part in without:
        assert part in text
        text = text.replace(part, "items: 10000}" if part.startswith("size") else "")
    found = made(text)
    assert any(named in one for one in (*found.gaps, *found.notes))
    assert found.whole.known is not bool(found.gaps)


UPDATES = """
tables:
  items:
    key: {id: S}
    indexes:
      all: {kind: S}
      some: {partition: {kind: S}, projection: [name]}
      keys: {partition: {kind: S}, projection: keys}
entities: {one: {table: items, size: 1.5KB, items: 10}}
rules: {}
patterns: {write: {WRITE, rate: 1/s}}
"""


@pytest.mark.parametrize(
    ("write", "units"),
    [
        ("put: one", (2, 2, 2, 2)),
        ("delete: one", (2, 2, 2, 2)),
        ("update: one, sets: [kind]", (2, 4, 4, 4)),
        ("update: one, sets: [name]", (2, 2, 2, 0)),
        ("update: one, sets: [other]", (2, 2, 0, 0)),
        ("update: one", (2, 2, 2, 0)),
    ],
)
def test_indexes_amplify_writes(write, units):
    """A row that comes, goes or changes is one write, one that moves two; one that shows nothing of it is none."""
    found = made(UPDATES.replace("WRITE", write))
    load = found.whole.load
    assert tuple(load.writes.get(Place("items", name), 0) for name in ("", "all", "some", "keys")) == units


SINGLE = """
tables: {app: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S}, GSI2: {GSI2PK: S}, GSI3: {GSI3PK: S}}}}
entities:
  user:    {table: app, key: {PK: "U#{user}", SK: A}, size: 1KB, items: 10}
  order:   {table: app, key: {PK: "U#{user}", SK: "O#{order}"}, size: 1KB, items: 10, required: [GSI2PK]}
  invoice: {table: app, key: {PK: "U#{user}", SK: "I#{invoice}"}, size: 1KB, items: 10}
rules: {name: {copy: user.name, into: invoice.name, via: GSI1, link: {user: GSI1PK}}}
patterns: {write: {put: ENTITY, rate: 1/s}, read: {get: user, by: [GSI3PK], items: 1, rate: 1/h}}
"""


@pytest.mark.parametrize(("entity", "indexes"), [("user", {"GSI3"}), ("order", {"GSI2"}), ("invoice", {"GSI1"})])
def test_a_write_is_billed_in_the_sparse_indexes_that_show_the_item(entity, indexes):
    """By a rule's listing, by `required`, by a pattern's Query. The indexes that are left out are named."""
    text = SINGLE.replace("ENTITY", entity)
    found = made(text)
    load = next(line.load for line in found.patterns if line.name == "write")
    assert {place.index for place in load.writes} == {"", *indexes}
    left_out = {f"GSI{n}" for n in (1, 3)} - indexes
    assert all(any(f"{entity} are not counted in index {name}" in note for note in found.notes) for name in left_out)


def renamed(shop):
    """Forty orders of a user whose name changes."""
    counted.put(shop, "shop", PK="USER#1", SK="PROFILE", name="A")
    for number in range(40):
        counted.put(shop, "shop", PK="USER#1", SK=f"ORDER#{number}")
    counted.settle(shop)
    counted.put(shop, "shop", PK="USER#1", SK="PROFILE", name="B")


def ordered(shop):
    """An order that comes to a user who was there."""
    counted.put(shop, "shop", PK="USER#1", SK="PROFILE", name="A")
    counted.settle(shop)
    counted.put(shop, "shop", PK="USER#1", SK="ORDER#1")


MANY = """
tables: {shop: {key: {PK: S, SK: S}}, ledger: {key: {PK: S, SK: S}}}
entities:
  order: {table: shop, key: {PK: "O#{order_id}", SK: A}}
  tagged: {table: shop, key: {PK: "T#{tag}", SK: "{order_id}"}}
rules:
  tags: {mirror: order, into: tagged, each: {tag: tags}, attributes: [total]}
"""
VERSIONS = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  page: {table: shop, key: {PK: "P#{page_id}", SK: A}}
  version: {table: shop, key: {PK: "P#{page_id}", SK: "V#{version:pad(6)}"}}
rules:
  versions: {history: page, into: version, attributes: [body]}
"""


def tagged(shop, total=1):
    """An order of three tags."""
    tags = [{"S": tag} for tag in "abc"]
    shop.put("shop", {"PK": s("O#1"), "SK": s("A"), "tags": {"L": tags}, "total": {"N": str(total)}})


def paid(shop):
    """Another total of an order."""
    tagged(shop)
    counted.settle(shop)
    tagged(shop, 2)


def edited(shop):
    """The fifth version of a page."""
    for version in range(1, 5):
        counted.put(shop, "shop", PK="P#1", SK="A", version=version, body=f"b{version}")
        counted.settle(shop)
    counted.put(shop, "shop", PK="P#1", SK="A", version=5, body="b5")


CAME: tuple[tuple[str, ...], ...] | None = None


@pytest.mark.parametrize(
    ("page", "rule", "story", "entity", "paths", "items"),
    [
        ("copy", "", ordered, "order", CAME, {}),
        ("copy", "", renamed, "user", (("name",),), {"order": 40}),
        ("collect", "", counted.goal, "membership", CAME, {}),
        ("collect", "", counted.role, "membership", (("memberRole",),), {}),
        ("count", counted.COUNT, counted.orders, "order", CAME, {}),
        ("count", counted.COUNT, counted.other_parent, "order", (("user_id",),), {}),
        ("count", counted.MAX, counted.orders, "order", CAME, {}),
        ("count", counted.MAX, counted.amount, "order", (("total",),), {}),
        ("derive", "", counted.store, "store", CAME, {}),
        ("embed", "", counted.address, "address", (("street",),), {}),
        ("mirror", "", counted.email, "user", CAME, {}),
        ("mirror", "", counted.move, "user", (("email",),), {}),
        ("", MANY, tagged, "order", CAME, {"tagged": 3}),
        ("", MANY, paid, "order", (("total",),), {"tagged": 3}),
        ("", VERSIONS, edited, "page", (("version",), ("body",)), {"version": 3}),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_work_of_rules_is_what_the_pipeline_does(page, rule, story, entity, paths, items):  # noqa: PLR0917
    """One event a second: the units of all rules that it sets to work are those counted at the store for one event."""
    shop = counted.scene_of(f"docs/rules/{page}.md", rule) if page else Scene(parse_rules(rule, environ={}))
    story(shop)
    writes, reads = counted.count_units(shop)
    measured = {name: MeasuredEntity(items.get(name, 1), 100) for name in shop.rules.entities}
    sizes = Sizes(replace_volumes(shop.rules, measured), measured)
    loads = follow_rules(sizes, WriteEvent(shop.rules.entities[entity], paths is None, False, paths, 1.0)).values()
    assert sum(load.write_units for load in loads) == pytest.approx(writes)
    near = 0.03 if page else 4  # a listing is not rounded; `cost` counts one listing for each target
    assert sum(load.read_units for load in loads) == pytest.approx(reads, abs=near)


def test_every_kind_states_its_effort():
    """A kind without a function would cost nothing, in silence."""

    def list_kinds(kind: type[Rule]) -> Iterator[type[Rule]]:
        for one in kind.__subclasses__():
            yield from list_kinds(one)
            yield one

    unstated = find_effort.dispatch(object)
    leaves = [one for one in list_kinds(Rule) if not one.__subclasses__() and one.__module__.startswith("sync_rules.")]
    assert len(leaves) >= len(KINDS)
    assert [one.__name__ for one in leaves if find_effort.dispatch(one) is unstated] == []


@pytest.mark.parametrize("when", ["created", "changed", "deleted"])
@pytest.mark.parametrize("write", ["put: order", "update: order, sets: [total]", "delete: order"])
def test_calls_are_of_the_changes_that_the_rule_names(when, write):
    """A function is called, and the call remembered, for such changes alone."""
    text = SHOP.partition("rules:")[0] + f"rules:\n  told: {{call: shop.tell, on: order, when: [{when}]}}\n"
    found = made(f"{text}patterns: {{w: {{{write}, rate: 1/s}}}}\n")
    happens = {"put": "created", "update": "changed", "delete": "deleted"}[write.partition(":")[0]]
    assert line(found.rules, "told").load.write_units == (2 if happens == when else 0)


TAKEN = """
tables: {shop: {key: {PK: S, SK: S}}, parts: {key: {part_id: S}, indexes: {kids: {parent: S, part_id: S}}}}
entities:
  order: {table: shop, key: {PK: "O#{order_id}", SK: A}, size: 1KB, items: 10}
  tagged: {table: shop, key: {PK: "T#{tag}", SK: "{order_id}"}, size: 1KB, items: 30}
  named: {table: shop, key: {PK: "N#{name}", SK: "{order_id}"}, size: 1KB, items: 5}
  part: {table: parts, size: 1KB, items: 10}
rules:
  tags: {mirror: order, into: tagged, each: {tag: tags}, attributes: [total]}
  names: {mirror: order, into: named, attributes: [total], where: "status == 'open'"}
  way: {path: part.way, parent: parent, via: kids}
patterns: {write: {WRITE, rate: 1/s}}
"""


@pytest.mark.parametrize(
    ("write", "taken"),
    [
        ("update: order, sets: [tags]", "rule tags: an update of tags is taken to change one element of it"),
        ("update: order, sets: [total]", "rule names: its `where` is taken to leave every item in"),
        (
            "update: part, sets: [parent]",
            "rule way: an item that gets another parent or name is taken to have nothing below",
        ),
    ],
)
def test_what_much_would_have_to_be_known_for_is_said(write, taken):
    """The estimate assumes something of list elements, of conditions and of items below an item. A note says what."""
    found = made(TAKEN.replace("WRITE", write))
    assert any(note.startswith(taken) for note in found.notes)
    assert sum(taken in note for note in found.notes) == 1


def test_records_are_those_of_all_writes():
    """An order and its copy are two a second; a tenth of a rename writes a user and his forty orders."""
    assert made(SHOP).whole.load.records == pytest.approx({"shop": 2 + 0.1 * 41})


def test_transactions_count_twice():
    """A strict copy writes target and source in a transaction: four units instead of one."""
    strict = SHOP.replace(
        "copy user.name into order.user_name", "{copy: user.name, into: order.user_name, strict: true}"
    )
    plain, twice = (line(made(text).rules, "user-name-on-orders").load for text in (SHOP, strict))
    assert plain.transactions == 0
    assert twice.transactions == twice.write_units == 4 * plain.write_units


def test_measures_take_the_place_of_what_is_stated():
    """A sample gives numbers of the whole, mean sizes, and rows of indexes. Some items have no row."""
    rules = parse_rules(
        "tables: {items: {key: {id: S}, indexes: {keys: {kind: S}}}}\nentities: {one: {table: items}}\nrules: {}\n",
        environ={},
    )
    measuring = SizeSampler(rules)
    items = [{"id": s(f"{n}"), **({"kind": s("a")} if n % 2 else {}), "text": s("x" * 1_000)} for n in range(10)]
    measuring.add(rules.tables["items"], items)
    one = measuring.samples(10)["one"]
    assert (one.items, one.rows["keys"].items) == (100, 50)
    assert 1_000 < one.size_bytes < 1_020
    found = estimate(rules, EstimateOptions(VIRGINIA), {"one": one})
    assert not any("size" in gap or "number" in gap for gap in found.gaps)
    (stored,) = found.stored
    assert stored.table_gb == Decimal(100 * (one.size_bytes + 100)) / 2**30


def test_capacity_above_the_default_quota_is_told():
    """Autoscaling has no bound that the file does not set; a table that needs more than AWS gives at first is named."""
    found = made(SHOP.replace("rate: 240/s", "rate: 100000/s"))
    (one,) = (one for one in found.provisions if one.place == Place("shop"))
    assert one.read_units > 70_000
    assert any("shop needs a capacity of" in note and "40,000" in note for note in found.notes)


ONCE = "{copy: part.name, into: part.parent_was, link: {part_id: parent_id}, mode: snapshot}"
AGAIN = "{copy: user.email, into: order.email, mode: snapshot}"


def test_rules_whose_writes_no_pattern_states_are_not_stated():
    """Each rule of every kind costs something, so without a stated write of what it follows its price is not known."""
    entities = re.sub(r"}\n", ", size: 1KB, items: 1000}\n", every_kind.ENTITIES)
    rules = {**every_kind.RULES, "called": every_kind.EFFECTS["called"], "once": ONCE, "again": AGAIN}
    text = every_kind.text_of(rules, entities=entities)
    found = estimate(
        parse_rules(f"{text}\npatterns:\n  one: {{get: user, by: [user_id], rate: 1/s}}\n", environ={}),
        EstimateOptions(VIRGINIA),
    )
    assert {one.name for one in found.rules if one.known} == set()
    asked = " ".join(found.gaps)
    assert [one.name for one in found.rules if f"rule {one.name} " not in asked] == []


def test_vector_indexes_are_named_as_not_estimated():
    """Searches and writes of one have no units; the reads that follow a search are counted."""
    text = """
tables: {shop: {key: {id: S}, vectors: {near: {vector: e, dimensions: 3, projection: [title]}}}}
entities: {product: {table: shop, size: 1KB, items: 1000}}
rules: {}
patterns:
  found: {search: product, attributes: [title], top: 10, rate: 10/s}
  whole: {search: product, attributes: [text], top: 10, rate: 10/s}
"""
    found = made(text)
    note = "vector index near of shop: the bytes that it searches, writes and stores are not in the estimate"
    assert found.notes == (note,)
    reads = [sum(line(found.patterns, name).load.reads.values()) for name in ("found", "whole")]
    assert reads == [0, 50]
    assert not found.gaps


CHAIN = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "U#{user_id}", SK: A}, size: 1KB, items: 10}
  order: {table: shop, key: {PK: "U#{user_id}", SK: "O#{order_id}"}, size: 1KB, items: 40}
  line: {table: shop, key: {PK: "U#{user_id}", SK: "L#{order_id}#{line_id}"}, size: 1KB, items: 120}
rules:
  names: copy user.name into order.user_name
  cities: copy user.city into order.user_city
  lines: copy order.user_name into line.user_name
patterns:
  orders: {get: order, by: [user_id, order_id], returns: [user_name, user_city], rate: 100/s}
  place: {put: order, rate: 1/s}
  rename: {update: user, sets: [name], rate: 1/s}
  move: {update: user, sets: [city], rate: 1/s}
"""


def test_rows_of_a_local_index_use_the_capacity_of_their_table():
    """Writes to the index come on top of those of the table, in one capacity; recovery keeps its rows too."""
    table = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: INDEX}
entities: {order: {table: shop, key: {PK: "O#{order_id}", SK: "{line_id}"}, size: 1KB, items: 1000}}
rules: {}
patterns: {place: {put: order, rate: 100/s}}
"""
    found = made(table.replace("INDEX", "{by_total: {partition: {PK: S}, sort: {total: S}, local: true}}"))
    (one,) = found.provisions
    assert one.place == Place("shop")
    assert one.write_units == 286, "200 writes a second, 70 % of the capacity"
    stored = found.stored[0]
    assert stored.indexes_gb > 0
    assert stored.recovery == VIRGINIA.storage.recovery_gb_month * (stored.table_gb + stored.indexes_gb)
    apart = made(table.replace("INDEX", "{by_total: {partition: {total: S}}}")).stored[0]
    assert apart.recovery == VIRGINIA.storage.recovery_gb_month * apart.table_gb


def test_updates_come_through_chains_of_copies():
    """A copy of a copy follows what the first copy follows; its cure names what the application writes."""
    assert line(made(CHAIN).rules, "lines").load.write_units == 12
    found = made(CHAIN.replace("  rename: {update: user, sets: [name], rate: 1/s}\n", ""))
    cures = [gap for gap in found.gaps if "follows" in gap]
    assert [cure.partition("pattern such as ")[2] for cure in cures] == [
        "rename: {update: user, sets: [name], rate: 1/h}"
    ] * 2


@pytest.mark.parametrize(
    ("old", "new", "unsure"),
    [
        ("sets: [name], rate: 1/s", "sets: [name]", {"names", "lines"}),
        ("sets: [name], rate: 1/s", "sets: [last_seen], rate: 100/s", {"names", "lines"}),
        ("items: 10}", "items: 0}", {"names", "cities", "lines"}),
    ],
    ids=["rate", "another-attribute", "no-sources"],
)
def test_rules_are_not_stated_where_what_they_follow_is_not(old, new, unsure):
    """A rule whose writes are not known says so, and is not called free of cost."""
    assert old in CHAIN
    found = made(CHAIN.replace(old, new, 1))
    assert found.gaps
    assert {one.name for one in found.rules if not one.known} >= unsure - {"lines"}


def test_a_rate_of_none_at_all_is_a_rate():
    """Names that never change cost nothing, and that is known."""
    found = made(CHAIN.replace("sets: [name], rate: 1/s", "sets: [name], rate: 0/s"))
    assert found.gaps == ()
    assert all(one.known for one in found.rules)
    assert line(found.rules, "lines").load.write_units == 0
