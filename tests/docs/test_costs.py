"""Costs stated by the pages on rules, measured by running each page's rules in memory.

Items here are under 1 KB, so a write is a write unit, an action of a transaction two; a consistent read of an item, or
a Query of the base table, is a read unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pytest

from benchmarks.scale import LAYOUTS, REGION, estimate, read_units
from sync_rules.jobs.dryrun.money import compute_on_demand_price
from sync_rules.jobs.dryrun.prices import read_own_prices
from sync_rules.language.load import parse_rules
from sync_rules.model.writes import Transaction
from sync_rules.pipeline.requests import List, Read
from tests.docs.test_docs import TEXTS, first_file, rows
from tests.support.builders import n, s
from tests.support.worlds import Scene


def scene_of(page: str, rule: str = "") -> Scene:
    """The first rules file of a page in memory; `rule`: with one rule alone."""
    text = first_file(page).body
    return Scene(parse_rules(f"{text.partition('rules:')[0]}rules:\n  {rule}\n" if rule else text, environ={}))


def put(scene, table, **item):
    scene.put(table, {name: n(value) if isinstance(value, int) else s(value) for name, value in item.items()})


def settle(scene):
    """Work until nothing comes any more, a batch for each stream. The store's requests are those of this work."""
    scene.tap.requests.clear()
    while scene.records:
        batch, scene.records = scene.records, []
        for table in dict.fromkeys(change.key.table for change in batch):
            assert scene.deliver([change for change in batch if change.key.table == table]) == []


def count_units(scene):
    """Work until nothing comes any more. Returns the write units and read units that it took."""
    settle(scene)
    writes = sum(2 * len(write.actions) if isinstance(write, Transaction) else 1 for write in scene.tap.writes)
    listed = sum(1 if request.index is None else 0.5 for request in scene.tap.seen(List))
    return writes, listed + sum(len(request.keys) for request in scene.tap.seen(Read))


def address(scene):
    put(scene, "crm", PK="CUSTOMER#1", SK="PROFILE")
    put(scene, "crm", PK="CUSTOMER#1", SK="ADDRESS#1", street="A", city="C")
    settle(scene)
    put(scene, "crm", PK="CUSTOMER#1", SK="ADDRESS#1", street="B", city="C")


def unseen(scene):
    address(scene)
    settle(scene)
    put(scene, "crm", PK="CUSTOMER#1", SK="ADDRESS#1", street="B", city="C", note="N")


def goal(scene, members=1):
    put(scene, "graph", source="GOAL-1", target="GOAL-1")
    settle(scene)
    for number in range(members):
        put(scene, "graph", source="GOAL-1", target=f"GOALMEMBERSHIP-USER-{number}", memberRole="LEAD")


def role(scene):
    goal(scene)
    settle(scene)
    put(scene, "graph", source="GOAL-1", target="GOALMEMBERSHIP-USER-0", memberRole="TEAM")


def store(scene):
    put(scene, "stores", store_id="1", state="ny", city="New York", zip="10001")


def email(scene, name="a"):
    put(scene, "shop", PK="USER#1", SK="PROFILE", email=name)


def move(scene):
    email(scene)
    settle(scene)
    email(scene, "b")


def order(scene, number=0, user="1", total=5):
    put(scene, "shop", PK=f"ORDER#{number}", SK="HEAD", user_id=user, total=total, **{f"s{n}": n + 1 for n in range(7)})


def orders(scene, count=1):
    for number in (1, 2):
        put(scene, "shop", PK=f"USER#{number}", SK="PROFILE")
    settle(scene)
    for number in range(count):
        order(scene, number)


def amount(scene):
    orders(scene)
    settle(scene)
    order(scene, total=6)


def other_parent(scene):
    orders(scene)
    settle(scene)
    order(scene, user="2")


COUNT = "orders: count order into user.orders"
SUMS = f"orders: {{count: order, into: user.orders, sums: {[f's{n}' for n in range(7)]}}}"
MAX = "largest: max order.total into user.largest"
STORIES: list[tuple[str, str, str, Callable[[Scene], None], tuple[int, int]]] = [
    ("embed", "", "costs 2 write units and 3 read units", address, (1, 3)),  # of a customer of 2 KB
    ("embed", "", "| a child that changed in something else, `fields` given | 0 | 0 |", unseen, (0, 0)),
    ("collect", "", "costs 1 write unit and 4 read units", goal, (1, 4)),
    ("collect", "", "| an edge whose element changed | 2 per KB", role, (2, 4)),
    ("collect", "", "1 per KB of the node for all that go in", lambda scene: goal(scene, 5), (1, 12)),
    ("derive", "", "0: the record shows all it needs", store, (1, 0)),
    ("mirror", "", "4 write units and 4 read units when the email changes and the mirror did not", email, (4, 4)),
    ("mirror", "", "6 and 6 for a move", move, (6, 6)),
    ("count", COUNT, "5 write units and 12 read units", orders, (5, 12)),
    ("count", SUMS, "All numbers together cost what a count alone costs.", orders, (5, 12)),
    ("count", COUNT, "2 for each and 2 for the total", lambda scene: orders(scene, 99), (99 * 2 + 2 + 1, 99 * 4 + 8)),
    ("count", COUNT, "| 6, and 1 per KB of both parents | about 15 |", other_parent, (8, 15)),
    (
        "count",
        MAX,
        "2, 2 per KB of the item, and 1 per KB of the parent if its number changed | about 12",
        orders,
        (5, 12),
    ),
    (
        "count",
        MAX,
        "4, 2 per KB of the item, and 1 per KB of the parent if its number changed | about 14",
        amount,
        (7, 14),
    ),
]


def shown(value: object) -> str:
    """A parameter in the name of a test: the same in every process."""
    return str(getattr(value, "__name__", value))[:30]


@pytest.mark.parametrize(("page", "rule", "said", "story", "units"), STORIES, ids=shown)
def test_costs_are_what_the_page_says(page, rule, said, story, units):
    """A change costs the read and write units that the page states."""
    assert said in " ".join(TEXTS[f"docs/rules/{page}.md"].split())
    scene = scene_of(f"docs/rules/{page}.md", rule)
    story(scene)
    assert count_units(scene) == units


def test_costs_of_a_million_copies_agree():
    """The costs of a million copies agree between the pages, their parts, the prices and `benchmarks.scale`."""
    table = {cells[0]: cells[1:] for cells in rows("docs/scale.md", "a million copies of 1 KB, USD")}
    for parts in table.values():
        *some, total = (sum(map(Decimal, re.findall(r"\d\.\d+", cell))) for cell in parts)
        assert sum(some) == total
    base, index = (estimate(1_000_000, layout) for layout in LAYOUTS[:2])
    listed_once_more = compute_on_demand_price(
        read_own_prices().regions[REGION], read_units(1_000_000, LAYOUTS[1]) - 14_000, 0
    )
    assert f"{base.money:.3f}" == table["no rate limit, listed from the base table"][-1]
    assert (
        f"{index.money + listed_once_more:.3f}" == table["no rate limit, through an index that projects keys only"][-1]
    )
    for page in ("docs/rules/copy.md", "docs/scale.md"):
        assert {"0.674", "0.902", "1.527"} <= {*re.findall(r"\d\.\d{3}", TEXTS[page])}
    assert {"**0.67**", "**0.90**", "**0.85**", "**1.08**"} <= {*re.findall(r"\*\*\d\.\d\d\*\*", TEXTS["README.md"])}
