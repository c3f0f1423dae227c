"""A backfill in the account, in memory: ends as a local one, whatever dies, is repeated or is stopped."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.state import read_applied_fingerprints
from sync_rules.jobs.account.account_backfill import STOP, BackfillWork, load_run, name_request
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.backfill.job import BackfillRequest, Job
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.backfill.progress import load_unfinished_head
from sync_rules.jobs.backfill.scope import Scope
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Outcome
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.requests import Scan
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from tests.support.builders import order_item, s, shop, user_item
from tests.support.depth import deep
from tests.support.inaccount import KilledError, Machine, SharedMemory
from tests.support.worlds import Scene
from tests.unit.jobs.test_backfill_run import chain, contents, drift_of, run_of, scene_of, shops

LONG_MS = 900_000


class Account:
    """A deployed stack: the tables, its state, and functions that are called."""

    def __init__(self, scene: Scene, state: SharedMemory | None = None, remaining=lambda: LONG_MS) -> None:
        self.scene = scene
        self.state = state or SharedMemory()
        self.remaining = remaining

    def work(self) -> BackfillWork:
        return BackfillWork(
            self.scene.rules,
            lambda _sleep: self.scene.tap,
            self.scene.parked,
            self.state,
            self.job,
            remaining_ms=self.remaining,
            sleep=lambda _seconds: None,
        )

    def job(self, names: frozenset[str], request: BackfillRequest) -> Job:
        rules = self.scene.rules
        prints = compute_rule_fingerprints(rules)
        scope = Scope(
            {rules.rules[name].title: prints[rules.rules[name].title] for name in sorted(names)},
            {"all": "id"},
            request.segments,
            request.table,
            request.where,
        )
        supplies = make_supplies(rules, request.segments, () if request.table is None else (request.table,))
        return Job(Selection(rules, names), supplies, scope, dict.fromkeys(rules.tables, 9))

    def asked(self, **more) -> dict:
        rules = {"rules": [], "changed": False, "table": None, "where": None, "segments": 3, "workers": 2, "rate": 0.0}
        return {
            **rules,
            "resume": False,
            "restart": False,
            "prints": compute_rule_fingerprints(self.scene.rules),
            **more,
        }

    def machine(self, random: Random | None = None, execution: str = "one") -> Machine:
        return Machine(self.work, random, execution)


class InPeace(Random):
    """Units in their order, and no question twice."""

    def shuffle(self, _units):
        pass

    def random(self):
        return 1.0


@given(shops(), st.integers(1, 5))
@settings(max_examples=deep(60), deadline=None)
def test_remote_backfill_ends_as_a_local_one(steps, page):
    """A remote backfill leaves the same items and the same totals as a local one, for every kind."""
    local, remote = scene_of(steps, page), scene_of(steps, page)
    run = run_of(local, total=3)
    assert run.run()
    account = Account(remote)
    assert account.machine(InPeace()).run(account.asked())["error"] == ""
    assert contents(remote) == contents(local)
    assert load_unfinished_head(account.state) is None
    seen = load_run(account.state, remote.rules)
    assert seen.totals == run.totals
    assert read_applied_fingerprints(account.state) == compute_rule_fingerprints(remote.rules)


@given(shops(), st.integers(1, 4), st.lists(st.integers(1, 40), max_size=5), st.integers(0, 99))
@settings(max_examples=deep(100), deadline=None)
def test_remote_backfill_survives_workers_that_die_and_questions_that_come_twice(steps, page, deaths, seed):
    """Killed at any request or save, asked twice, in any order: in the end nothing drifts but what is stuck, and a
    local backfill has nothing to write.
    """
    disturbed = scene_of(steps, page)
    account = Account(disturbed)
    left = list(deaths)

    def tick(*_: object) -> None:
        if left:
            left[0] -= 1
            if left[0] == 0:
                left.pop(0)
                raise KilledError

    disturbed.tap.before = account.state.before = tick
    machine = account.machine(Random(seed))
    said = machine.run(account.asked()) if not deaths else _insisting(account, machine)
    assert said["error"] == ""
    left.clear()
    assert load_unfinished_head(account.state) is None
    assert [one for one in drift_of(disturbed) if one.repairable] == []
    after = run_of(disturbed)
    assert after.run()
    assert after.totals.count(Outcome.COPIED) == 0


def _insisting(account: Account, machine: Machine) -> dict:
    """Start executions until the backfill is done."""
    for number in range(20):
        machine.execution = f"run{number}"
        begun = load_unfinished_head(account.state) is not None
        try:
            said = machine.run(account.asked(resume=begun))
        except KilledError:
            continue
        if not said["error"]:
            return said
    raise AssertionError("it is never done")


def orders(count: int = 30, page: int = 2) -> Scene:
    scene = Scene(shop())
    scene.memory.page_items = lambda limit: min(limit, page)
    for i in range(count):
        scene.there("shop", user_item(str(i), name=s("Ada")), order_item(str(i), "1"))
    return scene


def test_remote_backfill_goes_on_when_time_is_up():
    """A call that is short of time saves where it is and says that it is not done; the next one writes nothing again."""
    scene, left = orders(), [LONG_MS]
    scene.tap.before = lambda _request: left.__setitem__(0, left[0] - LONG_MS // 12)
    account = Account(scene, remaining=lambda: left[0])
    machine = account.machine(InPeace())
    ask = machine.ask
    machine.ask = lambda question: (left.__setitem__(0, LONG_MS), ask(question))[1]
    assert machine.run(account.asked(segments=1))["error"] == ""
    assert len(scene.tap.writes) == 30
    assert len(scene.tap.seen(Scan)) >= 30
    assert drift_of(scene) == []


def test_remote_backfill_needs_time_to_begin_with():
    """A function whose time limit lets it do nothing says so, instead of being called for ever."""
    account = Account(orders(), remaining=lambda: 5_000)
    machine = account.machine(InPeace())
    assert machine.run(account.asked())["error"] == "NotAllDone"
    with pytest.raises(UserError, match="raise the function's timeout"):
        answer({"do": "unit", "unit": "shop/0-of-3", "run": {}}, account.work())


def test_remote_backfill_leaves_a_segment_and_goes_on_with_it_later():
    """A segment that cannot be read is left with its reason, the others are done; going on does that one only."""
    scene = orders()
    account = Account(scene)
    scene.tap.refuse(Scan, StoreError("ThrottlingException", "table shop"), lambda scan: scan.segment == 1)
    said = account.machine().run(account.asked())
    assert said["error"] == "NotAllDone"
    assert "1 not done" in said["cause"]
    assert "shop/1-of-3: ThrottlingException: table shop" in said["cause"]
    assert read_applied_fingerprints(account.state) == {}
    scene.tap.before = lambda _request: None
    later = account.machine(execution="two")
    assert later.run(account.asked(resume=True))["error"] == ""
    assert later.units == ["shop/1-of-3"]
    assert drift_of(scene) == []
    assert load_run(account.state, scene.rules).totals.items == 60


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"segments": 5_000}, ["a lower --rate"]),
        (
            {"prints": {"user-name-on-orders": "other", "new": "1"}},
            ["deploy first", "new: is not deployed", "user-name-on-orders: differs from the deployed rule"],
        ),
    ],
    ids=["more units than a state holds", "rules that are not deployed"],
)
def test_remote_backfill_refuses_what_it_cannot_do(asked, words):
    """The refusal names the cure, or each rule that differs, and nothing is begun."""
    account = Account(orders())
    said = account.machine().run(account.asked(**asked))
    assert said["error"] == "Refused"
    assert [word for word in words if word not in said["cause"]] == []
    assert account.state.documents == {}


def test_remote_backfill_refuses_tables_that_are_not_its_own():
    """The same rules on the tables of another stage are another stack's, by name or by ARN."""
    account = Account(orders())
    tables = {name: table.physical_name for name, table in account.scene.rules.tables.items()}
    said = account.machine().run(account.asked(tables=tables | {"shop": "arn:aws:dynamodb:x:1:table/dev-shop"}))
    assert said["error"] == "Refused"
    assert (
        f"table shop: the stack has {tables['shop']}, your rules file arn:aws:dynamodb:x:1:table/dev-shop"
        in said["cause"]
    )
    assert account.state.documents == {}
    assert account.machine().run(account.asked(tables=tables))["error"] == ""


