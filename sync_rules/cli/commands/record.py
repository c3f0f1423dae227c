"""`sync-rules record`: write the stream records of all tables to a file, to be replayed.

Exit code 0 when it was told to stop, or is done; 2 when a table or stream is missing, or the file cannot be written.
What was read is in the file, line by line, however it ends.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from sync_rules.adapters import aws
from sync_rules.adapters.preflight import require
from sync_rules.adapters.streams import DynamoDBStreams, StreamReader
from sync_rules.cli.commands.run import stop_signals
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.mapping import EventSourceMapping
from sync_rules.jobs.consume.run import WAIT_SECONDS, wall_clock_ms
from sync_rules.lab.recompute import Derived
from sync_rules.lab.recording import Body, Header, Write, writing
from sync_rules.lab.redact import Redactor
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import unknown
from sync_rules.rules.ruleset import Rules

BATCH_MAX_RECORDS: Final = 1_000
SALT_BYTES: Final = 32


def record(
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")] = Path("rules.yaml"),
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write. Only its owner may read it.")],
    append: Annotated[bool, typer.Option("--append", help="Append, if the file is there already.")] = False,
    table: Annotated[list[str] | None, typer.Option(help="Only this table of the rules; may be given again.")] = None,
    from_now: Annotated[
        bool, typer.Option("--from-now", help="Only what happens from now on, not the last 24 hours.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Stop when everything there is was read.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, metavar="SECONDS", help="Stop after so long.")
    ] = None,
    max_records: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after so many records.")] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace every value by a hash of its type; links stay.")
    ] = False,
    salt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="SYNC_RULES_SALT",
            help="What the hashes are made with, where several recordings must fit together. Drawn, unless given.",
        ),
    ] = None,
    endpoint_url: Annotated[str | None, typer.Option(help="Another DynamoDB than AWS's, such as an emulator.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """Write the stream records of all tables to a file, until stopped."""
    rules = load_rules(rules_file)
    if redact and append and salt is None and out.exists():
        raise UserError("--append with --redact needs the --salt of the recording: else the same values would differ")
    arns = require(aws.dynamodb(endpoint_url, region), only(rules, table or [])).stream_arns
    reader = DynamoDBStreams(aws.dynamodbstreams(endpoint_url, region))
    redactor = Redactor(rules, salt.encode() if salt else secrets.token_bytes(SALT_BYTES)) if redact else None
    tables = {name: one.physical_name for name, one in rules.tables.items()}
    header = Header(tables, redact, datetime.now(UTC).isoformat(timespec="seconds"))
    console = Console(stderr=True)
    with ExitStack() as stack:
        write = stack.enter_context(writing(out, header, append=append))
        tape = Tape(write, rules, redactor, max_records)
        stopping = stack.enter_context(stop_signals())
        status = stack.enter_context(console.status("recording", spinner="dots"))
        until = Until(once=once, seconds=seconds, stopping=stopping)
        taped(tape, FromNow(reader, arns) if from_now else reader, arns, until, lambda: status.update(tape.told()))
    print(json.dumps({**tape.row(), "file": str(out)}) if as_json else f"{tape.told()} in {out}")
    return 0


def only(rules: Rules, names: Sequence[str]) -> Rules:
    """The rules with these tables alone; unless some are named, with all but those that hold nothing but a ledger.

    Raises:
        UserError: for a name that is no table's.
    """
    known = {table.name: table for table in rules.streamed_tables}
    for name in names:
        if name not in known:
            raise UserError(unknown("table", name, known))
    kept = Derived(rules)
    told = {entity.table.name for entity in rules.entities.values() if not kept.is_ledger(entity)}
    for name in names:
        if name not in told:
            raise UserError(f"table {name} holds nothing but a ledger, of which nothing is recorded: it is booked anew")
    return replace(rules, tables={name: known[name] for name in names or known if names or name in told})


# ---------------------------------------------------------------- reading
@dataclass
class Tape:
    """What is written. `broken` is why it no longer can be."""

    write: Write
    rules: Rules
    redactor: Redactor | None = None
    max_records: int | None = None
    tables: Counter[str] = field(default_factory=Counter)
    trimmed: int = 0
    broken: Exception | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """The records of an event, without those of a ledger, which no replay asks for."""
        try:
            self.write(self._chosen(event["Records"]))
        except Exception as error:  # a mapping would try it again and again
            self.broken = error
            raise

    def _chosen(self, bodies: Iterable[Body]) -> Iterable[Body]:
        for body in bodies:
            name = str(body["eventSourceARN"]).partition("table/")[2].partition("/")[0]
            table = self.rules.by_physical_name[name]
            key = table.key_of(body["dynamodb"]["Keys"])
            if self.full or (key is not None and self._kept.in_ledger(key)):
                continue
            yield self.redactor.record(body) if self.redactor else body
            self.tables[table.name] += 1

    @cached_property
    def _kept(self) -> Derived:
        return Derived(self.rules)

    @property
    def full(self) -> bool:
        """Whether there are as many records as were asked for."""
        return self.max_records is not None and self.tables.total() >= self.max_records

    def told(self) -> str:
        """The figures, for people."""
        records = f"{self.tables.total():,} record{'s' if self.tables.total() != 1 else ''}"
        of = ", ".join(f"{count:,} of {name}" for name, count in sorted(self.tables.items()))
        lost = f" · SOME WERE GONE BEFORE THEY WERE READ ({self.trimmed} times)" if self.trimmed else ""
        return records + (f" ({of})" if of else "") + lost

    def row(self) -> dict[str, Any]:
        """The figures, for machines."""
        return {"records": self.tables.total(), "tables": dict(self.tables), "trimmed": self.trimmed}


@dataclass(frozen=True)
class Until:
    """When to stop."""

    stopping: Callable[[], bool]
    once: bool = False
    seconds: float | None = None


def taped(
    tape: Tape,
    reader: StreamReader,
    arns: Sequence[str],
    until: Until,
    on_progress: Callable[[], object],
    *,
    clock: Callable[[], float] = time.monotonic,
    now_ms: Callable[[], int] = wall_clock_ms,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Read streams, each shard after its parent, and write what is read until it is time to stop.

    Raises:
        StoreError, UserError: when something cannot be written.
    """
    began = clock()
    settings = MappingSettings(batch_size=BATCH_MAX_RECORDS)
    mappings = [
        EventSourceMapping(arn, reader, tape.take, lambda _record: None, now_ms=now_ms, settings=settings)
        for arn in arns
    ]
    while not until.stopping() and not tape.full:
        steps = [mapping.poll() for mapping in mappings]
        tape.trimmed += sum(step.records_trimmed for step in steps)
        if tape.broken is not None:
            raise tape.broken
        on_progress()
        if until.once and all(mapping.idle for mapping in mappings):
            return
        if until.seconds is not None and clock() - began >= until.seconds:
            return
        if not any(step.progressed for step in steps):
            sleep(WAIT_SECONDS)


class FromNow:
    """A StreamReader that leaves out what is there already: shards known at the start are read from their end."""

    def __init__(self, reader: DynamoDBStreams, stream_arns: Sequence[str]) -> None:
        self._reader = reader
        self.shards, self.records = reader.shards, reader.records
        self._old = {(arn, shard.shard_id) for arn in stream_arns for shard in reader.shards(arn)}

    def iterator(self, stream_arn: str, shard_id: str, after: str | None) -> str:
        """Where reading starts. Raises like the reader it stands before."""
        if after is None and (stream_arn, shard_id) in self._old:
            return self._reader.latest(stream_arn, shard_id)
        return self._reader.iterator(stream_arn, shard_id, after)
