"""DynamoDB Streams: shards, iterators, pages of records in the shape of a Lambda event, and spans of a shard.

Invariant: a consumer gets the same Lambda event from every reader of the stream. The API differs from the event in four
things. Binary is bytes (base64 text in the event), and the creation time is a datetime (epoch seconds). `userIdentity`
has PrincipalId and Type (principalId and type). A record does not name its stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from sync_rules.adapters import aws_errors, retries
from sync_rules.model.errors import RecordError, StoreError, SyncRulesError
from sync_rules.model.json_bytes import encode_base64
from sync_rules.pipeline.failed_entries import Span
from sync_rules.pipeline.records import read_position

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient


PAGE_MAX_RECORDS: Final = 1_000  # GetRecords returns at most 1,000 records or 1 MB
EMPTY_PAGES_MAX: Final = 20  # a page may be empty in the middle of a shard
TRIMMED: Final = "its records are no longer in the stream: `sync-rules verify --repair` writes what they would have"


class IteratorExpiredError(SyncRulesError):
    """A shard iterator is older than 15 minutes. The caller gets a new iterator, after the last record read."""


class RecordsTrimmedError(SyncRulesError):
    """The records are older than 24 hours, and the stream no longer has them. The caller continues at the oldest
    record.
    """


class ShardGoneError(SyncRulesError):
    """The shard was not found: it was trimmed, or is so new that not every server knows it. `shards` shows which."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a stream. A shard is read only after its parent."""

    shard_id: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """Records of a shard in order, maybe none. `iterator` is None after a closed shard is read to its end."""

    records: tuple[Mapping[str, Any], ...]
    iterator: str | None


class StreamReader(Protocol):
    """A reader of streams. Each method may raise StoreError; the caller may then repeat the call."""

    def shards(self, stream_arn: str) -> tuple[Shard, ...]:
        """Return every shard that still holds records or takes new records, in no particular order."""

    def iterator(self, stream_arn: str, shard_id: str, after: str | None) -> str:
        """Return an iterator after a sequence number, or at the oldest record if `after` is None. Raises
        RecordsTrimmedError and ShardGoneError.
        """

    def records(self, stream_arn: str, iterator: str, limit: int) -> RecordsPage:
        """Return up to `limit` records in the shape of a Lambda event. Raises IteratorExpiredError, RecordsTrimmedError
        and ShardGoneError.
        """


KNOWN: Final[Mapping[str, type[SyncRulesError]]] = {
    "ExpiredIteratorException": IteratorExpiredError,
    "TrimmedDataAccessException": RecordsTrimmedError,
    "ResourceNotFoundException": ShardGoneError,
}


class DynamoDBStreams:
    """A StreamReader over a dynamodbstreams client."""

    def __init__(self, client: DynamoDBStreamsClient) -> None:
        self._client = client
        self._once = retries.make_retry(attempts_max=1)  # the mapping tries again

    def shards(self, stream_arn: str) -> tuple[Shard, ...]:
        found: dict[str, Shard] = {}
        start: dict[str, str] = {}
        while True:
            description = self._call("describe_stream", StreamArn=stream_arn, **start)["StreamDescription"]
            for shard in description["Shards"]:
                found[shard["ShardId"]] = Shard(shard["ShardId"], shard.get("ParentShardId"))
            last = description.get("LastEvaluatedShardId")
            if not last:
                return tuple(found.values())
            start = {"ExclusiveStartShardId": last}

    def iterator(self, stream_arn: str, shard_id: str, after: str | None) -> str:
        if after is None:
            return self._iterator(stream_arn, shard_id, ShardIteratorType="TRIM_HORIZON")
        return self._iterator(stream_arn, shard_id, ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=after)

    def iterator_at(self, stream_arn: str, shard_id: str, position: str) -> str:
        """Return an iterator at the record of a sequence number. Raises RecordsTrimmedError and ShardGoneError."""
        return self._iterator(stream_arn, shard_id, ShardIteratorType="AT_SEQUENCE_NUMBER", SequenceNumber=position)

    def latest(self, stream_arn: str, shard_id: str) -> str:
        """Return an iterator after the newest record. Raises RecordsTrimmedError and ShardGoneError."""
        return self._iterator(stream_arn, shard_id, ShardIteratorType="LATEST")

    def _iterator(self, stream_arn: str, shard_id: str, **place: str) -> str:
        answer = self._call("get_shard_iterator", StreamArn=stream_arn, ShardId=shard_id, **place)
        return str(answer["ShardIterator"])

    def records(self, stream_arn: str, iterator: str, limit: int) -> RecordsPage:
        answer = self._call("get_records", ShardIterator=iterator, Limit=min(limit, PAGE_MAX_RECORDS))
        records = tuple(make_event_record(record, stream_arn) for record in answer["Records"])
        return RecordsPage(records, answer.get("NextShardIterator"))

    def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            return self._once(getattr(self._client, operation), **parameters)
        except aws_errors.ERRORS as error:
            code = aws_errors.read_code(error)
            if operation != "describe_stream" and code in KNOWN:
                raise KNOWN[code](code) from error
            raise StoreError(code, f"{operation} of a stream was not answered") from error


