"""A rule uses an index that may leave out items only with `sparse: true`, or if the file promises their keys."""

from __future__ import annotations

import pytest

from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.backfill.page import Selection, process_items
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Bounds
from sync_rules.model.values import AttributeValue
from sync_rules.model.writes import Put
from sync_rules.pipeline.requests import run_work
from sync_rules.rules.ruleset import Rules
from tests.support.builders import key, s

TABLES = """
tables:
  users: {{key: {{user_id: S}}}}
  orders: {{key: {{order_id: S}}, indexes: {{{index}}}}}
  ledger: {{key: {{PK: S, SK: S}}}}
entities:
  user: {{table: users}}
  order: {{table: orders{entity}}}
rules:
  {rules}
"""
BY_USER = "by_user: {user_id: S, shipped_at: S}"
LISTING = {  # rules of every kind that lists
    "copy": "{copy: user.name, into: order.user_name, on_delete: clear}",
    "delete": "{copy: user.name, into: order.user_name, on_delete: delete}",
    "snapshot": "{copy: user.name, into: order.user_name, mode: snapshot}",
    "embed": "{embed: order, into: user.orders, limit: {items: 9}}",
    "collect": "{collect: order, into: user.ids, as: '{order_id}'}",
    "path": "{path: order.way, parent: user_id}",
    "count": "{count: order, into: user.count, on_delete: delete}",
    "max": "{max: order.total, into: user.most, on_delete: restrict}",
}


def rules_of(rule: str, index: str = BY_USER, entity: str = "") -> str:
    return TABLES.format(index=index, entity=entity, rules=f"r: {rule}")


def sparse(rule: str) -> str:
    """The rule, for the items in the index alone."""
    return rule[:-1] + ", sparse: true}"


