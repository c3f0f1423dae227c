"""A mirror that moves: an item gets another key in one transaction, once, whole, and never over another item."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.dryrun.figures import HOLDS, KEPT, POINTS, SEES, list_losses_by_moves
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.lab.trial import run_trial
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.model.items import Change
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Delete, Put, Transaction
from sync_rules.pipeline.failure_records import failure_record
from sync_rules.rules.compiled_file import dump, read
from sync_rules.rules.families import Part
from sync_rules.rules.rule import Blocked
from tests.support.builders import n, s
from tests.support.worlds import Scene
from tests.unit.jobs.test_redrive import Shelf

RULES = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  line: {table: shop, key: {PK: "ORDER#{user_id}#{order_id}", SK: "LINE#{line}"}}
  dept: {table: shop, key: {PK: "DEPT#{dept_id}", SK: DEPT}}
  dept_order: {table: shop, key: {PK: "DEPT#{dept_id}", SK: "ORDER#{order_id}", GSI1PK: "CLOSED#{dept_id}"}}
rules:
  closed: {mirror: order, into: dept_order, mode: move, where: "status == 'CLOSED'"}
"""
MORE = """
  names: copy dept.name into dept_order.dept_name
  states: copy order.status into line.status
  open: {count: order, into: user.open}
  total: {sum: line.price, into: order.total}
  told: {call: shop.gone, on: order, when: [deleted]}
  tags: {derive: order.tag, as: "{status:lower}"}
"""
SCENARIO = """
rules: rules.yaml
data:
  shop:
  - {PK: DEPT#x, SK: DEPT, name: Xenon}
  - {PK: USER#a, SK: ORDER#1, status: OPEN, dept_id: x}
  - {PK: USER#a, SK: ORDER#2, status: CLOSED, dept_id: x, lines: [1, {price: 2}]}
expect:
  shop: {PK: DEPT#x, SK: ORDER#2, dept_id: x, user_id: a, status: CLOSED, lines: [1, {price: 2}], dept_name: Xenon}
expect_gone: {shop: {PK: USER#a, SK: ORDER#2}}
steps:
- say: an order is closed, and moves with all that it has
  update: {shop: {key: {PK: USER#a, SK: ORDER#1}, set: {status: CLOSED, note: late}}}
  expect: {shop: {PK: DEPT#x, SK: ORDER#1, GSI1PK: CLOSED#x, user_id: a, note: late, dept_name: Xenon}}
  expect_gone: {shop: {PK: USER#a, SK: ORDER#1}}
- say: an order of another user has the same number, and stays where it is
  put: {shop: {PK: USER#b, SK: ORDER#1, status: CLOSED, dept_id: x}}
  expect: {shop: [{PK: USER#b, SK: ORDER#1, status: CLOSED}, {PK: DEPT#x, SK: ORDER#1, user_id: a}]}
  expect_failures: {closed: KeyTaken}
- say: it goes elsewhere
  update: {shop: {key: {PK: USER#b, SK: ORDER#1}, set: {dept_id: y}}}
  expect: {shop: {PK: DEPT#y, SK: ORDER#1, user_id: b}}
  expect_gone: {shop: {PK: USER#b, SK: ORDER#1}}
- say: an order that was moved is the application's
  update: {shop: {key: {PK: DEPT#x, SK: ORDER#1}, set: {status: OPEN}, remove: [note]}}
  expect: {shop: {PK: DEPT#x, SK: ORDER#1, status: OPEN, note: <absent>}}
"""
DOCUMENTED = """
rules: rules.yaml
data: {shop: {PK: USER#a, SK: ORDER#1, dept_id: x, status: OPEN}}
expect: {shop: {PK: USER#a, SK: ORDER#1, status: OPEN}}
steps:
- say: it is closed
  update: {shop: {key: {PK: USER#a, SK: ORDER#1}, set: {status: CLOSED}}}
  expect: {shop: {PK: DEPT#x, SK: ORDER#1, dept_id: x, user_id: a, status: CLOSED}}
  expect_gone: {shop: {PK: USER#a, SK: ORDER#1}}
- say: it is opened again, and stays
  update: {shop: {key: {PK: DEPT#x, SK: ORDER#1}, set: {status: OPEN}}}
  expect: {shop: {PK: DEPT#x, SK: ORDER#1, user_id: a, status: OPEN}}
"""


@pytest.mark.parametrize("delivery", VARIANTS, ids=str)
def test_move_is_made_once_under_every_delivery(delivery, tmp_path):
    """Nothing twice, nothing lost; a taken key is reported, and its order stays."""
    rules = RULES + MORE.splitlines()[1]
    (tmp_path / "rules.yaml").write_text(rules)
    (tmp_path / "orders.scenario.yaml").write_text(SCENARIO)
    trial = run_trial(load_scenario(tmp_path / "orders.scenario.yaml"), delivery)
    assert trial.ok, trial.report()[-3_000:]


