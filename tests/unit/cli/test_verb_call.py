"""Habits of the command line that every verb has: -h, --rules, --format json and --format jsonl, `-`, completion, --version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sync_rules.cli import main
from tests.unit.lab.test_trial import RULES

FAILURE = {
    "failure": {
        "rule": "r",
        "target": {"table": "shop", "key": {"PK": "1"}},
        "reason": "x",
        "at": "2026-01-01T00:00:00Z",
    }
}


@pytest.fixture
def folder(played: Path) -> Path:
    """Beside the scenarios, failures."""
    (played / "failures.jsonl").write_text(f"{json.dumps(FAILURE)}\n{json.dumps(FAILURE)}\n")
    return played


@pytest.mark.parametrize(
    "line",
    ["test scenarios --seed 1", "failures --file failures.jsonl", "test nowhere"],
)
def test_json_is_the_list_of_the_lines(folder, run, line):
    """--format json prints one document, with the lines of --format jsonl; a mistake prints neither."""
    code, lines, said = run(*line.split(), "--format", "jsonl")
    also, document, also_said = run(*line.split(), "--format", "json")
    assert (code, said) == (also, also_said)
    assert [json.loads(one) for one in lines.splitlines()] == (json.loads(document) if document else [])
    assert document or code == 2


def test_a_dash_is_standard_input(folder):
    """A rules file from a pipe. `run` reads it once too: it looks for changes of files alone."""
    for words in (["check", "-"], ["graph", "-"]):
        done = subprocess.run(
            [sys.executable, "-m", "sync_rules", *words], input=RULES, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done
        assert done.stdout


def test_completion_knows_verbs_and_the_options_of_one(monkeypatch, capsys):
    """In the form that bash asks in: all verbs that begin so, and the options of the verb that was typed."""
    monkeypatch.setenv(main.COMPLETING, "complete_bash")
    for words, place, expected in (
        ("sync-rules ver", "1", ["verify"]),
        ("sync-rules verify --re", "2", ["--repair", "--region", "--remote"]),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", place)
        main.main([])
        assert capsys.readouterr().out.split() == expected


def test_check_annotates_each_problem_in_a_line(played, run):
    """`check --format github`: the problems of `--format json`, each in one line, whatever its message holds."""
    (played / "rules.yaml").write_text(RULES.replace("user.name", "usr.name"))
    code, document, _ = run("check", "--format", "json")
    lines = [line for line in run("check", "--format", "github")[1].splitlines() if line.startswith("::")]
    assert code == 1
    for line, problem in zip(lines, json.loads(document), strict=True):
        place = f"file=rules.yaml,line={problem['line']},col={problem['column']},title={problem['code']}"
        assert line.startswith(f"::{problem['severity']} {place}::")
