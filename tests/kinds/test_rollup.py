"""Roll-ups, fact by fact: items that count, sum, min and max make, and remove without members."""

from __future__ import annotations

import pytest

from sync_rules.audit.leftovers import FormerRules
from sync_rules.audit.link_check import sample_links
from sync_rules.audit.verifier import Verifier
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.permissions import STREAM, list_needs
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.language.load import parse_rules
from sync_rules.model.groups import is_utc_time
from sync_rules.model.values import Item
from sync_rules.model.writes import Delete, Put
from sync_rules.pipeline.requests import Apply
from sync_rules.rules.fingerprints import of_each
from sync_rules.write.actions import Actions, refuse_kept_attributes
from sync_rules.write.errors import WriteError
from tests.support.builders import n, s
from tests.support.worlds import Scene

RULES = """
tables:
  days: {key: {day: S}, indexes: {by_kind: {kind: S, day: S}}}
  orders: {key: {order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  day: {table: days, key: {kind: "DAY"}, made_by: rules}
  order: {table: orders}
rules:
  orders: count order into day.orders
  units: sum order.units into day.units
  most: max order.units into day.most
"""
DAY = {"day": s("1"), "kind": s("DAY")}


def order(order_id: str, units: int, day: str = "1") -> Item:
    return {"order_id": s(order_id), "day": s(day), "units": n(units)}


def scene_of(text: str = RULES) -> Scene:
    return Scene(parse_rules(text))


def day_of(scene: Scene) -> Item | None:
    return scene.memory.item(scene.at("days", "1"))


def test_rollup_comes_with_its_first_member_and_goes_with_its_last():
    """The item has its key, the index keys that follow from it, and the numbers; nothing of it stays."""
    scene = scene_of()
    scene.put("orders", order("a", 3), order("b", -3))
    scene.rest()
    assert day_of(scene) == DAY | {"orders": n(2), "units": n(0), "most": n(3)}
    scene.put("orders", order("a", 3, "2"), order("b", -3, "2"))
    scene.rest()
    assert day_of(scene) is None
    assert scene.item(scene.at("days", "2"))["orders"] == n(2)


def test_rollup_of_a_child_that_adds_nothing_is_there():
    """An order of 0 is a member of a sum."""
    scene = scene_of(
        RULES.replace("  orders: count order into day.orders\n", "").replace(
            "  most: max order.units into day.most\n", ""
        )
    )
    scene.put("orders", order("a", 0))
    scene.rest()
    assert day_of(scene) == DAY | {"units": n(0)}


def test_rollup_with_something_unexpected_stays_and_is_reported():
    """The numbers are 0. Without the attribute the item goes."""
    scene = scene_of()
    scene.put("orders", order("a", 3))
    scene.rest()
    scene.put("days", {**(day_of(scene) or {}), "note": s("mine")})
    scene.put("orders", {"order_id": s("a")})
    scene.rest()
    assert day_of(scene) == DAY | {"orders": n(0), "units": n(0), "note": s("mine")}
    assert scene.parked.told == [("most", "UnexpectedAttribute")]
    scene.put("days", DAY | {"orders": n(0), "units": n(0)})
    scene.rest()
    assert day_of(scene) is None


def test_rollup_put_late_does_not_outlive_its_members():
    """The record of a late put asks for a look, and the record of a removal, too."""
    scene = scene_of()
    scene.put("days", DAY | {"orders": n(2)})
    scene.rest()
    assert day_of(scene) is None
    scene.put("orders", order("a", 3))
    scene.rest()
    scene.memory.delete(scene.at("days", "1"))
    scene.rest()
    assert day_of(scene) == DAY | {"orders": n(1), "units": n(3), "most": n(3)}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("2026-11-27T09:31:33Z", True),
        ("2026-11-27T09:31+00:00", True),
        ("2026-11-27T09:31:33.123456789Z", True),
        ("2026-11-27T09:31:33+01:00", False),
        ("2026-11-27T09:31:33", False),
        ("2026-11-31T09:31:33Z", False),
        ("2026-11-27", False),
        ("20261127T093133Z", False),
    ],
)
def test_rollup_groups_by_times_in_utc_alone(text, right):
    """Any other text names no group."""
    assert is_utc_time(text) is right


def test_rollup_reports_a_time_that_names_no_group():
    """The item does not count; nothing else waits."""
    scene = scene_of(
        RULES.replace(
            "count order into day.orders", "{count: order, into: day.orders, link: {day: {first: 10, of: at}}}"
        )
    )
    scene.put(
        "orders", {"order_id": s("a"), "at": s("2026-11-27T09:00:00Z")}, {"order_id": s("b"), "at": s("yesterday")}
    )
    scene.rest()
    assert scene.item(scene.at("days", "2026-11-27"))["orders"] == n(1)
    assert ("orders.ledger", "NotATime") in scene.parked.told


