"""`sync-rules emulator`: run a DynamoDB engine on this machine until stopped; nothing that it holds is kept.

It listens on the loopback interface only, and needs no account and no docker. With `--rules` it also creates the tables
of a rules file. Ctrl-C or SIGTERM stops it, with everything that it started.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.adapters import aws
from sync_rules.cli import options as opt
from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.show.tables import list_lines
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.deploy.tables import compare_tables, create_missing_tables
from sync_rules.lab.embedded_engine import run_engine
from sync_rules.language.load import load_rules

PORT: Final = 8000  # as DynamoDB Local's
LOOK_EVERY_SECONDS: Final = 0.2

VERB: Final = Verb(
    stopped=ExitCode.WELL,
    needs={"--calls-table": ("--rules",)},
)


def emulator(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any that is free.")] = PORT,
    rules_file: Annotated[
        Path | None, typer.Option("--rules", metavar="FILE", help="Create the tables of this rules file at once.")
    ] = None,
    calls_table: opt.CallsTable = None,
) -> int:
    """Run a DynamoDB engine on this machine, in memory, until stopped."""
    rules = None if rules_file is None else load_rules(rules_file)
    with run_engine(port) as engine, stop_signals() as stopping:
        _say(f"DynamoDB with streams, in memory, at {engine.url} (also SQS and S3). Nothing is kept when it stops.")
        if rules is not None:
            client = aws.dynamodb(engine.url)
            compared = compare_tables(client, rules, calls_table)
            created = create_missing_tables(client, compared)
            for one in compared:
                for text in list_lines(one, created):
                    _say(text)
        _say(f"Next, in another terminal:\n  {_format_next_command(rules_file, engine.url)}\nCtrl-C stops it.")
        while not stopping():
            engine.require()
            time.sleep(LOOK_EVERY_SECONDS)
    _say("stopped")
    return 0


def _format_next_command(rules_file: Path | None, url: str) -> str:
    if rules_file is None:
        return f"sync-rules tables create --endpoint-url {url}"
    named = "" if rules_file == opt.RULES_FILE else f" {shlex.quote(str(rules_file))}"
    return f"sync-rules run{named} --endpoint-url {url}"


def _say(text: str) -> None:
    print(text, flush=True)  # the command stays open, and a reader of its pipe waits for the line
