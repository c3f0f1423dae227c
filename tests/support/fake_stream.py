"""A stream in memory with a clock in hand: shards with parents, records, iterators that expire, records that are trimmed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sync_rules.jobs.streams import (
    IteratorExpiredError,
    RecordsPage,
    RecordsTrimmedError,
    Shard,
    ShardGoneError,
)
from sync_rules.model.errors import StoreError

ARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/shop/stream/2026-11-21T00:00:00.000"
NOON_MS = 1_800_000_000_000


@dataclass
class Clock:
    """A clock that only tests and sleeps move."""

    ms: int = NOON_MS

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += max(1, int(seconds * 1000))


def record(position: int | str, key: str = "a", *, at_ms: int = NOON_MS, **extra: Any) -> dict[str, Any]:
    """A record in the shape of a Lambda event."""
    keys = {"PK": {"S": key}}
    return {
        "eventID": f"event-{position}",
        "eventName": "MODIFY",
        "eventSourceARN": ARN,
        "dynamodb": {
            "Keys": keys,
            "SequenceNumber": str(position),
            "ApproximateCreationDateTime": at_ms / 1000,
            **extra,
        },
    }


def positions(event: Mapping[str, Any]) -> list[int]:
    return [int(r["dynamodb"]["SequenceNumber"]) for r in event["Records"]]


def failed(*found: Any) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": str(f) if isinstance(f, int) else f} for f in found]}


@dataclass
class FakeShard:
    parent: str | None = None
    closed: bool = False
    records: list[dict[str, Any]] = field(default_factory=list)
    trimmed_to: int = 0  # records up to this sequence number are gone


@dataclass
class FakeStream:
    """A StreamReader. `faults` are raised, in order, by the next calls of the named method. `held` are the shards of
    every stream but those in `other`; streams in `missing` do not exist.
    """

    held: dict[str, FakeShard] = field(default_factory=dict)
    other: dict[str, dict[str, FakeShard]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    faults: dict[str, list[Exception]] = field(default_factory=dict)
    page_max_records: int = 1_000
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def shards(self, stream_arn: str) -> tuple[Shard, ...]:
        self._fault("shards", stream_arn)
        if stream_arn in self.missing:
            raise StoreError("ResourceNotFoundException")
        return tuple(Shard(name, shard.parent) for name, shard in self._of(stream_arn).items())

    def _of(self, stream_arn: str) -> dict[str, FakeShard]:
        return {} if stream_arn in self.missing else self.other.get(stream_arn, self.held)

    def iterator(self, stream_arn: str, shard_id: str, after: str | None) -> str:
        self._fault("iterator", (shard_id, after))
        if shard_id not in self._of(stream_arn):
            raise ShardGoneError
        if after is not None and int(after) < self._of(stream_arn)[shard_id].trimmed_to:
            raise RecordsTrimmedError
        return json.dumps([shard_id, int(after or 0)])

    def records(self, stream_arn: str, iterator: str, limit: int) -> RecordsPage:
        self._fault("records", iterator)
        shard_id, after = json.loads(iterator)
        if shard_id not in self._of(stream_arn):
            raise ShardGoneError
        shard = self._of(stream_arn)[shard_id]
        after = max(after, shard.trimmed_to)
        left = [r for r in shard.records if int(r["dynamodb"]["SequenceNumber"]) > after]
        page = left[: min(limit, self.page_max_records)]
        if page:
            after = int(page[-1]["dynamodb"]["SequenceNumber"])
        at_end = shard.closed and len(page) == len(left)
        return RecordsPage(tuple(page), None if at_end else json.dumps([shard_id, after]))

    def _fault(self, method: str, detail: Any) -> None:
        self.calls.append((method, detail))
        if self.faults.get(method):
            raise self.faults[method].pop(0)


def throttled() -> StoreError:
    return StoreError("ProvisionedThroughputExceededException")


def expired() -> IteratorExpiredError:
    return IteratorExpiredError("ExpiredIteratorException")
