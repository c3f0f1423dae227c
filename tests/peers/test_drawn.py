"""Rules of every form, drawn at random, end as an oracle that knows nothing of ours says they must."""

from __future__ import annotations

import pytest

from tests.peers.cases import Unsupported, entries
from tests.peers.drawn import drawn
from tests.peers.report import check_variant
from tests.peers.runner import Case
from tests.peers.scenarios import Unread, of_entry
from tests.peers.variants import VARIANTS
from tests.support.depth import deep

SEEDS = range(deep(12))
TRANSLATED_SEEDS = range(40)


def test_nearly_all_drawn_scenarios_are_translated() -> None:
    """An adapter that translates nothing would pass the test below."""
    made = entries([of_entry("drawn", drawn(seed)) for seed in TRANSLATED_SEEDS])
    reasons = [entry.reason for entry in made if isinstance(entry, Unsupported)]
    assert len(reasons) <= len(TRANSLATED_SEEDS) // 10, reasons


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_scenario_holds(seed: int) -> None:
    """Under one variant of delivery each; what is not translated says why."""
    (entry,) = entries([of_entry("drawn", drawn(seed))])
    assert not isinstance(entry.scenario, Unread), entry.reason
    if isinstance(entry, Unsupported):
        pytest.skip(entry.reason)
    assert isinstance(entry, Case)
    check_variant(entry, VARIANTS[seed % len(VARIANTS)])
