"""A verify in the account, in memory: the figures and the report of a local one, whatever dies or comes twice."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.errors import StoreError
from sync_rules.fingerprints import of_each
from sync_rules.remote import verify as remote
from sync_rules.remote.figures import tally_of
from sync_rules.remote.sample import sample
from sync_rules.remote.verify import VerifyWork, head_of
from sync_rules.reports.drift_report import open_report, totals
from sync_rules.store import Scan
from sync_rules.verify import Verifier
from tests import every_kind
from tests.builders import n, s
from tests.inaccount import KilledError, Machine, SharedMemory
from tests.unit.test_backfill_run import RULES, drift_of, scene_of, shops
from tests.unit.test_remote_backfill import LONG_MS, InPeace
from tests.worlds import Scene

NO_TIME_MS = 1_000


class Shelf:
    """Reports in memory."""

    def __init__(self) -> None:
        self.reports: dict[str, bytes] = {}

    def write(self, name, file):
        self.reports[name] = file.read()

    def lines(self, name):
        return iter(self.reports[name].splitlines())


class Account:
    """A deployed stack, as far as verify goes."""

    def __init__(self, scene: Scene, remaining=lambda: LONG_MS) -> None:
        self.scene = scene
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
            sleep=lambda _seconds: None,
        )

    def asked(self, **more) -> dict:
        asked = {"rules": [], "repair": False, "grace_seconds": 0, "seed": None, "numbers": None, "segments": 3}
        return {**asked, "workers": 4, "prints": of_each(self.scene.rules), **more}

    def run(self, random: Random | None = None, **more) -> dict:
        return Machine(self.work, random or InPeace()).run(self.asked(**more))

    @property
    def tally(self):
        return tally_of(self.state.documents[head_of("one")]["tally"])

    def rows(self) -> list[dict]:
        return [json.loads(line) for line in self.shelf.lines(self.state.documents[head_of("one")]["report"])]


def figures(tally, rules) -> dict:
    return {name: totals(tally, name) for name in rules.rules}


@given(shops(), st.integers(1, 5), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_remote_verify_finds_what_a_local_one_finds(steps, page, seed):
    """The same figures for each rule of every kind, asked in any order and some of it twice; a row for each drift."""
    scene = scene_of(steps, page)
    verifier = Verifier(scene.rules, scene.world, frozenset(scene.rules.rules), grace_seconds=0)
    found = list(verifier.sweep())
    account = Account(scene)
    assert account.run(Random(seed))["error"] == ""
    assert figures(account.tally, scene.rules) == figures(verifier.tally, scene.rules)
    assert account.tally.items == verifier.tally.items
    assert account.tally.left == verifier.tally.left
    assert len(account.rows()) == len(found) + 2


@given(shops(), st.lists(st.integers(1, 60), max_size=4), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_remote_verify_repairs_whatever_dies(steps, deaths, seed):
    """Killed at any request or save and asked twice, a repair leaves nothing that can be mended."""
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
    assert [one for one in drift_of(scene) if one.mendable] == []


def wrong() -> Scene:
    scene = Scene(RULES)
    scene.there("shop", every_kind.user("1", name=s("Ada"), rank=n(1), counted=n(9)))
    scene.there("shop", *(every_kind.order("1", str(i), i, user_name=s("?")) for i in range(9)))
    scene.there("parts", every_kind.part("a"), every_kind.part("b", "a"), every_kind.part("c", "b"))
    return scene


def test_remote_verify_report_is_one_that_from_takes(tmp_path):
    """The report in the bucket is that of `verify --json`: a repair of what it lists can begin with it."""
    account = Account(wrong())
    assert account.run()["error"] == ""
    path = tmp_path / "report.jsonl"
    path.write_bytes(account.shelf.reports["one/report"])
    report = open_report(path, account.scene.rules)
    assert len(list(report.listed(report.names))) == account.tally.left > 10


def test_remote_verify_counts_repairs_of_a_cascade_as_a_local_one():
    """Steps and rounds down the cascade come to the same figures as in one process."""
    local, scene = wrong(), wrong()
    verifier = Verifier(local.rules, local.world, frozenset(local.rules.rules), grace_seconds=0, repair=True)
    for _ in verifier.sweep():
        pass
    account = Account(scene)
    assert account.run(repair=True, segments=1)["error"] == ""
    mended = {rule: count for rule, count in account.tally.repaired.items() if count}
    assert mended == {rule: count for rule, count in verifier.tally.repaired.items() if count}
    assert account.tally.left == verifier.tally.left == 0
    assert drift_of(scene) == []


def test_remote_verify_unit_that_runs_out_of_time_says_what_helps():
    """A segment that does not fit into one call is left with that reason, and what to do about it."""
    scene = wrong()
    left = [LONG_MS]
    scene.tap.before = lambda request: left.__setitem__(0, NO_TIME_MS if isinstance(request, Scan) else left[0])
    account = Account(scene, remaining=lambda: left[0])
    machine = Machine(account.work, InPeace())
    inner = machine.ask
    machine.ask = lambda question: (left.__setitem__(0, LONG_MS), inner(question))[1]
    said = machine.run(account.asked(segments=1))
    assert said["error"] == "NotAllDone"
    assert "more --segments" in said["cause"]
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


def test_remote_sample_only_looks_and_ends_in_time():
    """The verify by the clock writes nothing, and stops scanning while there is time for two more looks."""
    scene = wrong()
    options = {"grace_seconds": 0, "sleep": lambda _seconds: None}
    tally, names = sample(scene.rules, scene.world, 100, lambda: LONG_MS, Random(1), **options)
    assert tally.drift.total() > 10
    assert names == frozenset(scene.rules.rules)
    assert scene.tap.writes == []
    tally, _ = sample(scene.rules, scene.world, 100, lambda: NO_TIME_MS, Random(1), **options)
    assert tally.items == 0


def test_remote_verify_goes_on_where_a_segment_cannot_be_read():
    """What could not be looked at is told, and no figures are given for the whole."""
    scene = wrong()

    def before(request: object) -> None:
        if isinstance(request, Scan) and request.segment == 1:
            raise StoreError("ThrottlingException", "table shop")

    scene.tap.before = before
    account = Account(scene)
    said = account.run()
    assert said["error"] == "NotAllDone"
    assert "1: ThrottlingException: table shop" in said["cause"]
    assert account.state.documents[head_of("one")]["report"] == ""


def test_remote_verify_reports_a_part_that_two_calls_see_once():
    """An order and its entry lie in different segments: the wrong entry is seen from both, and is one drift."""
    scene = Scene(RULES)
    scene.put("shop", every_kind.user("1", name=s("Ada")), *(every_kind.order("1", str(i), i) for i in range(9)))
    scene.rest()
    scene.put("shop", *(every_kind.order("1", str(i), 50 + i) for i in range(9)))
    verifier = Verifier(scene.rules, scene.world, frozenset(scene.rules.rules), grace_seconds=0)
    found = list(verifier.sweep())
    account = Account(scene)
    assert account.run(segments=7)["error"] == ""
    assert figures(account.tally, scene.rules) == figures(verifier.tally, scene.rules)
    assert account.tally.unmended == +verifier.tally.unmended
    assert len(account.rows()) == len(found) + 2
