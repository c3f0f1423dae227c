"""docs/proof/tests.md: each row that the program writes is there, and each command exists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from tests.docs.counts import MEASURED, PAGE, counts, fault_lines, list_measured, read_faults
from tests.support.depth import spread_over_night
from tests.test_house import ROOT

TEXT = PAGE.read_text()
STORED = json.loads(MEASURED.read_text())
WORDS_MAX = 15
COMMANDS = re.findall(r"`((?:\.venv/bin/python|make|bash) [^`]+)`", " ".join(TEXT.split()))


def labels(name: str) -> list[str]:
    """The first cell of each row in a block."""
    block = TEXT.partition(f"<!-- counted: {name} -->")[2].partition("<!-- end -->")[0]
    return [line.split(" | ")[0].strip("| ") for line in block.splitlines() if line.startswith("| ")][1:]


@pytest.mark.night
def test_counts_page_has_each_row():
    """The page has the rows that `python -m tests.docs.counts` writes; their counts may be of an older commit."""
    assert labels("counts") == [label for label, _ in counts({}, STORED)]


def test_counts_page_has_the_measured_figures():
    """The measured figures are those of measured.json."""
    assert all(f"| {label} | {text} |" in TEXT for label, text in list_measured(**STORED))


def test_counts_page_has_a_section_for_each_method():
    """Each method of the table has a section, in the same order."""
    methods = labels("counts")[: labels("counts").index("all tests")]
    assert [heading for heading in re.findall(r"^## (.+)$", TEXT, re.MULTILINE) if heading in methods] == methods


def test_counts_page_has_the_faults_of_the_file():
    """The table of faults counts faults.toml as it is."""
    assert "\n".join(fault_lines()) in TEXT


def test_counts_faults_are_plain():
    """Each fault has a known class and method, and one short sentence; each class and method has a fault."""
    file = read_faults()
    assert {kind for _, kind, _, _, _ in file["faults"]} == file["classes"].keys()
    assert {by for _, _, by, _, _ in file["faults"]} == file["methods"].keys()
    for _, _, _, what, commit in file["faults"]:
        assert what.endswith("."), what
        assert len(what.split()) <= WORDS_MAX, what
        assert commit


@pytest.mark.parametrize("command", spread_over_night(COMMANDS))
def test_counts_page_names_commands_that_exist(command):
    """A target of make, a file, or a module of the tests that knows the options."""
    program, *words = shlex.split(command)
    if program == "make":
        assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif program == "bash":
        assert (ROOT / words[0]).exists()
    elif words[1] == "pytest":
        assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))
    else:
        done = subprocess.run(
            [sys.executable, *words[:2], "--help"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        assert all(word in done.stdout for word in words if word.startswith("--"))
