"""`sync-rules record`: write the stream records of all tables to a file, for `sync-rules replay`.

The file has every record read so far, one per line, however the command ends.
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

from sync_rules.adapters import aws
from sync_rules.adapters.host import steady_clock
from sync_rules.adapters.preflight import require
from sync_rules.adapters.streams import DynamoDBStreams, StreamReader
from sync_rules.cli import options as opt
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.text import counted
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.mapping import EventSourceMapping
from sync_rules.jobs.consume.run import WAIT_SECONDS
from sync_rules.lab.provenance import Provenance
from sync_rules.lab.recording import Body, Header, Write, writing
from sync_rules.lab.redact import SALT_MIN_CHARACTERS, Redactor
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import unknown
from sync_rules.rules.ruleset import Rules

BATCH_MAX_RECORDS: Final = 1_000
SALT_BYTES: Final = 32

VERB: Final = Verb(
    well="stopped by Ctrl-C or SIGTERM, or finished",
    mistake="a table or stream is missing, or the file cannot be written",
    stopped=ExitCode.WELL,
    needs={"--salt": ("--redact",), "--keep-shape": ("--redact",)},
)


def record(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write. Only its owner can read it.")],
    append: Annotated[bool, typer.Option("--append", help="Append to the file if it exists.")] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="TABLE", help="Only this table, by its name in the rules file. Repeatable."),
    ] = None,
    from_now: Annotated[
        bool, typer.Option("--from-now", help="Only records from now on, not those of the last 24 hours.")
    ] = False,
    once: opt.Once = False,
    seconds: Annotated[
        float | None, typer.Option("--for", min=0, metavar="SECONDS", help="Stop after this time.")
    ] = None,
    max_records: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after this number of records.")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace every value by a hash of the same type. Links still match.")
    ] = False,
    keep_shape: Annotated[
        bool,
        typer.Option("--keep-shape", help="With --redact: keep punctuation, spaces and booleans as they are."),
    ] = False,
    salt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="SYNC_RULES_SALT",
            help=f"With --redact: salt of the hashes, of {SALT_MIN_CHARACTERS} characters or more, for several "
            "recordings that must match. Default: random.",
        ),
    ] = None,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Document = opt.DocumentForm.TEXT,
) -> int:
    """Write the stream records of all tables to a file, until stopped."""
    rules = load_rules(rules_file)
    if redact and salt is not None and len(salt) < SALT_MIN_CHARACTERS:
        raise UserError(
            f"--salt: expected {SALT_MIN_CHARACTERS} characters or more, found {len(salt)}. A short salt can be "
            "guessed, and with it every value. Make one with: openssl rand -hex 16"
        )
    if redact and append and salt is None and out.exists():
        raise UserError(
            "--append with --redact needs the --salt of the recording: with another one, equal values get other hashes"
        )
    key = secrets.token_bytes(SALT_BYTES) if salt is None else salt.encode()
    redactor = Redactor(rules, key, keep_shape=keep_shape, tables=table or ()) if redact else None
    arns = require(aws.dynamodb(endpoint_url, region), only(rules, table or [])).stream_arns
    reader = DynamoDBStreams(aws.dynamodbstreams(endpoint_url, region))
    tables = {name: one.physical_name for name, one in rules.tables.items()}
    header = Header(tables, redact, datetime.now(UTC).isoformat(timespec="seconds"))
    console = make_console(stderr=True)
    with ExitStack() as stack:
        write = stack.enter_context(writing(out, header, append=append))
        tape = Tape(write, rules, redactor, max_records)
        stopping = stack.enter_context(stop_signals())
        status = stack.enter_context(console.status("recording", spinner="dots"))
        until = Until(once=once, seconds=seconds, stopping=stopping)
        taped(tape, FromNow(reader, arns) if from_now else reader, arns, until, lambda: status.update(tape.as_line()))
    text = f"{tape.as_line()} in {out}"
    print(text if form is opt.DocumentForm.TEXT else json.dumps({**tape.row(), "file": str(out)}))
    return 0


def only(rules: Rules, names: Sequence[str]) -> Rules:
    """The rules with the named tables only; by default with all tables except those that hold only a ledger.

    Raises:
        UserError: for an unknown table, or one that holds only a ledger.
    """
    known = {table.name: table for table in rules.streamed_tables}
    for name in names:
        if name not in known:
            raise UserError(unknown("table", name, known))
    kept = Provenance(rules)
    recorded = {entity.table.name for entity in rules.entities.values() if not kept.is_ledger(entity)}
    for name in names:
        if name not in recorded:
            raise UserError(f"table {name} holds only a ledger, which is not recorded: a replay computes it anew")
    return replace(rules, tables={name: known[name] for name in names or known if names or name in recorded})


# ---------------------------------------------------------------- reading
@dataclass
class Tape:
    """Writes records and counts them. `broken`: the error that ended the writing."""

    write: Write
    rules: Rules
    redactor: Redactor | None = None
    max_records: int | None = None
    tables: Counter[str] = field(default_factory=Counter)
    trimmed: int = 0
    broken: Exception | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Write the records of an event, except those of a ledger: a replay computes it anew."""
        try:
            self.write(self._chosen(event["Records"]))
        except Exception as error:  # the mapping would retry it without end
            self.broken = error
            raise

    def _chosen(self, bodies: Iterable[Body]) -> Iterable[Body]:
        for body in bodies:
            table = self.rules.of_stream(str(body["eventSourceARN"]))
            assert table is not None, "only the streams of the rules' tables are read"
            key = table.key_of(body["dynamodb"]["Keys"])
            if self.full or (key is not None and self._kept.in_ledger(key)):
                continue
            yield self.redactor.record(body) if self.redactor else body
            self.tables[table.name] += 1

    @cached_property
    def _kept(self) -> Provenance:
        return Provenance(self.rules)

    @property
    def full(self) -> bool:
        """The maximum number of records is reached."""
        return self.max_records is not None and self.tables.total() >= self.max_records

    def as_line(self) -> str:
        of = ", ".join(f"{count:,} of {name}" for name, count in sorted(self.tables.items()))
        lost = f" · RECORDS EXPIRED BEFORE THEY WERE READ ({self.trimmed} times)" if self.trimmed else ""
        return counted(self.tables.total(), "record") + (f" ({of})" if of else "") + lost

    def row(self) -> dict[str, Any]:
        return {"records": self.tables.total(), "tables": dict(self.tables), "trimmed": self.trimmed}


@dataclass(frozen=True)
class Until:
    """The conditions that end a recording."""

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
    now_ms: Callable[[], int] | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Read the streams, each shard after its parent, and write their records until it is time to stop.

    Raises:
        StoreError, UserError: when something cannot be written.
    """
    began, now_ms = clock(), now_ms or steady_clock()
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
    """A StreamReader that skips existing records: it reads the shards known at the start from their end."""

    def __init__(self, reader: DynamoDBStreams, stream_arns: Sequence[str]) -> None:
        self._reader = reader
        self.shards, self.records = reader.shards, reader.records
        self._old = {(arn, shard.shard_id) for arn in stream_arns for shard in reader.shards(arn)}

    def iterator(self, stream_arn: str, shard_id: str, after: str | None) -> str:
        """The iterator to start a shard with. Raises like the wrapped reader."""
        if after is None and (stream_arn, shard_id) in self._old:
            return self._reader.latest(stream_arn, shard_id)
        return self._reader.iterator(stream_arn, shard_id, after)
