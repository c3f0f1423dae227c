"""Totals that an application keeps by hand become roll-ups: adopt, compare, switch. No number is lost on the way."""

from __future__ import annotations

from sync_rules.audit.leftovers import FormerRules
from sync_rules.audit.verifier import Verifier
from sync_rules.language.load import parse_rules
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules
from tests.support.builders import n, s
from tests.support.stacked import Stack, backfill_of
from tests.support.worlds import Scene

TABLES = """
tables:
  days: {key: {day: S}}
  orders: {key: {order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  day: {table: days, made_by: rules}
  order: {table: orders}
rules:
"""
BEFORE = parse_rules(TABLES.replace(", made_by: rules", "") + "  {}")
ADOPTED = parse_rules(TABLES + "  orders: count order into day.orders_by_rule\n")
SWITCHED = parse_rules(TABLES + "  orders: count order into day.orders\n")


class Application:
    """An application that writes orders and adds each to the total of its day. It may die between the two writes."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.adds = True

    def order(self, order_id: str, day: str, *, dies: bool = False) -> None:
        self.scene.put("orders", {"order_id": s(order_id), "day": s(day)})
        if self.adds and not dies:
            self._add(day, 1)

    def cancel(self, order_id: str) -> None:
        key = self.scene.at("orders", order_id)
        day = self.scene.item(key)["day"]["S"]
        self.scene.memory.delete(key)
        if self.adds:
            self._add(day, -1)

    def _add(self, day: str, amount: int) -> None:
        item = self.scene.memory.item(self.scene.at("days", day)) or {"day": s(day)}
        held = int(item.get("orders", n(0))["N"])
        self.scene.put("days", {**item, "orders": n(held + amount)})


def days_of(scene: Scene) -> dict[str, Item]:
    """The days without their key."""
    return {one["day"]["S"]: {k: v for k, v in one.items() if k != "day"} for one in scene.memory.items("days")}


def compare(scene: Scene, rules: Rules) -> dict[str, str]:
    """`sync-rules verify` with another file, which repairs nothing: each difference by day."""
    verifier = Verifier(rules, scene.world, rules.keeper_names, repair=False, grace_seconds=0)
    found = {one.difference.target.values[0][2]: one.difference.drift.value for one in verifier.sweep()}
    return {str(day): drift for day, drift in found.items()}


def adopted() -> tuple[Scene, Stack, Application]:
    """The rule runs beside the application's own totals, with complete books."""
    scene = Scene(BEFORE, complete=False)
    stack, application = Stack(scene), Application(scene)
    stack.create()
    for order_id, day in (("a", "1"), ("b", "1"), ("c", "2")):
        application.order(order_id, day)
    application.order("d", "2", dies=True)
    scene.rest()
    stack.update(ADOPTED)
    application.order("e", "3")  # between the deployment and the backfill
    scene.rest()
    assert "orders_by_rule" not in str(days_of(scene))
    backfill_of(scene).run()
    scene.rest()
    return scene, stack, application


def test_comparison_names_the_totals_that_the_application_lost():
    """A file that names the application's attribute finds them, writes nothing, and needs no deployment. Neither the rule
    nor the application writes what the other keeps, and both totals change with each order.
    """
    scene, _, application = adopted()
    application.order("f", "3")
    application.cancel("a")
    scene.rest()
    before = days_of(scene)
    assert before == {
        "1": {"orders": n(1), "orders_by_rule": n(1)},
        "2": {"orders": n(1), "orders_by_rule": n(2)},
        "3": {"orders": n(2), "orders_by_rule": n(2)},
    }
    assert compare(scene, ADOPTED) == {}
    assert compare(scene, SWITCHED) == {"2": "wrong"}
    assert (days_of(scene), scene.records) == (before, [])


def test_switched_total_is_the_attribute_of_the_application():
    """Orders of every moment count; an addition that comes late is repaired; a day without orders goes."""
    scene, stack, application = adopted()
    application.cancel("a")
    application.cancel("b")
    scene.rest()
    assert days_of(scene)["1"] == {"orders": n(0), "orders_by_rule": n(0)}
    assert ("orders", "UnexpectedAttribute") in scene.parked.told
    stack.update(SWITCHED)
    application.order("f", "3")  # an old process still adds
    application.adds = False
    application.order("g", "3")
    scene.rest()
    backfill_of(scene).run()
    scene.rest()
    former = FormerRules(ADOPTED, SWITCHED)
    for item in scene.memory.items("days"):
        paths = {path for one in former.leftovers(SWITCHED.tables["days"], item) for path in one.paths}
        assert paths == {("orders_by_rule",)}
        scene.put("days", {name: value for name, value in item.items() if (name,) not in paths})
    scene.rest()
    assert days_of(scene) == {"2": {"orders": n(2)}, "3": {"orders": n(3)}}
    assert compare(scene, SWITCHED) == {}
    application.cancel("c")
    application.cancel("d")
    scene.rest()
    assert days_of(scene) == {"3": {"orders": n(3)}}
