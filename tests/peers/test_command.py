"""`python -m tests.peers`: a table, and an exit code that says whether everything passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers import __main__
from tests.peers.stories import GATHERED, HEAD, STORY, WRONG


def test_command_exits_1_when_a_scenario_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table names the first difference, and the exit code says that something failed."""
    (tmp_path / "wrong.yaml").write_text(HEAD + WRONG["value"])
    assert __main__.main([str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "posts q name: expected 'Ann', found 'Anna'" in shown
    assert "1 failed" in shown


def test_command_exits_0_when_all_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every scenario has its line, and there is a total."""
    (tmp_path / "a.yaml").write_text(HEAD + STORY)
    (tmp_path / "b.yaml").write_text(GATHERED)
    assert __main__.main([str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "JAW" in shown
    assert "2 passed, 0 not translated, 0 failed" in shown


def test_command_says_what_is_not_translated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rule that cannot be translated, or a scenario that cannot be read, is no failure, and the others are played."""
    odd = "{table: users, attr: posts, agg: median, path: [{from: posts, 'on': user_id}]}"
    (tmp_path / "a.yaml").write_text((HEAD + STORY).replace("  initial:", f"  - {odd}\n  initial:"))
    (tmp_path / "b.yaml").write_text(
        HEAD.replace("TOOTH", "GOOD") + STORY + "- {id: GAP, tables: {}, steps: [{put: 7}]}\n"
    )
    assert __main__.main([str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "TOOTH not translated agg: median" in shown
    assert "GAP not translated not of the scenario format" in shown
    assert "1 passed, 2 not translated, 0 failed" in shown


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_command_has_help(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Help is no directory."""
    assert __main__.main([word]) == 0
    assert "usage: python -m tests.peers DIR" in capsys.readouterr().out


@pytest.mark.parametrize("text", [None, "scenarios: []", "a: ["])
def test_command_exits_2_when_there_is_nothing_to_run(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory without scenarios, or a file that is none, is the user's mistake and is said."""
    if text is not None:
        (tmp_path / "bad.yaml").write_text(text)
    assert __main__.main([str(tmp_path)]) == 2
    assert str(tmp_path) in (err := capsys.readouterr().err) or "bad" in err
