"""Replay of rules that move items: what was moved is found at its new place, whole, and what was not is missed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recording import Recorded
from sync_rules.lab.recording_replay import Mismatch, Replay, replay
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import Delete, Put, Transaction, Update
from sync_rules.rules.kinds.move import MoveRule
from tests.support.builders import key, n, s
from tests.support.tapes import Tape, recorded

RULES = parse_rules("""
tables:
  shop: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S}}}
entities:
  dept: {table: shop, key: {PK: "DEPT#{dept_id}", SK: DEPT}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  dept_order: {table: shop, key: {PK: "DEPT#{dept_id}", SK: "ORDER#{order_id}", GSI1PK: "CLOSED#{dept_id}"}}
rules:
  closed: {mirror: order, into: dept_order, mode: move, where: "status == 'CLOSED'"}
  names: copy dept.name into dept_order.dept_name
  tags: {derive: order.tag, as: "{status:lower}"}
  label: {derive: dept_order.label, as: "{closed_at}"}
""")
TABLE = RULES.tables["shop"]
DEPT = {"PK": s("DEPT#x"), "SK": s("DEPT"), "name": s("Xenon")}


def order(user: str, number: int, status: str, **more: object) -> Item:
    return {"PK": s(f"USER#{user}"), "SK": s(f"ORDER#{number}"), "status": s(status), "dept_id": s("x"), **more}


def moved(number: int) -> ItemKey:
    return key(TABLE, "DEPT#x", f"ORDER#{number}")


def written(tape: Tape, *, rest: bool) -> Tape:
    """Orders that come open and are closed, one of them written at once as it was after the move of another one."""
    tape.put("shop", DEPT, order("a", 1, "OPEN", label=s("old")), order("a", 2, "OPEN", GSI1PK=s("OPEN#a")), rest=rest)
    tape.put("shop", order("a", 1, "CLOSED", label=s("old"), note=n(1)), order("a", 3, "CLOSED"), rest=rest)
    second = key(TABLE, "USER#a", "ORDER#2")
    tape.do(Update(second, ((("status",), s("CLOSED")),), (("GSI1PK",),), ()), rest=rest)
    tape.put("shop", order("b", 3, "CLOSED"), order("b", 4, "OPEN"), rest=rest)
    return tape


def before() -> Tape:
    """A recording without a pipeline."""
    return written(Tape(RULES), rest=False)


def after() -> Tape:
    """A recording with the pipeline's own puts and deletes, and what the application does at the new places."""
    tape = written(Tape(RULES), rest=True)
    assert tape.item("shop", "DEPT#x", "ORDER#1") is not None
    tape.do(Update(moved(1), ((("status",), s("OPEN")),), (("note",),), ()))
    tape.do(Delete(moved(3), ()))  # another order waits for that place
    tape.put("shop", order("a", 1, "OPEN"))  # its old place is taken anew
    tape.put("shop", order("b", 4, "CLOSED"))
    return tape


def records_of(tmp_path, tape: Tape) -> tuple[Recorded, ...]:
    return recorded(tmp_path / "r.jsonl", RULES, tape.bodies)


@pytest.mark.parametrize("with_copies", [False, True], ids=["", "with-copies"])
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.name)
@pytest.mark.parametrize("tape", [before, after])
def test_replay_of_moves_ends_right(tmp_path, tape, variant, with_copies):
    """Recorded before the rules ran or while they did: each item is where a rule moves it, as its application wrote it."""
    records = records_of(tmp_path, tape())
    for seed in range(2):
        assert replay(records, RULES, replace(variant, seed=seed), with_copies=with_copies) is None


def test_replay_of_moves_leaves_them_to_the_rules(tmp_path):
    """The recorded pipeline's put and delete of each move are skipped; those of an application are not."""
    tape = after()
    records = records_of(tmp_path, tape)
    again = Replay(RULES, VARIANTS[0])
    assert list(again.mismatches(records)) == []
    own = Tape(RULES)
    own.put("shop", order("a", 1, "OPEN"))
    own.do(Delete(key(TABLE, "USER#a", "ORDER#1"), ()))
    own.put("shop", {**order("a", 1, "OPEN"), "PK": s("DEPT#x"), "user_id": s("a")})
    byhand = Replay(RULES, VARIANTS[0])
    assert list(byhand.mismatches(recorded(tmp_path / "own.jsonl", RULES, own.bodies))) == []
    moves = sum("REMOVE" in body["eventName"] for body in tape.bodies) - 1  # one was the application's
    assert moves == 4
    assert again.counts["copies"] >= 2 * moves
    assert byhand.counts["done"] == 3


def first_wrong(records: tuple[Recorded, ...]) -> Mismatch:
    found = (replay(records, RULES, replace(variant, seed=seed)) for seed in range(3) for variant in VARIANTS)
    mismatch = next((one for one in found if one is not None), None)
    assert mismatch is not None
    return mismatch


def broken(monkeypatch, change) -> None:
    """A rule whose moves are changed."""
    real = MoveRule.write_for

    def write_for(self, part, target, source):
        write = real(self, part, target, source)
        return change(*write.actions) if isinstance(write, Transaction) else write

    monkeypatch.setattr(MoveRule, "write_for", write_for)


def losing(delete: Delete, _put: Put) -> Delete:
    return delete


def staying(_delete: Delete, put: Put) -> Put:
    return put


def changing(delete: Delete, put: Put) -> Transaction:
    return Transaction((delete, replace(put, item={**put.item, "status": s("WRONG")})))


def dropping(delete: Delete, put: Put) -> Transaction:
    return Transaction((delete, replace(put, item={name: put.item[name] for name in put.item if name != "status"})))


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (losing, ("missing", "USER#a", "")),
        (staying, ("extra", "DEPT#x", "", "dept_id")),
        (changing, ("wrong", "DEPT#x", "status")),
        (dropping, ("missing", "DEPT#x", "status")),
    ],
)
@pytest.mark.parametrize("tape", [before, after])
def test_replay_finds_a_broken_move(tmp_path, monkeypatch, tape, change, wrong):
    """An item that is lost, doubled, changed or poorer than its application wrote it."""
    records = records_of(tmp_path, tape())
    broken(monkeypatch, change)
    found = first_wrong(records)
    assert found.key is not None
    drift, partition, *paths = wrong
    assert (found.drift, found.key.values[0][2]) == (drift, partition)
    assert found.path in paths
    assert found.check == "application"


def test_replay_finds_a_move_that_did_not_happen(tmp_path, monkeypatch):
    """A pipeline that moves nothing that is closed later, and one that loses what it moved."""
    records = records_of(tmp_path, before())
    real = MoveRule.parts
    monkeypatch.setattr(
        MoveRule, "parts", lambda self, change, entity: real(self, change, entity) if change.old is None else ()
    )
    found = first_wrong(records)
    assert (found.rule, found.drift, found.check) == ("closed", "missing", "rules")
