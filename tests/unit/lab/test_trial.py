"""A scenario under every delivery variant: it holds for sound rules, and fails for a pipeline without an invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from sync_rules.adapters import memory
from sync_rules.lab import rehearsal
from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.scenario import Scenario
from sync_rules.lab.scenario_file import find_scenarios, load_scenario
from sync_rules.lab.trial import choose_deliveries, run_trial
from sync_rules.pipeline.report import Report

EXAMPLES = Path(__file__).parents[3] / "examples"
RULES = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.user_name
"""
SCENARIO = """
data:
  shop: [{PK: USER#1, SK: PROFILE, name: Ada}, {PK: USER#1, SK: ORDER#1}, {PK: USER#1, SK: ORDER#2}]
expect:
  shop: {PK: USER#1, SK: ORDER#1, user_name: Ada}
steps:
  - say: an order is taken back
    delete: {shop: {PK: USER#1, SK: ORDER#1}}
    expect_gone: {shop: {PK: USER#1, SK: ORDER#1}}
  - say: Ada marries
    update: {shop: {key: {PK: USER#1, SK: PROFILE}, set: {name: Ada King}}}
    expect: {shop: {PK: USER#1, SK: ORDER#2, user_name: Ada King}}
"""


@pytest.fixture
def load(tmp_path, monkeypatch) -> Callable[..., Scenario]:
    """Reads a scenario, from a file that has the same name in every run."""
    monkeypatch.chdir(tmp_path)

    def load(scenario: str = SCENARIO, rules: str = RULES) -> Scenario:
        Path("rules.yaml").write_text(rules)
        Path("my scenario.yaml").write_text(scenario)
        return load_scenario(Path("my scenario.yaml"))

    return load


def failed(scenario: Scenario, seeds: Iterable[int] = range(5)) -> set[str]:
    """The ways of delivery under which something is wrong."""
    return {how.name for seed in seeds for how in choose_deliveries((), seed) if not run_trial(scenario, how).ok}


@pytest.mark.parametrize("file", find_scenarios([EXAMPLES]), ids=lambda file: file.parent.name)
@pytest.mark.parametrize("delivery", VARIANTS, ids=lambda delivery: delivery.name)
def test_trial_every_example_holds(file, delivery):
    """Each example holds however its records are delivered."""
    assert run_trial(load_scenario(file), delivery).wrong == ()


# ---------------------------------------------------------------- what it says
def test_trial_tells_what_was_expected_where_and_how_to_see_it_again(load):
    """The account has the place, both values, the delivery, the steps before, and the command for this alone."""
    scenario = load(SCENARIO.replace("user_name: Ada King", "user_name: Ada Kong"))
    (how,) = choose_deliveries(["shuffled"], 7)
    assert run_trial(scenario, how).report() == (
        "my scenario.yaml:12:20 · Ada marries · shop[USER#1, ORDER#2] user_name\n"
        '  expected "Ada Kong"\n'
        '  found    "Ada King"\n'
        "  under shuffled: batches of up to 100 records, items in any order; after\n"
        "    my scenario.yaml:2 load the data\n"
        "    my scenario.yaml:7 an order is taken back\n"
        "    my scenario.yaml:10 Ada marries\n"
        "  again: sync-rules test 'my scenario.yaml' --variant shuffled --seed 7"
    )


def test_trial_tells_of_a_write_that_dynamodb_would_reject(load):
    """A write that DynamoDB would reject is shown with its step and DynamoDB's error."""
    action = "update: {shop: {key: {PK: USER#1, SK: PROFILE}, set: {a.b: 1}}}"
    trial = run_trial(
        load(f"data: {{shop: {{PK: USER#1, SK: PROFILE}}}}\nsteps:\n  - say: no map\n    {action}"), VARIANTS[0]
    )
    (wrong,) = trial.wrong
    assert wrong.startswith("my scenario.yaml:3:5 · no map\n  expected no error\n  found    ValidationException")
    assert [step.say for step in trial.steps] == ["load the data", "no map"]


def test_trial_finds_a_wrong_copy_that_nobody_expects_anything_of(load, monkeypatch):
    """A wrong copy fails the step even if the scenario expects nothing of its item."""
    scenario = load("data:\n  shop: [{PK: USER#1, SK: PROFILE, name: Ada}, {PK: USER#1, SK: ORDER#1}]")
    assert run_trial(scenario, VARIANTS[0]).ok
    monkeypatch.setattr(rehearsal.Rehearsal, "rest", lambda _self: True)
    (wrong,) = run_trial(scenario, VARIANTS[0]).wrong
    assert wrong.startswith("my scenario.yaml:1:1 · load the data\n  expected every copy to be right\n")
    assert wrong.endswith("found    what is missing: shop[USER#1, ORDER#1] user_name (rule names)")


# ---------------------------------------------------------------- mutants: an invariant is removed
def test_trial_catches_writes_without_guards(load, monkeypatch):
    """Writes without guards fail under the variant `duplicated`, and not under delivery in order."""
    scenario = load()
    monkeypatch.setattr(memory, "holds", lambda _guard, _item: True)
    found = failed(scenario)
    assert "duplicated" in found
    assert not found & {"in-order", "crashing", "throttled"}


@pytest.mark.parametrize("method", ["fail", "note"])
def test_trial_catches_failures_that_are_swallowed(load, monkeypatch, method):
    """Swallowed failures fail under the variant `throttled`, and not under variants without throttles."""
    scenario = load()
    monkeypatch.setattr(Report, method, lambda *_given: None)
    found = failed(scenario)
    assert "throttled" in found
    assert not found & {"in-order", "one-by-one", "shuffled", "duplicated", "crashing"}
