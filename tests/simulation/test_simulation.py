"""Histories of faults in small worlds: every copy ends up right, and no write on the way is wrong.

`SIM_HISTORIES` sets their number (500, and as many again of each oracle that stands apart, or a third of that without
`DEEP_TESTS=1`; `.ci/run` plays 2,000 others), `SIM_FIRST` the seed of the first. `SIM_SEED` and
`SIM_CONFIG` (such as O1/index) replay one. The same ones each time, so that a change decides and not luck: `make soak`
plays new ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.model.items import Outcome
from sync_rules.pipeline.handover import Listing
from sync_rules.pipeline.sources import Target
from tests.simulation.breaking import Mutant, replacing
from tests.simulation.choices import given
from tests.simulation.faults import ERRAND_FAULTS, OTHER_FAULTS, REQUEST_FAULTS, WRITER_FAULTS
from tests.simulation.mutants import MUTANTS
from tests.simulation.oracles import ORACLES
from tests.simulation.runs import PAIRS, failures, play, play_seed, shorter, story_of
from tests.simulation.workload import OF_TRUTHS, OPERATIONS
from tests.support.depth import deep

HISTORIES = int(os.environ.get("SIM_HISTORIES", "500"))
FOUND_ON: Mapping[str, Mutant] = {  # what was wrong when a regression was stored, done to the core again
    "full-target-of-a-removed-source": replacing(Target, "only", lambda self, rules: replace(self, rules=tuple(rules))),
    "unread-target-forgotten": replacing(Listing, "unread", property(lambda _self: False, lambda *_args: None)),
    "nested-map-replaced": MUTANTS["map around a copy ignored"].mutant,
}
REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


def explained(failed):
    """A failure with its story, shortened as far as it goes."""
    return f"{failed}\n{story_of(shorter(failed))}"


@pytest.mark.parametrize("oracle", ORACLES)
def test_simulation_finds_no_divergence(oracle):
    """No history diverges, whatever the seed. A failure names its seed and prints its story."""
    pairs = [(oracle, name) for name in ORACLES[oracle].configurations]
    count = deep(HISTORIES) if ORACLES[oracle].apart else HISTORIES * len(pairs) // len(PAIRS)
    seed = int(os.environ.get("SIM_FIRST", "0"))
    if "SIM_SEED" in os.environ:
        count, seed = 1, int(os.environ["SIM_SEED"])
        pairs = [pair for pair in pairs if "/".join(pair) == os.environ.get("SIM_CONFIG", "O1/base")]
        if not pairs:
            pytest.skip("SIM_CONFIG names another oracle")
    failed = next(failures(count, seed, pairs), None)
    assert failed is None, explained(failed)


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_simulation_stays_free_of_what_was_found(path):
    """Histories that once failed, as short as they could be made, fail no more."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    failed = play(stored["oracle"], stored["configuration"], given(stored["choices"]))
    assert failed is None, f"{failed}\n{story_of(failed)}"


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_simulation_still_finds_what_was_found(path):
    """Choices are only as good as the generators that read them: on the code it was found on, each history fails yet."""
    stored = json.loads(path.read_text(encoding="utf-8"))
    with FOUND_ON[path.stem]():
        assert play(stored["oracle"], stored["configuration"], given(stored["choices"])) is not None


def test_simulation_is_deterministic():
    """The same seeds give the same histories, request by request, whatever Python's hash seed is."""
    command = [sys.executable, "-m", "tests.simulation", "--hash", "--histories", "60", "--seed", "7"]
    digests = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, capture_output=True, check=True).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


def test_simulation_of_the_plainest_choices_is_quiet():
    """0 is the plainest choice: histories of nothing but zeros have no faults and no divergence, under any oracle."""
    for oracle, configuration in PAIRS:
        assert play(oracle.name, configuration, given({})) is None


