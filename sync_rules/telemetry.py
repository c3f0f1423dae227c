"""Counts of what was done, per rule, and how late: for metrics, the terminal and tests. Never a value of an item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sync_rules.model import Change, Failure, ItemKey, Outcome
from sync_rules.reconcile import Report


@dataclass
class Telemetry:
    """Totals so far. `lag_ms` is the age of the oldest record of the last batch at the time it was done."""

    records: int = 0
    unreadable_records: int = 0
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    failed: dict[ItemKey, str] = field(default_factory=dict)
    lag_ms: int | None = None

    def add(self, report: Report, changes: Iterable[Change], now_seconds: float) -> None:
        """Count a finished piece of work."""
        changes = list(changes)
        self.records += len(changes)
        self.outcomes.update(report.outcomes)
        self.failed |= report.failed
        made = [change.created_ms for change in changes if change.created_ms is not None]
        if made:
            self.lag_ms = max(0, int(now_seconds * 1000) - min(made))

    def unreadable(self, _failure: Failure) -> None:
        """Count a record that could not be read."""
        self.unreadable_records += 1

    def total(self, *outcomes: Outcome) -> int:
        """How often these outcomes occurred, over all rules."""
        return sum(count for (_, outcome), count in self.outcomes.items() if outcome in outcomes)
