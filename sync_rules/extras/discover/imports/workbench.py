"""Models of NoSQL Workbench: tables and indexes as they are, entities from facets and from the sample data, access
patterns from facets.

A facet names the items and attributes that are read together, by aliases of the key and by sample data. The newer
access patterns of Workbench have no documented form: the rules file names them as comments.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/workbench.Modeler.ImportExisting.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/workbench.Modeler.Facets.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode, quote_name
from sync_rules.extras.discover.imports.identifiers import is_generic_key, join_words, split_words
from sync_rules.extras.discover.imports.imported_model import (
    FoundEntity,
    FoundPattern,
    FoundTable,
    ImportedModel,
    make_whole_table_entity,
)
from sync_rules.extras.discover.imports.key_kinds import Sample
from sync_rules.extras.discover.imports.key_schemas import (
    Parts,
    make_key_parts,
    make_table_key,
    parse_projection,
    require_attribute_name,
    require_key_type,
)
from sync_rules.extras.discover.imports.sample_entities import list_entities
from sync_rules.model.entities import Index, KeyAttribute

SAYS_NOTHING: Final = "neither the aliases of the facet nor its sample data say what its key is made of"
NO_ITEMS: Final = "its sample data has no item with the table's key"
UNDOCUMENTED: Final = "the form of Workbench's own access patterns is not documented: write it as a pattern"
NAMED: Final = ("Name", "name", "AccessPatternName", "accessPatternName")
NAME: Final = "NoSQL Workbench model"
PLACEHOLDER: Final = re.compile(r"<\s*([A-Za-z_][A-Za-z0-9_]*)\s*>|\$?\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}")


def fits(document: Any) -> bool:
    return isinstance(document, dict) and "DataModel" in document


def read(root: DocumentNode) -> ImportedModel:
    """The tables, entities and access patterns of a model."""
    found = ImportedModel(NAME)
    for node in root["DataModel"].list("a list of tables"):
        table = _make_table(node)
        entities = _list_entities(table, node)
        found.tables.append(table)
        found.entities += entities
        found.patterns += [*_list_patterns(table, entities, node), *_list_unread_patterns(node)]
    found.patterns += _list_unread_patterns(root)
    return found


def _make_table(node: DocumentNode) -> FoundTable:
    name = node.require_map("a table: a map with TableName and KeyAttributes")["TableName"].text("the table's name")
    key = make_table_key(node, _make_key(node["KeyAttributes"]))
    table = FoundTable(name, name, key, at=node["TableName"].place)
    for one in node["GlobalSecondaryIndexes"].list("a list of indexes"):
        parts = _make_key(one.require_map()["KeyAttributes"])
        called = one["IndexName"].text("the index's name")
        table.indexes.append(Index(called, *parts, parse_projection(one["Projection"])))
    return table


def _make_key(node: DocumentNode) -> Parts:
    node.require_map("the key: a map with PartitionKey and SortKey")
    return make_key_parts(node, node["PartitionKey"], node["SortKey"], _make_attribute)


def _make_attribute(node: DocumentNode) -> KeyAttribute:
    node.require_map("an attribute: a map with AttributeName and AttributeType")
    return KeyAttribute(require_attribute_name(node["AttributeName"]), require_key_type(node["AttributeType"]))


def _list_entities(table: FoundTable, node: DocumentNode) -> list[FoundEntity]:
    samples: list[Sample] = []
    bare: list[FoundEntity] = []
    for facet in node["TableFacets"].list("a list of facets"):
        name = facet.require_map("a facet: a map with FacetName")["FacetName"].text("the facet's name")
        aliases = _find_aliases(table, facet)
        items = [Sample(item, name, aliases) for item in list_items(facet["TableData"])]
        samples += items
        if not items:
            bare.append(_make_bare_entity(table, facet, name, aliases))
    seen = {_format_key(table, sample.item) for sample in samples}
    plain = (Sample(item) for item in list_items(node["TableData"]))
    samples += [sample for sample in plain if _format_key(table, sample.item) not in seen]
    found = [*list_entities(table, samples), *bare]
    return found or [make_whole_table_entity(table, _list_names(node["NonKeyAttributes"]))]


def _find_aliases(table: FoundTable, facet: DocumentNode) -> dict[str, str]:
    parts = ("PartitionKeyAlias", "SortKeyAlias")
    given = facet["KeyAttributeAlias"]
    return {
        one.name: text
        for one, part in zip(table.key, parts, strict=False)
        if isinstance(given.value, dict) and isinstance(text := given[part].value, str) and text
    }


def _make_bare_entity(table: FoundTable, facet: DocumentNode, name: str, aliases: Mapping[str, str]) -> FoundEntity:
    """A facet without items: its aliases may be templates, such as USER#<id>."""
    key = {}
    for attribute, alias in aliases.items():
        text = PLACEHOLDER.sub(lambda match: f"{{{match[1] or match[2]}}}", alias)
        if alias != attribute:
            key[attribute] = text if text != alias or not re.fullmatch(r"[A-Za-z_]\w*", alias) else f"{{{alias}}}"
    checks = ["the facet has no sample data: its key is made of the aliases"]
    attributes = _list_names(facet["NonKeyAttributes"])
    return FoundEntity(name, table, key, attributes, checks=checks, facets=(name,))