def test_remote_backfill_stops_when_told_and_goes_on():
    """A stopped backfill finishes the writes in hand; the next one makes the remaining writes only."""
    scene = orders()
    account = Account(scene)

    def before(request: object) -> None:
        if len(scene.tap.writes) > 5:
            account.state.save(STOP, {"execution": "one"})

    scene.tap.before = before
    machine = account.machine(InPeace())
    machine.make = lambda: _impatient(account)
    said = machine.run(account.asked())
    assert said["error"] == "Stopped"
    stopped_at = len(scene.tap.writes)
    assert stopped_at < 30
    scene.tap.before = lambda _request: None
    assert account.machine(execution="two").run(account.asked(resume=True))["error"] == ""
    assert len(scene.tap.writes) == 30
    assert drift_of(scene) == []


def _impatient(account: Account) -> BackfillWork:
    """Looks at the state each time."""
    ticks = iter(range(0, 10**9, 10))
    work = account.work()
    work._clock = lambda: next(ticks)
    return work


def test_remote_backfill_takes_over_a_segment_from_a_worker_that_still_runs():
    """Two workers on one segment: the one that was taken for dead is refused at its next save and takes nothing back,
    and the round has another one behind it, for what it wrote is counted nowhere.
    """
    scene = chain(6, page=1)
    account = Account(scene)
    machine = account.machine(InPeace())
    begun = machine.ask({"do": "begin", "asked": account.asked(segments=1), "execution": "one"})
    question = {"do": "unit", "unit": "parts/0-of-1", "run": begun["run"]}
    inside = [False]

    def before(request: object) -> None:
        if isinstance(request, Scan) and request.cursor is not None and not inside[0]:
            inside[0] = True
            assert machine.ask(question)["done"]  # the retry comes, and ends, while this one is at work

    scene.tap.before = before
    with pytest.raises(StoreError, match="another worker"):
        machine.ask(question)
    found = account.state.documents["backfill/parts/0-of-1"]
    assert (found["done"], found["holder"], found["broken"]) == (True, None, True)
    scene.tap.before = lambda _request: None
    machine.answer = machine.ask({"do": "end", "run": begun["run"]})
    assert machine.answer["more"]
    assert machine.go_on()["error"] == ""
    assert drift_of(scene) == []


