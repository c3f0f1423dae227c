"""dynamodb-toolbox: entities and tables as its DTO actions write them.

Links and computeKey are functions, which no export holds: what they make is a check.
https://www.dynamodbtoolbox.com/docs/entities/actions/dto
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode, models, quoted
from sync_rules.extras.discover.imports.identifiers import says_nothing
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundTable, ImportedModel, whole_table
from sync_rules.extras.discover.imports.key_schemas import attribute_name, key_parts, key_type, table_key
from sync_rules.extras.discover.imports.table_variables import TableName, make_variable
from sync_rules.model.entities import Index, KeyAttribute

NAME: Final = "dynamodb-toolbox DTO"
MARKS: Final = ("entityName", "partitionKey")  # of a DTO
EXPECTED: Final = "entities with entityName, schema and table"


def fits(document: Any) -> bool:
    """True if a document looks like the DTO of an entity or a table, or several."""
    return any(
        isinstance(one, dict)
        and (("schema" in one and "entityName" in one) or isinstance(one.get("partitionKey"), dict))
        for one in (node.value for node in models(DocumentNode(document, ""), *MARKS))
    )


def read(root: DocumentNode) -> ImportedModel:
    """The tables and entities of DTOs. Entities of one table name are of one table."""
    found = ImportedModel(NAME)
    tables: dict[tuple[str, tuple[KeyAttribute, ...]], FoundTable] = {}
    for node in models(root, *MARKS):
        node.require_map(EXPECTED)
        single = "entityName" not in node.value
        table = _table(node if single else node["table"])
        known = tables.setdefault((table.physical, table.key), table)
        if known is table:
            found.tables.append(table)
        else:
            known.indexes += table.indexes
        found.entities.append(whole_table(known) if single else _entity(known, node))
    return found


def _table(node: DocumentNode) -> FoundTable:
    node.require_map("a table: a map with partitionKey")
    named = node["tableName"] or node["name"]
    name = (
        TableName(named.text("the table's name")) if named else make_variable("toolbox", "the export has no table name")
    )
    key = table_key(node, key_parts(node, node["partitionKey"], node["sortKey"], _attribute))
    called = named.value if named else "toolbox"
    table = FoundTable(str(called), name.text, key, checks=list(name.checks), at=named.place)
    for index, one in node["indexes"].items("a map of indexes"):
        local = one.require_map("an index")["type"].value == "local"
        partition, sort = one["partitionKeys"] or one["partitionKey"], one["sortKeys"] or one["sortKey"]
        if local:
            table.indexes.append(Index(index, table.key[:1], tuple(map(_attribute, sort.ones())), local=True))
        else:
            table.indexes.append(Index(index, *key_parts(one, partition, sort, _attribute)))
    return table


def _attribute(node: DocumentNode) -> KeyAttribute:
    name = attribute_name(node.require_map("an attribute: a map with name and type")["name"])
    return KeyAttribute(name, key_type(node["type"]))


def _entity(table: FoundTable, node: DocumentNode) -> FoundEntity:
    called = node["entityName"].text("the entity's name")
    attributes = dict(node["schema"]["attributes"].items("a map of attributes"))
    stored = {_stored_name(name, one): (name, one) for name, one in attributes.items()}
    own = {one.name for one in table.key}
    made = FoundEntity(called, table, attributes=[name for name in stored if name not in own])
    fields = [
        name for name, one in attributes.items() if one["key"].value is True and _stored_name(name, one) not in own
    ]
    for attribute in table.types:
        name, one = stored.get(attribute, ("", node.of(None)))
        if not name:
            if attribute in own:
                made.checks.append(_describe_unknown(attribute, fields))
            continue
        if attribute not in own and one["required"].value == "never":
            made.checks.append(f"{attribute} is not on every item, so it has no template here")
            continue
        text = _template(name, one)
        if text is None or (text == f"{{{attribute}}}" and attribute in own and says_nothing(attribute)):
            made.checks.append(_describe_unknown(attribute, fields))
        else:
            made.key[attribute] = text
            if text == f"{{{attribute}}}" and attribute not in own and not says_nothing(attribute):
                made.required.append(attribute)
    made.required = [name for name in made.required if made.key.pop(name, "")]
    return made


def _describe_unknown(attribute: str, fields: list[str]) -> str:
    of = f", of {', '.join(fields)}" if fields else ""
    return f"{quoted(attribute)} may be made by a link or by computeKey{of}: write its template"


def _stored_name(name: str, one: DocumentNode) -> str:
    return one["savedAs"].said or name


def _template(name: str, one: DocumentNode) -> str | None:
    """The template of an attribute; None where it is made by something that the export does not hold."""
    only = one["enum"].value
    if isinstance(only, list) and len(only) == 1 and isinstance(only[0], str) and not set("{}") & set(only[0]):
        text = only[0]
    else:
        text = f"{{{name}}}"
    return _transform(text, one["transform"]) if one["transform"] else text


def _transform(text: str, transform: DocumentNode) -> str | None:
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
                made = None if made is None else _transform(made, one)
            return made
    return None
