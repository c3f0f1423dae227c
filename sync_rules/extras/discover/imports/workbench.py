"""Models of NoSQL Workbench: tables and indexes as they are, entities from facets and from the sample data, access
patterns from facets.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/workbench.Modeler.ImportExisting.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sync_rules.extras.discover.imports import facets
from sync_rules.extras.discover.imports.foreign_document import Node
from sync_rules.extras.discover.imports.identifiers import says_nothing, singular, table_slug
from sync_rules.extras.discover.imports.imported_model import Found, FoundEntity, FoundTable
from sync_rules.extras.discover.imports.key_kinds import Sample
from sync_rules.extras.discover.imports.key_schemas import attribute_name, key_type, projection
from sync_rules.extras.discover.imports.sample_entities import entities_of
from sync_rules.model.entities import Index, KeyAttribute

NAME: Final = "NoSQL Workbench model"
EXPECTED: Final = "a map with DataModel, a list of tables"
PLACEHOLDER: Final = re.compile(r"<\s*([A-Za-z_][A-Za-z0-9_]*)\s*>|\$?\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")


def fits(document: Any) -> bool:
    """True if a document looks like a model."""
    return isinstance(document, dict) and "DataModel" in document


def read(root: Node) -> Found:
    """The tables, entities and access patterns of a model."""
    found = Found(NAME)
    for node in root["DataModel"].list("a list of tables"):
        table = _table(node)
        entities = _entities(table, node)
        found.tables.append(table)
        found.entities += entities
        found.patterns += [*facets.patterns_of(table, entities, node), *facets.unread(node)]
    found.patterns += facets.unread(root)
    return found


def _table(node: Node) -> FoundTable:
    name = node.require_map("a table: a map with TableName and KeyAttributes")["TableName"].text("the table's name")
    table = FoundTable(name, name, _key(node["KeyAttributes"]), at=node["TableName"].place)
    for one in node["GlobalSecondaryIndexes"].list("a list of indexes"):
        partition, *sort = _key(one.require_map()["KeyAttributes"])
        called = one["IndexName"].text("the index's name")
        table.indexes.append(Index(called, (partition,), tuple(sort), projection(one["Projection"])))
    return table


def _key(node: Node) -> tuple[KeyAttribute, ...]:
    node.require_map("the key: a map with PartitionKey and SortKey")
    parts = [node["PartitionKey"], *([node["SortKey"]] if node["SortKey"] else [])]
    expected = "an attribute: a map with AttributeName and AttributeType"
    made = tuple(
        KeyAttribute(attribute_name(part.require_map(expected)["AttributeName"]), key_type(part["AttributeType"]))
        for part in parts
    )
    if len({one.name for one in made}) < len(made):
        node["SortKey"].fail("another attribute than the partition key", found="the same")
    return made


def _entities(table: FoundTable, node: Node) -> list[FoundEntity]:
    samples: list[Sample] = []
    bare: list[FoundEntity] = []
    for facet in node["TableFacets"].list("a list of facets"):
        name = facet.require_map("a facet: a map with FacetName")["FacetName"].text("the facet's name")
        aliases = _aliases(table, facet)
        items = [Sample(item, name, aliases) for item in items_of(facet["TableData"])]
        samples += items
        if not items:
            bare.append(_bare(table, facet, name, aliases))
    seen = {_key_text(table, sample.item) for sample in samples}
    plain = (Sample(item) for item in items_of(node["TableData"]))
    samples += [sample for sample in plain if _key_text(table, sample.item) not in seen]
    found = [*entities_of(table, samples), *bare]
    return found or [unseen(table, facets.names_of(node["NonKeyAttributes"]))]


def _aliases(table: FoundTable, facet: Node) -> dict[str, str]:
    parts = ("PartitionKeyAlias", "SortKeyAlias")
    given = facet["KeyAttributeAlias"]
    return {
        one.name: text
        for one, part in zip(table.key, parts, strict=False)
        if isinstance(given.value, dict) and isinstance(text := given[part].value, str) and text
    }


def _bare(table: FoundTable, facet: Node, name: str, aliases: Mapping[str, str]) -> FoundEntity:
    """A facet without items: its aliases may be templates, such as USER#<id>."""
    key = {}
    for attribute, alias in aliases.items():
        text = PLACEHOLDER.sub(lambda match: f"{{{match[1] or match[2]}}}", alias)
        if alias != attribute:
            key[attribute] = text if text != alias or not re.fullmatch(r"[A-Za-z_]\w*", alias) else f"{{{alias}}}"
    checks = ["the facet has no sample data: its key is made of the aliases"]
    attributes = facets.names_of(facet["NonKeyAttributes"])
    return FoundEntity(name, table, key, attributes, checks=checks, facets=(name,))


def _key_text(table: FoundTable, item: Mapping[str, Any]) -> str:
    return repr([item.get(one.name) for one in table.key])


def items_of(node: Node) -> Iterator[dict[str, dict[str, Any]]]:
    """The items of a list in DynamoDB's JSON; what is no attribute value is left out."""
    for one in node.list("a list of items"):
        item = one.require_map("an item: a map of attributes in DynamoDB's JSON").value
        yield {str(name): value for name, value in item.items() if isinstance(value, dict)}


def unseen(table: FoundTable, attributes: list[str] | None = None) -> FoundEntity:
    """The entity of a table of which only the key is known: all of its items."""
    checks = []
    if any(says_nothing(one.name) for one in table.key):
        checks.append(
            "nothing is known of the items. Write an entity for each kind, with a template for each key attribute, "
            'such as "USER#{user_id}"'
        )
    return FoundEntity(singular(table_slug(table.called)), table, attributes=attributes or (), checks=checks)
