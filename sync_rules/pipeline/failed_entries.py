"""Reads entries of failure stores: failure records, batches that were given up, messages that could not be processed.

Invariant: the form of an entry decides how it is read, not its store. An entry of an unknown form is reported and left.

A batch is the record that Lambda makes for an on-failure destination ("Retaining discarded records for a DynamoDB data
source", services-dynamodb-errors): with `payload`, the whole event as JSON text, in S3 and in the batches file of
`sync-rules run`; without it, in a queue, only the range of sequence numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from sync_rules.model import json_bytes
from sync_rules.model.errors import RecordError
from sync_rules.pipeline.failure_records import FailureRecord, format_time, parse_time, read_failure_record
from sync_rules.pipeline.messages import KINDS, Message, parse_message

REDRIVEN = "redriven"  # the field of a batch that says when and why its retry failed


@dataclass(frozen=True, slots=True)
class FailedEntry:
    """One failure, as its store keeps it. `where` is the place for people, `handle` the place for the store."""

    text: bytes = field(repr=False)  # may hold values of an item
    where: str
    handle: Any = field(default=None, repr=False)


class FailureStore(Protocol):
    """A file, a queue or a bucket that keeps entries."""

    def entries(self) -> Iterator[FailedEntry]:
        """Yield each entry that the store holds now, once. Raises StoreError, or UserError if the store does not
        exist.
        """

    def remove(self, entry: FailedEntry) -> None:
        """Remove an entry that was processed, by the end of `close` at the latest. Raises StoreError."""

    def replace(self, entry: FailedEntry, text: str) -> None:
        """Rewrite an entry after a failed retry. A store that cannot write leaves it as it is."""

    def release(self, entry: FailedEntry) -> None:
        """Give back an entry that was not tried. The next reader finds it."""

    def close(self) -> None:
        """End the work on these entries. The next reader finds the entries that remain. Raises StoreError."""


@dataclass(frozen=True, slots=True)
class Span:
    """The sequence numbers of a shard from `first` to `last`, both included."""

    stream_arn: str
    shard_id: str
    first: str
    last: str


@dataclass(frozen=True)
class GivenUp:
    """A batch that Lambda or `run` gave up. `event`: the event of the function, None if only its span is known.

    `reason`: why the last retry failed, "" if there was none.
    """

    span: Span
    event: Mapping[str, Any] | None = field(repr=False)
    condition: str = ""
    function: str = ""
    records: int = 0
    first: datetime | None = None
    last: datetime | None = None
    reason: str = ""
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def is_of(self, function: str) -> bool:
        """True for a batch of this function, given by its name or its ARN, with or without a version."""
        names = self.function.split(":")
        return function in (self.function, ":".join(names[:7]), *names[6:7])

    def again(self, reason: str, at: datetime) -> dict[str, Any]:
        """Return the record of this batch for JSON after a failed retry, with its reason and time."""
        return {**self.body, REDRIVEN: {"reason": reason, "at": format_time(at)}}


Failed = FailureRecord | GivenUp | Message


def read_entry(text: bytes | str) -> Failed:
    """Read an entry: a failure record, a batch that was given up, or a message.

    Raises:
        RecordError: when it is not JSON or has another form.
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
        body = json_bytes.parse_json(text)
    except (ValueError, RecursionError) as error:
        raise RecordError("not JSON") from error
    if not isinstance(body, dict):
        raise RecordError("not a JSON object")
    if "DDBStreamBatchInfo" in body:
        return _read_batch(body)
    if body.get("kind") in KINDS.values():
        return parse_message(text)
    if "reason" in body and "rule" in body:
        return read_failure_record(body)
    raise RecordError("unknown form: expected a failure record, a batch that was given up, or a message of sync-rules")


def _read_batch(body: dict[str, Any]) -> GivenUp:
    info, context = _read_map(body["DDBStreamBatchInfo"]), _read_map(body.get("requestContext"))
    span = Span(
        *(_read_text(info, name) for name in ("streamArn", "shardId", "startSequenceNumber", "endSequenceNumber"))
    )
    event = _parse_event(body["payload"]) if body.get("payload") is not None else None
    if event is None and not all((span.stream_arn, span.shard_id, span.first.isdigit(), span.last.isdigit())):
        raise RecordError("the record of a batch has neither a payload nor a range of sequence numbers")
    size = info.get("batchSize")
    return GivenUp(
        span,
        event,
        condition=_read_text(context, "condition"),
        function=_read_text(context, "functionArn"),
        records=len(event["Records"]) if event is not None else size if isinstance(size, int) else 0,
        first=_parse_time(_read_text(info, "approximateArrivalOfFirstRecord")),
        last=_parse_time(_read_text(info, "approximateArrivalOfLastRecord")),
        reason=_read_text(_read_map(body.get(REDRIVEN)), "reason"),
        body=body,
    )


def _parse_event(payload: object) -> Mapping[str, Any]:
    """The event: JSON text as Lambda writes it, or a map, as some emulators and recordings have it."""
    try:
        event = json_bytes.parse_json(payload) if isinstance(payload, str) else payload
    except (ValueError, RecursionError) as error:
        raise RecordError("the payload of a batch is not JSON") from error
    if not isinstance(event, dict) or not isinstance(event.get("Records"), list):
        raise RecordError("the payload of a batch is not an event with Records")
    return event


def _read_map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _parse_time(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except ValueError:
        return None


# ---------------------------------------------------------------- grouped
@dataclass
class FailureGroup:
    """Failures of one sort. `what` is the rule, the condition and shard, or the kind of message. `records` counts the
    stream records of batches. `items`: hashes of the failed items; an item may have many records.
    """

    sort: str  # failures, batches, messages, unreadable
    what: str
    reason: str
    count: int = 0
    records: int = 0
    first: datetime | None = None
    last: datetime | None = None
    function: str = ""
    example: str = ""
    items: set[int] = field(default_factory=set)


def group_failures(entries: Iterable[tuple[FailedEntry, Failed | RecordError]]) -> list[FailureGroup]:
    """Group failure records by rule and reason, batches by condition and shard, messages by kind; largest first."""
    groups: dict[tuple[str, str, str], FailureGroup] = {}
    for entry, one in entries:
        fresh = _describe_entry(entry, one)
        group = groups.setdefault((fresh.sort, fresh.what, fresh.reason), fresh)
        group.count += 1
        if isinstance(one, FailureRecord):
            table, key = one.about
            group.items.add(hash((table, json.dumps(key, sort_keys=True))))
        if group is not fresh:
            group.records += fresh.records
            group.first = min(filter(None, (group.first, fresh.first)), default=None)
            group.last = max(filter(None, (group.last, fresh.last)), default=None)
    return sorted(groups.values(), key=lambda group: (group.sort, -group.count, group.what, group.reason))


def _describe_entry(entry: FailedEntry, one: Failed | RecordError) -> FailureGroup:
    match one:
        case FailureRecord():
            _, key = one.about
            example = entry.where if key is None else json.dumps(key)
            return FailureGroup("failures", one.rule, one.reason, first=one.first, last=one.last, example=example)
        case GivenUp():
            what = f"{one.condition or 'given up'} in {one.span.shard_id or 'an unknown shard'}"
            return FailureGroup(
                "batches", what, one.reason, 0, one.records, one.first, one.last, one.function, entry.where
            )
        case RecordError():
            return FailureGroup("unreadable", "unreadable", str(one), example=entry.where)
    return FailureGroup("messages", f"{KINDS[type(one)]} message", "", example=entry.where)
