"""Every example of `examples/`: its scenario holds on the embedded engine, under the pump, and verify agrees."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from sync_rules.adapters import aws
from sync_rules.audit.verifier import Verifier
from sync_rules.cli import main
from sync_rules.cli.commands import demo as command
from sync_rules.lab.demo.example import EngineScene, read_answers, replace_settle_seconds
from sync_rules.lab.scenario import list_wrong_answers, play
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.language.load import parse_rules
from sync_rules.language.problems import Problems
from sync_rules.language.yaml_source import read_document
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import select_rules
from tests.support import engines
from tests.support.created import create_tables
from tests.support.depth import spread_over_night
from tests.support.worlds import Parked

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/rules.yaml"))
KINDS = {"collect", "copy", "count", "derive", "embed", "history", "mirror", "path", "sum"}


def rules_of(folder: Path, prefix: str = "") -> Rules:
    """The example's rules, on tables of a test's own."""
    document = read_document((folder / "rules.yaml").read_text(), Problems())
    assert document is not None
    for name, table in document.data["tables"].items():
        table["name"] = prefix + name
    return parse_rules(json.dumps(document.data), str(folder))


@pytest.mark.parametrize("folder", spread_over_night(EXAMPLES), ids=lambda path: path.name)
def test_example_holds_on_the_engine(folder, engine, tmp_path):
    """After each step all is as the scenario has it, what read.py finds is what it says, and verify finds no drift."""
    rules = replace_settle_seconds(rules_of(folder, engines.unique_prefix()), 0)
    create_tables(aws.dynamodb(engine), rules)
    stage = EngineScene(rules, engine, tmp_path, folder)
    scenario = load_scenario(folder, rules)
    for _, wrong in play(scenario, stage):
        assert not wrong
    assert list(list_wrong_answers(scenario, read_answers(folder, rules, stage.client))) == []
    assert drift(rules, stage.pipeline.world) == []


def drift(rules: Rules, world: World) -> list:
    verifier = Verifier(rules, World(world.store, NULL_PORTS, Parked()), select_rules(rules, []), grace_seconds=0)
    findings = list(verifier.sweep())
    assert sum(map(verifier.tally.count_targets, select_rules(rules, []))) > 0
    return findings


def test_examples_show_the_kinds():
    """Together the examples have a rule of every kind in KINDS."""
    assert {rule.kind for folder in EXAMPLES for rule in rules_of(folder).rules.values()} == KINDS


# ---------------------------------------------------------------- the command
@pytest.fixture
def demo(engine, monkeypatch, capsys):
    """Runs `sync-rules demo` on the engine of the session; its tables are dropped in the end."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "40")  # of a terminal: in a pipe nothing is cut
    monkeypatch.setattr(command, "run_engine", lambda: nullcontext(SimpleNamespace(url=engine)))
    monkeypatch.setattr(command, "SETTLE_SECONDS", 0)
    monkeypatch.setattr(command, "GRACE_SECONDS", 0)
    client = aws.dynamodb(engine)
    before = set(client.list_tables()["TableNames"])

    def run(*arguments: str) -> tuple[int, str]:
        code = main.main(["demo", *arguments])
        return code, capsys.readouterr().out

    yield run
    for name in set(client.list_tables()["TableNames"]) - before:
        client.delete_table(TableName=name)


def test_demo_shows_an_example_by_name(demo):
    """Each step is a line with what it wrote, the reads are shown, and the last word is verify's."""
    code, out = demo("store-locations")
    assert code == 0
    line = next(line for line in out.splitlines() if line.startswith("a store moves to another city"))
    assert re.split(r"\s{2,}", line.strip())[1:3] == ["place-of-stores", "1"]
    assert line.rstrip().endswith("yes")
    assert re.search(r'^stores in Seattle +\["Pine Street"\]', out, re.MULTILINE)
    assert out.endswith("6 items checked, 0 drift: every copy is right\n")


def test_demo_says_what_did_not_hold(demo, tmp_path):
    """An expectation that fails is shown with its place, what was expected and found, and makes the exit code 1."""
    for name in ("rules.yaml", "data.yaml"):
        (tmp_path / name).write_text((ROOT / "examples/authors-and-books" / name).read_text())
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("expect:\n  books:\n    - {book_id: b3, author.name: Nobody}\n")
    code, out = demo(str(tmp_path))
    assert code == 1
    expected = (
        f'{scenario}:3:7 · load the data · books[b3] author.name\n  expected "Nobody"\n  found    "Tobias Quill"\n'
    )
    assert expected in out
    assert "0 drift" in out
