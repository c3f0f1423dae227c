"""`make conformance`: scores from a report of the suite, the facts that an engine lacks, and the stored scores."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest

from sync_rules.extras.proof.probe import ASSUMPTIONS
from tests.facts import conformance

RELIED_ON = sorted(name for one in ASSUMPTIONS.values() for name in one.asserted)
STORED = json.loads(conformance.SCORES.read_text())


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command on a suite that reports these statuses. Returns its exit code and what it prints."""

    def running(statuses):
        files: dict[str, list[dict[str, str]]] = {}
        for name, status in statuses.items():
            file, _, title = name.partition(": ")
            files.setdefault(f"/x/tests/{file}.test.ts", []).append({"title": title, "status": status})
        results = {"testResults": [{"name": name, "assertionResults": tests} for name, tests in files.items()]}
        (tmp_path / "fixed.json").write_text(json.dumps(results))
        runner = tmp_path / "node_modules/.bin/vitest"
        runner.parent.mkdir(parents=True)
        runner.write_text(
            '#!/bin/sh\ntest "$DYNAMODB_ENDPOINT" = http://engine || exit 1\ncp fixed.json "${3#*=}"\nexit 1\n'
        )
        runner.chmod(0o755)

        @contextmanager
        def started(name):
            yield "http://engine"

        monkeypatch.setattr(conformance, "started", started)
        return conformance.main([str(tmp_path), "--engine", "ministack"]), capsys.readouterr().out

    return running


def test_conformance_names_the_facts_that_an_engine_lacks(run):
    """A failed test that shows a fact: exit code 1, its number. Skipped tests do not pass."""
    statuses = dict.fromkeys(RELIED_ON, "passed") | {ASSUMPTIONS[31].asserted[0]: "failed", "tier1/x: y": "pending"}
    code, out = run(statuses)
    assert code == 1
    assert f"{len(RELIED_ON) - 1} of {len(RELIED_ON) + 1} (" in out
    assert "it lacks fact 31: " in out
    assert "failed tier1/x: y" in out


@pytest.mark.parametrize("engine", STORED["engines"])
def test_conformance_engines_differ_in_the_words_of_errors_alone(engine):
    """The page says so: no engine fails a test that shows a fact, or one about what requests do."""
    found = STORED["engines"][engine]
    assert conformance.list_broken_facts(found) == found["unknown"] == []
    assert {name.split("/")[1] for name in found["failed"]} <= {"error-messages", "validation-ordering"}
