"""The measurements of scale at a small size: memory stays flat, and a leak is noticed."""

from __future__ import annotations

import subprocess
import sys

from sync_rules.jobs.backfill import backfill_run as run
from tests.scale import memory
from tests.scale.killed import ROOT
from tests.scale.memory import GROWTH_MAX_MB, measure
from tests.scale.worlds import items

COUNT = 8_000


def test_scale_items_are_as_many_as_asked_for():
    """The shop has exactly the number of items requested, each with a key of its own."""
    for count in (1, 2, 100, 101, 102, 250):
        made = list(items(count))
        assert len({(item["PK"]["S"], item["SK"]["S"]) for item in made}) == len(made) == count


def test_scale_memory_stays_flat(tmp_path):
    """A backfill of a small shop makes the process grow by next to nothing, and puts every copy right."""
    found = measure(COUNT, tmp_path / "state.json")
    assert found.items == 2 * COUNT
    assert found.wrote > 1.9 * COUNT
    assert found.growth_mb < GROWTH_MAX_MB


def test_scale_memory_that_does_not_stay_flat_is_seen(tmp_path, monkeypatch):
    """The measurement notices a backfill that keeps memory for each page."""
    kept = []

    class Keeping(run.BackfillRun):
        def _take(self, page, store, totals):
            kept.append(bytearray(4 * memory.MB))
            super()._take(page, store, totals)

    monkeypatch.setattr(memory, "BackfillRun", Keeping)
    found = measure(COUNT, tmp_path / "state.json")
    assert found.growth_mb > GROWTH_MAX_MB


def test_scale_runs_as_a_command():
    """`python -m tests.scale` measures in processes of their own and says whether it holds."""
    command = [sys.executable, "-m", "tests.scale", "--items", "4000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert "the process grew by" in done.stdout, done.stderr
    assert "an item takes" in done.stdout
