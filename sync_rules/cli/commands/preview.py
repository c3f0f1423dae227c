"""`sync-rules preview`: the requests that `transact` would make of a write. Nothing is written.

It reads the tables with --endpoint-url or --region, otherwise the `items` of the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.adapters import aws
from sync_rules.cli import options as opt
from sync_rules.cli.show.text import Row, show_rows
from sync_rules.cli.verb import Verb
from sync_rules.language.load import load_rules
from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError
from sync_rules.write.document import encode_binary
from sync_rules.write.preview import WritePreview, preview_write

VERB: Final = Verb()


def preview(
    write: Annotated[Path, typer.Argument(metavar="FILE", help="JSON file with a write; - for standard input.")],
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Show the requests of a write. Nothing is written."""
    try:
        body = json_bytes.parse_json(write.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise UserError(f"{write}: cannot be read: {error.strerror}. Name a JSON file with a write") from error
    except ValueError as error:
        raise UserError(f"{write}: not JSON: {error}") from error
    client = aws.dynamodb(endpoint_url, region) if endpoint_url or region else None
    found = preview_write(load_rules(rules_file), body, client)
    show_rows(list_rows(found), as_json=form is not opt.LineForm.TEXT)
    return 0


def list_rows(found: WritePreview) -> Iterator[Row]:
    """List the reads, the transaction, and the work that is left to the stream."""
    for request, parameters in (*found.reads, ("TransactWriteItems", {"TransactItems": found.actions})):
        shown = encode_binary(parameters)
        yield {"request": request, "parameters": shown}, (request, *json.dumps(shown, indent=2).splitlines())
    for left in found.left:
        items = "" if left.items is None else f" · items: {left.items:,}"
        yield {"left": asdict(left)}, f"left to the stream: rule {left.rule} · {left.why}{items} · {left.when}"
