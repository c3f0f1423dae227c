"""Repair: what drifted is pulled again, under the same guards, and looked at afterwards.

Law: a repair writes no value that it was given. It reads the item and its source anew, so it never writes over a newer
value, and what somebody else has put right meanwhile is not written at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sync_rules.audit.compare import Difference, Subject, look_again
from sync_rules.model.items import ItemKey
from sync_rules.model.pace import Pace
from sync_rules.pipeline.fanout import pull
from sync_rules.pipeline.parts import PartLook, settle
from sync_rules.pipeline.requests import Work
from sync_rules.pipeline.tasks import pull_of
from sync_rules.rules.ruleset import Rules


def mend(drifted: Sequence[Difference], rules: Rules) -> Work[frozenset[Subject]]:
    """Pull what drifted. Returns the subjects that are not right afterwards, those that no pull can mend among them.

    What is another copy of another truth by then was mended, and its source has changed since: that is lag.
    """
    mendable = [one for one in drifted if one.mendable]
    asked: dict[ItemKey, set[str]] = {}
    for one in mendable:
        if one.part is None:
            asked.setdefault(one.target, set()).add(one.rule)
    pulls = [
        replace(again, rules=tuple(rule for rule in again.rules if rule.name in names))
        for key, names in asked.items()
        if (again := pull_of(key, rules)) is not None
    ]
    report = yield from pull(pulls, Pace())
    report.add((yield from settle([PartLook(one.part) for one in mendable if one.part is not None], Pace())))
    after = yield from look_again(mendable, rules)
    before = {one.subject: one for one in mendable}
    left = {one.subject for one in drifted if not one.mendable}
    still = (one for one in after.different if one.target in report.failed or not _moved(before[one.subject], one))
    return frozenset(left | {one.subject for one in still})


def _moved(before: Difference, now: Difference) -> bool:
    """Whether both a copy and what it must be are others than they were."""
    return now.held != before.held and now.truth != before.truth
