"""The scenarios of comparable tools hold in every order of delivery; each in two of them, unless DEEP_TESTS=1.

PEER_SCENARIOS names their folder; where there is none, nothing is played.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.lab.trial import run_trial
from tests.peers.plays import write_files
from tests.peers.scenarios import Scenario, load
from tests.support.depth import deep
from tests.support.engines import ROOT

PEERS = Path(os.environ.get("PEER_SCENARIOS", ROOT.parent / "shared/cases/scenarios"))
*SINGLE, ALL_OF_IT = VARIANTS
SHALLOW = deep(len(VARIANTS)) < len(VARIANTS)
PLAYS = [
    pytest.param(scenario, delivery, id=f"{scenario.file}-{scenario.id}-{delivery.name}")
    for number, scenario in enumerate(one for one in load(PEERS) if not one.config_error)
    for delivery in ((SINGLE[number % len(SINGLE)], ALL_OF_IT) if SHALLOW else VARIANTS)
]


@pytest.mark.parametrize(("scenario", "delivery"), PLAYS)
def test_peers_scenario_holds(tmp_path: Path, scenario: Scenario, delivery: Delivery) -> None:
    """Each step ends in the expected items, and no copy differs from its source."""
    trial = run_trial(load_scenario(write_files(scenario, tmp_path)), delivery)
    assert trial.ok, trial


@pytest.mark.skipif(not PEERS.is_dir(), reason=f"no scenarios at {PEERS}")
def test_peers_scenarios_are_found() -> None:
    """The folder gives scenarios: an empty run is no pass."""
    assert load(PEERS)
