"""`sync-rules preview`: the requests that `transact` would make of a write, each action with its reason.

It reads the tables with --endpoint-url or --region, otherwise the `items` of the file. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.cli import options as opt
from sync_rules.cli.show.text import Row, show_rows
from sync_rules.cli.show.transaction import transaction_rows
from sync_rules.cli.verb import Verb
from sync_rules.language.load import load_rules
from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError
from sync_rules.rules.ruleset import Rules
from sync_rules.write.document import read_document
from sync_rules.write.explanation import explain_write

VERB: Final = Verb()


def preview(
    write: Annotated[Path, typer.Argument(metavar="FILE", help="JSON file with a write; - for standard input.")],
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Show the requests of a write, each action with its reason. Nothing is written."""
    client = aws.dynamodb(endpoint_url, region) if endpoint_url or region else None
    rows = write_rows(write, load_rules(rules_file), client)
    show_rows(rows, as_json=form is not opt.LineForm.TEXT)
    return 0


def write_rows(file: Path, rules: Rules, client: Any) -> Iterator[Row]:
    """The requests of a write that a file holds as JSON, with the reason of each action.

    Raises:
        UserError: when the file cannot be read or holds no write; StoreError when a read failed.
    """
    try:
        body = json_bytes.parse_json(file.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}. Name a JSON file with a write") from error
    except ValueError as error:
        raise UserError(f"{file}: not JSON: {error}") from error
    document = read_document(body, items=True)
    if document.items and client is not None:
        raise UserError(
            f"{file} has items, and the tables are to be read: leave out items, or --endpoint-url and --region"
        )
    yield from transaction_rows(explain_write(document, rules, client), imagined=client is None)