@pytest.mark.parametrize(
    ("key", "kind", "values", "reasons"),
    [
        ("{day}-{shop}", "S", {"day": s("a-b"), "shop": s("x")}, ["NoParentKey"]),  # the separator is in the value
        ("{day}-{shop}", "S", {"day": s("a" * 2_100), "shop": s("x")}, ["NoParentKey"]),
        ("{day:pad(3)}", "S", {"day": s("1234")}, ["NoParentKey"]),
        ("{day}", "N", {"day": s("seven")}, ["NoParentKey"]),
        ("{day}-{shop}", "S", {"day": s("a")}, []),  # it names no group
        ("{day}-{shop}", "S", {"day": s("a"), "shop": s("")}, []),
    ],
)
def test_rollup_reports_an_item_whose_values_make_no_key(key, kind, values, reasons):
    """Such an item would count nowhere, in silence; one that lacks a field belongs nowhere."""
    tables = f"tables: {{sums: {{key: {{id: {kind}}}}}, orders: {{key: {{order_id: S}}}}, ledger: {{key: {{PK: S, SK: S}}}}}}"
    key = f"key: {{id: '{key}'}}, " if key != "{day}" else ""
    link = "" if key else ", link: {id: day}"
    scene = scene_of(f"""{tables}
entities: {{sum: {{table: sums, {key}made_by: rules}}, order: {{table: orders}}}}
rules: {{n: {{count: order, into: sum.n{link}}}}}
""")
    scene.put("orders", {"order_id": s("a"), **values})
    scene.rest()
    assert [reason for _, reason in scene.parked.told] == reasons


def test_rollup_leaves_an_attribute_that_an_index_shares_with_a_field():
    """Without a template of the entity, the key attribute of an index is the application's own."""
    rules = (
        RULES.replace('key: {kind: "DAY"}, ', "")
        .replace("key: {day: S}, indexes: {by_kind: {kind: S, day: S}}", "key: {id: S}, indexes: {by_day: {day: N}}")
        .replace("table: days, made_by", "table: days, key: {id: 'D#{day}'}, made_by")
    )
    scene = scene_of(rules)
    scene.put("orders", order("a", 3))
    scene.rest()
    (item,) = scene.memory.items("days")
    scene.put("days", {**item, "day": n(331)})
    scene.rest()
    assert [item["day"] for item in scene.memory.items("days")] == [n(331)]
    scene.memory.delete(scene.at("orders", "a"))
    scene.rest()
    assert scene.parked.told == [("most", "UnexpectedAttribute")]


def test_rollup_changes_no_other_rule():
    """The same rules into an application's own items have the fingerprints that they had, and others with made_by."""
    plain = parse_rules(RULES.replace(", made_by: rules", ""))
    made = parse_rules(RULES)
    assert not of_each(plain).items() & of_each(made).items()
    assert [rule.makes for rule in plain.rules.values()] == [False] * 6


def test_rollup_asks_for_the_permissions_to_make_and_remove():
    """Put and delete on the table of the items, for the stream handler."""
    needs = list_needs(Deployment(parse_rules(RULES)))
    table = {
        need.action
        for need in needs
        if need.function == STREAM and need.rule == "orders" and "days" in str(need.resource).lower()
    }
    assert {"dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:UpdateItem"} <= table


def test_rollup_is_found_missing_and_empty_by_verify():
    """A repair makes the missing item and removes the one without members."""
    scene = scene_of()
    scene.put("orders", order("a", 3))
    scene.rest()
    scene.memory.delete(scene.at("days", "1"))
    scene.there("days", {"day": s("2"), "kind": s("DAY"), "orders": n(7)})
    verifier = Verifier(scene.rules, scene.world, scene.rules.keeper_names, repair=True, grace_seconds=0)
    found = {(finding.difference.target.values[0][2], finding.difference.drift.value) for finding in verifier.sweep()}
    assert {("1", "missing"), ("2", "extra")} <= found
    assert day_of(scene) == DAY | {"orders": n(1), "units": n(3), "most": n(3)}
    assert scene.memory.item(scene.at("days", "2")) is None


