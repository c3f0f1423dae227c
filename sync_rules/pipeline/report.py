"""The report of a piece of work: outcomes counted by rule, and the items whose work was not finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sync_rules.model.errors import StoreError
from sync_rules.model.items import NOT_IN_INDEX, Alteration, Failure, ItemKey, Outcome, classify_alteration
from sync_rules.model.limits import Bounds
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.pipeline.messages import Message, PartMessage, PullMessage
from sync_rules.pipeline.requests import Later, Park, Work
from sync_rules.pipeline.sources import Target
from sync_rules.rules.families import Part, TargetRule
from sync_rules.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The rules and parts of an item that must be processed again, and why. Names and error codes only."""

    rules: tuple[str, ...]
    reason: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Retry:
    """A later look at parked work: its delay and its rules."""

    delay_seconds: int
    rules: tuple[str, ...]


@dataclass
class Report:
    """Outcomes per rule, the alterations of values by these writes, the items written, the items that could not be
    finished, and per rule the time of the oldest change processed (milliseconds since the epoch). `retries` has the
    messages that retry parked items; `calls_failed` counts failed calls, by rule and error; `rebuilt` names the rules
    whose parts were rebuilt, `hanging` those whose call did not end.
    """

    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    alterations: Counter[tuple[str, Alteration]] = field(default_factory=Counter)
    written: set[ItemKey] = field(default_factory=set)
    failed: dict[ItemKey, Unfinished] = field(default_factory=dict)
    since_ms: dict[str, int] = field(default_factory=dict)
    retries: dict[ItemKey, dict[Message, Retry]] = field(default_factory=dict)
    calls_failed: Counter[str] = field(default_factory=Counter)
    hanging: set[str] = field(default_factory=set)
    rebuilt: set[str] = field(default_factory=set)

    def add(self, other: Report) -> None:
        if other.outcomes:  # most reports are of one round, and a Counter is slow
            self.outcomes.update(other.outcomes)
        if other.alterations:
            self.alterations.update(other.alterations)
        self.since_ms |= other.since_ms
        self.written |= other.written
        self.rebuilt |= other.rebuilt
        if other.calls_failed:
            self.calls_failed.update(other.calls_failed)
        self.hanging |= other.hanging
        for key, looks in other.retries.items():
            for message, retry in looks.items():
                self._retry(key, message, retry)
        for key, unfinished in other.failed.items():
            self.note(key, unfinished)

    def count(self, rules: Iterable[Rule], outcome: Outcome) -> None:
        for rule in rules:
            self.outcomes[rule.name, outcome] += 1

    def count_alterations(self, image: Item, wanted: Mapping[TargetRule, Mapping[Path, AttributeValue | None]]) -> None:
        """Count how a write of these changes altered the values of a target that was read as `image`."""
        for rule, changes in wanted.items():
            for path, value in changes.items():
                before = get(image, path)
                if before is not None or value is not None:
                    self.alterations[rule.name, classify_alteration(before, value)] += 1

    def fail(self, target: Target, reason: str) -> None:
        """Count all rules of a target as failed, and note why."""
        self.count(target.rules, Outcome.FAILED)
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
        if bounds.limits.records(attempt, patient=patient):
            for failure in failures:
                yield Park(failure)
        for failure in failures:
            self.outcomes[failure.rule, Outcome.PARKED] += 1
        if attempt < bounds.limits.parked_max_looks:
            delay = bounds.limits.compute_parked_delay_seconds(attempt)
            self._retry(message.target, message, Retry(delay, tuple(failure.rule for failure in failures)))

    def _retry(self, key: ItemKey, message: Message, retry: Retry) -> None:
        """Remember a look; one that several rules ask for is one."""
        looks = self.retries.setdefault(key, {})
        before = looks.get(message, Retry(retry.delay_seconds, ()))
        looks[message] = replace(retry, rules=tuple(dict.fromkeys([*before.rules, *retry.rules])))

    def park_unlisted_items(self, items: Iterable[tuple[str, ItemKey]]) -> Work[None]:
        """Keep a failure record of each item that the index of a rule does not list. The item is right so far, but no
        later change of its source will reach it.
        """
        for rule, key in items:
            try:
                yield Park(Failure(rule, key, NOT_IN_INDEX))
            except StoreError as error:
                self.note(key, Unfinished((rule,), str(error)))
            else:
                self.outcomes[rule, Outcome.PARKED] += 1

    def trace_failures(self, origins: Mapping[ItemKey, Iterable[ItemKey]]) -> None:
        """Report the items whose records asked for unfinished work, instead of the items that the work is about. An
        item that is not in `origins` asked for its own work.
        """
        failed, self.failed = self.failed, {}
        for key, unfinished in failed.items():
            for origin in origins.get(key, (key,)):
                self.note(origin, unfinished)

    def note(self, key: ItemKey, unfinished: Unfinished) -> None:
        """Note an item whose work was not finished. The last of several reasons counts."""
        before = self.failed.get(key, Unfinished((), ""))
        rules = tuple(dict.fromkeys([*before.rules, *unfinished.rules]))
        parts = tuple(dict.fromkeys([*before.parts, *unfinished.parts]))
        self.failed[key] = Unfinished(rules, unfinished.reason, parts)


def retry_parked_items(report: Report) -> Work[None]:
    """Send the messages that retry what was parked, except for items with failed work: their records are delivered
    again anyway, and each delivery would add one more message.
    """
    for key, looks in report.retries.items():
        for message, retry in looks.items() if key not in report.failed else ():
            try:
                yield Later(message, retry.delay_seconds, retry.rules)
            except StoreError as error:
                report.note(key, Unfinished((), str(error)))
    report.retries = {}
