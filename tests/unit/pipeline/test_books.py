"""The pipeline writes numbers only from complete books: books of this same rule, with every child read."""

from __future__ import annotations

import pytest

from sync_rules.adapters.acceptance import find_applied_rules
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import MemoryState, read_applied_fingerprints
from sync_rules.jobs.backfill.scope import note_applied_rules
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.pipeline.books import (
    TAKEN,
    begin_books,
    describe_waits,
    finish_empty,
    list_books,
    read_incomplete_books,
)
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import Apply, run_work
from sync_rules.rules import fingerprints
from sync_rules.rules.books import Books
from tests.support.builders import m, n, s
from tests.support.stacked import backfill_of
from tests.support.verifying import verify
from tests.support.worlds import Scene

TABLES = """
tables:
  users: {key: {user: S}}
  orders: {key: {order: S}}
  ledger: {key: {PK: S, SK: S}}
  other: {key: {PK: S, SK: S}}
entities:
  user: {table: users}
  order: {table: orders}
rules:
"""
COUNT = "orders: {count: order, into: user.number}"
STATES = ("OPEN", "PAID")
OLD = 26  # orders that are there from before


def rules_of(*entries: str):
    return parse_rules(TABLES + "".join(f"  {entry}\n" for entry in entries))


def order(number: int):
    return {"order": s(f"{number:02}"), "user": s("u"), "total": n(number), "state": s(STATES[number % 2])}


def shop(*entries: str, stands=None, complete: bool = False) -> tuple[Scene, ItemKey]:
    """Orders of a user that were there before these rules, and a number that somebody else kept."""
    scene = Scene(rules_of(*entries), complete=complete)
    scene.there("orders", *map(order, range(1, OLD + 1)))
    user = scene.there("users", {"user": s("u"), **({} if stands is None else {"number": stands})})
    return scene, user


def deploy(scene: Scene, *entries: str) -> None:
    """From here on the handler has these rules."""
    scene.rules = rules_of(*entries)
    scene.consumer = Consumer(scene.rules, scene.world, THIS_PROCESS)


def insert(scene: Scene, number: int) -> None:
    scene.put("orders", order(number))
    scene.rest()


def the_books(scene: Scene) -> Books:
    (books,) = list_books(scene.rules).values()
    return books


def number_of(scene: Scene, user: ItemKey):
    return scene.item(user).get("number")


# ---------------------------------------------------------------- from the first record to the end of the backfill
@pytest.mark.parametrize(
    ("rule", "stands", "ends"),
    [
        ("{count: order, into: user.number}", None, n(27)),
        ("{count: order, into: user.number, shards: 3}", n(26), n(27)),
        ("{count: order, into: user.number, per: state}", m(OPEN=n(13)), m(OPEN=n(13), PAID=n(14))),
        ("{min: order.total, into: user.number}", n(0), n(1)),
        ("{max: order.total, into: user.number}", n(99), n(27)),
    ],
)
def test_a_new_counter_leaves_a_number_alone_until_its_backfill(rule: str, stands, ends):
    """The handler is deployed first. One order comes: of 27 it knows one, which must not be shown."""
    scene, user = shop(f"orders: {rule}", stands=stands)
    insert(scene, 27)
    assert number_of(scene, user) == stands
    assert scene.outcomes()[Outcome.WAITING]
    backfill_of(scene).run()
    assert number_of(scene, user) == ends
    insert(scene, 0)
    insert(scene, 99)
    assert number_of(scene, user) != ends  # from here on the records keep it


@pytest.mark.parametrize(
    "changed",
    [
        "orders: {count: order, into: user.number, ledger: other}",
        "orders: {count: order, into: user.number, shards: 4}",
        "orders: {count: order, into: user.number, where: \"state == 'OPEN'\"}",
        "orders: {sum: order.total, into: user.number}",
        "orders: {max: order.total, into: user.number}",
        "renamed: {count: order, into: user.number}",
    ],
)
def test_a_changed_counter_leaves_the_number_alone_and_so_does_the_old_one_after_a_rollback(changed: str):
    """Both versions book under one name, so neither may take the books of the other for its own."""
    scene, user = shop(COUNT)
    backfill_of(scene).run()
    assert number_of(scene, user) == n(26)
    deploy(scene, changed)
    insert(scene, 27)
    assert number_of(scene, user) == n(26)
    if changed.startswith("orders") and "other" not in changed:
        deploy(scene, COUNT)
        insert(scene, 28)
        assert number_of(scene, user) == n(26)
        deploy(scene, changed)
        insert(scene, 29)
        assert number_of(scene, user) == n(26)
    backfill_of(scene).run()
    scene.rest()
    whole, _ = shop(changed)
    whole.there("orders", *scene.memory.items("orders"))
    backfill_of(whole).run()
    assert scene.item(user) == whole.item(user)