def test_simulation_covers_what_it_claims():
    """Every operation, every fault at every request, and every outcome occur: a generator that cannot reach a place
    finds nothing there.
    """
    seen = Counter()
    pairs = [("O1", name) for name in ORACLES["O1"].configurations]
    wanted = {("operation", name) for name in (*OPERATIONS, *OF_TRUTHS)}
    wanted |= {(request.__name__, fault) for request, faults in REQUEST_FAULTS.items() for fault in faults}
    wanted |= {("fault", fault) for fault in OTHER_FAULTS} | {("action", "redrive")}
    wanted |= {("page", "short"), ("page", "empty")}
    elsewhere = {Outcome.DONE, Outcome.WAITING}  # here are no effects, and no counters that wait: see test_two_versions
    wanted |= {("outcome", outcome.value) for outcome in Outcome if outcome not in elsewhere}
    wanted |= {("parked", reason) for reason in ("ItemTooLarge", "Contended", "Cycle", "TooManyItems")}
    wanted |= {("later", kind) for kind in ("push", "rest", "chunk", "parked pull", "second push", "second pull")}
    assert not rare(wanted, pairs, seen)


def test_simulation_covers_what_people_do():
    """Histories cover every event of backfills, verifies and redrives: begin, death, end, resume, stop, repair."""
    seen = Counter()
    pairs = [(oracle, name) for oracle in ("O7", "O8", "O9") for name in ORACLES[oracle].configurations]
    wanted = {(kind, what) for kind in ("backfill", "verify", "redrive") for what in ("began", "died", "done")}
    wanted |= {("backfill", what) for what in ("went on", "stopped", "given up", "alone", "wrote", "left a segment")}
    wanted |= {("backfill", "again for what was left"), ("redrive", "for what was left")}
    wanted |= {("verify", what) for what in ("one", "lag", "mended at last")}
    wanted |= {("repaired", drift.value) for drift in Drift if drift is not Drift.STUCK}
    wanted |= {("redrive", what) for what in ("again", "written", "parked")} | {("page", "old")}
    wanted |= {("lost", what) for what in ("by the pipeline", "of an application", "in the books")}
    wanted |= {(request.__name__, fault) for request, faults in ERRAND_FAULTS.items() for fault in faults}
    assert not rare(wanted, pairs, seen)


def test_simulation_covers_what_applications_do():
    """Histories cover every event of transactions, writes that are followed and fresh looks, and each of their faults."""
    seen = Counter()
    wanted = {(kind, what) for kind in ("transact", "follow", "fresh") for what in ("began", "died", "done")}
    wanted |= {("transact", what) for what in ("left", "left nothing", "refused", "cancelled", "alone")}
    wanted |= {("follow", what) for what in ("left", "left nothing", "alone")}
    wanted |= {("fresh", what) for what in ("judged", "an old item")}
    wanted |= {(request.__name__, fault) for request, faults in WRITER_FAULTS.items() for fault in faults}
    assert not rare(wanted, [("O11", name) for name in ORACLES["O11"].configurations], seen)


def test_simulation_covers_fan_outs_that_wait():
    """Large fan-outs of one source wait, and serve what comes meanwhile; and a clock falls behind."""
    seen = Counter()
    wanted = {("later", "waiting"), ("later", "served"), ("clock", "behind")}
    assert not rare(wanted, [("O12", name) for name in ORACLES["O12"].configurations], seen)


def rare(wanted, pairs, seen):
    """The wanted events that occur less than five times in 3,000 histories; divergence is left to other tests."""
    for first in range(0, 3_000, 25):
        if not {what for what in wanted if seen[what] < 5}:
            break
        for _ in failures(first + 25, 4_000_000, pairs, seen, first=first):
            pass
    return {what: seen[what] for what in wanted if seen[what] < 5}


def test_simulation_failures_shrink_and_tell_their_story():
    """A failure is replayed from its choices alone, gets shorter, and ends with what was wrong."""
    mutant = MUTANTS["no pull on insert"].mutant
    with mutant():
        failed = next(failures(500, 1, [("O1", "base")]))
        short = shorter(failed)
        story = story_of(short)
        assert play_seed("O1", "base", failed.seed) == failed
    assert sum(map(len, short.choices.values())) < sum(map(len, failed.choices.values())) / 2
    assert story.endswith(short.reason)
    assert "application: create target" in story
