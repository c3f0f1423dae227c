"""The pytest plugin, in runs of pytest of its own: scenarios as tests, fixtures, and what it costs who does not use it."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.plain_rehearsal import PlainRehearsal
from sync_rules.language.load import parse_rules
from tests.support.builders import order_item, s, user_item
from tests.support.tapes import Tape, lines
from tests.unit.lab.test_trial import RULES, SCENARIO

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[3]
MODULE = "sync_rules.lab.pytest_plugin"
BROKEN = SCENARIO.replace("user_name: Ada King", "user_name: Ada Kong")


@pytest.fixture
def suite(pytester, monkeypatch):
    """A folder of a team: rules, a scenario, and a test of their own. Other plugins are left out. The package is found
    wherever these tests were started.
    """
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makefile(".yaml", rules=RULES)
    scenario = pytester.mkdir("scenarios") / "scenario.yaml"
    scenario.write_text(f"rules: ../rules.yaml{SCENARIO}")
    pytester.makepyfile(test_own="def test_own(): pass")
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in this process: what it imports is loaded already, which saves a second each time."""
    return suite.runpytest_inprocess("-p", MODULE, *arguments)


def run_apart(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own, which has only what that run imports."""
    return suite.runpytest_subprocess("-p", MODULE, *arguments)


def test_plugin_chooses_by_node_and_by_variant(suite):
    """A test can be named, chosen with -k, or by its way of delivery."""
    run(suite, "--sync-rules", "scenarios/scenario.yaml::crashing").assert_outcomes(passed=1)
    run(suite, "--sync-rules", "-k", "crashing or shuffled").assert_outcomes(passed=2, deselected=6)
    result = run(
        suite, "--sync-rules", "--sync-rules-variant", "throttled", "--sync-rules-seed", "9", "scenarios", "-v"
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*::throttled PASSED*"])


def test_plugin_tells_what_failed_as_the_command_does(suite):
    """The account and no traceback; the seed is in the command that runs it again."""
    (suite.path / "scenarios/scenario.yaml").write_text(f"rules: ../rules.yaml{BROKEN}")
    result = run(suite, "--sync-rules", "--sync-rules-seed", "3", "scenarios")
    result.assert_outcomes(failed=len(VARIANTS))
    result.stdout.fnmatch_lines([
        "scenarios/scenario.yaml:12:20 · Ada marries · shop?USER#1, ORDER#2? user_name",
        '  expected "Ada Kong"',
        '  found    "Ada King"',
        "  under in-order: *; after",
        "    scenarios/scenario.yaml:10 Ada marries",
        "  again: sync-rules test scenarios/scenario.yaml --variant in-order --seed 3",
        "FAILED scenarios/scenario.yaml::in-order*",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*Traceback*")


def test_plugin_tells_where_a_file_is_wrong(suite):
    """A file that cannot be played is an error of its collection, with its place and no traceback."""
    (suite.path / "scenarios/scenario.yaml").write_text("rules: ../rules.yaml\nexpect: {shp: {}}")
    result = run(suite, "--sync-rules")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["scenarios/scenario.yaml:2:10 · expect · shp", "  no table 'shp'*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_plugin_finds_files_of_other_names_when_told(suite):
    """`sync_rules_files` says what scenario files are called."""
    suite.makeini("[pytest]\nsync_rules_files = story-*.yaml\naddopts = --sync-rules")
    (suite.path / "scenarios/scenario.yaml").rename(suite.path / "scenarios/story-one.yaml")
    run(suite, "scenarios").assert_outcomes(passed=len(VARIANTS))


# ---------------------------------------------------------------- fixtures


def record_monday(folder: Path) -> None:
    """Record a user, an order, and the user's new name."""
    tape = Tape(parse_rules(RULES))
    tape.put("shop", user_item("1", name=s("Ada")), order_item("1", "1"), user_item("1", name=s("Bea")))
    lines(folder / "monday.jsonl", tape.bodies)


MUTANT = """
import sync_rules.lab.rehearsal as rehearsal
from sync_rules.pipeline.reconcile import Report

def test_mutant(replay, monkeypatch):
    monkeypatch.setattr(Report, "fail", lambda *given: None)
    for seed in range(10):
        replay("monday.jsonl", "rules.yaml", ["throttled"], seed=seed)
"""


def test_replay_fixture_fails_with_the_first_difference(suite):
    """A pipeline that swallows failures fails the replay, which prints the difference without a traceback."""
    record_monday(suite.path)
    suite.makepyfile(MUTANT)
    result = run(suite)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["monday.jsonl: *shop?USER#1, ORDER#1? user_name*rule names*throttled*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_replay_fixture_does_not_pass_on_nothing(suite):
    """A recording without records of the tables of the rules proves nothing."""
    (suite.path / "monday.jsonl").write_text("")
    suite.makepyfile("def test_monday(replay): replay('monday.jsonl', 'rules.yaml')")
    result = run(suite)
    result.stdout.fnmatch_lines(["*monday.jsonl: expected records of the tables of the rules, found none*"])


MOCKED = """
import boto3
import pytest
from moto import mock_aws
from sync_rules.write import Rules

@pytest.fixture
def rules():
    return Rules.load("rules.yaml")

@pytest.fixture
def client():
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
        keys = [("PK", "HASH"), ("SK", "RANGE")]
        client.create_table(TableName="shop", BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys])
        yield client
"""


@pytest.mark.parametrize("place", [".", "deep"], ids=["root", "below"])
def test_fixtures_work_as_the_page_shows_them(suite, place):
    """The tests of docs/testing.md run as they stand there. Files are found beside the test, or from the root."""
    page = (ROOT / "docs/testing.md").read_text()
    record_monday(suite.path)
    suite.makeconftest(MOCKED)
    (suite.path / place).mkdir(exist_ok=True)
    for name, code in zip(("first", "requests"), page.split("```python\n")[1:], strict=True):
        (suite.path / place / f"test_{name}.py").write_text(code.split("```", 1)[0])
    run(suite).assert_outcomes(passed=len(VARIANTS) + 3)


def test_page_names_what_the_engine_has():
    """Every method of the fixture, and no other."""
    named = (ROOT / "docs/testing.md").read_text().partition("With plain Python values it has ")[2].partition(".")[0]
    assert set(re.findall(r"`(\w+)`", named)) == {name for name in vars(PlainRehearsal) if name[0] != "_"}


# ---------------------------------------------------------------- what it costs
def test_plugin_imports_nothing_until_it_is_used(suite):
    """An installed plugin that is not used imports three small modules and no more."""
    suite.makepyfile("""
        import sys

        def test_modules(request):
            ours = {name for name in sys.modules if name.split(".")[0] == "sync_rules"}
            assert ours == {"sync_rules", "sync_rules.lab", "sync_rules.lab.pytest_plugin"}
            assert not {"boto3", "pydantic", "ruamel.yaml"} & sys.modules.keys()
            plugin = sys.modules["sync_rules.lab.pytest_plugin"]
            assert {name for name in vars(plugin) if name.startswith("pytest_")} == {"pytest_addoption", "pytest_configure"}
    """)
    run_apart(suite).assert_outcomes(passed=2)


def test_plugin_comes_with_the_package(suite, monkeypatch):
    """The package's entry point loads the plugin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    metadata = suite.mkdir("sync_rules-0.0.0.dist-info")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sync-rules\nVersion: 0.0.0\n")
    points = "".join(f"{name} = {value}\n" for name, value in project["entry-points"]["pytest11"].items())
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{points}")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(suite.path), str(ROOT)]))
    result = suite.runpytest_subprocess("--sync-rules")
    result.assert_outcomes(passed=len(VARIANTS) + 1)
    suite.runpytest_subprocess("--sync-rules", "-p", "no:sync-rules").stderr.fnmatch_lines(
        ["*unrecognized*--sync-rules*"]
    )
