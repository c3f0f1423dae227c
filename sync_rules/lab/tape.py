"""Writes the streams of all tables to a recording.

Invariant: the records of a ledger are left out, because a replay computes a ledger again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from sync_rules.adapters.host import make_steady_clock
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import WAIT_SECONDS
from sync_rules.jobs.consume.mapping import EventSourceMapping
from sync_rules.jobs.streams import DynamoDBStreams, StreamReader
from sync_rules.lab.provenance import Provenance
from sync_rules.lab.recording import Body, Write
from sync_rules.lab.redact import Redactor
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.rules.ruleset import Rules

BATCH_MAX_RECORDS: Final = 1_000


def select_tables(rules: Rules, names: Sequence[str]) -> Rules:
    """Return the rules with the named tables only. Without names, leave out the tables that hold only a ledger.

    Raises:
        UserError: for an unknown table, or one that holds only a ledger.
    """
    known = {table.name: table for table in rules.streamed_tables}
    for name in names:
        if name not in known:
            raise UserError(explain_unknown_name("table", name, known))
    kept = Provenance(rules)
    recorded = {entity.table.name for entity in rules.entities.values() if not kept.is_ledger(entity)}
    for name in names:
        if name not in recorded:
            raise UserError(f"table {name} holds only a ledger, which is not recorded: a replay computes it again")
    return replace(rules, tables={name: known[name] for name in names or known if names or name in recorded})


@dataclass
class Tape:
    """A writer of records that counts them. `broken`: the error that ended the writing."""

    write: Write
    rules: Rules
    redactor: Redactor | None = None
    tables: Counter[str] = field(default_factory=Counter)
    trimmed: int = 0
    broken: Exception | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Write the records of an event, except those of a ledger: a replay computes them again."""
        try:
            self.write(self._select_bodies(event["Records"]))
        except Exception as error:  # the mapping would retry it without end
            self.broken = error
            raise

    def _select_bodies(self, bodies: Iterable[Body]) -> Iterable[Body]:
        for body in bodies:
            table = self.rules.find_table_of_stream(str(body["eventSourceARN"]))
            assert table is not None, "only the streams of the rules' tables are read"
            key = table.key_of(body["dynamodb"]["Keys"])
            if key is not None and self._provenance.is_in_ledger(key):
                continue
            yield self.redactor.record(body) if self.redactor else body
            self.tables[table.name] += 1

    @cached_property
    def _provenance(self) -> Provenance:
        return Provenance(self.rules)


def record_streams(
    tape: Tape,
    reader: StreamReader,
    arns: Sequence[str],
    stopping: Callable[[], bool],
    on_progress: Callable[[], object],
    *,
    once: bool = False,
    now_ms: Callable[[], int] | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Read the streams, each shard after its parent, and write their records until `stopping` returns True. With
    `once`, end when all records of the streams are read.

    Raises:
        StoreError, UserError: if something cannot be written.
    """
    now_ms = now_ms or make_steady_clock()
    settings = MappingSettings(batch_size=BATCH_MAX_RECORDS)
    mappings = [
        EventSourceMapping(arn, reader, tape.take, lambda _record: None, now_ms=now_ms, settings=settings)
        for arn in arns
    ]
    while not stopping():
        steps = [mapping.poll() for mapping in mappings]
        tape.trimmed += sum(step.records_trimmed for step in steps)
        if tape.broken is not None:
            raise tape.broken
        on_progress()
        if once and all(mapping.idle for mapping in mappings):
            return
        if not any(step.has_progress for step in steps):
            sleep(WAIT_SECONDS)


class FromNow:
    """A StreamReader that skips existing records: it reads the shards known at the start from their end."""

    def __init__(self, reader: DynamoDBStreams, stream_arns: Sequence[str]) -> None:
        self._reader = reader
        self.shards, self.records = reader.shards, reader.records
        self._old = {(arn, shard.shard_id) for arn in stream_arns for shard in reader.shards(arn)}

    def iterator(self, stream_arn: str, shard_id: str, after: str | None) -> str:
        """Return the iterator with which to start a shard. Raises like the wrapped reader."""
        if after is None and (stream_arn, shard_id) in self._old:
            return self._reader.latest(stream_arn, shard_id)
        return self._reader.iterator(stream_arn, shard_id, after)
