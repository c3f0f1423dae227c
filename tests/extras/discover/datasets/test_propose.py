"""The search for rules on data sets as a careless team has them: what it must find, and what it must leave alone."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

import pytest

from tests.extras.discover.datasets.drawn import drawn
from tests.extras.discover.datasets.generated import unrelated
from tests.extras.discover.datasets.held_out import lookalikes
from tests.extras.discover.datasets.measure import Score
from tests.extras.discover.datasets.scoring import ALL, AT_LEAST, SHARES, score
from tests.extras.discover.datasets.shared_sets import SHARED
from tests.support.depth import deep

MUCH = 0.1
DEEP = bool(os.environ.get("DEEP_TESTS"))
NO_RULE = (unrelated, lookalikes)  # of which nothing can drift
# A few that have rules of every kind, generated, real and held out, each at one share of drift; all data sets at all
# shares with DEEP_TESTS=1.
FEW = ("shop", "devices", "accounts", "adventureworks", "games", "library", "company")
EACH = [
    pytest.param(made, share, id=f"{name}-{share:.0%}")
    for at, (name, made) in enumerate(ALL.items())
    for number, share in enumerate(SHARES)
    if made not in NO_RULE and (DEEP or (name in FEW and number == at % len(SHARES)))
]
DRAWN = [
    pytest.param(partial(drawn, seed), SHARES[seed % len(SHARES)], id=f"drawn-{seed}")
    for seed in range(30, 30 + deep(5))
]
BARE = [pytest.param(partial(drawn, seed, bare=True), id=f"bare-{seed}") for seed in range(30, 30 + deep(5))]


def well(found: Score, share: float) -> None:
    """Check a score: one rule of a small data set may be missed, and none may be wrong. Where a tenth has drifted, a
    second one may be: what is counted along a link that drifted itself can hardly be seen.
    """
    assert not found.refused, "the file passes check"
    assert not found.entities, f"each entity is recognised by its key: {found}"
    assert not found.spoiled, f"a backfill changes what drifted, and nothing else: {found}"
    assert found.precision >= AT_LEAST, str(found)
    few = 2 if share >= MUCH else 1
    assert found.expected - found.found <= max(few, (1 - AT_LEAST) * found.expected), str(found)
    assert found.exact == found.counted, f"drift is counted exactly: {found}"


@pytest.mark.skipif(not DEEP or not SHARED, reason="all data sets are made with DEEP_TESTS=1")
def test_propose_is_tried_on_every_kind_every_day():
    """The few data sets have every kind of rule that any has, snapshots and rules that came with the data."""

    def kinds(names: Iterable[str]) -> set[object]:
        truths = [truth for name in names for truth in ALL[name]().truths]
        return {kind for one in truths for kind in (*one.kinds, ("snapshot", one.snapshot), ("natural", one.natural))}

    assert kinds(FEW) == kinds(ALL)


@pytest.mark.parametrize(("made", "share"), EACH)
def test_propose_finds_what_a_script_copied(made, share):
    """Rules of every kind, with the number of items that differ; a backfill of them brings back what was right."""
    well(score(made, share), share)


@pytest.mark.parametrize(("made", "share"), DRAWN)
def test_propose_finds_what_was_drawn(made, share):
    """The same of data sets that no threshold was fitted to."""
    well(score(made, share), share)


@pytest.mark.parametrize("made", [*BARE, *NO_RULE])
def test_propose_leaves_alone_what_only_looks_alike(made):
    """Links, dates, booleans, small enumerations, equal names and ranges, and no copy: no rule at all."""
    found = score(made, 0.0)
    assert found.rules == 0, str(found)
    assert not found.entities
    assert not found.refused
