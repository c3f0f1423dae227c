"""The GitHub Action: its script, run as GitHub runs it, with the installation replaced by this package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.unit.lab.test_trial import RULES, SCENARIO

ROOT = Path(__file__).parents[3]
ACTION = YAML(typ="safe").load((ROOT / "action.yml").read_text())
(STEP,) = ACTION["runs"]["steps"]


@pytest.fixture
def project(tmp_path) -> Path:
    """A repository with rules and a scenario."""
    folder = tmp_path / "project"
    (folder / "scenarios/rename").mkdir(parents=True)
    (folder / "rules.yaml").write_text(RULES)
    (folder / "scenarios/rename/scenario.yaml").write_text(f"rules: ../../rules.yaml{SCENARIO}")
    return folder


def run(project: Path, **inputs: str) -> tuple[int, str, str]:
    """The step's exit code, log and report."""
    work = project.parent / "runner"
    commands = work / "sync-rules/bin"
    commands.mkdir(parents=True, exist_ok=True)
    (commands / "sync-rules").write_text(f'#!/bin/sh\nexec {sys.executable} -m sync_rules "$@"\n')
    (commands / "pip").write_text(f'#!/bin/sh\necho "$@" >>{work}/installed\n')
    (python := work / "python").write_text("#!/bin/sh\n")
    for path in (*commands.iterdir(), python):
        path.chmod(0o755)
    given = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs | {"python": str(python)}
    names = {
        name: given[text.split(".")[1].split("}")[0].strip()] for name, text in STEP["env"].items() if "inputs." in text
    }
    runner = {
        "RUNNER_TEMP": work,
        "GITHUB_STEP_SUMMARY": work / "summary",
        "GITHUB_OUTPUT": work / "output",
        "ACTION": ROOT,
    }
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **names, **{name: str(one) for name, one in runner.items()}}
    for name in ("summary", "output"):
        (work / name).unlink(missing_ok=True)
    done = subprocess.run(["bash", "-c", STEP["run"]], cwd=project, env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    report = Path((work / "output").read_text().strip().removeprefix("report=")).read_text()
    assert (work / "summary").read_text() == report
    return done.returncode, done.stdout + done.stderr, report


def test_broken_rules_are_annotated_and_fail(project):
    """The job fails, the problem stands at its line, and the other checks are made all the same."""
    (project / "rules.yaml").write_text(RULES.replace("user.name", "usr.name"))
    code, log, report = run(project)
    assert code == 1
    assert "::error file=rules.yaml,line=" in log
    assert "check: **failed**" in report
    assert "scenarios: **failed**" in report


def commands(log: str) -> list[str]:
    """The lines of a log that GitHub would obey, in its two forms."""
    stopped, found = "", []
    for line in log.splitlines():
        if stopped:
            stopped = "" if line.strip() == f"::{stopped}::" else stopped
        elif line.lstrip().startswith("::stop-commands::"):
            stopped = line.strip().removeprefix("::stop-commands::")
        elif line.lstrip().startswith("::") or "##[" in line:
            found.append(line)
    return found


@pytest.mark.night
def test_names_are_no_commands_and_end_no_block(project):
    """GitHub obeys annotations alone, and each line of an output is code in the report, whatever is in a name."""
    bad = "\\n::error::pwned ##[error]pwned\\n~~~~~~\\n</details>"
    hostile = f"patterns: {{p: {{get: order, by: [order_id], where: \"user_name == '{bad}'\"}}}}\n"
    (project / "rules.yaml").write_text(RULES.replace("user.name", f'usr."{bad}"'.replace('"', "'")) + hostile)
    _, log, report = run(project)
    assert all(re.match("::(error|warning) file=rules.yaml,line=", line) for line in commands(log)), commands(log)
    (project / "rules.yaml").write_text(RULES + hostile)
    _, log, report = run(project)
    assert "##[error]pwned" in log
    assert all(line.startswith("::warning file=rules.yaml,line=") for line in commands(log)), commands(log)
    assert all(line.startswith("    ") for line in report.splitlines() if "pwned" in line or "~~~" in line)
    assert report.count("<details>") == report.count("</details>\n")


@pytest.mark.night
def test_a_plan_that_cannot_be_made_fails(project, monkeypatch):
    """Without a table to read there is no plan, and the report says where to look."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    code, _, report = run(project, plan="true", region="eu-central-1")
    assert code == 1
    assert "The plan failed" in report
