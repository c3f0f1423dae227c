"""A first backfill is estimated as `plan` counts it, for every kind of rule, alone and with others."""

from __future__ import annotations

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.design.costs.estimate import EstimateOptions, estimate
from sync_rules.extras.design.costs.volumes import EntitySample, SizeSampler
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.jobs.dryrun.prices import own_prices
from sync_rules.language.load import parse_rules
from tests.support.builders import n, s

HEAD = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {by_user: {user_id: S, when: S}}}
  tags: {key: {tag: S, id: S}}
  bosses: {key: {user_id: S}}
  parts: {key: {part_id: S}, indexes: {kids: {parent: S, part_id: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "U#{user_id}", SK: A}}
  order: {table: shop, key: {PK: "U#{user_id}", SK: "O#{order_id}"}, required: [user_id, when]}
  line: {table: shop, key: {PK: "U#{user_id}", SK: "L#{order_id}#{line_id}"}}
  version: {table: shop, key: {PK: "U#{user_id}", SK: "V#{version}"}}
  boss: {table: bosses}
  part: {table: parts}
  tagged: {table: tags, key: {tag: "T#{tag}", id: "{order_id}"}}
  named: {table: tags, key: {tag: "N#{name}", id: "{user_id}"}}
rules:
"""
USERS, ORDERS = 10, 20
MIRROR = "{mirror: user, into: named, attributes: [name]}"
EACH = "{mirror: order, into: tagged, each: {tag: tags}, attributes: [total]}"
RECOUNT = "{min: order.total, into: user.least, mode: recount}"
EMBED = "{embed: order, into: user.orders, fields: [order_id, total], limit: {items: 100}}"
CASES = {
    "embed": [EMBED],
    "embed by an index": [EMBED.replace("user.orders", "boss.orders, via: by_user")],
    "recount": [RECOUNT],
    "two recounts": [RECOUNT, "{max: order.total, into: user.most, mode: recount}"],
    "recount and derive": [RECOUNT, "{derive: user.label, as: 'T{tier}'}"],
    "copy": ["copy user.name into order.name"],
    "copy by an index": ["{copy: boss.name, into: order.name, via: by_user}"],
    "two copies": ["copy user.name into order.name", "copy user.tier into order.tier"],
    "copy and derive": ["copy user.name into order.name", "{derive: order.label, as: 'T{total}'}"],
    "strict copy": ["{copy: user.name, into: order.name, strict: true}"],
    "strict copy and copy": ["{copy: user.name, into: order.name, strict: true}", "copy user.tier into order.tier"],
    "copy of a copy": ["copy user.name into order.name", "copy order.name into line.name"],
    "count": ["count order into user.orders"],
    "count and sum": ["count order into user.orders", "sum order.total into user.sum"],
    "max": ["max order.total into user.most"],
    "values": ["{collect: order.total, into: user.totals}"],
    "collect": ["{collect: order, into: user.names, as: '{order_id}'}"],
    "mirror": [MIRROR],
    "mirrors of each": [EACH],
    "mirrors of both": [MIRROR, EACH],
    "history": ["{history: user, into: version, attributes: [name]}"],
    "path": ["{path: part.way, parent: parent, via: kids}"],
}


def tables():
    """The items of each table: users with orders of three tags and one line, and a tree of parts."""
    shop = []
    for user in range(USERS):
        shop.append({"PK": s(f"U#{user}"), "SK": s("A"), "name": s(f"n{user}"), "tier": s("t"), "version": n(1)})
        for number in range(ORDERS):
            order = f"{user}x{number}"
            named = {"user_id": s(f"{user}"), "when": s("w"), "total": n(number + 1)}
            tags = {"tags": {"SS": [f"a{user}", f"b{number}", "c"]}}
            shop.append({"PK": s(f"U#{user}"), "SK": s(f"O#{order}"), **named, **tags})
            shop.append({"PK": s(f"U#{user}"), "SK": s(f"L#{order}#1"), "text": s("t")})
    bosses = [{"user_id": s(f"{user}"), "name": s("b")} for user in range(USERS)]
    parts = [{"part_id": s("0")}]
    parts += [{"part_id": s(f"{one}"), "parent": s(f"{(one - 1) // 2}")} for one in range(1, USERS)]
    return {"shop": shop, "bosses": bosses, "parts": parts}


@pytest.mark.parametrize("name", CASES)
def test_backfill_costs_what_plan_counts(name):
    """Write units within five percent of those of `plan`, and so are read units with those of the scans."""
    written = "\n".join(f"  rule-{number}: {rule}" for number, rule in enumerate(CASES[name]))
    rules = parse_rules(f"{HEAD}{written}\n", environ={})
    store, measuring = MemoryStore(rules.tables), SizeSampler(rules)
    for table, items in tables().items():
        measuring.add(rules.tables[table], items)
        for item in items:
            store.put(table, item)
    mirrors = len({(item["SK"]["S"], tag) for item in tables()["shop"] for tag in item.get("tags", {}).get("SS", ())})
    to_come = {"tagged": mirrors, "named": USERS, "version": USERS}
    measured = {
        **measuring.samples(),
        **{one: EntitySample(items if one in written else 0, 50) for one, items in to_come.items()},
    }
    plan = Planner(rules, rules.kept, store).run()
    found = estimate(rules, EstimateOptions(own_prices().regions["us-east-1"]), measured).backfill
    assert found.known
    assert sum(one.writes for one in found.rules.values()) == pytest.approx(plan.written, rel=0.05, abs=1)
    reads = found.scanned + sum(one.reads for one in found.rules.values())
    assert reads == pytest.approx(plan.reads, rel=0.05, abs=4)  # pages are rounded up
