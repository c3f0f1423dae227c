"""Counts the requests of a client, so that a test can assert their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final

from sync_rules.adapters.plain_client import unwrap_client

METHODS: Final = {
    "query": "Query",
    "scan": "Scan",
    "get_item": "GetItem",
    "batch_get_item": "BatchGetItem",
    "transact_get_items": "TransactGetItems",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "batch_write_item": "BatchWriteItem",
    "transact_write_items": "TransactWriteItems",
}


@dataclass
class Requests:
    """The requests so far: the operation of each, such as Query."""

    operations: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of requests."""
        return len(self.operations)

    @property
    def by_operation(self) -> Mapping[str, int]:
        """The number of requests of each operation that was called."""
        return {name: self.operations.count(name) for name in dict.fromkeys(self.operations)}


@contextmanager
def requests_of(client: Any) -> Iterator[Requests]:
    """Count all requests that a client makes within the block. A request that is retried counts once. For a boto3
    client, resource or table, all operations of its client count. Any other object needs methods of their names.
    """
    found, client = Requests(), unwrap_client(client)
    events = getattr(getattr(client, "meta", None), "events", None)
    with _count_boto3_requests(events, found) if events is not None else _count_method_calls(client, found):
        yield found


@contextmanager
def _count_boto3_requests(events: Any, found: Requests) -> Iterator[None]:
    def counts(model: Any, **_: Any) -> None:
        found.operations.append(model.name)

    events.register("before-parameter-build.dynamodb", counts)
    try:
        yield
    finally:
        events.unregister("before-parameter-build.dynamodb", counts)


@contextmanager
def _count_method_calls(client: Any, found: Requests) -> Iterator[None]:
    before = {name: vars(client)[name] for name in METHODS if name in vars(client)}
    for name, operation in METHODS.items():
        if hasattr(client, name):
            setattr(client, name, _count_calls(getattr(client, name), operation, found))
    try:
        yield
    finally:
        for name in METHODS.keys() & vars(client).keys():
            delattr(client, name)
        for name, method in before.items():
            setattr(client, name, method)


def _count_calls(method: Callable[..., Any], operation: str, found: Requests) -> Callable[..., Any]:
    @wraps(method)
    def counts(*arguments: Any, **named: Any) -> Any:
        found.operations.append(operation)
        return method(*arguments, **named)

    return counts
