"""The scenarios of comparable tools hold in every order of delivery; each in two of them, unless DEEP_TESTS=1.

They restate tests in our own words; no test code is copied. hmd: Meteor-Community-Packages/denormalize, MIT. int:
anishkny/integrify, MIT. jmd: jeanfredrik/meteor-denormalize, facts only. mds: amit221/mongodb-denormalized-data-sync, MIT.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.scenario_file import find_scenarios, load_scenario
from sync_rules.lab.trial import run_trial
from tests.support.depth import deep

*SINGLE, ALL_OF_IT = VARIANTS
SHALLOW = deep(len(VARIANTS)) < len(VARIANTS)
PLAYS = [
    pytest.param(file, delivery, id=f"{file.name.partition('.')[0]}-{delivery.name}")
    for number, file in enumerate(find_scenarios([Path(__file__).parent]))
    for delivery in ((SINGLE[number % len(SINGLE)], ALL_OF_IT) if SHALLOW else VARIANTS)
]


@pytest.mark.parametrize(("file", "delivery"), PLAYS)
def test_peers_scenario_holds(file: Path, delivery: Delivery) -> None:
    """Each step ends in the expected items, and no copy differs from its source."""
    trial = run_trial(load_scenario(file), delivery)
    assert trial.ok, trial
