"""Counterexamples of models are those of the code with the same invariant removed, and of no other."""

from __future__ import annotations

import pytest

from tests.models.__main__ import PAGE, instances
from tests.models.replay import Replay, Table, traces
from tests.models.tables import NOT_PLAYED, TABLES, played
from tests.simulation.mutants import applied

LINES = [(table, line) for table in TABLES for line in table.mutants]


@pytest.mark.parametrize(("table", "line"), LINES, ids=[f"{table.model} {line}" for table, line in LINES])
def test_replay_of_a_counterexample_ends_wrongly_without_the_invariant_alone(table: Table, line: str):
    """The code can make each step of the trace, and ends as wrongly; with the invariant it never does."""
    trace = traces(table.model)[line]
    with applied(*table.without, table.mutants[line]):
        assert Replay(table, strict=True).play(trace)
    with applied(*table.without):
        assert not Replay(table, strict=False).play(trace)


def test_replay_names_each_counterexample():
    """A new line of a model is replayed, or listed with the reason why not."""
    lines = {(one.model, one.line) for one in instances() if one.line}
    assert {(table.model, line) for table, line in LINES} | NOT_PLAYED.keys() == lines


def test_page_says_what_is_played():
    """docs/proof/models.md has the number of counterexamples that are played, and why others are not."""
    assert played() in PAGE.read_text()
