"""`sync-rules infra`: what it writes, checks and prints."""

from __future__ import annotations

import shutil

import pytest

from sync_rules.cli import main
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


def test_infra_check_shows_each_block_that_differs_and_writes_nothing(template, capsys):
    """A changed rules file makes it exit with 1."""
    rules = template.parent / "examples/organisations-users-tickets/rules.yaml"
    rules.write_text(rules.read_text().replace("desk:  ", "desks: ").replace("table: desk", "table: desks"))
    before = template.read_bytes()
    assert main.main(["infra", "--check"]) == 1
    shown = capsys.readouterr()
    assert "+  DesksStreamArn:" in shown.out
    assert "parameters, conditions, environment, streams, tables" in shown.err
    assert template.read_bytes() == before


def test_infra_writes_the_template_of_another_rules_file_and_notes_it(template, capsys):
    """`infra --rules` regenerates the template's blocks and notes the rules file in the template."""
    before = template.read_text()
    mode = template.stat().st_mode
    assert main.main(["infra", "--rules", "examples/game-players/rules.yaml"]) == 0
    assert "updated template.yaml from examples/game-players/rules.yaml" in capsys.readouterr().out
    assert "SyncRules: {Rules: examples/game-players/rules.yaml}" in template.read_text()
    assert template.stat().st_mode == mode
    assert main.main(["infra", "--check"]) == 0
    assert main.main(["infra", "--rules", "examples/organisations-users-tickets/rules.yaml"]) == 0
    assert template.read_text() == before
    assert main.main(["infra"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_infra_iam_prints_each_role_and_why(template, capsys):
    """`infra iam` prints what each function may do; --explain adds the rule that needs it."""
    assert main.main(["infra", "iam"]) == 0
    plain = capsys.readouterr().out
    assert "StreamRole" in plain
    assert main.main(["infra", "iam", "--explain"]) == 0
    explained = capsys.readouterr().out
    assert "open-tickets" in explained
    assert len(explained) > len(plain)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--template", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["--rules", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["--explain"], "--explain needs"),
        (["iam", "--check"], "--check cannot be given"),
    ],
    ids=["no-template", "no-rules", "explain", "check"],
)
def test_infra_mistakes_are_told(template, arguments, told, capsys):
    """With exit code 2 and a sentence."""
    assert main.main(["infra", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_infra_leaves_a_template_that_is_read_only(template, capsys):
    """A read-only template is not written; --check still works."""
    before = template.read_bytes()
    template.chmod(0o444)
    assert main.main(["infra", "--check"]) == 0
    assert main.main(["infra", "--rules", "examples/game-players/rules.yaml"]) == 2
    assert "template.yaml is read-only" in capsys.readouterr().err
    assert template.read_bytes() == before


def test_infra_warns_of_a_time_to_live_of_a_table_without_rules(template, capsys):
    """A Time to Live is part of the template, but for a table that the stack does not create."""
    rules = template.parent / "examples/organisations-users-tickets/rules.yaml"
    ttl = "ttl: gone_at"
    text = rules.read_text().replace("  desk:   {", f"  desk: {{{ttl}, ", 1)
    assert text != rules.read_text()
    rules.write_text(text.replace("tables:\n", f"tables:\n  idle: {{key: {{id: S}}, {ttl}}}\n", 1))
    assert main.main(["infra", "--check"]) == 1
    shown = capsys.readouterr()
    assert "AttributeName: gone_at" in shown.out
    assert "idle, so the stack does not create it" in shown.err
    assert shown.err.count("no rule follows table") == 1
    assert main.main(["infra"]) == 0
    assert main.main(["infra", "--check"]) == 0


def test_infra_names_the_rules_that_a_strongly_consistent_global_table_refuses(template, capsys):
    """A global table of the template with MultiRegionConsistency STRONG: each rule of it that needs transactions."""
    table = """
  Everywhere:
    Type: AWS::DynamoDB::GlobalTable
    Properties:
      TableName: !Sub ledger
      MultiRegionConsistency: STRONG
"""
    template.write_text(template.read_text().replace("\nResources:\n", f"\nResources:{table}", 1))
    assert main.main(["infra", "--check"]) == 0
    warned = [line for line in capsys.readouterr().err.splitlines() if "strong multi-Region consistency" in line]
    assert [line.partition("rule ")[2].partition(" ")[0] for line in warned] == ["open-tickets"]
