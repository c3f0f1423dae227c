"""The figures of a repair are those that plan would give of the same items."""

from __future__ import annotations

import gzip
import json

from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.extras.discover.imports.key_schemas import as_key
from sync_rules.extras.discover.propose import repair_figures
from sync_rules.extras.discover.propose.repair_figures import repair_of
from sync_rules.extras.discover.propose.table_files import Gathered, GatheredTable
from sync_rules.language.load import parse_rules
from tests.support.builders import n, s

RULES = """
tables:
  shop: {name: shop-prod, key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.user_name
  orders: {count: order, into: user.orders}
"""


def gathered(tmp_path, items: list[dict]) -> Gathered:
    file = tmp_path / "a.json.gz"
    file.write_bytes(gzip.compress(b"".join(json.dumps({"Item": item}).encode() + b"\n" for item in items)))
    found = FoundTable("shop", "shop-prod", as_key({"PK": "S", "SK": "S"}))
    return Gathered((GatheredTable(found, (file,), len(items), file.stat().st_size),))


ITEMS = [
    {"PK": s("USER#1"), "SK": s("PROFILE"), "name": s("Ada"), "orders": n(2), "raw": {"B": "AP8="}},
    *({"PK": s("USER#1"), "SK": s(f"ORDER#{one}"), "user_name": s("Old" if one else "Ada")} for one in range(3)),
]


def test_repair_counts_what_a_backfill_would_write(tmp_path):
    """By the name of the rule in the file: a counter with its ledger is one."""
    found = repair_of(parse_rules(RULES, environ={}), gathered(tmp_path, ITEMS))
    assert found is not None
    assert found.rules.keys() == {"names", "orders"}
    assert (found.rules["names"].to_write, found.rules["names"].right, found.rules["names"].write_units) == (2, 1, 2)
    assert found.rules["orders"].to_write == 4  # three entries, and the number
    assert found.plan.written >= 2 + 4


def test_repair_of_too_much_or_of_what_no_table_holds_is_none(tmp_path, monkeypatch):
    """More items than can be planned at once, no rule, and an item that DynamoDB would refuse."""
    rules = parse_rules(RULES, environ={})
    assert (
        repair_of(parse_rules(RULES.partition("rules:")[0] + "rules: {}", environ={}), gathered(tmp_path, ITEMS))
        is None
    )
    assert repair_of(rules, gathered(tmp_path, [{**ITEMS[0], "PK": s("")}])) is None
    monkeypatch.setattr(repair_figures, "BOOKED_MAX_ITEMS", 3)
    assert repair_of(rules, gathered(tmp_path, ITEMS)) is None
    assert repair_of(rules.only(["names"]), gathered(tmp_path, ITEMS)) is not None
