"""Pulls that are done together, because one read serves many of them.

Invariant: the tables end as if each pull had been done alone, in the order of the entries. Pulls of one rule do not
read what they write, and no rule of a group writes what another one reads. So the order between rules matters only for
pulls of one target, whose room may be the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sync_rules.jobs.redrive.ports import FailureRaiser
from sync_rules.jobs.redrive.work import SOURCE_DELETED, pull_targets
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import has_overlap
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import World, run_work
from sync_rules.pipeline.tasks import Pull
from sync_rules.rules.families import TargetRule
from sync_rules.rules.ruleset import Rules

RuleOnItem = tuple[TargetRule, ItemKey]


@dataclass
class PullGroup:
    """Pulls of one rule each, by this rule. `order`: the rules in the order of the work, that of their first pulls in
    this group or in earlier groups, because most items name their rules in the same order.
    """

    order: dict[TargetRule, int] = field(default_factory=dict)
    pulls: dict[TargetRule, dict[ItemKey, Pull]] = field(default_factory=dict)

    def admits(self, one: Pull) -> bool:
        """True if a pull may join those of its rule, and so overtake those of the rules after it."""
        (rule,) = one.rules
        place = self.order.setdefault(rule, len(self.order))
        return not any(
            affects(rule, other) or (one.key in pulls and self.order[other] > place)
            for other, pulls in self.pulls.items()
            if other is not rule
        )

    def add(self, one: Pull) -> None:
        self.pulls.setdefault(one.rules[0], {})[one.key] = one

    def count(self) -> int:
        return sum(map(len, self.pulls.values()))

    def retry(
        self, rules: Rules, bounds: Bounds, world: World, on_report: Callable[[Report], object]
    ) -> dict[RuleOnItem, str]:
        """Return why each pull failed, "" if it did not. Pulls that may have failed because of others are left out.
        `on_report` is called with the report of each rule.
        """
        reasons: dict[RuleOnItem, str] = {}
        for rule in sorted(self.pulls, key=self.order.__getitem__):
            pulls = self.pulls[rule]
            raiser = FailureRaiser()
            try:
                report = run_work(pull_targets([*pulls.values()], rules, bounds), replace(world, failures=raiser))
            except StoreError:
                continue
            on_report(report)
            if not report.failed.keys() <= pulls.keys():
                continue
            for key in pulls:
                reason = report.failed[key].reason if key in report.failed else ""
                if not reason or key in raiser.stuck or reason == SOURCE_DELETED:
                    reasons[rule, key] = reason
        return reasons


def affects(one: TargetRule, other: TargetRule) -> bool:
    """True if one of two rules may write what the other one reads."""
    if one.source is other.target or other.source is one.target:
        return True
    return one.target is other.target and (_decides(one, other) or _decides(other, one))


def _decides(writer: TargetRule, reader: TargetRule) -> bool:
    return any(has_overlap(copy, path) for copy in writer.copies for path in reader.deciding_paths)
