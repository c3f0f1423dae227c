"""The progress of one shard: the records that wait, in lanes, and the position up to which all are finished.

Invariant: the position of a shard passes finished records only. Records of one item share a lane, and one batch of a
lane is delivered at a time, so the order per item holds whatever the parallelization ("in-order processing at the item
(partition and sort key) level", Lambda's services-ddb-params).
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sync_rules.jobs.consume.attempts import AttemptResult, Batch, MappingSettings, StreamRecord


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """The progress of a shard, for a restart. All records up to the sequence number `after` are finished; `done`: all
    records.
    """

    shard_id: str
    parent_id: str | None = None
    after: str | None = None
    done: bool = False


@dataclass
class Lane:
    """The records of some items of a shard: batches to try, in order, and records that no batch holds yet."""

    again: deque[Batch] = field(default_factory=deque)
    waiting: deque[StreamRecord] = field(default_factory=deque)

    def find_next_batch(self, settings: MappingSettings, now_ms: int) -> Batch | None:
        """Return the batch that may be sent now, or None. It is a batch to retry, or as many waiting records as fit."""
        if not self.again and self.waiting:
            taken = tuple(_select_batch(self.waiting, settings))
            for _ in taken:
                self.waiting.popleft()
            self.again.append(Batch(taken))
        return self.again[0] if self.again and self.again[0].due_ms <= now_ms else None

    def replace_batch(self, result: AttemptResult) -> None:
        """Replace the batch that was tried by the batches to try next."""
        self.again.popleft()
        self.again.extendleft(reversed(result.again))


class ShardQueue:
    """The unfinished records of one shard that were read, and the position before the first of them."""

    def __init__(self, progress: ShardProgress, settings: MappingSettings) -> None:
        self.shard_id = progress.shard_id
        self.parent_id = progress.parent_id
        self.last_read = progress.after
        self.closed = progress.done  # read to its end
        self._after = progress.after
        self._settings = settings
        self._lanes = [Lane() for _ in range(settings.parallelization_factor)]
        self._unfinished: deque[str] = deque()  # positions in reading order, from the first that is not finished
        self._finished: set[str] = set()  # of these, the finished ones ahead of the first

    @property
    def progress(self) -> ShardProgress:
        return ShardProgress(self.shard_id, self.parent_id, self._after, done=self.is_done)

    @property
    def is_done(self) -> bool:
        return self.closed and not self._unfinished

    @property
    def outstanding_count(self) -> int:
        """Number of records that are read and not yet passed by the position."""
        return len(self._unfinished)

    def add(self, bodies: Iterable[Mapping[str, Any]], now_ms: int) -> int:
        """Add records as read. Return the number of new records: after a restart some are known."""
        added = 0
        for body in bodies:
            record = make_stream_record(body, now_ms)
            if self.last_read is not None and int(record.position) <= int(self.last_read):
                continue
            self.last_read = record.position
            self._unfinished.append(record.position)
            self._lanes[zlib.crc32(record.key.encode()) % len(self._lanes)].waiting.append(record)
            added += 1
        return added

    def ready(self, now_ms: int) -> Iterator[tuple[Lane, Batch]]:
        """List the batches that may be sent now, at most one of each lane."""
        for lane in self._lanes:
            batch = lane.find_next_batch(self._settings, now_ms)
            if batch is not None:
                yield lane, batch

    def finish(self, records: Iterable[StreamRecord]) -> None:
        """Mark records as finished, and move the position to just before the first unfinished record."""
        self._finished.update(record.position for record in records)
        while self._unfinished and self._unfinished[0] in self._finished:
            self._after = self._unfinished.popleft()
            self._finished.remove(self._after)


def make_stream_record(body: Mapping[str, Any], now_ms: int) -> StreamRecord:
    """Make a StreamRecord: its position, its item's key, its size as JSON, and its creation time in milliseconds."""
    change = body["dynamodb"]
    created = change.get("ApproximateCreationDateTime")
    return StreamRecord(
        position=change["SequenceNumber"],
        body=body,
        key=json.dumps(change.get("Keys", {}), sort_keys=True),
        size_bytes=len(json.dumps(body, separators=(",", ":")).encode()),
        created_ms=now_ms if created is None else int(float(created) * 1000),
    )


def _select_batch(records: Iterable[StreamRecord], settings: MappingSettings) -> Iterator[StreamRecord]:
    """The first records that fit into one batch: at least one."""
    room = settings.payload_max_bytes
    for number, record in enumerate(records):
        room -= record.size_bytes + 1
        if number == settings.batch_size or (number > 0 and room < 0):
            return
        yield record
