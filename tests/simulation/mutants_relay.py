"""Mutants of the fan-out page by page, each page by a worker of its own: stale images, rests and failures not sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.pipeline import consumer, fanout
from sync_rules.pipeline.messages import ChunkMessage, Message, PushMessage
from sync_rules.pipeline.requests import Later, List, Request
from tests.simulation.breaking import Mutant, Mutation, Work, answered, at_each_history, unsent
from tests.simulation.mutants_chunks import sent_anyway
from tests.simulation.mutants_reads import value_in_message
from tests.simulation.worlds import among

TABLES = ("often-base", "often-keep", "often-two")
RENAMED = among("", *TABLES)


def relayed(change: Callable[..., Work]) -> Mutant:
    """`relay` replaced by a generator function of it, the pushes, and its other arguments."""
    original = fanout.relay

    def relay(pushes: Any, rules: Any, bounds: Any, *, ahead: bool) -> Work:
        return change(original, pushes, rules, bounds, ahead=ahead)

    return lambda: patch.object(consumer, "relay", relay)


def asking(ask: Callable[[Request], Work]) -> Mutant:
    """All requests of a relay go through `ask`."""
    return relayed(lambda original, *args, ahead: answered(original(*args, ahead=ahead), ask))


# ---------------------------------------------------------------- what is looked at
def showing(rows: dict[Any, Any]) -> Mutant:
    """The rows that relays list are kept by key, the first of each, and shown again by later pages."""

    def relay(original: Any, pushes: Any, *args: Any, ahead: bool) -> Work:
        tables = {push.rules[0].listed_entity.table.name: push.rules[0].listed_entity.table for push in pushes}

        def ask(request: Request) -> Work:
            answer = yield request
            if not isinstance(request, List):
                return answer
            keys = [tables[request.table].key_of(item) for item in answer.items]
            seen = rows.setdefault(request.attributes, {})  # by other rules an item may be read in another part
            its = tuple(seen.setdefault(key, item) for key, item in zip(keys, answer.items, strict=True))
            return replace(answer, items=its)

        return answered(original(pushes, *args, ahead=ahead), ask)

    return relayed(relay)


@contextmanager
def rows_of_before() -> Iterator[None]:
    """Mutant: a worker takes rows for images that were kept, or sent on, when they were listed for an earlier change."""
    rows: dict[Any, Any] = {}
    with at_each_history(rows.clear), showing(rows)():
        yield


# ---------------------------------------------------------------- what is sent
def dropping(dropped: Callable[[Message, bool], bool]) -> Mutant:
    """Mutant: some messages of a relay are not sent, chosen by themselves and by whether the rest goes ahead."""

    def relay(original: Any, *args: Any, ahead: bool) -> Work:
        return answered(original(*args, ahead=ahead), unsent(lambda message: dropped(message, ahead)))

    return relayed(relay)


def no_parts() -> Any:
    """Mutant: of what workers list only the targets are looked at, not the parts."""
    original = fanout.list_parts
    return patch.object(
        fanout, "list_parts", lambda push, *args: [] if push.spread and not push.index else original(push, *args)
    )


def removal_forgotten(request: Request) -> Work:
    if isinstance(request, Later) and isinstance(request.message, PushMessage | ChunkMessage):
        request = replace(request, message=replace(request.message, removed=False))
    return (yield request)


def failures_forgotten(original: Any, *args: Any, ahead: bool) -> Work:
    report = yield from original(*args, ahead=ahead)
    report.failed = {}
    return report


MUTANTS = {
    "relay takes the source of its sender": Mutation(value_in_message, RENAMED),
    "relay takes kept rows for images": Mutation(rows_of_before, RENAMED),
    "rest of a relay not sent": Mutation(
        dropping(lambda message, ahead: ahead and isinstance(message, PushMessage)), RENAMED
    ),
    "rest of a relay that comes again not sent": Mutation(
        dropping(lambda message, ahead: not ahead and isinstance(message, PushMessage)), RENAMED
    ),
    "failures of a relay not sent": Mutation(
        dropping(lambda message, _ahead: isinstance(message, ChunkMessage)), RENAMED
    ),
    "relay done though a send failed": Mutation(asking(sent_anyway), RENAMED),
    "relay never fails": Mutation(relayed(failures_forgotten), RENAMED),
    "relay without parts": Mutation(no_parts, among("", "often-collect-numbers")),
    "relay forgets the removal": Mutation(asking(removal_forgotten), among("", "often-delete", "often-two-delete")),
}
