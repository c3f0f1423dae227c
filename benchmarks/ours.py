"""The pipeline as it runs in Lambda, in front of the engine: events in, copies out.

Invariant: this is the code of production with production's settings, and writes in batches. One difference: an event is
processed to its end here, while in Lambda other workers take the rest of a large fan-out; `shared` counts what they do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from unittest import mock

from benchmarks.answering import AFTER, BEFORE, SOURCE, target
from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import WORKERS, DynamoStore
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.meter import limit_store
from sync_rules.functions.runtime import relax_collector
from sync_rules.language.load import load_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure
from sync_rules.model.limits import Limits
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import Message, format_message, parse_message
from sync_rules.pipeline.requests import NULL_PORTS, Queue, World
from sync_rules.rules.ruleset import Rules

RULES_FILE: Final = Path(__file__).parent / "rules.yaml"
INLINE: Final = Limits(fan_out_inline_max_items=10**12)
MINUTE_MS: Final = 60_000


class NoFailures:
    """Failures that raise: no benchmark may fail."""

    def park(self, failure: Failure) -> None:
        raise AssertionError(failure)


class NoStore:
    """A store for records that need no request: any call of it is an error."""

    def __getattr__(self, name: str) -> Any:
        raise StoreError("NoStore", name)


def store_of(url: str, rules: Rules, workers: int = WORKERS) -> DynamoStore:
    """The store of production, with credentials as long as Lambda's although its address is on loopback."""
    with mock.patch.object(aws, "LOOPBACK", frozenset()):
        client = aws.dynamodb(url)
    return DynamoStore(client, rules.tables, write_mode="batch", workers=workers)


class Messages:
    """A queue that keeps every message as text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def send(self, message: Message, _delay_seconds: int) -> None:
        self.texts.append(format_message(message))


def consumer_of(
    url: str, workers: int = WORKERS, write_units: int | None = None, queue: Queue | None = None
) -> Consumer:
    """The pipeline of a process. `write_units` is its limit for each table, per second. With a `queue` it sends on what
    one invocation does not do.
    """
    relax_collector()  # as each invocation does
    rules = load_rules(RULES_FILE)
    limited = {name: replace(one, max_write_units_per_second=write_units) for name, one in rules.tables.items()}
    store = limit_store(store_of(url, rules, workers), limited)
    limits = INLINE if queue is None else Limits()
    return Consumer(rules, World(store, queue or NULL_PORTS, NoFailures()), THIS_PROCESS, limits=limits)


def idle_consumer(rules: Rules) -> Consumer:
    """A pipeline that must not make any request."""
    relax_collector()
    return Consumer(rules, World(NoStore(), NULL_PORTS, NoFailures()), THIS_PROCESS, limits=INLINE)


def handled(consumer: Consumer, event: dict[str, Any]) -> None:
    """Handle an event, and assert that no record failed."""
    answer = consumer.handle_event(event, lambda: MINUTE_MS)
    assert answer == {"batchItemFailures": []}, answer


def shared(url: str, event: dict[str, Any]) -> Callable[[], None]:
    """Work that handles an event, and then every message that comes of it, as workers would."""
    queue = Messages()
    consumer = consumer_of(url, 1, queue=queue)

    def work() -> None:
        handled(consumer, event)
        while queue.texts:
            consumer.handle_message(parse_message(queue.texts.pop(0)), lambda: MINUTE_MS)

    return work


# ---------------------------------------------------------------- events
def event_of(table: str, images: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """The event that Lambda makes of changes, given by old and new image: nothing in it is shared."""
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}/stream/2026-01-01T00:00:00.000"
    records = [
        {
            "eventID": f"{number:032x}",
            "eventName": "MODIFY",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "us-east-1",
            "eventSourceARN": arn,
            "dynamodb": {
                "ApproximateCreationDateTime": 1767225600.0,
                "Keys": {"PK": new["PK"], "SK": new["SK"]},
                "OldImage": old,
                "NewImage": new,
                "SequenceNumber": f"{number + 1:021}",
                "SizeBytes": 2_000,
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
        }
        for number, (old, new) in enumerate(images)
    ]
    event: dict[str, Any] = json.loads(json.dumps({"Records": records}))
    return event


def renamed(table: str, times: int = 1) -> dict[str, Any]:
    """An event in which the user was renamed `times` times in a row."""
    names = [BEFORE, *(f"Grace {number}" for number in range(1, times)), AFTER]
    user = [{**SOURCE, "name": {"S": name}} for name in names]
    return event_of(table, pairwise(user))


def copied(table: str, count: int) -> dict[str, Any]:
    """The event that the pipeline's own writes on the first `count` targets cause."""
    return event_of(table, ((target(table, n), target(table, n, AFTER)) for n in range(count)))
