"""The folder that several commands are tried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lab.test_trial import RULES, SCENARIO


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two scenarios for one rules file, being where the user is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(RULES)
    for name in ("rename", "marry"):
        (tmp_path / "scenarios" / name).mkdir(parents=True)
        (tmp_path / "scenarios" / name / "scenario.yaml").write_text(f"rules: ../../rules.yaml{SCENARIO}")
    return tmp_path
