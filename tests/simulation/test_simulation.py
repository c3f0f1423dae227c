"""Histories of random rules files and of the worlds: every item ends up as the oracle says, and verify, backfill and
replay agree.

`SIM_HISTORIES` sets their number with random rules (50; 500 with `DEEP_TESTS=1`), `SIM_FIRST` the number of the first;
one is played in one of nine worlds, or three in each. `.ci/run` plays 3,000 others. The same ones each time, so that a change decides
and not luck: `make soak` plays new ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.choices import given
from tests.simulation.grammar import made, made_of, written
from tests.simulation.history import FAULTS
from tests.simulation.mutants import applied
from tests.simulation.runs import (
    HISTORIES_PER_FILE,
    failures,
    failures_in,
    kind_of,
    play,
    play_given,
    play_number,
    shorter,
    story_of,
)
from tests.simulation.workload import OPERATIONS
from tests.simulation.worlds import ALL
from tests.support.depth import deep, take_share

HISTORIES = int(os.environ.get("SIM_HISTORIES", "500" if os.environ.get("DEEP_TESTS") else "50"))
SHARES = 4  # so that several processes play them
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))
GUARDS = ("copy", "link or where", "existence", "absence", "books", "check: source is gone", "check: source changed or came back")  # fmt: skip
KINDS = (
    "copy",
    "embed",
    "collect",
    "derive",
    "path",
    "mirror",
    "history",
    "count",
    "sum",
    "mean",
    "min",
    "max",
    "values",
    "call",
)


def explained(failed):
    """A failure with its story, shortened as far as it goes."""
    return f"{failed}\n{story_of(shorter(failed))}"


@pytest.mark.parametrize("share", range(SHARES))
def test_simulation_finds_no_divergence(share):
    """No history of any rules file diverges, whatever the seed. A failure names its number and prints its story."""
    first = int(os.environ.get("SIM_FIRST", "0"))
    first += share * HISTORIES // SHARES
    failed = next(failures(first - first % HISTORIES_PER_FILE, HISTORIES // SHARES), None)
    assert failed is None, explained(failed)


@pytest.mark.parametrize("share", range(SHARES))
def test_simulation_finds_no_divergence_in_worlds(share):
    """No history diverges in any world, with any work beside the handlers."""
    worlds = take_share(take_share(ALL))[share::SHARES]
    failed = next(failures_in(worlds, 0, len(worlds) * deep(3)), None)
    assert failed is None, explained(failed)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_simulation_stay_free_of_what_was_found(path):
    """Histories that once failed, with their rules files, as short as they could be made, fail no more."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert play_given(stored.get("rules", ""), stored["choices"], world=stored.get("world", "")) == ""


@pytest.mark.night
def test_simulation_is_deterministic():
    """The same numbers give the same files and histories, request by request, whatever Python's hash seed is."""
    command = [sys.executable, "-m", "tests.simulation", "--hash", "--histories", "40", "--seed", "100"]
    digests = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_simulation_is_accepted():
    """`check` accepts what the grammar writes; where it does not, the grammar is poor, or something else is."""
    problems = [problem for number in range(100) for problem in made_of(written(number).text())[1]]
    unsaid = [problem for problem in problems if problem.code == "SR217"]
    assert unsaid, "an index that may leave out items is refused"
    assert len(problems) - len(unsaid) <= 8, problems


@pytest.mark.night
def test_simulation_races_and_covers_what_it_claims():
    """Every kind, operation, fault and check occurs, and each sort of guard is refused: what never races finds nothing."""
    seen = Counter()
    wanted = {("kind", kind) for kind in KINDS} | {("operation", name) for name in OPERATIONS}
    wanted |= {("fault", fault) for fault in FAULTS} | {("refused", guard) for guard in GUARDS}
    wanted |= {
        ("damage", "done"),
        ("damage", "books"),
        ("damage", "meanwhile"),
        ("page", "short"),
        ("mode", "prompt"),
        ("mode", "impatient"),
        ("mode", "slow"),
        ("record", "filtered"),
        ("verify", "stuck"),
        ("verify", "orphan"),
    }
    wanted |= {
        ("message", "PushMessage"),
        ("message", "ChunkMessage"),
        ("message", "CallMessage"),
        ("message", "parked"),
        ("version", "deployed"),
        ("transact", "made"),
        ("transact", "left"),
        ("transact", "cancelled"),
        ("transact", "alone"),
        ("errand", "done"),
        *((kind, what) for kind in ("backfill", "verify", "redrive") for what in ("died", "done")),
        *((kind, "died") for kind in ("follow", "fresh")),
        ("fresh", "answered"),
        ("follow", "left"),
        ("follow", "left nothing"),
        ("follow", "alone"),
        ("page", "old"),
        ("record", "lost"),
        ("clock", "behind"),
    }
    for first in range(0, 6_000, HISTORIES_PER_FILE):
        for number in (first, first + 1, first + 2):
            play_number(number, seen=seen)  # divergence is left to the other tests
        if not (rare := {what: seen[what] for what in wanted if not seen[what]}):
            return
    raise AssertionError(f"never seen: {rare}")


def test_simulation_of_the_plainest_choices_is_quiet():
    """0 is the plainest choice: histories of nothing but zeros have no faults and no divergence, whatever the rules."""
    for number in range(5):
        assert play(made(number), given({})) == ""


@pytest.mark.night
def test_simulation_shrinks_failures_and_tells_their_story():
    """A failure is replayed from its rules and choices alone, gets shorter, and ends with what was wrong."""
    with applied("no pull on insert"):
        failed = next(failures(0, 1_000))
        short = shorter(failed, replays_max=25)
        story = story_of(short)
    assert sum(map(len, short.choices.values())) < sum(map(len, failed.choices.values()))
    assert len(short.text) <= len(failed.text)
    assert story.endswith(short.reason)
    assert kind_of(short.reason) == kind_of(failed.reason)
