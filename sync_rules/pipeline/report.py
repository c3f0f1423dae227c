"""The report of a piece of work: what was written, refused, parked or put off, counted by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.messages import Message, PartMessage, PullMessage
from sync_rules.pipeline.requests import Later, Park, Work
from sync_rules.pipeline.sources import Target
from sync_rules.rules.rule import Part, Rule


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Why an item's work must be done again, for which rules, and which of its parts. Names and error codes only."""

    rules: tuple[str, ...]
    reason: str
    parts: tuple[Part, ...] = ()


@dataclass
class Report:
    """What came of a piece of work: outcomes per rule, the items written, those that could not be finished and why,
    and per rule the time of the oldest change that was dealt with (milliseconds since the epoch). `again` are the looks
    that parked items are to have, with the delay (seconds) of each; `calls_failed` counts the tries, by rule and error.
    """

    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    written: set[ItemKey] = field(default_factory=set)
    failed: dict[ItemKey, Unfinished] = field(default_factory=dict)
    since_ms: dict[str, int] = field(default_factory=dict)
    again: dict[ItemKey, dict[Message, int]] = field(default_factory=dict)
    calls_failed: Counter[str] = field(default_factory=Counter)

    def add(self, other: Report) -> None:
        """Take in what came of another piece of work."""
        self.outcomes.update(other.outcomes)
        self.since_ms |= other.since_ms
        self.written |= other.written
        self.calls_failed.update(other.calls_failed)
        for key, looks in other.again.items():
            self.again.setdefault(key, {}).update(looks)
        for key, unfinished in other.failed.items():
            self.note(key, unfinished)

    def tally(self, rules: Iterable[Rule], outcome: Outcome) -> None:
        """Count an outcome of each of these rules on one target."""
        for rule in rules:
            self.outcomes[rule.name, outcome] += 1

    def fail(self, target: Target, reason: str) -> None:
        """Count all rules of a target as failed, and remember why."""
        self.tally(target.rules, Outcome.FAILED)
        self.note(target.key, Unfinished(tuple(rule.name for rule in target.rules), reason))

    def park(
        self, failures: Sequence[Failure], message: PullMessage | PartMessage, bounds: Bounds, *, patient: bool
    ) -> Work[None]:
        """Keep a failure record for each rule that cannot succeed now, and remember to retry with `message`, whose
        `attempt` counts how often it was parked. The rest of the work goes on: parking never holds up a shard.

        Raises:
            StoreError: when a record could not be kept: nothing is parked then.
        """
        attempt = message.attempt - 1
        if attempt == bounds.limits.recorded_at(patient=patient):
            for failure in failures:
                yield Park(failure)
        for failure in failures:
            self.outcomes[failure.rule, Outcome.PARKED] += 1
        if attempt < bounds.limits.parked_max_looks:
            self.again.setdefault(message.target, {})[message] = bounds.limits.parked_delay_seconds(attempt)

    def trace_failures(self, origins: Mapping[ItemKey, Iterable[ItemKey]]) -> None:
        """Report, instead of each item that could not be finished, the items whose records asked for its work."""
        failed, self.failed = self.failed, {}
        for key, unfinished in failed.items():
            for origin in origins[key]:
                self.note(origin, unfinished)

    def note(self, key: ItemKey, unfinished: Unfinished) -> None:
        """Remember an item that could not be finished; of several reasons the last."""
        before = self.failed.get(key, Unfinished((), ""))
        rules = tuple(dict.fromkeys([*before.rules, *unfinished.rules]))
        parts = tuple(dict.fromkeys([*before.parts, *unfinished.parts]))
        self.failed[key] = Unfinished(rules, unfinished.reason, parts)


def retry_parked(report: Report) -> Work[None]:
    """See to it that what was parked is looked at again. Not where something of the same item failed: that comes again
    by itself, and each time it did one more look would be on its way.
    """
    for key, looks in report.again.items():
        for message, delay_seconds in looks.items() if key not in report.failed else ():
            try:
                yield Later(message, delay_seconds)
            except StoreError as error:
                report.note(key, Unfinished((), str(error)))
    report.again = {}
