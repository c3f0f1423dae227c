"""A pipeline in memory for scenarios: every change is worked on at once, in the order in which it was made.

Law: the rules are worked on by the very code that runs in production; only the world is small. No index lags here, so a
second look comes at once. What was set aside is looked at once more, and then when its item changes.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sync_rules.attributes import Item
from sync_rules.batch import KeptOnce, process, process_message
from sync_rules.errors import StoreError
from sync_rules.limits import Limits
from sync_rules.memory import MemoryStore
from sync_rules.messages import CallMessage, Message, PartMessage, PullMessage
from sync_rules.model import Change, Delete, Failure, ItemKey, Keep, Put, Update
from sync_rules.pace import Pace
from sync_rules.reconcile import Report
from sync_rules.rules import Rules
from sync_rules.scenario import Deed, Expire, Reported
from sync_rules.store import NOBODY, Caller, World, drive

ROUNDS_MAX = 1_000  # rules that do not end within so many rounds of changes do not end at all


class Rehearsal:
    """A Stage, and all of its own world but the caller: queue, failures, archive."""

    def __init__(self, rules: Rules, caller: Caller = NOBODY) -> None:
        self._rules = rules
        self._changes: list[Change] = []
        self._messages: deque[Message] = deque()
        self._reports: list[Reported] = []
        self._objects: dict[tuple[str, str], Keep] = {}
        self._position = 0
        self.store = MemoryStore(rules.tables, self._note)
        self.world = World(self.store, self, KeptOnce(self, Limits()), self, caller)

    # ------------------------------------------------------------ the stage
    def do(self, deed: Deed) -> None:
        """Write to the store. Raises StoreError for what DynamoDB would reject."""
        match deed:
            case Put():
                self.store.put(deed.key.table, deed.item)
            case Update():
                self.store.update(deed.key, deed.sets, deed.removes)
            case Delete():
                self.store.delete(deed.key)
            case Expire():
                before = len(self._changes)
                self.store.delete(deed.key)
                self._changes[before:] = [replace(change, expired=True) for change in self._changes[before:]]

    def rest(self) -> bool:
        """Work until nothing is left."""
        for _ in range(ROUNDS_MAX):
            if self._changes:
                batch, self._changes = self._changes, []
                self._require(drive(process(batch, self._rules, Pace()), self.world))
            elif self._messages:
                self._require(drive(process_message(self._messages.popleft(), self._rules, Pace()), self.world))
            else:
                return True
        return False

    def item(self, key: ItemKey) -> Item | None:
        """An item as it is now."""
        return self.store.item(key)

    def objects(self, rule: str) -> Sequence[Item]:
        """What an archive rule has kept."""
        return [item for keep in self._objects.values() if keep.rule == rule for item in archived(keep.body)]

    def reports(self) -> Sequence[Reported]:
        """The failures so far."""
        return self._reports

    # ------------------------------------------------------------ the world
    def send(self, message: Message, _delay_seconds: int) -> None:
        """A Queue, without the waiting."""
        if not (isinstance(message, PullMessage | PartMessage | CallMessage) and message.attempt > 1):
            self._messages.append(message)

    def park(self, failure: Failure) -> None:
        """Failures."""
        self._reports.append((failure.rule, failure.reason))

    def keep(self, keep: Keep) -> None:
        """An Archive: what is there already is the same."""
        self._objects.setdefault((keep.bucket, keep.name), keep)

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        self._position += 1
        self._changes.append(Change(key, old, new, str(self._position)))

    @staticmethod
    def _require(report: Report) -> None:
        for unfinished in report.failed.values():
            raise StoreError(unfinished.reason, "no work may fail where nothing is lost or slow")


def archived(body: bytes) -> Iterator[Item]:
    """The items in an archived object."""
    for line in gzip.decompress(body).splitlines():
        yield json.loads(line, object_hook=_binary)["item"]


def _binary(value: dict[str, Any]) -> dict[str, Any]:
    """An attribute value out of JSON, in which binary is text."""
    match value:
        case {"B": str(text)} if len(value) == 1:
            return {"B": base64.b64decode(text)}
        case {"BS": [*texts]} if len(value) == 1 and all(isinstance(text, str) for text in texts):
            return {"BS": [base64.b64decode(text) for text in texts]}
    return value
