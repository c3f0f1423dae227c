"""Each invariant is removed once: the simulator must notice, within 2,000 histories."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest

from sync_rules.rules.kinds import embed
from tests.simulation.mutants import MUTANTS, caught
from tests.simulation.mutants_work import second_look_too_early
from tests.simulation.runs import failures_in, play_in
from tests.simulation.worlds import among, small
from tests.support.depth import spread_over_night

HISTORIES_MAX = 2_000
# The number of the history that caught each mutant when last searched. It is tried first; if it catches no more, all
# histories are searched. `python -m tests.simulation --mutants --seed 0` lists them again. Null: the replay of a model's
# counterexample in tests/models catches the mutant.
CAUGHT_BY = json.loads((Path(__file__).parent / "caught.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", spread_over_night((name for name, number in CAUGHT_BY.items() if number is not None), share=6)
)
def test_mutant_is_caught(name):
    """Without the invariant, some history diverges; with the invariant, the same history does not."""
    failed = caught(name, CAUGHT_BY[name], 1) or caught(name, 0, HISTORIES_MAX)
    assert failed is not None, f"nothing noticed: {name}"
    assert play_in(failed.world, failed.number) is None


def test_every_mutant_is_listed():
    """A new mutant is tried."""
    assert CAUGHT_BY.keys() == MUTANTS.keys()


@pytest.mark.night
def test_second_look_may_be_asked_for_early():
    """A second look queued after the first page converges too, because its targets were attached before the listing.

    Only a second look that is never queued is a fault.
    """
    with second_look_too_early():
        assert not list(failures_in(among("", "index", "two-index"), 0, 100))


@pytest.mark.night
def test_maps_of_many_entries_converge_too():
    """A map with more differing entries than one condition can hold is written whole and converges; here every map is."""
    with patch.object(embed, "ENTRIES_MAX_WRITES", 0):
        assert not list(failures_in((*small("", "embed"), *among("", "embed-index", "mixed")), 0, 100))