THEIRS = """
  names: copy dept.name into dept_order.dept_name
  label: {derive: dept_order.label, as: "{closed_at}"}
"""


def test_move_knows_what_other_rules_write(rule):
    """Whole attributes of the new item, in compiled rules too; in a map only its entries are theirs, never the map."""
    rules = parse_rules(RULES + THEIRS + "  inner: copy dept.name into dept_order.dept.name")
    told = read(dump(rules, {}), "rules.compiled").rules["closed"]
    assert (rule.theirs, told.theirs) == ((), ("dept_name", "label"))
    assert told.body() == rule.body()
    had = {"note", "dept_name", "label", "dept"}
    gone = order(**dict.fromkeys(had, n(1)))
    (part,) = told.parts(Change(told.source.table.key_of(gone), gone, None), told.source)
    (late,) = told.expand_part(part, MOVED, None)
    assert told.label(late) == '["dept","note"]'


def test_move_does_what_the_documentation_shows(tmp_path):
    """The rules of docs/rules/mirror.md: an order moves as soon as it is closed, and stays when it is opened again."""
    page = (Path(__file__).parents[3] / "docs/rules/mirror.md").read_text()
    (tmp_path / "rules.yaml").write_text(page.split("## mode: move")[1].split("```yaml\n")[1].split("```")[0])
    (tmp_path / "orders.scenario.yaml").write_text(DOCUMENTED)
    trial = run_trial(load_scenario(tmp_path / "orders.scenario.yaml"), VARIANTS[0])
    assert trial.ok, trial.report()[-3_000:]


@pytest.fixture
def rule():
    return parse_rules(RULES).rules["closed"]


def order(**more):
    return {"PK": s("USER#a"), "SK": s("ORDER#1"), "status": s("CLOSED"), "dept_id": s("x"), **more}


def write_for(rule, item, target=None):
    key = rule.source.table.key_of(item)
    (part,) = rule.parts(Change(key, None, item), rule.source)
    return rule.write_for(part, target, item)


def test_move_is_one_transaction_that_compares_all_that_was_seen(rule):
    """The old item goes if each attribute is as it was read; the new one comes where nothing stands."""
    write = write_for(rule, order(note=n(1)))
    assert isinstance(write, Transaction)
    old, new = write.actions
    assert isinstance(old, Delete)
    assert {condition.path[0] for condition in old.guard} == {"PK", "status", "dept_id", "note"}
    assert isinstance(new, Put)
    assert [(one.test.value, one.path) for one in new.guard] == [("absent", ("PK",))]
    kept = {"status": s("CLOSED"), "dept_id": s("x"), "note": n(1), "user_id": s("a")}
    assert new.item == {"PK": s("DEPT#x"), "SK": s("ORDER#1"), "GSI1PK": s("CLOSED#x"), **kept}


@pytest.mark.parametrize(
    ("item", "target", "expected"),
    [
        (order(), order(), "KeyTaken"),
        (order(user_id=s("b")), None, "user_id would be overwritten by a part of a key"),
        (order(user_id=s("a")), None, None),
        (order(GSI1PK=s("OPEN#a")), None, None),  # the target's template makes it anew
        (order(dept_id={"BOOL": True}), None, "NoMirrorKey"),
        (order(**{f"a{number}": n(number) for number in range(100)}), None, "TooManyAttributes"),
    ],
)
def test_move_that_could_lose_something_is_reported(rule, item, target, expected):
    """Another item, an attribute that a key would overwrite, more attributes than a condition can compare."""
    write = write_for(rule, item, target)
    assert (write.reason if isinstance(write, Blocked) else None) == expected


MOVED = {"PK": s("DEPT#x"), "SK": s("ORDER#1"), "user_id": s("a"), "status": s("CLOSED"), "dept_id": s("x")}


@pytest.mark.parametrize("element", ["late", "[1]", "{}", "[[[["])
def test_move_is_never_right_in_silence(rule, element):
    """An element that this version did not write is reported, and breaks nothing."""
    part = Part(rule, rule.target.table.key_of(MOVED), rule.source.table.key_of(order()), element)
    (one,) = rule.expand_part(part, MOVED, None)
    assert rule.write_for(one, MOVED, None).reason.startswith("AttributeLeftBehind: ")