def test_remote_backfill_keeps_what_failed_out_of_what_is_applied():
    """A rule of which an item failed each time does not count as done."""
    scene = orders(3)
    bad = scene.at("shop", "USER#1", "ORDER#1")
    scene.tap.result = lambda write: Result(Status.FAILED, reason="InternalServerError") if write.key == bad else None
    account = Account(scene)
    assert account.machine().run(account.asked())["error"] == ""
    assert read_applied_fingerprints(account.state) == {}
    assert load_run(account.state, scene.rules).totals.count(Outcome.FAILED) == 1


def test_begin_that_lost_a_race_leaves_no_trace_in_the_other():
    """Two begin at the same moment and one is refused: what it was asked for is not noted as done when the other ends."""
    account = Account(scene_of([], 3))
    mine, other = sorted(rule.title for rule in account.scene.rules.rules.values())[:2]
    first, second = account.machine(execution="first"), account.machine(execution="second")
    begun: list[bool] = []

    def begin_meanwhile(name: str) -> None:
        if name == name_request("second") and not begun:
            begun.append(True)
            first.answer = first.ask({"do": "begin", "asked": account.asked(rules=[mine]), "execution": "first"})

    account.state.before = begin_meanwhile
    with suppress(StoreError):  # the head was taken meanwhile
        second.ask({"do": "begin", "asked": account.asked(rules=[other]), "execution": "second"})
    said = second.ask({"do": "begin", "asked": account.asked(rules=[other]), "execution": "second"})
    assert (begun, said["error"]) == ([True], "Refused")
    first.go_on()
    assert set(read_applied_fingerprints(account.state)) == {mine}


@pytest.mark.parametrize("ended", [False, True])
def test_remote_backfill_of_an_old_execution_ends_no_newer_one(ended):
    """The late end of an old execution is refused, while a newer one runs and afterwards; the newer one ends as if alone."""
    account = Account(scene_of([], 3))
    old, new = account.machine(InPeace(), "old"), account.machine(InPeace(), "new")
    old.answer = old.ask({"do": "begin", "asked": account.asked(), "execution": "old"})
    late = account.state.load(name_request("old"))
    rule = min(rule.title for rule in account.scene.rules.rules.values() if rule.swept_entities)
    new.answer = new.ask({"do": "begin", "asked": account.asked(rules=[rule], restart=True), "execution": "new"})
    if ended:
        assert new.go_on()["error"] == ""
    account.state.documents[name_request("old")] = late  # the worker that removes it died before
    before = dict(account.state.documents)
    with pytest.raises(UserError, match="another backfill started"):
        account.work().end(old.answer["run"])
    assert account.state.documents == before
    if not ended:
        assert new.go_on()["error"] == ""
    assert set(read_applied_fingerprints(account.state)) == {rule}


def test_begin_forgets_what_the_one_before_was_asked_for():
    """The state table keeps the options of the last backfill only."""
    account = Account(scene_of([], 3))
    for number in range(3):
        account.machine(execution=f"run-{number}").run(account.asked(restart=number > 0))
    assert [name for name in account.state.documents if name.startswith("backfill-remote")] == [name_request("run-2")]
