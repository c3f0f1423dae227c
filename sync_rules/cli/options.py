"""Arguments and options that several verbs take, each described once."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from sync_rules.cli.show.text import remove_secrets
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sync_rules.rules.ruleset import Rules

RULES_FILE: Final = Path("rules.yaml")  # where none is named
STACK: Final = "sync-rules"
STACK_VARIABLE: Final = "SYNC_RULES_STACK"
STATE: Final = ".sync-rules-state.json"
RATE: Final = 500.0  # half of the write units one partition takes: the other half is the application's
SEGMENTS: Final = 16
WORKERS: Final = 4
WORKERS_MAX: Final = 8
SAMPLE_MIN_PERCENT: Final = 0.1


class LineForm(StrEnum):
    """The forms of output that a verb prints line by line."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class DocumentForm(StrEnum):
    """The forms of output that a verb prints as a whole."""

    TEXT = "text"
    JSON = "json"


class PageForm(StrEnum):
    """The forms of output that a verb prints as a whole, Markdown among them."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


RulesFile = Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")]
RuleNames = Annotated[list[str] | None, typer.Option("--rule", metavar="NAME", help="Only this rule. Repeatable.")]
Endpoint = Annotated[
    str | None,
    typer.Option("--endpoint-url", metavar="URL", help="Endpoint to use instead of AWS, e.g. a local emulator."),
]
Region = Annotated[str | None, typer.Option("--region", metavar="NAME", help="The AWS Region.")]
Lines = Annotated[
    LineForm,
    typer.Option("--format", help="json: one document, a list. jsonl: JSON lines, each as soon as it is known."),
]
Document = Annotated[DocumentForm, typer.Option("--format", help="json: one document.")]
Page = Annotated[PageForm, typer.Option("--format", help="json: one document. markdown: for a pull request.")]
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
OnlyTable = Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only items of this table.")]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="JMESPATH", help="Only items that match, e.g. \"status == 'OPEN'\"."),
]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="PERCENT[:SEED]",
        help="Read only this share of each table, at random. The seed of an earlier sample reads the same share again.",
    ),
]
Variants = Annotated[
    list[str] | None,
    typer.Option("--variant", metavar="NAME", help="Only this delivery variant (`test --list-variants`). Repeatable."),
]

# Work that failed.
Failures = Annotated[Path, typer.Option("--failures", metavar="FILE", help="File to append failure records to.")]
FailureFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="File of failure records, or of batches given up, as `run` writes them. Repeatable.",
    ),
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
State = Annotated[
    str,
    typer.Option(
        "--state",
        metavar="FILE",
        help="File with the backfill's progress and the rules already applied; or table:NAME, a table with the string "
        "key 'id'.",
        envvar="SYNC_RULES_STATE",
    ),
]

# Work in the account.
Remote = Annotated[
    bool,
    typer.Option(
        "--remote",
        help=f"Run in your AWS account, in the functions of the stack that {STACK_VARIABLE} names. Default: {STACK}.",
    ),
]


class SampleShare(NamedTuple):
    """The share of each table to read, and the seed that chooses it. None for the whole table, or a random seed."""

    percent: float | None = None
    seed: int | None = None


def parse_sample(text: str | None) -> SampleShare:
    """Parse --sample. Raises UserError if it is not a percentage, with or without a seed."""
    if text is None:
        return SampleShare()
    percent, colon, seed = text.partition(":")
    try:
        share = SampleShare(float(percent), int(seed) if colon else None)
    except ValueError:
        share = SampleShare()
    if share.percent is None or not SAMPLE_MIN_PERCENT <= share.percent <= 100:  # noqa: PLR2004 - percent
        raise UserError(f"--sample {text}: expected a percentage from {SAMPLE_MIN_PERCENT} to 100, such as 5 or 5:4711")
    return share


def require_titles(names: Iterable[str], rules: Rules, file: str = "", option: str = "") -> None:
    """Raise UserError for a name that no rule has. `file` names the rules file, `option` the option with the name."""
    titles = dict.fromkeys(rule.title for rule in rules.rules.values())
    for name in names:
        if name not in titles:
            raise UserError(f"{option and f'{option}: '}{explain_unknown_name('rule', name, titles, file)}")


def repeat_options(rules_file: Path, endpoint_url: str | None, region: str | None, state: str = STATE) -> str:
    """Return the rules file and options of a command as text, for another command at the same place."""
    words = [] if rules_file == RULES_FILE else [str(rules_file)]
    words += list_place_words(endpoint_url, region, {"--state": "" if state == STATE else state})
    return f" {shlex.join(words)}" if words else ""


def list_place_words(endpoint_url: str | None, region: str | None, more: Mapping[str, str] | None = None) -> list[str]:
    """List the words of a command line that select the same place, without secrets."""
    given = {"--endpoint-url": endpoint_url and remove_secrets(endpoint_url), "--region": region, **(more or {})}
    return [word for name, value in given.items() if value for word in (name, value)]
