"""The data set of a trade: how many of the proposed rules are right, and how many of the true rules are proposed."""

from __future__ import annotations

import pytest

from tests.extras.discover.datasets.test_propose import score
from tests.extras.discover.datasets.trades import TRADES

PRECISION_MIN = 0.95  # of the active rules
RECALL_MIN = 0.9  # of the true rules: active, or as a comment
DRIFT = 0.03


@pytest.mark.parametrize("made", TRADES)
def test_propose_finds_the_rules_of_a_trade(made):
    """Active rules are right, and each kind of copy is found: also newest children, totals of a day, and elements."""
    found = score(made, DRIFT)
    assert not found.refused, str(found)
    assert not found.spoiled, f"a backfill changes what drifted, and nothing else: {found}"
    assert found.precision >= PRECISION_MIN, str(found)
    assert found.recall >= RECALL_MIN, str(found)
    assert found.exact == found.counted, str(found)
