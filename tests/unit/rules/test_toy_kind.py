"""A new kind of rule is two files and a line in the registry: all that goes through rules works with it.

The kind lives in `tests/support/toy_kind`. Nothing in the product names it.
"""

from __future__ import annotations

import json
import re
import shutil

import pytest

from sync_rules.adapters.state import MemoryState
from sync_rules.audit.compare import Drift
from sync_rules.audit.leftovers import FormerRules, prune_page, remove
from sync_rules.audit.standings import list_standings
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.where_used import find_uses
from sync_rules.cli import main
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.permissions import BACKFILL, STREAM, list_needs
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.language.kinds import registry
from sync_rules.language.load import load_rules, parse_rules
from sync_rules.rules import compiled_file
from sync_rules.rules.description import Operation
from sync_rules.rules.ruleset import Rules
from tests.simulation import grammar, oracle, worlds
from tests.simulation.choices import drawn
from tests.simulation.runs import failures_in, play
from tests.support.builders import n, s
from tests.support.every_kind import order, user
from tests.support.tapes import Tape, recorded
from tests.support.toy_kind import stamp
from tests.support.toy_kind.language import KIND
from tests.support.toy_kind.trial import TRIAL
from tests.support.worlds import Parked, Scene
from tests.test_house import ROOT

SCHEMA = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
"""
NOW = SCHEMA + "rules: {names: copy user.name into order.name}\n"
TEXT = SCHEMA + "rules:\n  last: {latest: order.total, into: user.last, by: order_id}\n"
SCENARIO = """
rules: rules.yaml
data:
  shop: [{PK: USER#1, SK: PROFILE}, {PK: USER#1, SK: ORDER#a, total: 1}, {PK: USER#1, SK: ORDER#b, total: 2}]
expect: {shop: {PK: USER#1, SK: PROFILE, last: 2}}
steps:
  - say: the newest order is taken back
    delete: {shop: {PK: USER#1, SK: ORDER#b}}
    expect: {shop: {PK: USER#1, SK: PROFILE, last: 1}}
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch, tmp_path):
    """The one line, and a rules file in the folder where the user is."""
    monkeypatch.setitem(registry.KINDS, KIND.name, KIND)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(TEXT)
    return tmp_path


@pytest.fixture
def rules() -> Rules:
    return parse_rules(TEXT)


@pytest.fixture
def scene(rules) -> Scene:
    """A user with two orders whose records were not delivered."""
    scene = Scene(rules)
    scene.there("shop", user("1"), order("1", "a", 10), order("1", "b", 20))
    return scene


@pytest.fixture
def shown(capsys):
    """Runs a command that must succeed, and gives what it printed."""

    def run(*words: str) -> str:
        assert main.main([*words]) == 0
        return capsys.readouterr().out

    return run


def last(scene: Scene):
    return scene.item(scene.at("shop", "USER#1", "PROFILE")).get("last")


def names_of(rules: Rules) -> frozenset[str]:
    return frozenset(rules.rules)


def test_toy_kind_is_checked_and_reported_like_any_other(registered, shown, capsys):
    """`check` accepts a rule of it, finds what is wrong with another, and names the kind among those there are."""
    assert shown("check", "rules.yaml")
    (registered / "rules.yaml").write_text(TEXT.replace("order.total", "odrer.total"))
    assert main.main(["check", "rules.yaml"]) == 1
    assert "odrer" in "".join(capsys.readouterr())
    (registered / "rules.yaml").write_text(TEXT.replace("latest:", "newest:"))
    assert main.main(["check", "rules.yaml"]) == 1
    assert "latest" in "".join(capsys.readouterr())


def test_toy_kind_is_in_the_schema(shown):
    """Editors know its options and their descriptions."""
    text = shown("schema")
    assert "a field of the newest child, on the parent" in text
    assert '"latest"' in text
    assert json.loads(text)


def test_toy_kind_is_handled(scene):
    """Records of children write their parent, whichever comes first; so does one of the parent whose value was lost."""
    scene.put("shop", order("1", "c", 30))
    scene.rest()
    assert last(scene) == n(30)
    scene.put("shop", user("1", last=s("?")))
    scene.rest()
    assert last(scene) == n(30)


def test_toy_kind_is_compiled_for_functions(registered, rules, monkeypatch):
    """The file that functions read has its declared fields, and makes the same rule."""
    monkeypatch.setattr(compiled_file, "PACKAGES", (*compiled_file.PACKAGES, "tests.support.toy_kind."))
    assert rules.rules["last"].watches(rules.entities["order"])  # which is worked out once, and not written
    data = compiled_file.dump(rules, {})
    assert b"LatestRule" in data
    assert b"read_paths" not in data
    read = compiled_file.read(data, "rules")
    assert read.rules["last"].body() == rules.rules["last"].body()
    assert read.fingerprint == load_rules(registered / "rules.yaml").fingerprint


def test_toy_kind_is_planned_and_backfilled(scene):
    """The plan says the write that the backfill then makes."""
    names = names_of(scene.rules)
    plan = Planner(scene.rules, names, scene.tap).run()
    assert last(scene) is None
    assert plan.rules["last"].to_write == 1
    supplies = make_supplies(scene.rules, 1)
    run = BackfillRun(Selection(scene.rules, names), scene.memory, Parked(), MemoryState(), {}, supplies=supplies)
    assert run.run()
    assert last(scene) == n(20)


def test_toy_kind_is_explained(scene):
    """`explain` works for a toy kind: the state of a parent, and where a child is used."""
    child, parent = scene.at("shop", "USER#1", "ORDER#b"), scene.at("shop", "USER#1", "PROFILE")
    assert [one.state for one in scene.drive(list_standings(parent, scene.item(parent), scene.rules))] == [
        Drift.MISSING
    ]
    scene.put("shop", order("1", "b", 25))
    scene.rest()
    assert [use.target for use in find_uses(child, scene.rules, scene.memory)] == [parent]


def test_toy_kind_is_drawn(shown):
    """`graph` has its arrow, from what the rule reads to what it writes."""
    assert re.search(r'-->\|"last \(latest\)<br>.*total.* → last"\|', shown("graph", "rules.yaml"))


def test_toy_kind_is_pruned(scene):
    """Prune finds and removes what a dropped rule of a toy kind has written."""
    scene.put("shop", order("1", "c", 30))
    scene.rest()
    past = FormerRules(scene.rules, parse_rules(NOW))
    (table,) = past.tables
    (leftover,) = scene.drive(prune_page(table, past, None)).leftovers
    assert leftover.paths == (("last",),)
    assert scene.drive(remove((leftover,))) == ()
    assert last(scene) is None


def test_toy_kind_is_deployed(registered, shown):
    """The template is written for it, and its permissions are those of what the pipeline does for it."""
    some = [one for one in list_needs(read_deployment(registered / "rules.yaml")) if one.rule == "last"]
    allowed = {(one.function, one.action.partition(":")[2]) for one in some}
    assert {(STREAM, "Query"), (STREAM, "UpdateItem"), (BACKFILL, "Scan")} <= allowed
    assert (STREAM, "DeleteItem") not in allowed
    shutil.copy(ROOT / "template.yaml", registered)
    shown("infra", "--rules", "rules.yaml")
    assert "SyncRules: {Rules: rules.yaml}" in (registered / "template.yaml").read_text()
    assert main.main(["infra", "--check"]) == 0


def test_toy_kind_is_tried_by_a_scenario(registered, shown):
    """`test` plays its steps under every way of delivery."""
    (registered / "scenario.yaml").write_text(SCENARIO)
    assert shown("test", "scenario.yaml")


def test_toy_kind_is_replayed(registered, rules, shown):
    """A recording ends right under every way of delivery."""
    tape = Tape(rules)
    tape.put("shop", user("1"), order("1", "a", 10), order("1", "b", 20))
    recorded(registered / "tape.jsonl", rules, tape.bodies)
    assert "every copy is right at the end" in shown("replay", "tape.jsonl", "--seeds", "1")


@pytest.fixture
def on_trial(monkeypatch):
    """The tables of the simulator, as they are where the trial is a module of `tests/kinds`."""
    monkeypatch.setattr(compiled_file, "PACKAGES", (*compiled_file.PACKAGES, "tests.support.toy_kind."))
    monkeypatch.setattr(worlds, "TEXTS", {**worlds.TEXTS, **TRIAL.worlds})
    monkeypatch.setitem(oracle.CHECKS, TRIAL.kind, TRIAL.check)
    monkeypatch.setattr(grammar, "KINDS", (TRIAL.write,) * 2 + grammar.KINDS)


def test_toy_kind_plays_in_the_simulator(on_trial):
    """Histories with crashes, throttles and late writes end right in the world of its trial, and beside people."""
    assert list(failures_in(("/latest", "people/latest"), 0, 80)) == []


def test_toy_kind_that_is_broken_fails_in_the_simulator(on_trial):
    """The mutant of its trial is caught."""
    ((_, mutation),) = TRIAL.mutants.items()
    worlds.forget()
    with mutation.mutant():
        assert list(failures_in(mutation.worlds, 0, 60))


def test_toy_kind_plays_with_random_rules(on_trial):
    """Files that its grammar writes are accepted, and their histories end as its oracle says."""
    files = [grammar.written(number) for number in range(150)]
    with_it = [file.text() for file in files if any("latest" in rule for rule in file.rules.values())]
    made = [found for found, _ in map(grammar.made_of, with_it) if found is not None]
    assert len(made) >= 5
    for number, file in enumerate(made[:5]):
        assert play(file, drawn(number)) == ""


def test_toy_kind_that_says_least_is_handled_verified_and_allowed(monkeypatch):
    """A kind that overrides no answer works, and its functions may do all that its family asks for."""
    monkeypatch.setitem(registry.KINDS, stamp.KIND.name, stamp.KIND)
    rules = parse_rules(stamp.RULES)
    scene = Scene(rules)
    scene.put("shop", {"PK": s("ORDER#1"), "SK": s("ORDER")})
    scene.rest()
    at = scene.at("shop", "ORDER#1", "ORDER")
    assert (scene.item(at)["source"], scene.item(at)["version"]) == (s("sync-rules"), s("v2"))
    scene.there("shop", {"PK": s("ORDER#2"), "SK": s("ORDER"), "version": s("v1")})
    found = Verifier(rules, scene.world, names_of(rules), grace_seconds=0).sweep()
    assert sorted(str(one.difference.drift.value) for one in found) == ["missing", "wrong"]
    assert {use.operation for use in rules.rules["stamped"].uses()} == {
        Operation.READ, Operation.UPDATES, Operation.SCAN, Operation.DESCRIBE
    }  # fmt: skip
