"""Whole processes on an engine: nothing is wrong or lost under faults, and a planted fault is found."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.processes.report import END, NOT_FOUND, PAGE, table
from tests.processes.world import Plan, play
from tests.support.engines import ROOT

SHORT = {"seed": 3, "minutes": 0, "members": 10, "plots": 5, "patient": False}


@pytest.fixture
def engine_name(endpoints) -> str:
    """An engine that is there: each run starts its own, for its tables alone."""
    endpoints.of("dynoxide")
    return "dynoxide"


@pytest.mark.night
def test_processes_lose_nothing(engine_name, tmp_path):
    """A round with kills, cuts, delays, repeats and throttles ends with every copy right and every write there."""
    verdict = play(Plan(engine=engine_name, **SHORT), tmp_path / "world")
    assert verdict.findings == ()
    assert verdict.rounds == 1


@pytest.mark.night
def test_processes_with_a_fault_are_found(engine_name, tmp_path):
    """A planted fault is found in one round."""
    fault = "last record of a batch not delivered"
    assert play(Plan(engine=engine_name, fault=fault, **SHORT), tmp_path / "world").findings


def test_checker_imports_no_product():
    """The checker computes by itself: neither it nor what it imports is of the product."""
    program = "import sys, tests.processes.checker; print([m for m in sys.modules if m.startswith('sync_rules')])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_page_has_the_table():
    """docs/proof/processes.md has a row for each planted fault, and each was found."""
    assert table() + f"\n{END}" in PAGE.read_text()
    assert NOT_FOUND not in table()