def errors_of(text: str) -> list[tuple[str, str]]:
    _, problems = check_rules(text, environ={})
    return [(problem.code, problem.cure or "") for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize("rule", LISTING.values(), ids=LISTING)
def test_index_that_may_leave_out_items_is_refused_and_each_cure_works(rule):
    """An item without the sort key of an index is not in it: nothing that lists by the index would ever reach it."""
    ((code, cure),) = errors_of(rules_of(rule))
    assert code == "SR217"
    assert "entities.order.required: [shipped_at]" in cure
    assert "sparse: true" in cure
    assert cure.endswith("add an index under tables.orders.indexes: by_user_id: {user_id: S}")
    assert errors_of(rules_of(rule, entity=", required: [shipped_at]")) == []
    assert errors_of(rules_of(rule, index=BY_USER + ", by_user_id: {user_id: S}")) == []
    assert errors_of(rules_of(sparse(rule))) == []


def test_index_is_complete_by_key_template_link_and_what_a_rule_always_writes():
    """A key attribute counts as there if the key, a template or the link has it, or a rule makes it of the key alone."""
    copy = LISTING["copy"]
    assert errors_of(rules_of(copy, index="by_user: {user_id: S, order_id: S}")) == []
    assert errors_of(rules_of(copy, entity=", key: {shipped_at: 'AT#{day}'}")) == []
    made = "\n  made: {derive: order.shipped_at, as: '{order_id:upper}'}"
    assert errors_of(rules_of(copy + made)) == []
    for may_fail in ("'{order_id}-{day}'", "'{order_id:date(%Y)}'", "'{order_id:nospace}'"):
        made = f"\n  made: {{derive: order.shipped_at, as: {may_fail}}}"
        assert [code for code, _ in errors_of(rules_of(copy + made))] == ["SR217"]


def test_index_is_complete_by_a_copy_with_a_default():
    """A copy that has a default is always there, wherever in the file its rule is; one with a condition may fail."""
    index = BY_USER + ", by_shop: {shop_id: S}"
    shop = "{copy: user.since, into: order.shipped_at, link: {user_id: shop_id}"
    for given in (LISTING["copy"], LISTING["embed"]):
        assert [code for code, _ in errors_of(rules_of(given + f"\n  at: {shop}}}", index=index))] == ["SR217"]
        assert errors_of(rules_of(given + f"\n  at: {shop}, default: never}}", index=index)) == []
        where = f"\n  at: {shop}, default: never, where: 'length(tags) > `1`'}}"
        assert [code for code, _ in errors_of(rules_of(given + where, index=index))] == ["SR217"]
    rules = parse_rules(rules_of(LISTING["copy"] + f"\n  at: {shop}, default: never}}", index=index))
    order = {"order_id": s("a"), "user_id": s("1")}
    assert rules.list_blind_rules(rules.entities["order"], order, at_rest=True) == ()  # it is to come


def test_index_named_by_via_is_refused_too_and_another_is_taken_by_itself():
    """With `via` the error is there; without, an index that lists all comes before one that may not."""
    both = BY_USER + ", all: {user_id: S}"
    rules, _ = check_rules(rules_of("copy user.name into order.user_name", index=both), environ={})
    assert rules.rules["r"].find.index == "all"
    via = "{copy: user.name, into: order.user_name, via: by_user}"
    ((_, cure),) = errors_of(rules_of(via, index=both))
    assert cure.endswith("by_user_id: {user_id: S}, and drop via")
    taken = BY_USER.replace("by_user", "by_user_id")
    ((_, cure),) = errors_of(rules_of("copy user.name into order.user_name", index=taken))
    assert "all_by_user_id: {user_id: S}" in cure  # a name that is free


def test_sparse_where_nothing_is_left_out_is_refused():
    """The option would silently do nothing."""
    assert [code for code, _ in errors_of(rules_of(sparse(LISTING["copy"]), index="by_user: {user_id: S}"))] == [
        "SR120"
    ]
    assert [code for code, _ in errors_of(rules_of("{count: order, into: user.c, sparse: true}"))] == ["SR120"]
    own = "{copy: user.name, into: order.shipped_at, sparse: true}"
    assert [code for code, _ in errors_of(rules_of(own))] == ["SR304"]  # it would never begin


# ---------------------------------------------------------------- an item without what is required
def rehearsed(rule: str, *more: str) -> tuple[Rules, Rehearsal]:
    """A user and an order without what the file says every order has."""
    rules = parse_rules(rules_of("\n  ".join((rule, *more)), entity=", required: [shipped_at]"), environ={})
    stage = Rehearsal(rules)
    stage.do(Put(key(rules.tables["users"], "1"), {"user_id": s("1"), "name": s("Ada")}, ()))
    assert stage.rest()
    return rules, stage


def unlisted(rules: Rules, stage: Rehearsal) -> set[tuple[str, bool]]:
    """The rules whose index lacks an item, as verify finds, and whether verify could repair that."""
    found = [one.difference for one in Verifier(rules, stage.world, rules.keeper_names, grace_seconds=0).sweep()]
    return {(one.rule, one.repairable) for one in found if one.reason == "NotInIndex"}


def order(rules: Rules, **attributes: AttributeValue) -> Put:
    at = key(rules.tables["orders"], "a")
    return Put(at, {**at.attributes(), "user_id": s("1"), **attributes}, ())


LISTING_NAMES = {"count": "r.parent", "max": "r.parent"}  # their ledger needs no index


@pytest.mark.parametrize("kind", LISTING)
def test_item_without_a_required_attribute_is_reported_by_the_pipeline_by_verify_and_by_backfill(kind):
    """An item that no Query finds is reported once, by rule, key and reason; no later change repeats the report."""
    rules, stage = rehearsed(LISTING[kind])
    name = LISTING_NAMES.get(kind, "r")
    stage.do(order(rules))
    assert stage.rest()
    assert (name, "NotInIndex") in stage.reports()
    assert {failure.key for failure in stage.list_failures()} == {key(rules.tables["orders"], "a")}
    backfilled = process_items("orders", [dict(order(rules).item)], Selection(rules, rules.keeper_names), Bounds())
    assert run_work(backfilled, stage.world).report.outcomes[name, Outcome.PARKED] == 1
    before = len(stage.reports())
    stage.do(order(rules, note=s("changed")))
    assert stage.rest()
    assert len(stage.reports()) == before
    assert unlisted(rules, stage) == {(name, False)}
    stage.do(order(rules, shipped_at=s("5")))
    assert stage.rest()
    assert unlisted(rules, stage) == set()


def test_item_without_what_a_rule_is_about_to_write_is_not_reported():
    """A derived key attribute comes with the next write. What makes none for this item is reported. An order of no user
    is no target, listed or not.
    """
    rules, stage = rehearsed(LISTING["copy"], "made: {derive: order.shipped_at, as: '{day}'}")
    other = key(rules.tables["orders"], "of nobody")
    stage.do(Put(other, other.attributes(), ()))
    stage.do(order(rules, day=s("5")))
    assert stage.rest()
    assert stage.reports() == []
    stage.do(order(rules, note=s("no day")))
    assert stage.rest()
    assert stage.reports() == [("r", "NotInIndex")]