def test_move_tells_by_name_what_it_left_behind_until_that_is_there():
    """An attribute comes just before the transaction: a failure record names rule, key and attribute, and no value; a
    redrive leaves the record until somebody has put the attribute into the new item.
    """
    scene = Scene(parse_rules(RULES), limits=Limits(parked_max_looks=0))
    key, apply = scene.put("shop", order(note=s("note"))), scene.tap.apply

    def just_before(request):
        scene.tap.apply = apply
        scene.put("shop", order(note=s("note"), late=s("SECRET")))
        return apply(request)

    scene.tap.apply = just_before
    scene.rest()
    new = scene.at("shop", "DEPT#x", "ORDER#1")
    assert scene.item(new) == {**MOVED, "GSI1PK": s("CLOSED#x"), "note": s("note")}
    assert scene.memory.item(key) is None
    (failure,) = scene.parked.failures
    text = json.dumps(failure_record(failure, datetime(2026, 11, 21, tzinfo=UTC)))
    assert ("AttributeLeftBehind: late" in text, "closed" in text, "DEPT#x" in text, "SECRET" in text) == (
        True, True, True, False,
    )  # fmt: skip

    def redriven():
        shelf = Shelf(text)
        Redriver(scene.rules, scene.world, sleep=lambda _seconds: None).take(shelf)
        return [json.loads(left)["reason"] for left in shelf.texts.values()]

    assert redriven() == ["AttributeLeftBehind: late"]
    scene.put("shop", {**scene.item(new), "late": s("SECRET")})
    assert redriven() == []


def test_move_is_found_by_verify_and_made_by_repair():
    """An order that should have moved is missing at its place; where one is in the way it is stuck, and both stay."""
    scene = Scene(parse_rules(RULES))
    scene.there("shop", order(), {**order(), "SK": s("ORDER#2")}, {**order(), "SK": s("ORDER#3"), "status": s("OPEN")})
    scene.there("shop", {"PK": s("DEPT#x"), "SK": s("ORDER#2"), "other": s("one")})

    def found(*, repair):
        verifier = Verifier(
            scene.rules, scene.world, scene.rules.keeper_names, repair=repair, sleep=lambda _seconds: None
        )
        return [(one.difference.drift, one.difference.reason, one.repaired) for one in verifier.sweep()]

    assert sorted(found(repair=False), key=str) == [(Drift.MISSING, "", False), (Drift.STUCK, "KeyTaken", False)]
    assert (Drift.MISSING, "", True) in found(repair=True)
    assert found(repair=False) == [(Drift.STUCK, "KeyTaken", False)]
    keys = sorted((item["PK"]["S"], item["SK"]["S"]) for item in scene.memory.items("shop"))
    assert keys == [("DEPT#x", "ORDER#1"), ("DEPT#x", "ORDER#2"), ("USER#a", "ORDER#2"), ("USER#a", "ORDER#3")]


def test_move_tells_the_rules_that_know_old_keys():
    """Targets and children that point there, what was made of the item, effects, and what is no longer kept on it."""
    assert list_losses_by_moves(parse_rules(RULES + MORE)) == {
        "closed": {"states": POINTS, "open": HOLDS, "total": POINTS, "told": SEES, "tags": KEPT}
    }


@pytest.mark.parametrize(
    ("more", "codes"),
    [
        ("  back: {mirror: dept_order, into: order, mode: move}", ["SR305"]),
        ("  other: {mirror: order, into: line, mode: move, link: {line: order_id}}", ["SR320"]),
        ("  lines: {copy: order.status, into: line.status, on_delete: delete}", ["SR321"]),
        ("  also: {mirror: dept, into: dept_order, link: {order_id: name}}", ["SR301"]),
        ("  also: {mirror: dept, into: order, link: {user_id: dept_id, order_id: name}}", ["SR301"]),
        ("  on: {mirror: dept_order, into: line, mode: move, link: {user_id: dept_id, line: order_id}}", ["SR320"]),
        (
            "  versions: {history: dept_order, into: line, link: {user_id: dept_id, line: version}, attributes: [status]}",
            [],
        ),
        ("  lines: {copy: order.status, into: line.status, on_delete: clear}", []),
        ("  names: copy dept.name into dept_order.dept_name", []),
        ("  again: {mirror: dept_order, into: line, mode: move, attributes: all, link: {line: dept_id}}", ["SR120"]),
    ],
)
def test_move_that_cannot_be_is_refused(more, codes):
    """Back and forth, to two places, on and on, with a deletion of what points there, in part."""
    found = [problem.code for problem in check_rules(RULES + more, {})[1]]
    assert [code for code in found if code not in ("SR406", "SR407", "SR401")] == codes


def test_move_looks_again_where_a_key_became_free(rule):
    """The record of an item that went names the order that may wait for its key, if its key or attributes do."""
    gone = {"PK": s("DEPT#x"), "SK": s("ORDER#1"), "user_id": s("a")}
    key = rule.target.table.key_of(gone)
    (part,) = rule.parts(Change(key, gone, None), rule.target)
    assert part == Part(rule, key, rule.source.table.key_of(order()))
    assert rule.parts(Change(key, None, gone), rule.target) == ()
