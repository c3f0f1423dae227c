"""Decisions on a batch of stream records: which records failed, which are retried, which are given up. Pure.

Invariant: a record leaves a batch in two ways only: the function processed it, or it went to the on-failure
destination. The rules are those of a Lambda event source mapping, in the Lambda developer guide:
"Configuring partial batch response with DynamoDB and Lambda" (services-ddb-batchfailurereporting), "Parameters for
DynamoDB event source mappings" (services-ddb-params) and "Retaining discarded records" (services-dynamodb-errors).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

Answer = Mapping[str, Any] | None


@dataclass(frozen=True)
class MappingSettings:
    """The settings of an event source mapping, named as Lambda names them, and limits that Lambda does not show.

    Defaults are those of services-ddb-params, but for two. Retries are finite: with Lambda's default (-1) one record
    that always fails holds its shard for a day. A batch that throws is always split, and a batch never waits to fill.
    `payload_max_bytes` is that of a synchronous invocation, `poll_idle_ms` Lambda's base rate of four polls a second
    and shard; `poll_busy_ms` is that after an empty page of a shard that brought records in the last `busy_ms`. AWS
    documents no backoff: this one is ours.
    """

    batch_size: int = 100
    parallelization_factor: int = 1
    maximum_retry_attempts: int = 10
    payload_max_bytes: int = 6 * 1024 * 1024
    poll_idle_ms: int = 250
    poll_busy_ms: int = 250
    busy_ms: int = 10_000
    shard_refresh_ms: int = 10_000
    retry_first_ms: int = 500
    retry_max_ms: int = 30_000
    read_ahead_max_records: int = 2_000
    idle_after_empty_reads: int = 3
    function_arn: str = "local:sync-rules"

    def backoff_ms(self, attempts: int) -> int:
        """Milliseconds to wait after this many failed attempts (1, 2, ...)."""
        return int(min(self.retry_max_ms, self.retry_first_ms * 2.0 ** min(attempts - 1, 20)))


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One record of a shard. `body` has the shape of a record in a Lambda event."""

    position: str
    body: Mapping[str, Any] = field(repr=False)  # holds values of an item
    key: str = field(repr=False)
    size_bytes: int
    created_ms: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Records that are delivered together. `retries` counts against the retry quota, `invokes` counts all attempts."""

    records: tuple[StreamRecord, ...]
    due_ms: int = 0
    retries: int = 0
    invokes: int = 0

    def event(self) -> dict[str, Any]:
        """Return the event for the function call."""
        return {"Records": [record.body for record in self.records]}


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """The result of an attempt: finished records, batches to try (again) in order, and a batch that is given up."""

    finished: tuple[StreamRecord, ...] = ()
    again: tuple[Batch, ...] = ()
    dropped: Batch | None = None


def find_first_failure(batch: Batch, answer: Answer) -> int:
    """Return the index of the first failed record in the batch; the length of the batch if none failed. A null or empty
    answer or list is a success. An identifier that is missing, empty, null or of no record in the batch makes the
    whole batch fail. Of several, the lowest sequence number counts, compared as a number: widths differ.
    """
    failures = answer.get("batchItemFailures") if isinstance(answer, Mapping) else None
    if not failures:
        return len(batch.records)
    places = {record.position: place for place, record in reversed(list(enumerate(batch.records)))}
    reported = [failure.get("itemIdentifier") if isinstance(failure, Mapping) else None for failure in failures]
    known = [name for name in reported if isinstance(name, str) and name in places]
    return places[min(known, key=int)] if len(known) == len(reported) else 0


def evaluate(batch: Batch, answer: Answer, *, thrown: bool, settings: MappingSettings, now_ms: int) -> AttemptResult:
    """Return what follows from an attempt. A split does not consume the retry quota. A thrown error splits the batch in
    half. A partial failure splits it at the lowest reported record, and the rest starts with a full quota. On AWS, a
    record that always fails, delivered third in a batch of three with three retries, is delivered five times in all.
    """
    tried = replace(batch, invokes=batch.invokes + 1)
    place = 0 if thrown else find_first_failure(batch, answer)
    if place == len(batch.records):
        return AttemptResult(finished=batch.records)
    if place > 0:
        rest = Batch(batch.records[place:], due_ms=now_ms + settings.backoff_ms(1))
        return AttemptResult(finished=batch.records[:place], again=(rest,))
    if thrown and len(batch.records) > 1:
        middle = len(batch.records) // 2
        halves = batch.records[:middle], batch.records[middle:]
        return AttemptResult(again=tuple(replace(tried, records=half, due_ms=now_ms) for half in halves))
    if batch.retries >= settings.maximum_retry_attempts:
        return AttemptResult(dropped=tried)
    retries = batch.retries + 1
    return AttemptResult(again=(replace(tried, retries=retries, due_ms=now_ms + settings.backoff_ms(retries)),))


def make_invocation_record(
    result: AttemptResult,
    *,
    shard_id: str,
    stream_arn: str,
    request_id: str,
    thrown: bool,
    settings: MappingSettings,
    now_ms: int,
) -> dict[str, Any]:
    """Make the record for the on-failure destination, in the form for S3: `payload` is the whole event as JSON text."""
    batch = result.dropped
    assert batch is not None
    error = {"functionError": "Unhandled"} if thrown else {}
    return {
        "requestContext": {
            "requestId": request_id,
            "functionArn": settings.function_arn,
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": batch.invokes,
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", **error},
        "version": "1.0",
        "timestamp": _format_time(now_ms, "milliseconds"),
        "DDBStreamBatchInfo": {
            "shardId": shard_id,
            "startSequenceNumber": batch.records[0].position,
            "endSequenceNumber": batch.records[-1].position,
            "approximateArrivalOfFirstRecord": _format_time(batch.records[0].created_ms, "seconds"),
            "approximateArrivalOfLastRecord": _format_time(batch.records[-1].created_ms, "seconds"),
            "batchSize": len(batch.records),
            "streamArn": stream_arn,
        },
        "payload": json.dumps(batch.event(), ensure_ascii=False),
    }


def _format_time(ms: int, precision: str) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec=precision).replace("+00:00", "Z")