def test_rollup_is_planned_with_what_would_be_made_and_removed():
    """A plan names each item, and counts the values that go."""
    scene = scene_of()
    scene.there("orders", order("a", 3))
    scene.there("days", {"day": s("2"), "orders": n(7)})
    does = []
    plan = Planner(scene.rules, scene.rules.keeper_names, scene.memory, on_write=does.append).run()
    made = {(one.rule, one.does, one.key.values[0][2]) for one in does if one.key.table == "days"}
    assert {("orders", "put", "1"), ("units", "put", "1"), ("orders", "delete", "2")} <= made
    assert plan.rules["orders"].to_write >= 2
    assert {one.value: count for one, count in plan.rules["orders"].alterations.items()}["removed"] == 1


def test_rollup_of_a_removed_rule_is_pruned():
    """The whole item goes with its last rule; one of several rules leaves only its number; foreign attributes stay."""
    before = parse_rules(RULES)
    none = parse_rules(RULES.partition("rules:")[0].replace(", made_by: rules", "") + "rules: {}\n")
    some = parse_rules(RULES.replace("  most: max order.units into day.most\n", ""))
    item = DAY | {"orders": n(1), "most": n(3)}
    table = before.tables["days"]
    (whole,) = FormerRules(before, none).leftovers(table, item)
    assert whole.paths == ()
    (one,) = FormerRules(before, some).leftovers(table, item)
    assert one.paths == (("most",),)
    found = FormerRules(before, none).leftovers(table, item | {"note": s("mine")})
    assert {path for one in found for path in one.paths} == {("orders",), ("most",)}


def meddle(scene: Scene, write: type, item: Item) -> None:
    """Put an item just before the first such write on days arrives."""

    def before(request: object) -> None:
        if isinstance(request, Apply) and any(
            isinstance(one, write) and one.key.table == "days" for one in request.writes
        ):
            scene.tap.before = lambda _request: None
            scene.put("days", item)

    scene.tap.before = before


def test_rollup_is_not_removed_when_it_was_put_since():
    """The delete compares every attribute that was seen."""
    scene = scene_of()
    scene.put("orders", order("a", 3))
    scene.rest()
    meddle(scene, Delete, DAY | {"orders": n(9), "note": s("mine")})
    scene.put("orders", {"order_id": s("a")})
    scene.rest()
    assert day_of(scene) == DAY | {"orders": n(0), "units": n(0), "note": s("mine")}


def test_rollup_is_not_created_over_an_item_that_came_since():
    """The put is refused, and the record of that item brings the numbers."""
    scene = scene_of()
    meddle(scene, Put, DAY | {"note": s("mine")})
    scene.put("orders", order("a", 3))
    scene.rest()
    assert day_of(scene) == DAY | {"orders": n(1), "units": n(3), "most": n(3), "note": s("mine")}


def test_rollup_is_written_by_nothing_else():
    """`transact` refuses it, and names a rule."""
    rules = parse_rules(RULES)
    own = Actions(rules, raw=True).put("day", DAY)
    with pytest.raises(WriteError, match="are made by rule"):
        refuse_kept_attributes(own, None, rules)


def test_rollup_link_that_names_something_hits_it():
    """A rule makes what its items name, so a link misses only if no item has its field."""
    scene = scene_of()
    scene.there("orders", *(order(str(number), 1) for number in range(20)))
    assert not sample_links(scene.rules, scene.rules.keeper_names, scene.memory)
    scene = scene_of()
    scene.there("orders", *({"order_id": s(str(number)), "date": s("1"), "units": n(1)} for number in range(20)))
    found = sample_links(scene.rules, scene.rules.keeper_names, scene.memory)
    assert [one.title for one in found if "point to no day" in one.found] == ["most", "orders", "units"]


def test_rollup_waits_for_the_books_of_every_rule():
    """Without complete books nothing is made; with an item there before, nothing goes until a backfill."""
    scene = Scene(parse_rules(RULES), complete=False)
    scene.put("orders", order("a", 3))
    scene.put("days", {"day": s("2"), "kind": s("DAY"), "orders": n(7)})
    scene.rest()
    assert day_of(scene) is None
    assert scene.item(scene.at("days", "2"))["orders"] == n(7)


def test_rollup_of_an_older_count_is_added_up_by_verify():
    """The entries of a count do not say how many there are: a repair adds them up, and then the item is made."""
    plain = RULES.replace(", made_by: rules", "").replace('key: {kind: "DAY"}', 'key: {kind: "DAY"}')
    scene = scene_of(plain)
    scene.put("orders", order("a", 3))
    scene.rest()
    after = Scene(parse_rules(RULES), complete=False)
    for table in ("orders", "ledger"):
        after.there(table, *scene.memory.items(table))
    verifier = Verifier(after.rules, after.world, after.rules.keeper_names, repair=True, grace_seconds=0)
    assert list(verifier.sweep())
    assert day_of(after) == DAY | {"orders": n(1), "units": n(3), "most": n(3)}
