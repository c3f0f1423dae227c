"""Mutants of the fan-out page by page, each page by a worker of its own: stale images, rests and failures not sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.pipeline import consumer, fanout
from sync_rules.pipeline.messages import ChunkMessage, Message, PushMessage
from sync_rules.pipeline.requests import Later, Request
from tests.simulation.breaking import Mutant, Mutation, Work, answered, unsent
from tests.simulation.mutants_chunks import sent_anyway
from tests.simulation.worlds import among, small

RENAMED = small("", "copy", how="often-")
BASE, TWO = among("", "often-base"), among("", "often-two")


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
    "rest of a relay not sent": Mutation(
        dropping(lambda message, ahead: ahead and isinstance(message, PushMessage)), RENAMED
    ),
    "rest of a relay that comes again not sent": Mutation(
        dropping(lambda message, ahead: not ahead and isinstance(message, PushMessage)), RENAMED
    ),
    "failures of a relay not sent": Mutation(dropping(lambda message, _ahead: isinstance(message, ChunkMessage)), TWO),
    "relay done though a send failed": Mutation(asking(sent_anyway), BASE),
    "relay never fails": Mutation(relayed(failures_forgotten), RENAMED),
    "relay without parts": Mutation(no_parts, among("", "often-collect-numbers")),
    "relay forgets the removal": Mutation(asking(removal_forgotten), among("", "often-delete")),
}
