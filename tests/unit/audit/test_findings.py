"""Findings: what a run counts, and what it forgets before it looks again."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product

import pytest

from sync_rules.audit.compare import Difference, Drift
from sync_rules.audit.verify_tally import Tally
from tests.support.builders import key, shop

ORDER = key(shop().tables["shop"], "USER#1", "ORDER#1")


def difference(rule: str, drift: Drift = Drift.WRONG) -> Difference:
    return Difference(rule, drift, ORDER, None, (), "", "", repairable=drift is not Drift.STUCK)


@pytest.mark.parametrize(("drift", "repaired"), [*product(Drift, (True, False))])
def test_tally_takes_out_what_it_found_twice(drift, repaired):
    """A part that was found twice and taken out once counts once."""
    once, twice = Tally(), Tally()
    for tally in (once, twice, twice):
        tally.count_drift(difference("mails", drift), repaired=repaired)
    twice.take_out("mails", drift, repaired=repaired)
    assert asdict(twice) == asdict(once)
