"""`sync-rules record`: write the stream records of all tables to a file, for `sync-rules replay`.

The file has every record read so far, one per line, however the command ends.
"""

from __future__ import annotations

import json
import secrets
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.preflight import require_tables
from sync_rules.cli import options as opt
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.text import format_count
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.lab.recording import Header, open_recording
from sync_rules.lab.redact import SALT_MIN_CHARACTERS, Redactor
from sync_rules.lab.tape import FromNow, Tape, record_streams, select_tables
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError

SALT_BYTES: Final = 32

VERB: Final = Verb(
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
    arns = require_tables(aws.dynamodb(endpoint_url, region), select_tables(rules, table or [])).stream_arns
    reader = DynamoDBStreams(aws.dynamodbstreams(endpoint_url, region))
    tables = {name: one.physical_name for name, one in rules.tables.items()}
    header = Header(tables, redact, datetime.now(UTC).isoformat(timespec="seconds"))
    console = make_console(stderr=True)
    with ExitStack() as stack:
        write = stack.enter_context(open_recording(out, header, append=append))
        tape = Tape(write, rules, redactor)
        stopping = stack.enter_context(stop_signals())
        status = stack.enter_context(console.status("recording", spinner="dots"))
        record_streams(
            tape,
            FromNow(reader, arns) if from_now else reader,
            arns,
            stopping,
            lambda: status.update(format_progress(tape)),
            once=once,
        )
    text = f"{format_progress(tape)} in {out}"
    print(text if form is opt.DocumentForm.TEXT else json.dumps({**make_row(tape), "file": str(out)}))
    return 0


# ---------------------------------------------------------------- output
def format_progress(tape: Tape) -> str:
    """Return the counts of records so far as text for people."""
    of = ", ".join(f"{count:,} of {name}" for name, count in sorted(tape.tables.items()))
    lost = f" · RECORDS EXPIRED BEFORE THEY WERE READ ({tape.trimmed} times)" if tape.trimmed else ""
    return format_count(tape.tables.total(), "record") + (f" ({of})" if of else "") + lost


def make_row(tape: Tape) -> dict[str, Any]:
    """Return the counts of records so far, ready for JSON."""
    return {"records": tape.tables.total(), "tables": dict(tape.tables), "trimmed": tape.trimmed}
