"""A run that is stopped and started with other rules: counters that come back were not kept by it meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.jobs.consume import checkpoint
from sync_rules.jobs.consume.local_run import LocalRun
from sync_rules.jobs.local_files import Files
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.books import list_books, read_incomplete_books
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import Read
from sync_rules.rules.ruleset import Rules
from tests.support.books import AWAY, COUNT, FIRST, LAST, TABLES, rules_of
from tests.support.builders import s
from tests.support.fake_stream import ARN, FakeStream
from tests.support.stacked import backfill_of
from tests.support.worlds import Scene


class Machine:
    """A machine with a checkpoint, on which runs come and go."""

    def __init__(self, directory: Path) -> None:
        self.files = Files(directory / "c.json", directory / "f.jsonl")
        self.scene = Scene(rules_of(COUNT), complete=False)

    def start(self, rules: Rules) -> tuple[str, ...]:
        """Start a run with these rules. Returns what it says about books."""
        self.scene.rules = rules
        local = LocalRun(
            stream_arns=[ARN],
            rules_fingerprint=rules.fingerprint,
            reader=FakeStream({}),
            store=self.scene.tap,
            make_consumer=lambda world: Consumer(rules, world, THIS_PROCESS),
            files=self.files,
        )
        notices = local.begin()
        self.scene.consumer = local.consumer
        return notices

    def insert(self, number: int) -> None:
        self.scene.put("orders", {"order": s(f"{number:02}"), "user": s("u")})
        self.scene.rest()

    @property
    def number(self) -> int:
        (user,) = self.scene.memory.items("users")
        return int(user["number"]["N"])

    @property
    def waiting(self) -> set[str]:
        return {rule.title for rule in self.scene.drive(read_incomplete_books(self.scene.rules))}


@pytest.fixture
def machine(tmp_path) -> Machine:
    """A machine whose counter is right."""
    machine = Machine(tmp_path)
    assert machine.start(rules_of(COUNT)) == ()
    machine.scene.put("users", {"user": s("u")})
    for number in range(1, FIRST + 1):
        machine.insert(number)
    assert machine.number == FIRST
    return machine


@pytest.mark.parametrize("away", AWAY)
def test_run_begins_books_anew_that_come_back(machine: Machine, away: str):
    """29 orders are there, the books know 27: the number waits, the run says so, and a backfill makes it right."""
    machine.start(rules_of(AWAY[away]))
    machine.insert(27)
    machine.insert(28)
    (notice,) = machine.start(rules_of(COUNT))
    assert notice.startswith("rule orders waits for a backfill")
    machine.insert(LAST)
    assert machine.number == FIRST
    backfill_of(machine.scene).run()
    assert machine.number == LAST


def test_run_keeps_books_complete_that_it_kept(machine: Machine):
    """Nothing waits after a restart, nor after a renaming that says so."""
    machine.start(rules_of(COUNT))
    machine.insert(27)
    machine.start(rules_of("total: {count: order, into: user.number, renamed_from: orders}"))
    machine.insert(28)
    assert machine.number == 28
    assert machine.start(rules_of(COUNT)) == ()


def test_run_begins_books_anew_that_a_backfill_completed_before_it_had_the_rule(machine: Machine):
    machine.start(rules_of(""))
    machine.scene.rules = rules_of(COUNT)
    backfill_of(machine.scene).run()
    machine.scene.rules = rules_of("")
    machine.insert(27)
    machine.start(rules_of(COUNT))
    machine.insert(28)
    assert machine.number == FIRST
    assert machine.waiting == {"orders"}


def test_run_without_a_checkpoint_says_once_that_nobody_vouches_for_complete_books(machine: Machine):
    """The checkpoint is lost: the streams reach back 24 hours, and who kept the books before is not known."""
    machine.files.checkpoint.unlink()
    notices = machine.start(rules_of(COUNT))
    assert [one.split(" say that")[0] for one in notices] == ["the books of rule bystander", "the books of rule orders"]
    assert notices[1].endswith("sync-rules verify --repair --rule orders")
    assert machine.start(rules_of(COUNT)) == ()
    assert not machine.waiting


def test_run_takes_books_as_they_are_from_a_checkpoint_without_a_list(machine: Machine):
    """A checkpoint of a version that kept no list: the run says so once, and notes the list."""
    body = json.loads(machine.files.checkpoint.read_text())
    body.pop("books")
    machine.files.checkpoint.write_text(json.dumps(body))
    assert len(machine.start(rules_of(COUNT))) == 2
    assert machine.start(rules_of(COUNT)) == ()
    found = checkpoint.load(machine.files.checkpoint, [ARN])
    assert found is not None
    assert found.books is not None
    assert len(found.books) == 2


@pytest.mark.parametrize("fails", ["read", "write"])
def test_run_does_not_begin_where_books_that_come_back_cannot_be_begun_anew(machine: Machine, fails: str):
    """The run ends, and the next one tries again: until then the checkpoint does not list them."""
    rules = rules_of(COUNT)
    (mark,) = (books.mark for rule, books in list_books(rules).items() if rule.title == "orders")
    machine.start(rules_of(""))
    failed = Result(Status.FAILED, reason="ThrottlingException")
    if fails == "read":
        machine.scene.tap.refuse(Read, StoreError("ThrottlingException"), lambda read: mark in read.keys)
    else:
        machine.scene.tap.result = lambda write: failed if getattr(write, "key", None) == mark else None
    with pytest.raises(StoreError, match="Throttling"):
        machine.start(rules)
    machine.scene.tap.before, machine.scene.tap.result = lambda _request: None, lambda _write: None
    machine.insert(27)
    machine.start(rules)
    assert machine.waiting == {"orders"}
    assert machine.scene.item(mark)["complete"] == {"BOOL": False}
    assert machine.number == FIRST


def test_run_begins_books_anew_when_the_counted_table_is_another(machine: Machine):
    """A restored table under a new name has other items than the books, whose rule and ledger are the same."""
    restored = (TABLES % COUNT).replace("orders: {key", "orders: {name: restored, key")
    notices = machine.start(parse_rules(restored))
    (notice,) = notices
    assert notice.startswith("2 rules wait for a backfill (bystander, orders)")
