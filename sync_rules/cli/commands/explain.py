"""`sync-rules explain`: the origin of an item's values and whether they are right, or every item that holds a value of
an item.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.cli import options as opt
from sync_rules.cli.show.item_rows import list_item_rows, list_use_rows
from sync_rules.cli.show.text import show_rows
from sync_rules.cli.verb import Verb
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.key_json import parse_key

VERB: Final = Verb(needs={"--table": ("--key", "--where-used")})


def explain(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    key: Annotated[
        str | None, typer.Option(metavar="JSON", help="Key of an item: shows where its derived values came from.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--where-used", metavar="JSON", help="Key of an item: shows every item that holds a value of it."),
    ] = None,
    table: opt.KeyTable = None,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Explain an item: its values, and its users. Reads only."""
    rules = load_rules(rules_file)
    if (key is None) == (where is None):
        raise UserError("expected either --key or --where-used")
    as_json = form is not opt.LineForm.TEXT
    store = DynamoStore(aws.dynamodb(endpoint_url, region), rules.tables)
    world = World(store, NULL_PORTS, NULL_PORTS)
    if key is not None:
        show_rows(list_item_rows(parse_key(key, table, rules), rules, world), as_json=as_json)
    else:
        show_rows(list_use_rows(parse_key(where or "", table, rules), rules, world), as_json=as_json)
    return 0
