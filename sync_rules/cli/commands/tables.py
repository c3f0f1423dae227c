"""`sync-rules tables create`: create the tables of the rules file, with keys, indexes and streams.

The ledger is one of them; `--calls-table` adds the table that remembers calls, with Time to Live. A table that exists
is compared and never changed. On AWS, tables on demand cost nothing while they are empty; those for production come
from the template, with point-in-time recovery.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from sync_rules import DOCS
from sync_rules.adapters import aws
from sync_rules.cli import options as opt
from sync_rules.cli.show.tables import list_lines, make_row
from sync_rules.cli.verb import Verb
from sync_rules.deploy.tables import ComparedTable, compare_tables, create_missing_tables
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError

NO_REGION: Final = (
    "tables would be created on AWS: name the Region with --region, or an emulator with --endpoint-url. "
    "`sync-rules emulator` starts one"
)
NOT_CONFIRMED: Final = (
    "nothing was created at {where}. Give --yes to create them there: they are billed for each request, and cost "
    "nothing while they are empty. For production use the template "
    f"({DOCS}/deploy.md), whose tables have point-in-time recovery"
)


VERB: Final = Verb(excludes={"--dry-run": ("--yes",)})


class Action(StrEnum):
    CREATE = "create"


def tables(
    action: Annotated[  # noqa: ARG001 - there is one so far
        Action, typer.Argument(metavar="ACTION", help="create: create the tables that do not exist yet.")
    ],
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    calls_table: opt.CallsTable = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be created; create nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Create tables on AWS too. An emulator needs no --yes.")] = False,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Create the tables of the rules file, on an emulator or on AWS. A table that exists is never changed."""
    rules = load_rules(rules_file)
    client = aws.dynamodb(endpoint_url, region)
    if aws.is_aws(client) and region is None:
        raise UserError(NO_REGION)
    compared = compare_tables(client, rules, calls_table)
    confirmed = yes or not aws.is_aws(client)
    created = () if dry_run or not confirmed else _create(client, compared)
    for one in compared:
        for text in list_lines(one, created) if form is opt.LineForm.TEXT else [json.dumps(make_row(one, created))]:
            print(text)
    missing = [one for one in compared if not one.exists and not one.problems]
    if missing and not dry_run and not confirmed:
        raise UserError(NOT_CONFIRMED.format(where=aws.format_place(client, aws.find_account(client))))
    return int(any(one.problems for one in compared))


def _create(client: Any, compared: tuple[ComparedTable, ...]) -> tuple[ComparedTable, ...]:
    """Create what is missing. An interrupt says what may be there now."""
    try:
        return create_missing_tables(client, compared)
    except KeyboardInterrupt as stopped:
        words = "interrupted: what was created stays. Run it again for the rest"
        raise KeyboardInterrupt(words) from stopped
