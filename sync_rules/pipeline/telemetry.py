"""Counts outcomes and lag per rule, for metrics, the terminal and tests.

Invariant: the dimensions of a metric are rule names and fixed words, never anything of an item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sync_rules.model.items import Alteration, ItemKey, Outcome
from sync_rules.pipeline.messages import KINDS
from sync_rules.pipeline.report import Report, Unfinished

FAILED_KEPT_MAX_ITEMS: Final = 1_000
LAG_SECONDS: Final = 60  # a lag counts until its batch ended this long ago

# ---------------------------------------------------------------- names of metrics
NAMESPACE: Final = "SyncRules"
SERVICE: Final = "sync-rules"  # the value of dimension `service`, which each metric has; in a stack, its name
METRIC_NAMES: Final[Mapping[Enum, str]] = {
    Outcome.COPIED: "Copied",
    Outcome.DELETED: "Deleted",
    Outcome.RIGHT: "AlreadyRight",
    Outcome.KEPT: "Kept",
    Outcome.WAITING: "WaitingForBackfill",
    Outcome.SUPERSEDED: "RefusedSuperseded",
    Outcome.RELINKED: "RefusedRelinked",
    Outcome.GONE: "RefusedGone",
    Outcome.FAILED: "Failed",
    Outcome.PARKED: "Parked",
    Outcome.DONE: "Done",
    Alteration.SET: "ValuesSet",
    Alteration.REPLACED: "ValuesReplaced",
    Alteration.ZEROED: "ValuesZeroed",
    Alteration.REMOVED: "ValuesRemoved",
}
LAG: Final = "Lag"  # milliseconds: per batch and rule the age of the oldest change, once processed
FAILURE_RECORDS: Final = "FailureRecords"
VERIFIED: Final = "ItemsVerified"
DRIFT: Final = "Drift"
DRIFT_SHARE: Final = "DriftShare"  # percent of what was verified
THROTTLED: Final = "Throttled"  # by kind, and by cause: the limit that was met
SENT: Final = "MessagesSent"  # by kind
UNREADABLE: Final = "UnreadableRecords"
SETUP_ERRORS: Final = "SetupErrors"
SECOND_LOOK: Final = "second-look"
SENT_KINDS: Final = (*KINDS.values(), SECOND_LOOK)
SETUP_REASONS: Final = frozenset({  # errors that no retry cures: something is missing, or forbidden
    "AccessDenied", "AccessDeniedException", "BucketNotFound", "IndexNotFound", "QueueNotFound", "TableNotFound",
    "ValidationException",
})  # fmt: skip


def parse_title(name: str) -> str:
    """Return the name in the rules file of a rule with this name. Several compiled rules may have one title."""
    return name.partition(".")[0]


def sum_over_rules(
    counts: Mapping[tuple[str, Outcome], int] | Mapping[tuple[str, Alteration], int],
) -> dict[str, int]:
    """Sum the counts of outcomes or alterations over all rules, by the name of the outcome or alteration."""
    found: Counter[str] = Counter()
    for (_, each), count in counts.items():
        found[each.value] += count
    return dict(found)


@dataclass
class Telemetry:
    """The totals so far. `lags` has, per rule and second, the greatest lag in milliseconds of the batches that ended
    then: the age of a batch's oldest change. DynamoDB rounds the time of a change down to the second. `failed` holds
    the last `FAILED_KEPT_MAX_ITEMS` unfinished items. `reasons` counts error codes, and the failed calls of each
    rule.
    """

    records: int = 0
    unreadable_records: int = 0
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    alterations: Counter[tuple[str, Alteration]] = field(default_factory=Counter)
    failed: dict[ItemKey, Unfinished] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    lags: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, report: Report, records: int, now_seconds: float) -> None:
        self.records += records
        self.outcomes.update(report.outcomes)
        self.alterations.update(report.alterations)
        self.failed |= report.failed
        self.reasons.update(report.calls_failed)
        self.reasons.update(unfinished.reason.partition(":")[0] for unfinished in report.failed.values())
        for key in list(self.failed)[:-FAILED_KEPT_MAX_ITEMS]:
            del self.failed[key]
        for rule, since_ms in report.since_ms.items():
            lags = self.lags.get(rule, {})
            recent = {second: lag for second, lag in lags.items() if second > now_seconds - LAG_SECONDS}
            lag_ms = max(0, int(now_seconds * 1000) - since_ms, recent.get(int(now_seconds), 0))
            self.lags[rule] = recent | {int(now_seconds): lag_ms}

    def read_lags_ms(self, now_seconds: float | None = None) -> dict[str, int]:
        """Return the greatest lag in milliseconds of each rule, by its name in the rules file. It is that of the
        batches of the last minute, or of all if no time is given. A rule without such a batch has none.
        """
        found: dict[str, int] = {}
        for rule, lags in self.lags.items():
            for second, lag_ms in lags.items():
                if now_seconds is None or now_seconds - LAG_SECONDS < second <= now_seconds:
                    found[parse_title(rule)] = max(lag_ms, found.get(parse_title(rule), 0))
        return found

    def total(self, *outcomes: Outcome) -> int:
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome in outcomes)

    @property
    def setup_errors(self) -> int:
        """The number of failures that an operator must repair, such as a missing table or permission."""
        return sum(count for reason, count in self.reasons.items() if reason in SETUP_REASONS)

    def clear(self) -> None:
        """Set all counts to zero, after they were written out."""
        vars(self).update(vars(Telemetry()))
