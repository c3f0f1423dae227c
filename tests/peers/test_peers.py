"""Every scenario of the peers, and of our own, under every delivery variant.

PEER_SCENARIOS names the peers' directory; where there is none, only our own scenarios run.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.peers.broken import Refusal, refusal_of
from tests.peers.runner import Case, run
from tests.peers.scenarios import load
from tests.peers.translate import translate
from tests.peers.variants import VARIANTS, Variant
from tests.support.engines import ROOT

OWN = Path(__file__).parent / "own"
PEERS = Path(os.environ.get("PEER_SCENARIOS", ROOT.parent / "shared/cases/scenarios"))
SCENARIOS = (*load(OWN), *load(PEERS))
CASES = [Case(scenario, translate(scenario)) for scenario in SCENARIOS if not scenario.config_error]
REFUSALS = [refusal_of(scenario) for scenario in SCENARIOS if scenario.config_error]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.scenario.file}-{case.id}")
def test_scenario_holds(case: Case, variant: Variant) -> None:
    """The expectations of the scenario hold however its records are delivered."""
    for schedule in variant.schedules:
        try:
            run(case, schedule, case.reference)
        except AssertionError as error:
            error.add_note(f"under {schedule}, with these rules:\n{case.translation.text}")
            raise


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.id)
def test_broken_rules_are_refused(refusal: Refusal) -> None:
    """Rules that a peer refuses are refused here, for the reason that fits."""
    refusal.check()


@pytest.mark.skipif(not PEERS.is_dir(), reason=f"no scenarios at {PEERS}")
def test_peers_scenarios_are_found() -> None:
    """The peers' directory gives scenarios: an empty run is no pass."""
    assert load(PEERS)
