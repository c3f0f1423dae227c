"""The folder that several commands are tried on, and a command line in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sync_rules.cli import main
from tests.unit.cli.command_line import CommandLine
from tests.unit.lab.test_trial import RULES, SCENARIO


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, being where the user is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(
    request: pytest.FixtureRequest, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """The `Command` of a test's module, there."""
    return request.module.Command(monkeypatch, capsys)


@pytest.fixture
def played(here: Path) -> Path:
    """The folder with two scenarios for one rules file."""
    (here / "rules.yaml").write_text(RULES)
    for name in ("rename", "marry"):
        (here / "scenarios" / name).mkdir(parents=True)
        (here / "scenarios" / name / "scenario.yaml").write_text(f"rules: ../../rules.yaml{SCENARIO}")
    return here


@pytest.fixture
def run(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command there; gives its exit code, what it printed, and what it said on stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main.main(words)
        return code, *capsys.readouterr()

    return run
