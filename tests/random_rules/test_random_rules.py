"""Histories of random rules files: every item ends up as the oracle says, and verify, backfill and replay agree.

`RANDOM_HISTORIES` sets their number (166; 500 with `DEEP_TESTS=1`), `RANDOM_FIRST` the number of the first. `.ci/run` plays 2,000 others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.random_rules.grammar import made, made_of, written
from tests.random_rules.history import FAULTS
from tests.random_rules.mutants import MUTANTS, applied, caught
from tests.random_rules.runs import (
    HISTORIES_PER_FILE,
    failures,
    kind_of,
    play,
    play_given,
    play_number,
    shorter,
    story_of,
)
from tests.random_rules.workload import OPERATIONS
from tests.simulation.choices import given
from tests.support.depth import deep

HISTORIES = int(os.environ.get("RANDOM_HISTORIES", str(deep(500))))
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
    "min",
    "max",
    "values",
    "archive",
    "call",
)
# Mutants of each sort, with the number of the first history that caught it. That one is tried first; if it catches the
# mutant no more, all histories are searched. All: `python -m tests.random_rules --mutants`.
QUICK = {
    "delete from a pull": 50,
    "inputs of a derived attribute not guarded": 0,
    "full item blocks its shard": 5,
    "full item dropped": 54,
    "no park retry": 5,
    "no link guard": 157,
    "no existence guard": 55,
    "value from the image": 9,
    "no pull on link change": 64,
    "no push": 12,
    "last record of an item only": 5,
    "node not watched": 121,
    "where: what cannot be evaluated is false": 40,
    "default: none without a source": 40,
    "default: over what is kept": 181,
    "keep: nobody looks when a version came": 50,
    "books: mark ignored": 2,
    "books: mark set too early": 538,
    "books: not begun before the first entry": 2,
    "transact: former state not compared": 10111,
    "transact: written from a read before the check": 299,
    "transact: entry without total": 44,
    "transact: whole item compared": 10,
    "transact: one token for all attempts": 29,
    "transact: another token for the same request": 178,
}


def explained(failed):
    """A failure with its story, shortened as far as it goes."""
    return f"{failed}\n{story_of(shorter(failed))}"


@pytest.mark.parametrize("share", range(SHARES))
def test_random_rules_find_no_divergence(share):
    """No history of any rules file diverges, whatever the seed. A failure names its number and prints its story."""
    first = int(os.environ.get("RANDOM_FIRST", "0"))
    first += share * HISTORIES // SHARES
    failed = next(failures(first - first % HISTORIES_PER_FILE, HISTORIES // SHARES), None)
    assert failed is None, explained(failed)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_random_rules_stay_free_of_what_was_found(path):
    """Histories that once failed, with their rules files, as short as they could be made, fail no more."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert play_given(stored["rules"], stored["choices"]) == ""


def test_random_rules_are_deterministic():
    """The same numbers give the same files and histories, request by request, whatever Python's hash seed is."""
    command = [sys.executable, "-m", "tests.random_rules", "--hash", "--histories", "40", "--seed", "100"]
    digests = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_random_rules_are_accepted():
    """`check` accepts what the grammar writes; where it does not, the grammar is poor, or something else is."""
    problems = [problem for number in range(100) for problem in made_of(written(number).text())[1]]
    unsaid = [problem for problem in problems if problem.code == "SR217"]
    assert unsaid, "an index that may leave out items is refused"
    assert len(problems) - len(unsaid) <= 8, problems


def test_random_rules_race_and_cover_what_they_claim():
    """Every kind, operation, fault and check occurs, and each sort of guard is refused: what never races finds nothing."""
    seen = Counter()
    wanted = {("kind", kind) for kind in KINDS} | {("operation", name) for name in OPERATIONS}
    wanted |= {("fault", fault) for fault in FAULTS} | {("refused", guard) for guard in GUARDS}
    wanted |= {
        ("damage", "done"),
        ("damage", "books"),
        ("damage", "meanwhile"),
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
    }
    for first in range(0, 6_000, HISTORIES_PER_FILE):
        for number in (first, first + 1, first + 2):
            play_number(number, seen=seen)  # divergence is left to the other tests
        if not (rare := {what: seen[what] for what in wanted if not seen[what]}):
            return
    raise AssertionError(f"never seen: {rare}")


@pytest.mark.parametrize("name", QUICK)
def test_random_rules_catch_mutant(name):
    """Without the invariant some history diverges; with it, the same one does not."""
    failed = caught(name, QUICK[name], 1) or caught(name, 0, 1_000)
    assert failed is not None, f"nothing noticed: {name}"
    assert play_number(failed.number) is None


def test_random_rules_of_the_plainest_choices_are_quiet():
    """0 is the plainest choice: histories of nothing but zeros have no faults and no divergence, whatever the rules."""
    for number in range(5):
        assert play(made(number), given({})) == ""


def test_random_rules_failures_shrink_and_tell_their_story():
    """A failure is replayed from its rules and choices alone, gets shorter, and ends with what was wrong."""
    with applied("no pull on insert"):
        failed = next(failures(0, 1_000))
        short = shorter(failed, replays_max=25)
        story = story_of(short)
    assert sum(map(len, short.choices.values())) < sum(map(len, failed.choices.values()))
    assert len(short.text) <= len(failed.text)
    assert story.endswith(short.reason)
    assert kind_of(short.reason) == kind_of(failed.reason)
    assert MUTANTS.keys() >= QUICK.keys()
