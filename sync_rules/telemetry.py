"""Counts of what was done, per rule, and how late: for metrics, the terminal and tests. Never a value of an item."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from sync_rules.model import ItemKey, Outcome
from sync_rules.reconcile import Report, Unfinished

FAILED_KEPT_MAX_ITEMS: Final = 1_000


@dataclass
class Telemetry:
    """Totals so far. `lag_ms` is, per rule, the age of its oldest change in its last batch when that batch was done;
    DynamoDB rounds the time of a change down to the second, so it may show up to a second too much. `failed` holds the
    last `FAILED_KEPT_MAX_ITEMS` items that could not be finished, `reasons` how often each error code was why, and
    which rules' calls failed.
    """

    records: int = 0
    unreadable_records: int = 0
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    failed: dict[ItemKey, Unfinished] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    lag_ms: dict[str, int] = field(default_factory=dict)

    def add(self, report: Report, records: int, now_seconds: float) -> None:
        """Count a finished piece of work."""
        self.records += records
        self.outcomes.update(report.outcomes)
        self.failed |= report.failed
        self.reasons.update(report.calls_failed)
        self.reasons.update(unfinished.reason.partition(":")[0] for unfinished in report.failed.values())
        for key in list(self.failed)[:-FAILED_KEPT_MAX_ITEMS]:
            del self.failed[key]
        self.lag_ms |= {rule: max(0, int(now_seconds * 1000) - since) for rule, since in report.since_ms.items()}

    def total(self, *outcomes: Outcome) -> int:
        """How often these outcomes occurred, over all rules."""
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome in outcomes)

    def clear(self) -> None:
        """Start anew, after what was counted has been written out."""
        self.records = self.unreadable_records = 0
        self.outcomes.clear()
        self.reasons.clear()
        self.failed, self.lag_ms = {}, {}
