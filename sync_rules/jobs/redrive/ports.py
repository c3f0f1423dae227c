"""The ports of the pipeline during a redrive: a failure becomes a new record, or leaves its entry in place."""

from __future__ import annotations

from dataclasses import dataclass, field

from sync_rules.jobs.redrive.entries import RedriveCounts
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, ItemKey
from sync_rules.pipeline.messages import CallMessage
from sync_rules.pipeline.requests import Failures, KeptCalls
from sync_rules.rules.families import EffectRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class FailureRaiser:
    """The Failures for entries that are themselves failure records: it raises, so the entry fails again and stays in
    its place. `stuck` has the items that failed so, and not because of a request.
    """

    stuck: set[ItemKey | None] = field(default_factory=set)

    def park(self, failure: Failure) -> None:
        self.stuck.add(failure.key)
        raise StoreError(failure.reason)


@dataclass(frozen=True)
class KeptCallReader:
    """The kept calls for entries that hold their changes themselves: a call that fails again stays in its place."""

    _behind: KeptCalls

    def keep_call(self, _message: CallMessage) -> str:
        """Return "" and keep nothing, because no failure record is written that could name the place."""
        return ""

    def fetch_call(self, place: str) -> CallMessage:
        return self._behind.fetch_call(place)


@dataclass(frozen=True)
class NewFailures:
    """A Failures that records new failures. It raises for effects, because only their entry holds the values: that
    entry stays.
    """

    _behind: Failures
    _rules: Rules
    _tally: RedriveCounts

    def park(self, failure: Failure) -> None:
        if isinstance(self._rules.find_rule_by_name(failure.rule), EffectRule):
            raise StoreError(failure.reason)
        self._behind.park(failure)
        self._tally.parked += 1
