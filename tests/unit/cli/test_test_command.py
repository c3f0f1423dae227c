"""`sync-rules test`: what it prints, and the code it exits with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.scenario_reader import ScenarioForm, StepForm
from tests.unit.lab.test_trial import SCENARIO

PAGE = (Path(__file__).parents[3] / "docs/testing.md").read_text()
NAMES = re.compile(r"`([a-z_-]+)`")
BROKEN = SCENARIO.replace("user_name: Ada King", "user_name: Ada Kong")


def test_command_says_of_each_scenario_that_it_holds(played, run):
    """One line each, a summary, and exit code 0."""
    code, out, _ = run("test", "scenarios")
    assert code == 0
    *lines, last = out.splitlines()
    assert lines == ["scenarios/marry/scenario.yaml   ok", "scenarios/rename/scenario.yaml  ok"]
    assert last.startswith("2 scenarios, 7 variants each, in ")
    assert last.endswith(" s: 2 ok, 0 failed")


def test_command_tells_what_failed_and_under_what(played, run):
    """A failed scenario exits with 1 and prints the first variant that fails, with the expected and the found value."""
    file = played / "scenarios/marry/scenario.yaml"
    file.write_text(f"rules: ../../rules.yaml{BROKEN}")
    code, out, _ = run("test", "scenarios", "--seed", "4")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "scenarios/marry/scenario.yaml   FAILED under every variant"
    assert lines[1].startswith("scenarios/marry/scenario.yaml:12:20 · Ada marries · shop[USER#1, ORDER#2] user_name")
    assert "  again: sync-rules test scenarios/marry/scenario.yaml --variant in-order --seed 4" in lines
    assert lines[-1].endswith(" s: 1 ok, 1 failed")
    assert out.count("expected") == 1


def test_command_plays_nothing_while_a_file_is_wrong(played, run):
    """Errors in any scenario file are all printed with their places, and the exit code is 2."""
    (played / "scenarios/marry/scenario.yaml").write_text("rules: ../../rules.yaml\nsteps: {}")
    (played / "scenarios/rename/scenario.yaml").write_text("rules: ../../rules.yaml\nexpect: {shp: {}}")
    code, out, err = run("test", "scenarios")
    assert (code, out) == (2, "")
    assert "scenarios/marry/scenario.yaml:2:8 · steps\n  expected a list, found a map\n" in err
    assert "scenarios/rename/scenario.yaml:2:10 · expect · shp\n  no table 'shp'" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no scenario given"),
        (["nowhere"], "nowhere: no such file or folder"),
        (["."], None),
        (["scenarios", "--variant", "shufled"], "Did you mean 'shuffled'?"),
    ],
    ids=["none", "nowhere", "empty", "variant"],
)
def test_command_tells_what_cannot_be(played, run, monkeypatch, arguments, said):
    """An empty folder, a missing path or an unknown variant exits with 2."""
    if said is None:
        (played / "empty").mkdir()
        monkeypatch.chdir(played / "empty")
        said = "expected scenario.yaml or *.scenario.yaml in it, or below"
    code, out, err = run("test", *arguments)
    assert (code, out) == (2, "")
    assert said in err


# ---------------------------------------------------------------- the page
def block(language: str) -> str:
    """The first block of docs/testing.md in a language."""
    return PAGE.split(f"```{language}\n", 1)[1].split("```", 1)[0]


def test_page_shows_a_scenario_that_holds(played, run):
    """The first example of docs/testing.md passes exactly as it is printed there."""
    (played / "rules.yaml").write_text(block("yaml"))
    (played / "scenarios/rename/scenario.yaml").write_text(block("yaml scenario"))
    assert run("test", "scenarios/rename")[0] == 0


def test_page_has_every_key_of_a_scenario():
    """The tables of the page are the keys that files may have, and no others."""
    told = {name for line in PAGE.splitlines() if line.startswith("| `") for name in NAMES.findall(line.split("|")[1])}
    known = {*ScenarioForm.model_fields, *StepForm.model_fields} | {how.name for how in VARIANTS}
    assert told == known


def test_page_has_every_way_of_delivery():
    """Each with what the command says of it."""
    assert [f"| `{how.name}` | {how.description()} |" in PAGE for how in VARIANTS] == [True] * len(VARIANTS)
