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

RECORD = {
    "eventName": "MODIFY",
    "eventSourceARN": "arn:aws:dynamodb:eu-central-1:1:table/shop/stream/x",
    "dynamodb": {
        "SequenceNumber": "1",
        "Keys": {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}},
        "OldImage": {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}, "name": {"S": "Ada"}},
        "NewImage": {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}, "name": {"S": "Bea"}},
    },
}
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
    """Beside the scenarios, a record and failures."""
    (played / "record.json").write_text(json.dumps(RECORD))
    (played / "failures.jsonl").write_text(f"{json.dumps(FAILURE)}\n{json.dumps(FAILURE)}\n")
    return played


@pytest.fixture
def run(capsys):
    """Runs a command line; gives its code, what it printed, and what it said on stderr."""

    def run(line: str) -> tuple[int, str, str]:
        code = main.main(line.split())
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.parametrize(
    "line",
    ["test scenarios --seed 1", "explain --record record.json", "failures --file failures.jsonl", "test nowhere"],
)
def test_json_is_the_list_of_the_lines(folder, run, line):
    """--format json prints one document, with the lines of --format jsonl; a mistake prints neither."""
    code, lines, said = run(f"{line} --format jsonl")
    also, document, also_said = run(f"{line} --format json")
    assert (code, said) == (also, also_said)
    assert [json.loads(one) for one in lines.splitlines()] == (json.loads(document) if document else [])
    assert document or code == 2


def test_a_dash_is_standard_input(folder):
    """A rules file, and a record, from a pipe. `run` reads it once too: it looks for changes of files alone."""
    for words in (["check", "-"], ["graph", "-"], ["explain", "--record", "-"]):
        text = json.dumps(RECORD) if "--record" in words else RULES
        done = subprocess.run(
            [sys.executable, "-m", "sync_rules", *words], input=text, capture_output=True, text=True, check=False,
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


class TestFormsOfCheck:
    """`check --format`: the same problems as JSON and as annotations of a pull request."""

    @pytest.fixture
    def broken(self, folder, run):
        (folder / "rules.yaml").write_text(RULES.replace("user.name", "usr.name"))
        code, out, _ = run("check --format json")
        assert code == 1
        return json.loads(out)

    def test_github(self, broken, run):
        """Each problem is one line, whatever its message holds."""
        _, out, _ = run("check --format github")
        lines = [line for line in out.splitlines() if line.startswith("::")]
        assert len(lines) == len(broken)
        for line, problem in zip(lines, broken, strict=True):
            place = f"::{problem['severity']} file=rules.yaml,line={problem['line']},col={problem['column']},title={problem['code']}::"
            assert line.startswith(place)
