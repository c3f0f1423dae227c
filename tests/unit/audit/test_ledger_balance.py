"""Balance: a total that differs from the sum of its entries is found, and nothing else is."""

from __future__ import annotations

from sync_rules.audit import ledger_balance
from sync_rules.audit.ledger_balance import (
    confirm_unbalanced_totals,
    find_unbalanced_totals,
    list_ledgers,
    repair_total,
)
from sync_rules.language.load import parse_rules
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Scan
from tests.support.builders import n, s
from tests.support.every_kind import RULES, order, text_of
from tests.support.worlds import Scene

KINDS = {"spent": RULES["spent"], "by_status": "{count: order, into: user.by_status, per: status, shards: 2}"}


def at_rest(orders: int = 4, **rules: str) -> Scene:
    scene = Scene(parse_rules(text_of(rules or KINDS)))
    statuses = ("OPEN", "PAID")
    scene.put("shop", *(order(str(i % 2), f"o{i}", i + 1, status=s(statuses[i % 2])) for i in range(orders)))
    scene.rest()
    return scene


def corrupt(scene: Scene, at: str, name: str, value: Item) -> None:
    """Write over one attribute of a total."""
    key = scene.at("ledger", at, "PROFILE")
    scene.there("ledger", {**(scene.memory.item(key) or key.attributes()), name: value})


def test_balance_does_not_mend_a_total_that_was_added_to_meanwhile():
    """The same wrong number under another version is another number: a total that comes and goes is never put wrong."""
    scene = at_rest()
    corrupt(scene, "spent/T/USER#1", "n", n(99))
    ((table, tallies),) = list_ledgers(scene.rules, frozenset(scene.rules.rules))
    ((slot, books),) = scene.drive(find_unbalanced_totals(table, tallies)).items()
    corrupt(scene, "spent/T/USER#1", "v", n(7))
    assert not scene.drive(repair_total(slot[0], {slot[1]: books}))
    assert scene.drive(confirm_unbalanced_totals(table, tallies, {slot: books})) == {}


def test_balance_leaves_entries_of_totals_that_are_used_no_more():
    """Entries that still add to a total of another number of shards are the tally's to move, not out of balance."""
    scene = at_rest(by_status=KINDS["by_status"])
    now = parse_rules(text_of({"by_status": KINDS["by_status"].replace("shards: 2", "shards: 1")}))
    ((table, tallies),) = list_ledgers(now, frozenset(now.rules))
    assert scene.drive(find_unbalanced_totals(table, tallies)) == {}


def test_balance_is_bounded(monkeypatch):
    """A bounded number of uneven buckets is compared at a time, and tables are read page by page."""
    monkeypatch.setattr(ledger_balance, "PAGE_MAX_ITEMS", 2)
    monkeypatch.setattr(ledger_balance, "UNEVEN_MAX_BUCKETS", 1)
    scene = at_rest()
    for number in range(2):
        corrupt(scene, f"spent/T/USER#{number}", "n", n(99))
    ((table, tallies),) = list_ledgers(scene.rules, frozenset(scene.rules.rules))
    assert len(scene.drive(find_unbalanced_totals(table, tallies))) == 1
    assert {request.limit for request in scene.tap.seen(Scan)} == {2}
