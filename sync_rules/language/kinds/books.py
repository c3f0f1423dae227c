"""The options of rules that keep books about children of a parent, and the table that holds these books."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import LinkOption, Model, OnDelete, OwnWhere, RenamedFrom, Settle, Sparse, Via
from sync_rules.model.entities import Entity, Table
from sync_rules.model.lookups import Find, Link
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.rules.ledger import RESERVED, Ledger, is_suitable, is_supported, make_ledger_entities

DEFAULT_LEDGER = "ledger"
LedgerOption = Annotated[
    str | None, Field(description="The table for the books, with a key of two strings; default the one named ledger.")
]
UNLISTED: Final = "nothing is listed here: the record of each child says what it adds"


class BookedForm(Model):
    """The options of every rule that books what children have for the parent that they point to."""

    into: str = Field(description="Where to: parent entity, then a path.", examples=["user.open_orders"])
    ledger: LedgerOption = None
    where: OwnWhere = None
    link: LinkOption = {}
    via: Via = None
    sparse: Sparse = False
    on_delete: OnDelete = "keep"
    settle_seconds: Settle = 60
    renamed_from: RenamedFrom = None


def find_deleted_children(
    compiler: RuleCompiler, form: BookedForm, link: Link, parent: Entity, child: Entity
) -> Find | None:
    """Return the listing of a deleted parent's children; None if `on_delete` is keep. Books need no other listing."""
    if form.on_delete == "keep":
        return None
    return compiler.find(link, parent, child, form.via, "on_delete", sparse=form.sparse)


def find_ledger_table(compiler: RuleCompiler, given: str | None, kind: str, instead: str = "") -> Table | None:
    """Find the ledger table, which holds nothing else and has a key of two strings; None after a reported problem.
    `instead`: the cure without a ledger.
    """
    name, tables = given or DEFAULT_LEDGER, compiler.known.tables
    location = compiler.at("ledger") if given else compiler.at_key(kind)
    if name in compiler.known.broken_tables:
        compiler.sound = False
        return None
    if name not in tables:
        message = explain_unknown_name("table", name, compiler.known.document.names("tables"))
        others = [
            other for other in tables if other not in compiler.known.first_entities and is_suitable(tables[other])
        ]
        cure = "; ".join(filter(None, (f"add under tables: {name}: {{key: {{PK: S, SK: S}}}}", instead)))
        cure = f"say which: ledger: {others[0]}" if others and not given else cure
        compiler.add("SR210", location, message, cure)
        return None
    table = tables[name]
    if not is_suitable(table):
        key = ", ".join(f"{attribute.name}: {attribute.type}" for attribute in table.key)
        needed = f"the ledger needs a string partition key and a string sort key, not named {', '.join(RESERVED)}"
        compiler.add("SR211", location, f"the key of table {name!r} is {{{key}}}: {needed}", "{key: {PK: S, SK: S}}")
        return None
    held = compiler.known.first_entities.get(name)
    if held is not None:
        compiler.add("SR212", location, f"table {name!r} holds the items of {held!r}")
        return None
    return table


def make_ledger(
    compiler: RuleCompiler,
    name: str,
    sides: tuple[Entity, Entity],
    table: Table | None,
    shards: int = 1,
    *,
    each: str | None = None,
) -> Ledger | None:
    """Return the ledger with this name. If its keys are impossible, report the problem and return None."""
    for entity in dict.fromkeys(sides):
        if not is_supported(entity):
            compiler.add("SR213", "into", f"the key of {entity.name!r} has a binary attribute")
    if table is None or not compiler.sound:
        return None
    return compiler.parse("SR213", "into", make_ledger_entities, name, *sides, table, shards, each=each)