def _format_key(table: FoundTable, item: Mapping[str, Any]) -> str:
    return repr([item.get(one.name) for one in table.key])


def list_items(node: DocumentNode) -> Iterator[dict[str, dict[str, Any]]]:
    """List the items in a list, in DynamoDB's JSON, without entries that are not attribute values."""
    for one in node.list("a list of items"):
        item = one.require_map("an item: a map of attributes in DynamoDB's JSON").value
        yield {str(name): value for name, value in item.items() if isinstance(value, dict)}


# ---------------------------------------------------------------- access patterns
def _list_patterns(table: FoundTable, entities: Sequence[FoundEntity], node: DocumentNode) -> Iterator[FoundPattern]:
    """The patterns of a table's facets, and those of its indexes that all items of a facet are in."""
    for facet in node["TableFacets"].list("a list of facets"):
        name = facet["FacetName"].text()
        shown = [one for one in entities if name in one.facets]
        called = "-".join(split_words(name))
        if not shown:
            yield FoundPattern(called, said=f"facet {name}", refused=NO_ITEMS)
        for entity in shown:
            own = called if len(shown) == 1 else "-".join([called, *split_words(entity.called)])
            yield from _list_facet_patterns(table, entity, own, name, _list_names(facet["NonKeyAttributes"]))


def _list_facet_patterns(
    table: FoundTable, entity: FoundEntity, called: str, name: str, attributes: Sequence[str]
) -> Iterator[FoundPattern]:
    returns = [one for one in attributes if one not in table.types]
    by = entity.list_fields(table.key[:1])
    if any(is_generic_key(one) for one in by):
        yield FoundPattern(called, said=f"facet {name}", refused=SAYS_NOTHING)
        return
    one = set(entity.list_fields(table.key)) == set(by)
    yield FoundPattern(called, "get", entity, by, one=one, returns=returns, said=f"facet {name}")
    held = {*entity.key, *attributes, *(one.name for one in table.key)}
    for index in table.indexes:
        if all(one.name in held for one in index.attributes):
            fields = entity.list_fields(index.partition)
            ending = [*(word for field in fields for word in split_words(field))] or split_words(index.name)
            own = "-".join([called, "by", *ending])
            refused = SAYS_NOTHING if any(is_generic_key(field) for field in fields) else ""
            said = f"facet {name}, by index {index.name}"
            yield FoundPattern(
                own, "get", entity, fields, returns=returns, via=index.name, said=said, refused=refused
            )  # fmt: skip


def _list_names(node: DocumentNode) -> list[str]:
    """The names of attributes, listed as texts or as maps."""
    entries = node.value if isinstance(node.value, list) else []
    names = (entry.get("AttributeName") if isinstance(entry, dict) else entry for entry in entries)
    return [name for name in names if isinstance(name, str) and name]


def _list_unread_patterns(holder: DocumentNode) -> Iterator[FoundPattern]:
    """The access patterns that a model or a table of it holds beside facets: each is named, and none is read."""
    for key, node in holder.items():
        if join_words(key).endswith("accesspatterns") and isinstance(node.value, list):
            for number, one in enumerate(node.list(), start=1):
                name = next(filter(None, (one[key].text_or_empty for key in NAMED)), "")
                said = f"access pattern {quote_name(name)}" if name else f"access pattern {number}"
                yield FoundPattern(name or f"access-pattern-{number}", said=said, refused=UNDOCUMENTED)
