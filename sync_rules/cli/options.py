"""Arguments and options that several verbs take, each described once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.cli.show.text import without_secrets

RULES_FILE: Final = Path("rules.yaml")  # where none is named
STACK: Final = "sync-rules"
STATE: Final = Path(".sync-rules-state.json")
RATE: Final = 500.0  # half of the write units one partition takes: the other half is the application's
SEGMENTS: Final = 16
WORKERS: Final = 4
WORKERS_MAX: Final = 8

RulesFile = Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")]
RuleNames = Annotated[list[str] | None, typer.Option("--rule", metavar="NAME", help="Only this rule. Repeatable.")]
Endpoint = Annotated[
    str | None,
    typer.Option("--endpoint-url", metavar="URL", help="Endpoint to use instead of AWS, e.g. a local emulator."),
]
Region = Annotated[str | None, typer.Option("--region", metavar="NAME", help="The AWS Region.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
JsonLines = Annotated[bool, typer.Option("--jsonl", help="Print JSON lines instead of text.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="File to write, instead of standard output.")]
KeyTable = Annotated[
    str | None,
    typer.Option("--table", metavar="TABLE", help="Table of the key, if several tables have the same key attributes."),
]
Once = Annotated[bool, typer.Option("--once", help="Stop when every record in the streams has been read.")]

# Items to look at.
Changed = Annotated[
    bool, typer.Option("--changed", help="Only rules added or changed since the last complete backfill.")
]
Accept = Annotated[
    list[str] | None,
    typer.Option(
        "--accept",
        metavar="RULE",
        help="Accept this rule as it is: no sample stops it, and `run` lets it change values of others. Repeatable.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="JMESPATH", help="Only items that match, e.g. \"status == 'OPEN'\"."),
]
Sample = Annotated[
    float | None,
    typer.Option(
        "--sample", min=0.1, max=100, metavar="PERCENT", help="Read only this share of each table, at random."
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Seed of an earlier --sample, to read the same share again.")
]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", metavar="NAME", help="Only this delivery variant (`test --list-variants`). Repeatable."),
]

# Work that failed.
Failures = Annotated[Path, typer.Option("--failures", metavar="FILE", help="File to append failure records to.")]
FailureFiles = Annotated[
    list[Path] | None,
    typer.Option("--file", metavar="FILE", help="File of failure records, as written by `run`. Repeatable."),
]
BatchFiles = Annotated[
    list[Path] | None, typer.Option("--batches", metavar="FILE", help="File of batches given up by `run`. Repeatable.")
]
Buckets = Annotated[
    list[str] | None,
    typer.Option("--bucket", metavar="s3://BUCKET/PREFIX", help="Lambda's S3 on-failure destination. Repeatable."),
]
CallsTable = Annotated[
    str | None,
    typer.Option(
        "--calls-table",
        metavar="TABLE",
        help="Table (string key 'id') that records which calls were made.",
        envvar="SYNC_RULES_CALLS_TABLE",
    ),
]

# State of a backfill.
StateFile = Annotated[
    Path,
    typer.Option("--state", metavar="FILE", help="File with the backfill's progress and the rules already applied."),
]
StateTable = Annotated[
    str | None,
    typer.Option(
        "--state-table",
        metavar="TABLE",
        help="Table (string key 'id') for this state, instead of the file --state.",
        envvar="SYNC_RULES_STATE_TABLE",
    ),
]

# Work in the account.
Remote = Annotated[bool, typer.Option("--remote", help="Run in your AWS account, in the deployed stack's functions.")]
StackName = Annotated[
    str, typer.Option("--stack", metavar="NAME", help="With --remote: the deployed stack.", envvar="SYNC_RULES_STACK")
]
Detach = Annotated[bool, typer.Option("--detach", help="With --remote: start it and return at once.")]


def used(
    rules_file: Path, endpoint_url: str | None, region: str | None, state: Path = STATE, state_table: str | None = None
) -> str:
    """The rules file and options of a command, as another one takes them that works at the same place."""
    given = {"--endpoint-url": endpoint_url and without_secrets(endpoint_url), "--region": region}
    given |= {"--state-table": state_table} if state_table else {"--state": "" if state == STATE else str(state)}
    words = [] if rules_file == RULES_FILE else [str(rules_file)]
    words += [word for name, value in given.items() if value for word in (name, value)]
    return f" {shlex.join(words)}" if words else ""
