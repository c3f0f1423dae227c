"""The models are those of the page and of ARCHITECTURE: each invariant has a line, and each line a counterexample."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from tests.models.__main__ import HERE, MARK, PAGE, check, compute_digest, instances, models
from tests.test_house import ROOT

ROWS = re.findall(
    r"^\| ([^|]+) \| [^|]+\|$", (ROOT / "ARCHITECTURE.md").read_text().partition("## Invariants")[2], re.MULTILINE
)[2:]


@pytest.mark.parametrize("row", ROWS)
def test_models_have_a_line_for_each_invariant(row):
    """Every row of the table of invariants is a line of a model."""
    assert any(row.startswith(one.row) for one in instances() if one.line)


@pytest.mark.parametrize("model", models())
def test_models_have_the_lines_that_are_removed(model):
    """A line of models.toml is a macro of its model, and each such macro is removed once."""
    macros = set(
        re.findall(
            r"\b(NO_\w+|TWO_RULES|NEW_NAMES|COMPARE_COPY|PARTS_OF_IDS|SWEEP_AS_IS)\b",
            (HERE / f"{model}.pml").read_text(),
        )
    )
    assert macros == {one.line for one in instances() if one.model == model and one.line}


def test_models_page_was_written_of_these_models():
    """The page names each line that is removed, and has the digest of a run that checked every model."""
    text = PAGE.read_text()
    assert all(f"**Without `{one.line}`** ({one.row})" in text for one in instances() if one.line)
    assert f"{MARK}{compute_digest()} -->" in text, "run `.venv/bin/python -m tests.models --page`"


@pytest.mark.night
@pytest.mark.parametrize("one", [one for one in instances() if one.model == "rules"], ids=lambda one: one.name)
def test_models_hold_or_are_refuted(one):
    """Spin checks the smallest model; `make proofs` checks all."""
    if shutil.which("spin") is None and not os.environ.get("REQUIRE_ENGINES"):
        pytest.skip("spin is not installed")
    assert (check(one).steps is not None) == bool(one.line)
