"""A verify in the account, in memory: the figures and the report of a local one, whatever dies or comes twice."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.audit import ledger_balance
from sync_rules.audit.drift_report import collect_totals
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import Tally
from sync_rules.cli.account import Account as Deployed
from sync_rules.cli.commands import verify as verify_command
from sync_rules.jobs.account import account_verify as remote
from sync_rules.jobs.account.account_verify import VerifyWork
from sync_rules.jobs.account.stack import Execution, Stack
from sync_rules.jobs.account.verify_unit import name_head, sample
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.books import read_incomplete_books
from sync_rules.pipeline.requests import Scan, run_work
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.depth import deep
from tests.support.inaccount import KilledError, Machine, SharedMemory
from tests.support.worlds import Scene
from tests.unit.jobs.test_backfill_run import RULES, drift_of, scene_of, shops
from tests.unit.jobs.test_remote_backfill import LONG_MS, InPeace

NO_TIME_MS = 1_000


class Shelf:
    """Reports in memory."""

    def __init__(self) -> None:
        self.reports: dict[str, bytes] = {}

    def write(self, name, file):
        self.reports[name] = file.read()

    def lines(self, name):
        return iter(self.reports[name].splitlines())

    def key(self, name):
        return name


class Account:
    """A deployed stack, as far as verify goes."""

    def __init__(self, scene: Scene, remaining=lambda: LONG_MS, sleep=lambda _seconds: None) -> None:
        self.scene = scene
        self.sleep = sleep
        self.told: list = []
        self.state = SharedMemory()
        self.shelf = Shelf()
        self.remaining = remaining

    def work(self) -> VerifyWork:
        return VerifyWork(
            self.scene.rules,
            self.scene.world,
            self.state,
            self.shelf,
            lambda _names: {"all": 5},
            remaining_ms=self.remaining,
            on_end=lambda tally, names, whole: self.told.append((tally, names, whole)),
            sleep=self.sleep,
        )

    def asked(self, **more) -> dict:
        asked = {"rules": [], "repair": False, "grace_seconds": 0, "seed": None, "numbers": None, "segments": 3}
        return {**asked, "workers": 4, "prints": compute_rule_fingerprints(self.scene.rules), **more}

    def run(self, random: Random | None = None, **more) -> dict:
        return Machine(self.work, random or InPeace()).run(self.asked(**more))

    @property
    def tally(self):
        return Tally.of(self.state.documents[name_head("one")]["tally"])

    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.shelf.lines(self.state.documents[name_head("one")]["report"])]


def figures(tally, rules) -> dict:
    return {name: collect_totals(tally, name) for name in rules.rules}


@given(shops(), st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=deep(60), deadline=None)
def test_remote_verify_finds_what_a_local_one_finds(steps, page, seed):
    """The same figures for each rule of every kind, asked in any order and some of it twice; a row for each drift."""
    scene = scene_of(steps, page)
    verifier = Verifier(scene.rules, scene.world, frozenset(scene.rules.rules), grace_seconds=0)
    found = list(verifier.sweep())
    account = Account(scene)
    assert account.run(Random(seed))["error"] == ""
    assert figures(account.tally, scene.rules) == figures(verifier.tally, scene.rules)
    assert account.tally.items == verifier.tally.items
    assert account.tally.remaining_count == verifier.tally.remaining_count
    assert len(account.rows()) == len(found) + 2


@given(shops(), st.lists(st.integers(1, 60), max_size=4), st.integers(0, 99))
@settings(max_examples=deep(60), deadline=None)
def test_remote_verify_repairs_whatever_dies(steps, deaths, seed):
    """A repair killed at any request or save leaves nothing that can be repaired."""
    scene = scene_of(steps)
    account = Account(scene)
    left = list(deaths)

    def tick(*_: object) -> None:
        if left:
            left[0] -= 1
            if left[0] == 0:
                left.pop(0)
                raise KilledError

    scene.tap.before = account.state.before = tick
    machine = Machine(account.work, Random(seed))
    for number in range(9):
        machine.execution = f"run{number}"
        try:
            if not machine.run(account.asked(repair=True))["error"]:
                break
        except KilledError:
            continue
    else:
        pytest.fail("it is never done")
    left.clear()
    assert [one for one in drift_of(scene) if one.repairable] == []


def wrong(*, complete: bool = True) -> Scene:
    scene = Scene(RULES, complete=complete)
    scene.there("shop", every_kind.user("1", name=s("Ada"), rank=n(1), counted=n(9)))
    scene.there("shop", *(every_kind.order("1", str(i), i, user_name=s("?")) for i in range(9)))
    scene.there("parts", every_kind.part("a"), every_kind.part("b", "a"), every_kind.part("c", "b"))
    return scene


def test_remote_verify_completes_books_only_by_a_repair_of_everything():
    """Numbers of counters that wait are not compared; a repair completes their books, then it repairs the numbers."""
    account = Account(wrong(complete=False))
    user = account.scene.at("shop", "USER#1", "PROFILE")
    for more in ({}, {"repair": True, "numbers": list(range(0, 1_000, 2))}):
        account.state = SharedMemory()
        account.run(**more)
        assert account.scene.item(user)["counted"] == n(9)
        assert run_work(read_incomplete_books(account.scene.rules), account.scene.world)
        assert account.tally.waiting["counted"] == (1 if not more else account.tally.waiting["counted"])
    account.state = SharedMemory()
    account.run(repair=True)
    assert not run_work(read_incomplete_books(account.scene.rules), account.scene.world)
    tally, names, whole = account.told[-1]
    assert (tally.items, names, whole) == (account.tally.items, frozenset(account.scene.rules.rules), True)
    right = wrong()
    Account(right).run(repair=True)
    numbers = ("counted", "spent", "least", "most")
    repaired, wanted = account.scene.item(user), right.item(user)
    assert [repaired.get(name) for name in numbers] == [wanted.get(name) for name in numbers]
    assert account.tally.remaining_count == 0


@pytest.mark.parametrize(("scan_ms", "grace"), [(LONG_MS - NO_TIME_MS, 0), (250_000, 300)], ids=["scan", "wait"])
def test_remote_verify_unit_that_runs_out_of_time_says_what_helps(scan_ms, grace):
    """A segment that does not fit into one call is left with that reason, and what to do about it. A wait that the call
    would not survive is not begun.
    """
    account = Account(wrong())
    clock = Clock(account)
    account.scene.tap.before = lambda request: isinstance(request, Scan) and clock.spend(scan_ms)
    said = clock.machine().run(account.asked(segments=1, grace_seconds=grace))
    assert said["error"] == "NotAllDone"
    assert "more --workers" in said["cause"]
    assert "0: OutOfTime: segment 0 of 1 is too much for one call" in said["cause"]


def test_remote_verify_chooses_segments_by_the_number_of_items(monkeypatch):
    """Enough that one is small, and no more than a state holds."""
    account = Account(wrong())
    monkeypatch.setattr(remote, "SEGMENT_ITEMS", 2)
    machine = Machine(account.work, InPeace())
    begun = machine.ask({"do": "begin", "asked": account.asked(segments=None), "execution": "one"})
    assert begun["units"] == ["0", "1", "2"]


def test_remote_verify_of_a_sample_looks_at_its_segments_only():
    """The segments that were drawn, of a thousand; ledgers are not added up."""
    scene = wrong()
    account = Account(scene)
    scene.tap.requests.clear()
    assert account.run(numbers=[3, 500], seed=7)["error"] == ""
    assert {(one.segment, one.total_segments) for one in scene.tap.seen(Scan)} == {(3, 1_000), (500, 1_000)}
    assert account.rows()[0]["sampled"] == 0.2
    ((_, _, whole),) = account.told
    assert not whole


def test_remote_sample_only_looks_and_ends_in_time():
    """The verify by the clock writes nothing, and stops scanning while there is time for two more looks."""
    scene = wrong()
    options = {"grace_seconds": 0, "sleep": lambda _seconds: None}
    found = sample(scene.rules, scene.world, 100, lambda: LONG_MS, Random(1), **options)
    assert found.tally.drift.total() > 10
    assert (found.only, found.cut_short) == (frozenset(scene.rules.rules), False)
    assert scene.tap.writes == []
    found = sample(scene.rules, scene.world, 100, lambda: NO_TIME_MS, Random(1), **options)
    assert (found.tally.items, found.cut_short) == (0, True)


def test_remote_sample_begins_with_another_table_each_time():
    """A sample too short for all tables begins with a different table for each seed."""
    first = set()
    for seed in range(20):
        scene = wrong()
        remaining = iter([LONG_MS])
        sample(scene.rules, scene.world, 1, lambda left=remaining: next(left, 0), Random(seed), grace_seconds=0)
        first |= {one.table for one in scene.tap.seen(Scan)}
    assert first == {"shop", "parts", "ledger"}


def test_remote_verify_goes_on_where_a_segment_cannot_be_read():
    """A segment that cannot be read is reported with its reason; the other segments are verified."""
    account = Account(wrong())
    account.scene.tap.refuse(Scan, StoreError("ThrottlingException", "table shop"), lambda scan: scan.segment == 1)
    said = account.run()
    assert said["error"] == "NotAllDone"
    assert "1: ThrottlingException: table shop" in said["cause"]
    assert account.state.documents[name_head("one")]["report"] == ""


# ---------------------------------------------------------------- more than a call can do
class Clock:
    """Time spent by the scans of ledgers and by waits; a call beyond its limit is killed."""

    def __init__(self, account: Account, scan_ms: int = 0) -> None:
        self.account = account
        self.scan_ms = scan_ms
        self.left = LONG_MS
        account.remaining = lambda: self.left
        account.sleep = lambda seconds: self.spend(seconds * 1000)
        account.scene.tap.before = self.before

    def before(self, request: object) -> None:
        if isinstance(request, Scan) and request.table == "ledger" and request.limit == 1:  # no page of a segment
            self.spend(self.scan_ms)

    def spend(self, ms: float) -> None:
        self.left -= ms
        if self.left <= 0:
            raise KilledError

    def machine(self) -> Machine:
        machine = Machine(self.account.work, InPeace())
        ask = machine.ask
        machine.ask = lambda question: (setattr(self, "left", LONG_MS), ask(question))[1]
        return machine


@pytest.fixture
def large(monkeypatch) -> Account:
    """A ledger of more pages than a call has time for, and much that is wrong elsewhere."""
    monkeypatch.setattr(ledger_balance, "PAGE_MAX_ITEMS", 1)
    scene = wrong()
    scene.there("ledger", *({"PK": s(f"else#{i}"), "SK": s("x")} for i in range(50)))
    return Account(scene)


def test_remote_verify_gives_figures_of_segments_where_ledgers_are_too_much_for_a_call(large, monkeypatch, capsys):
    """Ledgers too large for one call are left out; the report has all else. It and the command name the cure."""
    machine = Clock(large, scan_ms=20_000).machine()
    said = machine.run(large.asked())
    assert said["error"] == "NotAllDone"
    rules = large.scene.rules
    tallied = sorted(
        rule.name for _, some in ledger_balance.list_ledgers(rules, frozenset(rules.rules)) for rule in some
    )
    titles = sorted({rules.rules[name].title for name in tallied})
    assert f"sync-rules verify{''.join(f' --rule {title}' for title in titles)}\n" in said["cause"]
    assert f"{tallied[0]}: OutOfTime: the ledgers are too much for one call" in said["cause"]
    assert sum(one.table == "ledger" and one.limit == 1 for one in large.scene.tap.seen(Scan)) < LONG_MS / 20_000
    assert large.tally.drift.total() > 10
    head, *rows, end = large.rows()
    assert len(rows) == large.tally.remaining_count
    assert sorted(end["not_looked_at"]) == tallied
    assert head["rules"] == compute_rule_fingerprints(rules)
    stage = {"step": 0, "round": 0, "adding_up": True}
    assert machine.ask({"do": "end", "run": {"execution": "one", "stage": stage}}) == said  # its answer was lost
    assert len(large.told) == 1
    verdict = watched(large, said, monkeypatch)
    err = capsys.readouterr().err
    assert "rule spent.ledger was not checked completely: OutOfTime" in err
    assert "sync-rules: Verify from a machine: sync-rules verify --rule" in err
    assert not verdict.whole
    assert Tally.of(verdict.found["tally"]).remaining_count == large.tally.remaining_count


def test_remote_verify_repairs_nothing_that_is_made_from_totals_it_could_not_add_up(large):
    """The steps after the ledgers are not begun; their rules are named with them, and have no figures."""
    said = Clock(large, scan_ms=20_000).machine().run(large.asked(repair=True))
    assert "sync-rules verify --repair --rule" in said["cause"]
    end = large.rows()[-1]
    assert end["not_looked_at"]["told"] == "an earlier step was not checked completely"
    assert "told" not in end["rules"]
    assert {"names", "told"} & end["rules"].keys() == {"names"}
    assert not {"told", "spent"} & large.tally.drift.keys()
    assert large.told[0][1] == frozenset(end["rules"])


def test_remote_verify_refuses_a_grace_period_that_no_call_can_wait_for():
    """A grace period too long for two waits in one call is refused with the longest possible."""
    account = Account(wrong())
    said = account.run(grace_seconds=421)
    assert said["error"] == "Refused"
    assert "--grace-seconds 421: a call has 900 s, and may wait 2 times: give at most 420" in said["cause"]
    assert account.state.documents == {}
    assert Account(wrong()).run(grace_seconds=420)["error"] == ""


# ---------------------------------------------------------------- calls that are taken for dead
def begun(account: Account, **more) -> tuple[Machine, dict]:
    """A verify that has begun, and the question about its first unit."""
    machine = Machine(account.work, InPeace())
    machine.answer = machine.ask({"do": "begin", "asked": account.asked(**more), "execution": "one"})
    return machine, {"do": "unit", "unit": machine.answer["units"][0], "run": machine.answer["run"]}


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "ends well"])
def test_remote_verify_unit_that_comes_late_takes_nothing_back(fails):
    """A verify unit that ends late does not overwrite what its successor has saved."""
    scene = wrong()
    account = Account(scene)
    machine, question = begun(account, segments=1)

    def before(_request: object) -> None:
        scene.tap.before = lambda _request: None
        assert machine.ask(question)["done"]  # the next try, to its end
        for name in ("shop", "parts"):  # whatever the first call sees is something else
            for item in scene.memory.items(name):
                scene.memory.delete(scene.rules.tables[name].key_of(item))
        if fails:
            raise StoreError("ThrottlingException")

    scene.tap.before = before
    with pytest.raises(StoreError, match="Throttling" if fails else "StateTaken"):
        machine.ask(question)
    machine.answer = machine.ask({"do": "end", "run": machine.answer["run"]})
    assert machine.answer["error"] == ""
    assert account.tally.drift.total() > 10


def test_remote_verify_end_that_comes_late_answers_as_the_first():
    """A repeated end of a stage gives the same answer as the first."""
    account = Account(wrong())
    machine, question = begun(account, repair=True, segments=1)
    machine.ask(question)
    end, found = {"do": "end", "run": question["run"]}, account.state.load_many
    first: list[dict] = []

    def late(names: object) -> dict:
        account.state.load_many = found
        first.append(machine.ask(end))
        return found(names)

    account.state.load_many = late
    assert machine.ask(end) == first[0]
    assert first[0]["error"] == ""


def test_remote_verify_end_of_an_execution_that_is_gone_says_so():
    """Its documents expire: an end that comes after that is refused with the reason, and writes nothing."""
    account = Account(wrong())
    machine, question = begun(account, segments=1)
    machine.ask(question)
    account.state.documents.clear()
    with pytest.raises(UserError, match="execution one is no longer known: it started too long ago"):
        account.work().end(question["run"])
    assert account.state.documents == {}


def test_remote_verify_removes_nothing_of_the_next_stage():
    """An end that is slow to remove its documents removes none of the next stage."""
    account = Account(wrong())
    machine, question = begun(account, repair=True, numbers=[3])  # no ledgers: the next stage has the same units
    machine.ask(question)
    end, remove = {"do": "end", "run": question["run"]}, account.state.remove

    def slow(name: str) -> None:
        account.state.remove = remove
        machine.answer = machine.ask(end)
        for unit in machine.answer["units"]:
            machine.ask({"do": "unit", "unit": unit, "run": machine.answer["run"]})
        remove(name)

    account.state.remove = slow
    machine.ask(end)
    machine.answer = machine.ask({"do": "end", "run": machine.answer["run"]})
    assert machine.answer["error"] == ""
    assert machine.go_on()["error"] == ""


# ---------------------------------------------------------------- what a call mended that died


def test_remote_verify_says_that_a_call_died_while_it_repaired(monkeypatch, capsys):
    """The state and the report count calls that died between their writes and their report, because their repairs are in
    no figure; the command says so on stderr.
    """
    account = Account(wrong())
    machine, _ = begun(account, repair=True, segments=1)

    def save_after_a_write(_name: str) -> None:
        if account.scene.tap.writes:
            raise KilledError

    account.state.before = save_after_a_write
    with suppress(KilledError):
        while machine.answer["more"]:  # until a step mends something
            question = {"do": "unit", "unit": machine.answer["units"][0], "run": machine.answer["run"]}
            machine.ask(question)
            machine.answer = machine.ask({"do": "end", "run": question["run"]})
    assert machine.answer["more"]
    account.state.before = lambda _name: None
    assert machine.go_on()["error"] == ""
    assert account.state.documents[name_head("one")]["broken"] == 1
    assert (account.rows()[-1]["broken"], account.rows()[-1]["not_looked_at"]) == (1, {})
    assert drift_of(account.scene) == []
    verdict = watched(account, {"error": "", "cause": ""}, monkeypatch)
    assert "sync-rules: figures are minimums: 1 call died while it repaired\n" in capsys.readouterr().err
    assert (json.loads([*verdict.lines()][-1])["broken"], verdict.whole) == (1, True)


def watched(account: Account, said: dict, monkeypatch) -> verify_command.RemoteResult:
    """The result that the command shows for a verify that ended so."""
    ended = Execution("one", "FAILED" if said["error"] else "SUCCEEDED", said["error"], said["cause"])
    machine = SimpleNamespace(start=lambda *_asked: "one", watch=lambda _name, look: (look(), ended)[1])
    monkeypatch.setattr(verify_command, "BucketReports", lambda *_given: account.shelf)
    stack = Stack("sync-rules", "us-east-1", {"BucketName": "bucket"})
    deployed = Deployed(stack, machine, account.state, "http://127.0.0.1:1", "us-east-1")
    return verify_command.verify_in_account(deployed, account.scene.rules, {})