# ---------------------------------------------------------------- races


def test_two_versions_that_begin_again_and_again_end_in_a_failure():
    scene, _ = shop(COUNT)
    mine = the_books(scene)
    other = Books(mine.mark, "other")
    scene.tap.before = lambda request: (
        scene.memory.apply(Apply((other.begin(scene.memory.item(mine.mark)),))) if isinstance(request, Apply) else None
    )
    found = scene.drive(begin_books([mine]))[mine]
    assert isinstance(found, StoreError)
    assert found.reason == TAKEN


# ---------------------------------------------------------------- who completes them


@pytest.mark.parametrize(
    "damage",
    [
        {"PK": s("orders/L/07"), "SK": s("-"), "n": s("x")},  # an unreadable entry
        {"PK": s("orders/T/u"), "SK": s("-"), "n": n(5), "v": n(1)},  # a total of no entry
    ],
    ids=["entry", "total"],
)
def test_books_that_somebody_else_wrote_to_are_not_completed_by_a_backfill(damage):
    """A right number is not lowered or raised: the rule waits until a repair has made the books right."""
    scene, user = shop(COUNT, stands=n(26))
    scene.there("ledger", damage)
    backfill_of(scene).run()
    scene.rest()
    assert number_of(scene, user) == n(26)
    assert [rule.title for rule in run_work(read_incomplete_books(scene.rules), scene.world)] == ["orders"]
    scene.there("orders", order(27))
    verify(scene, repair=True)
    scene.rest()
    assert number_of(scene, user) == n(27)
    assert not run_work(read_incomplete_books(scene.rules), scene.world)


# ---------------------------------------------------------------- in the account, from an export, by --changed


def test_a_rule_that_waits_or_is_new_is_changed_and_one_that_was_renamed_is_not():
    """A rollback leaves the fingerprint that was applied, and books that lack something."""
    state, rules = MemoryState(), rules_of(COUNT)
    note_applied_rules(state, rules, ["orders"])
    assert find_applied_rules(state, rules) == fingerprints.compute_rule_fingerprints(rules)
    assert find_applied_rules(state, rules, ["orders"]) == {}
    renamed = rules_of("sum: {count: order, into: user.number, renamed_from: orders}")
    assert find_applied_rules(state, renamed) == fingerprints.compute_rule_fingerprints(renamed)
    changed = rules_of("sum: {sum: order.total, into: user.number, renamed_from: orders}")
    assert find_applied_rules(state, changed) == {}
    note_applied_rules(state, renamed, ["sum"])
    assert read_applied_fingerprints(state).keys() == {"sum"}


# ---------------------------------------------------------------- where nothing was there before


def test_books_over_children_or_over_old_entries_wait():
    scene, _ = shop(COUNT)
    (rule,) = list_books(scene.rules)
    assert scene.drive(finish_empty(scene.rules)) == (rule,)
    backfill_of(scene).run()
    for number in range(1, OLD + 1):  # no record is processed, as while the rule was gone
        scene.memory.delete(scene.at("orders", f"{number:02}"))
    deploy(scene, "orders: {sum: order.total, into: user.number}")
    (rule,) = list_books(scene.rules)
    assert scene.drive(finish_empty(scene.rules)) == (rule,)


def test_books_over_tables_without_children_are_complete_from_the_beginning():
    one_table = """
tables: {shop: {key: {PK: S, SK: S}}, ledger: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "U#{user}", SK: PROFILE}}
  order: {table: shop, key: {PK: "U#{user}", SK: "O#{order}"}}
rules: {orders: {count: order, into: user.number}}
"""
    scene = Scene(parse_rules(one_table), complete=False)
    user = scene.there("shop", {"PK": s("U#u"), "SK": s("PROFILE")})
    assert scene.drive(finish_empty(scene.rules)) == ()
    scene.put("shop", {"PK": s("U#u"), "SK": s("O#1")})
    scene.rest()
    assert number_of(scene, user) == n(1)


@pytest.mark.parametrize("count", [0, 1, 2, 17])
def test_counters_that_wait_are_one_line_with_the_command_that_ends_it(count):
    """However many wait, and with the options that the command of the line needs."""
    lines = describe_waits((f"rule-{number:02}" for number in range(count)), " --region eu-west-1")
    assert len(lines) == min(count, 1)
    assert all(len(line) < 260 for line in lines)
    chosen = "--rule rule-00" if count == 1 else "--changed"
    assert all(f"sync-rules backfill {chosen} --region eu-west-1" in line for line in lines)
    assert all((" and 14 more)" in line) == (count == 17) for line in lines)
