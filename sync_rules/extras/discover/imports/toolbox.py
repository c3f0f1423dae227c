"""dynamodb-toolbox: entities and tables as its DTO actions write them.

Links and computeKey are functions, which no export holds: what they make is a check.
https://www.dynamodbtoolbox.com/docs/entities/actions/dto
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import Node, quoted
from sync_rules.extras.discover.imports.identifiers import says_nothing
from sync_rules.extras.discover.imports.imported_model import Found, FoundEntity, FoundTable
from sync_rules.extras.discover.imports.key_schemas import attribute_name, key_type, sized, table_key
from sync_rules.extras.discover.imports.table_variables import TableName, made_elsewhere
from sync_rules.extras.discover.imports.workbench import unseen
from sync_rules.model.entities import Index, KeyAttribute

NAME: Final = "dynamodb-toolbox DTO"
EXPECTED: Final = "entities with entityName, schema and table"


def fits(document: Any) -> bool:
    """True if a document looks like the DTO of an entity or a table, or several."""
    return any(
        isinstance(one, dict)
        and (("schema" in one and "entityName" in one) or isinstance(one.get("partitionKey"), dict))
        for one in _each(document)
    )


def _each(document: Any) -> list[Any]:
    held = document.get("entities", document) if isinstance(document, dict) else document
    if isinstance(held, dict) and ("entityName" in held or "partitionKey" in held):
        return [held]
    return list(held.values()) if isinstance(held, dict) else held if isinstance(held, list) else []


def read(root: Node) -> Found:
    """The tables and entities of DTOs. Entities of one table name are of one table."""
    found = Found(NAME)
    tables: dict[tuple[str, tuple[KeyAttribute, ...]], FoundTable] = {}
    for node in _dtos(root):
        node.require_map(EXPECTED)
        single = "entityName" not in node.value
        table = _table(node if single else node["table"])
        known = tables.setdefault((table.physical, table.key), table)
        if known is table:
            found.tables.append(table)
        else:
            known.indexes += table.indexes
        found.entities.append(unseen(known) if single else _entity(known, node))
    return found


def _dtos(root: Node) -> Iterator[Node]:
    held = root["entities"] if isinstance(root.value, dict) and root["entities"] else root
    if isinstance(held.value, list):
        yield from held.list()
    elif "entityName" in held.require_map(EXPECTED).value or "partitionKey" in held.value:
        yield held
    else:
        yield from (one for _, one in held.items())


def _table(node: Node) -> FoundTable:
    node.require_map("a table: a map with partitionKey")
    named = node["tableName"] or node["name"]
    name = (
        TableName(named.text("the table's name"))
        if named
        else made_elsewhere("toolbox", "the export has no table name")
    )
    key = table_key(node, sized(node, _keys(node["partitionKey"]), _keys(node["sortKey"])))
    called = named.value if named else "toolbox"
    table = FoundTable(str(called), name.text, key, checks=list(name.checks), at=named.place)
    for index, one in node["indexes"].items("a map of indexes"):
        local = one.require_map("an index")["type"].value == "local"
        partition = (*_keys(one["partitionKey"]), *_keys(one["partitionKeys"]))
        sort = (*_keys(one["sortKey"]), *_keys(one["sortKeys"]))
        if local:
            table.indexes.append(Index(index, table.key[:1], sort, local=True))
        else:
            table.indexes.append(Index(index, *sized(one, partition, sort)))
    return table


def _keys(node: Node) -> tuple[KeyAttribute, ...]:
    ones = list(node.list()) if isinstance(node.value, list) else [node] if node else []
    expected = "an attribute: a map with name and type"
    return tuple(KeyAttribute(attribute_name(one.require_map(expected)["name"]), key_type(one["type"])) for one in ones)


def _entity(table: FoundTable, node: Node) -> FoundEntity:
    called = node["entityName"].text("the entity's name")
    attributes = dict(node["schema"]["attributes"].items("a map of attributes"))
    stored = {_stored(name, one): (name, one) for name, one in attributes.items()}
    own = {one.name for one in table.key}
    made = FoundEntity(called, table, attributes=[name for name in stored if name not in own])
    fields = [name for name, one in attributes.items() if _option(one, "key") is True and _stored(name, one) not in own]
    for attribute in table.types:
        name, one = stored.get(attribute, ("", node.of(None)))
        if not name:
            if attribute in own:
                made.checks.append(_unknown(attribute, fields))
            continue
        if attribute not in own and _option(one, "required") == "never":
            made.checks.append(f"{attribute} is not on every item, so it has no template here")
            continue
        text = _template(name, one)
        if text is None or (text == f"{{{attribute}}}" and attribute in own and says_nothing(attribute)):
            made.checks.append(_unknown(attribute, fields))
        else:
            made.key[attribute] = text
            if text == f"{{{attribute}}}" and attribute not in own and not says_nothing(attribute):
                made.required.append(attribute)
    made.required = [name for name in made.required if made.key.pop(name, "")]
    return made


def _unknown(attribute: str, fields: list[str]) -> str:
    of = f", of {', '.join(fields)}" if fields else ""
    return f"{quoted(attribute)} may be made by a link or by computeKey{of}: write its template"


def _stored(name: str, one: Node) -> str:
    saved = _option(one, "savedAs")
    return saved if isinstance(saved, str) and saved else name


def _option(one: Node, name: str) -> Any:
    return one[name].value if isinstance(one.value, dict) else None


def _template(name: str, one: Node) -> str | None:
    """The template of an attribute; None where it is made by something that the export does not hold."""
    only = _option(one, "enum")
    if isinstance(only, list) and len(only) == 1 and isinstance(only[0], str) and not set("{}") & set(only[0]):
        text = only[0]
    else:
        text = f"{{{name}}}"
    return _transformed(text, one["transform"]) if isinstance(one.value, dict) and one["transform"] else text


def _transformed(text: str, transform: Node) -> str | None:
    joint = transform.require_map("a transformer")["delimiter"].value
    joint = joint if isinstance(joint, str) else "#"
    fixed = str(transform["prefix"].value or transform["suffix"].value or "")
    if set("{}") & set(fixed + joint):
        return None
    match transform["transformerId"].value:
        case "prefix":
            return f"{fixed}{joint}{text}"
        case "suffix":
            return f"{text}{joint}{fixed}"
        case "pipe":
            made: str | None = text
            for one in transform["transformers"].list("a list of transformers"):
                made = None if made is None else _transformed(made, one)
            return made
    return None