def make_event_record(record: Mapping[str, Any], stream_arn: str) -> dict[str, Any]:
    """Convert a record of GetRecords to the shape of a Lambda event, ready for JSON."""
    change = dict(record["dynamodb"])
    created = change.get("ApproximateCreationDateTime")
    if isinstance(created, datetime):
        change["ApproximateCreationDateTime"] = created.timestamp()
    for image in ("Keys", "NewImage", "OldImage"):
        if image in change:
            change[image] = encode_binary(change[image])
    shaped = {**record, "dynamodb": change, "eventSource": "aws:dynamodb", "eventSourceARN": stream_arn}
    shaped.setdefault("awsRegion", parse_region(stream_arn))
    identity = record.get("userIdentity")
    if identity:
        shaped["userIdentity"] = {name[:1].lower() + name[1:]: value for name, value in identity.items()}
    return shaped


def encode_binary(value: Any) -> Any:
    """Return a value with all bytes in it replaced by base64 text, ready for JSON."""
    if isinstance(value, bytes):
        return encode_base64(value)
    if isinstance(value, Mapping):
        return {name: encode_binary(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [encode_binary(inner) for inner in value]
    return value


def parse_region(stream_arn: str) -> str:
    """Return the region in arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL; "" for an ARN of another shape."""
    parts = stream_arn.split(":")
    return parts[3] if len(parts) > 3 else ""  # noqa: PLR2004 - the fourth part of an ARN


def parse_table_arn(stream_arn: str) -> str:
    """Return the ARN of a stream's table: the stream's ARN without its label."""
    return stream_arn.partition("/stream/")[0]


def read_span(reader: DynamoDBStreams, span: Span) -> Iterator[list[Any]]:
    """Read the records of a span in pages, in order.

    Raises:
        RecordError: at the end, if some of the records are no longer in the stream.
        StoreError: if the stream does not answer.
    """
    try:
        yield from _read_pages(reader, span)
    except (RecordsTrimmedError, ShardGoneError) as error:
        raise RecordError(TRIMMED) from error
    except IteratorExpiredError as error:
        raise StoreError("IteratorExpired") from error


def _read_pages(reader: DynamoDBStreams, span: Span) -> Iterator[list[Any]]:
    last = int(span.last)
    iterator: str | None = reader.iterator_at(span.stream_arn, span.shard_id, span.first)
    reached: int | None = None
    began_late = False
    empty = 0
    while iterator is not None and (reached is None or reached < last) and empty < EMPTY_PAGES_MAX:
        page = reader.records(span.stream_arn, iterator, PAGE_MAX_RECORDS)
        iterator = page.iterator
        empty = 0 if page.records else empty + 1
        if not page.records:
            continue
        if reached is None:
            began_late = int(read_position(page.records[0])) > int(span.first)
        reached = int(read_position(page.records[-1]))
        wanted = [record for record in page.records if int(read_position(record)) <= last]
        if wanted:
            yield wanted
    if began_late:
        raise RecordError(f"some of {TRIMMED}")
    if reached is None or reached < last:
        raise RecordError(f"the shard ends before record {span.last}: run `sync-rules verify --repair`")
