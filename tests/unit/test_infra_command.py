"""`sync-rules infra`: what it writes, checks and prints."""

from __future__ import annotations

import shutil

import pytest

from sync_rules import cli
from tests.test_house import ROOT


@pytest.fixture
def template(tmp_path, monkeypatch):
    """The repo's template and an example beside it."""
    shutil.copy(ROOT / "template.yaml", tmp_path)
    for example in ("organisations-users-tickets", "game-players"):
        place = tmp_path / "examples" / example
        place.mkdir(parents=True)
        shutil.copy(ROOT / "examples" / example / "rules.yaml", place)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "template.yaml"


def test_infra_check_of_the_noted_rules_file_is_well(template, capsys):
    """Nothing differs, nothing is said, nothing is written."""
    before = template.read_bytes()
    assert cli.main(["infra", "--check"]) == 0
    assert capsys.readouterr().out == ""
    assert template.read_bytes() == before


def test_infra_check_shows_each_block_that_differs_and_writes_nothing(template, capsys):
    """A changed rules file makes it exit with 1."""
    rules = template.parent / "examples/organisations-users-tickets/rules.yaml"
    rules.write_text(rules.read_text().replace("desk:  ", "desks: ").replace("table: desk", "table: desks"))
    before = template.read_bytes()
    assert cli.main(["infra", "--check"]) == 1
    shown = capsys.readouterr()
    assert "+  DesksStreamArn:" in shown.out
    assert "parameters, conditions, streams, tables" in shown.err
    assert template.read_bytes() == before


def test_infra_writes_the_template_of_another_rules_file_and_notes_it(template, capsys):
    """From then on that file is the one it is for; outside of the blocks nothing changed."""
    before = template.read_text()
    mode = template.stat().st_mode
    assert cli.main(["infra", "--rules", "examples/game-players/rules.yaml"]) == 0
    assert "is now that of examples/game-players/rules.yaml" in capsys.readouterr().out
    assert "SyncRules: {Rules: examples/game-players/rules.yaml}" in template.read_text()
    assert template.stat().st_mode == mode
    assert cli.main(["infra", "--check"]) == 0
    assert cli.main(["infra", "--rules", "examples/organisations-users-tickets/rules.yaml"]) == 0
    assert template.read_text() == before
    assert cli.main(["infra"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_infra_iam_prints_each_role_and_why(template, capsys):
    """What each function may do; with --explain, for which rule."""
    assert cli.main(["infra", "iam"]) == 0
    plain = capsys.readouterr().out
    assert "StreamRole" in plain
    assert cli.main(["infra", "iam", "--explain"]) == 0
    explained = capsys.readouterr().out
    assert "open-tickets" in explained
    assert len(explained) > len(plain)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--template", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["--rules", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["--explain"], "--explain is for"),
        (["iam", "--check"], "--check is for"),
    ],
    ids=["no-template", "no-rules", "explain", "check"],
)
def test_infra_mistakes_are_told(template, arguments, told, capsys):
    """With exit code 2 and a sentence."""
    assert cli.main(["infra", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_infra_with_a_block_missing_writes_nothing(template, capsys):
    """The error names the file and the mark to put there."""
    text = template.read_text().replace("# >>> sync-rules: alarms", "#").replace("# <<< sync-rules: alarms", "#")
    template.write_text(text)
    assert cli.main(["infra"]) == 2
    assert "template.yaml: no block alarms. Put `# >>> sync-rules: alarms`" in capsys.readouterr().err
    assert template.read_text() == text
