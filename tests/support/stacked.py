"""A stack over a store in memory, updated as CloudFormation does it: books asked about, handlers replaced, rolled back."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import MemoryState
from sync_rules.functions import books_resource
from sync_rules.functions.books_resource import AFTER, KEPT, RESPONSE_URL, answer_stack
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.pipeline.books import list_rules_by_identity
from sync_rules.pipeline.consumer import Consumer
from sync_rules.rules.ruleset import Rules
from tests.support.worlds import Scene

BOOKS, STREAM, EMPTY = "Books", "StreamFunction", "EmptyBooks"
ORDER = (BOOKS, STREAM, EMPTY)
TYPES = {BOOKS: "Custom::SyncRulesBooks", EMPTY: AFTER}


class Stack:
    """A stack that is created, updated and rolled back."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.rules = scene.rules  # of the template
        self.answering = scene.rules  # of the function that answers CloudFormation

    def create(self) -> None:
        """Create the stack, of the rules that it has."""
        for resource in ORDER:
            self._move(resource, None, self.rules)

    def update(self, new: Rules, *, fails_at: str | None = None) -> None:
        """Deploy other rules. `fails_at` names the resource after which the update fails and is rolled back."""
        old, self.answering = self.rules, new
        for resource in ORDER:
            self._move(resource, old, new)
            if resource == fails_at:
                done = ORDER[: ORDER.index(resource) + 1]
                self.answering = old
                for one in done:
                    self._move(one, new, old)
                return
        self.rules = new

    def _move(self, resource: str, old: Rules | None, new: Rules) -> None:
        if resource == STREAM:
            self.scene.rules = new
            self.scene.consumer = Consumer(new, self.scene.world, THIS_PROCESS)
        else:
            self._ask(resource, _properties(old), _properties(new))

    def _ask(self, resource: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        """Ask as CloudFormation does: it leaves out what did not change, and keeps what goes until all is well."""
        if new is None or old == new:
            return
        event = {"RequestType": "Create" if old is None else "Update", "ResourceType": TYPES[resource]}
        event |= {"ResourceProperties": new, RESPONSE_URL: "", **({"OldResourceProperties": old} if old else {})}
        with patch.object(books_resource, "_put", lambda *_args: None):
            answer_stack(event, lambda: (self.answering, self.scene.world))


def _properties(rules: Rules | None) -> dict[str, Any] | None:
    kept = [] if rules is None else sorted(list_rules_by_identity(rules))
    return {KEPT: kept} if kept else None


def backfill_of(scene: Scene) -> BackfillRun:
    """A backfill of everything, that is not begun."""
    names = frozenset(scene.rules.rules)
    return BackfillRun(
        Selection(scene.rules, names), scene.tap, scene.parked, MemoryState(), {},
        supplies=make_supplies(scene.rules, 2), completes=names, sleep=lambda _seconds: None,
    )  # fmt: skip
