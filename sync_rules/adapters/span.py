"""The records of a span of sequence numbers, read from a stream while it holds them: for 24 hours.

Law: a span is read whole, or it is said that it was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Protocol

from sync_rules.adapters.streams import (
    PAGE_MAX_RECORDS,
    IteratorExpiredError,
    RecordsPage,
    RecordsTrimmedError,
    ShardGoneError,
)
from sync_rules.model.errors import RecordError, StoreError
from sync_rules.pipeline.failed_entries import Span
from sync_rules.pipeline.records import position_of

EMPTY_PAGES_MAX: Final = 20  # a page may be empty in the middle of a shard
TRIMMED: Final = "its records are no longer in the stream: `sync-rules verify --repair` mends what they would have"


class SpanReader(Protocol):
    """The part of a stream reader that a span is read by. Each call may raise StoreError."""

    def iterator_at(self, stream_arn: str, shard_id: str, position: str) -> str:
        """Where the record of this sequence number is read. Raises RecordsTrimmedError, ShardGoneError."""
        ...

    def records(self, stream_arn: str, iterator: str, limit: int) -> RecordsPage:
        """Up to `limit` records in the shape of a Lambda event. Raises like `iterator_at`, and IteratorExpiredError."""
        ...


def read_span(reader: SpanReader, span: Span) -> Iterator[list[Any]]:
    """The records in pages, in order.

    Raises:
        RecordError: at the end, when they are not all there any more.
        StoreError: when the stream does not answer.
    """
    try:
        yield from _pages(reader, span)
    except (RecordsTrimmedError, ShardGoneError) as error:
        raise RecordError(TRIMMED) from error
    except IteratorExpiredError as error:
        raise StoreError("IteratorExpired") from error


def _pages(reader: SpanReader, span: Span) -> Iterator[list[Any]]:
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
            began_late = int(position_of(page.records[0])) > int(span.first)
        reached = int(position_of(page.records[-1]))
        wanted = [record for record in page.records if int(position_of(record)) <= last]
        if wanted:
            yield wanted
    if began_late:
        raise RecordError(f"some of {TRIMMED}")
    if reached is None or reached < last:
        raise RecordError(f"the shard was read to its end, and there is no record {span.last} in it")
