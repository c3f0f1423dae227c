"""The schema.json of AWS Labs' DynamoDB modelling server: tables, entities with key templates, access patterns.

Its keys are text: the server turns numbers into text where it makes keys, but for a key that is one number alone.
https://github.com/awslabs/mcp/tree/main/src/dynamodb-mcp-server
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.extras.discover.imports import schema_patterns
from sync_rules.extras.discover.imports.foreign_document import Node
from sync_rules.extras.discover.imports.imported_model import Found, FoundEntity, FoundTable
from sync_rules.extras.discover.imports.key_schemas import attribute_name, sized
from sync_rules.extras.discover.imports.workbench import unseen
from sync_rules.language.yaml_source import KeyPath
from sync_rules.model.entities import Index, KeyAttribute, KeyType

NAME: Final = "schema of the DynamoDB modelling server"
EXPECTED: Final = "a map with tables, each with table_config and entities"
NUMBERS: Final = ("integer", "decimal")
Templates = list[tuple[str, str, Node]]  # attribute, template, entity


def fits(document: Any) -> bool:
    """True if a document looks like such a schema."""
    tables = document.get("tables") if isinstance(document, dict) else None
    return isinstance(tables, list) and any(isinstance(one, dict) and "table_config" in one for one in tables)


def read(root: Node) -> Found:
    """The tables, entities and access patterns of a schema."""
    found = Found(NAME)
    named: dict[tuple[str, str], FoundEntity] = {}
    asked: list[tuple[FoundEntity, Node]] = []  # the holders of access patterns
    for node in root["tables"].list():
        config = node.require_map()["table_config"].require_map("a map with table_name and partition_key")
        name = config["table_name"].text("the table's name")
        templates = _templates(node)
        types = _types(templates)
        parts = [config["partition_key"], *([config["sort_key"]] if config["sort_key"] else [])]
        key = tuple(_attribute(part, types) for part in parts)
        sized(config, key[:1], key[1:])
        table = FoundTable(name, name, key, at=config["table_name"].place)
        table.indexes = [_index(one, types) for one in node["gsi_list"].list("a list of indexes")]
        found.tables.append(table)
        by_entity: dict[KeyPath, dict[str, str]] = {}
        for attribute, template, holder in templates:
            by_entity.setdefault(holder.path, {}).setdefault(attribute, template)  # the table's own come first
        entities = [
            (called, _entity(table, called, one, by_entity.get(one.path, {})), one)
            for called, one in node["entities"].items()
        ]
        found.entities += [entity for _, entity, _ in entities] or [unseen(table)]
        named |= {(name, called): entity for called, entity, _ in entities}
        asked += [(entity, one) for _, entity, one in entities]
    others = {called: entity for (_, called), entity in named.items()}
    for entity, holder in asked:
        found.patterns += schema_patterns.patterns_of(entity, holder, others)
    for node in root["cross_table_access_patterns"].list("a list of access patterns"):
        found.patterns += schema_patterns.across(node, named)
    return found


def _templates(node: Node) -> Templates:
    """Every template of a table's entities, with the key attribute that it makes."""
    made: Templates = []
    for _, entity in node["entities"].items("a map of entities"):
        entity.require_map("an entity: a map with pk_template and fields")
        config = node["table_config"]
        made += _pair(entity, entity, (config["partition_key"].value,), (config["sort_key"].value,))
        for mapping in entity["gsi_mappings"].list("a list of index mappings"):
            name = mapping.require_map()["name"].text("the index's name")
            index = next((one for one in node["gsi_list"].list() if one.require_map()["name"].value == name), None)
            if index is None:
                mapping["name"].fail("an index of gsi_list", found=repr(name)[:80])
            made += _pair(mapping, entity, _listed(index["partition_key"]), _listed(index["sort_key"]))
    return made


def _listed(node: Node) -> tuple[Any, ...]:
    return tuple(node.value) if isinstance(node.value, list) else (node.value,)


def _pair(holder: Node, entity: Node, partition: tuple[Any, ...], sort: tuple[Any, ...]) -> Templates:
    made: Templates = []
    for attributes, part in ((partition, holder["pk_template"]), (sort, holder["sk_template"])):
        texts = list(part.list()) if isinstance(part.value, list) else [part] if part else []
        made += [
            (attribute, text.text("a key template"), entity)
            for attribute, text in zip(attributes, texts, strict=False)
            if isinstance(attribute, str)
        ]
    return made


def _types(templates: Templates) -> dict[str, KeyType]:
    """The types of key attributes: N where each entity gives one number alone, else S."""
    seen: dict[str, set[KeyType]] = {}
    for attribute, template, entity in templates:
        fields = {one["name"].said: one["type"].said for one in entity["fields"].list() if isinstance(one.value, dict)}
        number = template.startswith("{") and fields.get(template[1:-1]) in NUMBERS
        seen.setdefault(attribute, set()).add("N" if number else "S")
    return {attribute: "N" if kinds == {"N"} else "S" for attribute, kinds in seen.items()}


def _attribute(node: Node, types: dict[str, KeyType]) -> KeyAttribute:
    name = attribute_name(node)
    return KeyAttribute(name, types.get(name, "S"))


def _index(node: Node, types: dict[str, KeyType]) -> Index:
    name = node.require_map()["name"].text("the index's name")
    partition, sort = (
        tuple(
            _attribute(one, types) for one in (part.list() if isinstance(part.value, list) else [part] if part else [])
        )
        for part in (node["partition_key"], node["sort_key"])
    )
    sized(node["partition_key"], partition, sort)
    shown = {"ALL": "all", "KEYS_ONLY": "keys"}.get(node["projection"].said)
    if node["projection"].said == "INCLUDE":
        return Index(name, partition, sort, tuple(attribute_name(one) for one in node["included_attributes"].list()))
    return Index(name, partition, sort, shown)  # type: ignore[arg-type]


def _entity(table: FoundTable, called: str, node: Node, key: dict[str, str]) -> FoundEntity:
    fields = [one.require_map() for one in node["fields"].list("a list of fields")]
    names = [one["name"].text("the field's name") for one in fields]
    keys = table.types.keys() - {one.name for one in table.key}
    required = [one["name"].text() for one in fields if one["required"].value is True and one["name"].said in keys]
    checks = []
    numbers = [one for one in fields if one["type"].said in NUMBERS]
    typed = [one.name for one in table.key if one.type == "N"]
    if typed and numbers:
        checks.append(
            f"{' and '.join(typed)} may be text in the table: the schema says only that the field is a number"
        )
    return FoundEntity(called, table, key, names, required, checks)
