"""Findings: what a run counts, and what it forgets before it looks again."""

from __future__ import annotations

from sync_rules.audit.compare import Difference, Drift
from sync_rules.audit.findings import Tally
from tests.support.builders import key, shop

ORDER = key(shop().tables["shop"], "USER#1", "ORDER#1")


def test_tally_starts_over_for_one_rule_alone():
    """Another look forgets the drift that was left of a rule, and neither what was repaired nor another rule."""
    tally = Tally()
    for rule in ("names", "mails"):
        for repaired in (True, False):
            tally.found(Difference(rule, Drift.WRONG, ORDER, None, (), "", ""), repaired=repaired)
    tally.start_over("names")
    assert (tally.wrong("names"), tally.wrong("mails")) == (0, 1)
    assert (tally.drift, tally.repaired) == ({"names": 1, "mails": 2}, {"names": 1, "mails": 1})
