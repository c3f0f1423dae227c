"""The pipeline writes numbers only from complete books: books of this same rule, with every child read."""

from __future__ import annotations

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.pipeline.books import (
    finish_empty,
    list_books,
    read_incomplete_books,
)
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import run_work
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
