"""Every scenario of the peers, and of our own, under every delivery variant; on engines as TEST_ENGINE says.

By default all six variants run in memory and variant 1 on ministack; an engine named by TEST_ENGINE runs all six. Our
own scenarios of forms, which say what can be written rather than what may go wrong, run in memory: all six variants
with DEEP_TESTS=1, in a run of every day each scenario under one of those of few schedules. PEER_SCENARIOS names the
peers' directory; where there is none, only our own scenarios run.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.peers.bench import EngineBench, MakeBench, MemoryBench
from tests.peers.broken import Refusal
from tests.peers.cases import Entry, Unsupported, entries
from tests.peers.report import check_variant
from tests.peers.runner import Case
from tests.peers.scenarios import load
from tests.peers.variants import VARIANTS, Variant
from tests.support.depth import deep
from tests.support.engines import ROOT, Endpoints

OWN = Path(__file__).parent / "own"
FORMS = OWN / "forms"
PEERS = Path(os.environ.get("PEER_SCENARIOS", ROOT.parent / "shared/cases/scenarios"))
ENGINE = os.environ.get("TEST_ENGINE", "all")
PLAYED = {"all": {"memory": VARIANTS, "ministack": VARIANTS[:1]}}.get(ENGINE, {ENGINE: VARIANTS})


def found() -> list[Entry]:
    """Everything there is to run."""
    peers = load(PEERS) if PEERS.is_dir() else ()
    return entries((*load(OWN), *peers))


FOUND = found()
OF_FORMS = entries(load(FORMS))
SHALLOW = deep(len(VARIANTS)) < len(VARIANTS)
QUICK = [variant for variant in VARIANTS if len(variant.schedules) <= 2]
FORM_PLAYS = [
    pytest.param(case, variant, id=f"{case.scenario.id}-{variant.name}")
    for number, case in enumerate(OF_FORMS)
    if isinstance(case, Case)
    for variant in ([QUICK[number % len(QUICK)]] if SHALLOW else VARIANTS)
]
PLAYS = [
    pytest.param(engine, case, variant, id=f"{engine}-{case.scenario.file}-{case.id}-{variant.name}".replace(" ", "-"))
    for engine, variants in PLAYED.items()
    for case in FOUND
    if isinstance(case, Case)
    for variant in variants
]


def bench(engine: str, endpoints: Endpoints) -> MakeBench:
    return MemoryBench if engine == "memory" else partial(EngineBench, endpoint_url=endpoints.of(engine))


@pytest.mark.parametrize(("engine", "case", "variant"), PLAYS)
def test_scenario_holds(engine: str, case: Case, variant: Variant, endpoints: Endpoints) -> None:
    """The expectations of the scenario hold however its records are delivered."""
    check_variant(case, variant, bench(engine, endpoints))


@pytest.mark.parametrize(("case", "variant"), FORM_PLAYS)
def test_form_holds(case: Case, variant: Variant) -> None:
    """The same of our own scenarios of forms."""
    check_variant(case, variant)


@pytest.mark.parametrize("refusal", [pytest.param(r, id=r.id) for r in [*FOUND, *OF_FORMS] if isinstance(r, Refusal)])
def test_broken_rules_are_refused(refusal: Refusal) -> None:
    """Rules that a peer refuses are refused here, for the reason that fits."""
    refusal.check()


def test_every_scenario_can_be_run() -> None:
    """Every scenario's rules are translated."""
    assert not [f"{entry.id}: {entry.reason}" for entry in [*FOUND, *OF_FORMS] if isinstance(entry, Unsupported)]


@pytest.mark.skipif(not PEERS.is_dir(), reason=f"no scenarios at {PEERS}")
def test_peers_scenarios_are_found() -> None:
    """The peers' directory gives scenarios: an empty run is no pass."""
    assert load(PEERS)
