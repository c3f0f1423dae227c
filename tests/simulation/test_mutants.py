"""Each invariant is removed once: some oracle must notice, within 5,000 histories."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from unittest.mock import patch

import pytest

from sync_rules.rules.kinds import embed
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants_work import second_look_too_early
from tests.simulation.runs import failures, play_seed

HISTORIES_MAX = 5_000
SEED = 1_000_000  # fixed: whether a mutant is caught must not be a matter of luck
# The number of the history that caught a mutant when last searched, where that was a long search. It is tried first; if it
# catches no more, all histories are searched. `python -m tests.simulation --mutants --seed 1000000` lists them anew.
CAUGHT_BY = json.loads((Path(__file__).parent / "caught.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name):
    """Without the invariant, some history within 5,000 diverges; with the invariant, the same history does not."""
    mutation = MUTANTS[name]
    with mutation.mutant():
        known = CAUGHT_BY.get(name, 0)
        likely = failures(known, SEED, mutation.pairs, first=max(known - 1, 0))
        failed = next(chain(likely, failures(HISTORIES_MAX, SEED, mutation.pairs)), None)
    assert failed is not None, f"no oracle noticed: {name}"
    assert "Traceback" not in failed.reason, "an error of the mutant's own is no proof"
    print(f"{name}: history {failed.seed - SEED + 1}, {failed.oracle}/{failed.configuration}")
    assert play_seed(failed.oracle, failed.configuration, failed.seed) is None


def test_second_look_may_be_asked_for_early():
    """A second look queued after the first page converges too, because its targets were attached before the listing.

    Only a second look that is never queued is a fault.
    """
    with second_look_too_early():
        assert not list(failures(300, SEED, (("O1", "index"), ("O1", "two-index"))))


def test_maps_of_many_entries_converge_too():
    """A map with more differing entries than one condition can hold is written whole and converges; here every map is."""
    pairs = (
        ("O1", "embed"),
        ("O1", "embed-index"),
        ("O4", "embed-index-oldest"),
        ("O6", "embed-index"),
        ("O1", "mixed"),
    )
    with patch.object(embed, "ENTRIES_MAX_WRITES", 0):
        assert not list(failures(300, SEED, pairs))
