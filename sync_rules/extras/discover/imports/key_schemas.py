"""Keys in the form of DynamoDB's own requests, which many tools' templates, plans and models use: KeySchema,
AttributeDefinitions, GlobalSecondaryIndexes, StreamSpecification.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from sync_rules.extras.discover.imports.foreign_document import DocumentNode, quote_name
from sync_rules.extras.discover.imports.imported_model import IMAGES, FoundTable, Projection, Stream
from sync_rules.language.schema import ATTRIBUTE_NAME_MAX, KEY_ATTRIBUTES_MAX
from sync_rules.model.entities import Index, KeyAttribute, KeyType

TYPES: Final[Mapping[str, KeyType]] = {"s": "S", "n": "N", "b": "B", "string": "S", "number": "N", "binary": "B"}
PROJECTIONS: Final[Mapping[str, Projection]] = {"all": "all", "keys_only": "keys", "keys": "keys"}
Text = Callable[[DocumentNode], str]
Parts = tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]  # of a key: partition and sort


def require_text(node: DocumentNode) -> str:
    """Return the text of a node. Raises ImportedFileError if it holds no text."""
    return node.text()


def require_attribute_name(node: DocumentNode, text: Text = require_text) -> str:
    name = text(node)
    if len(name) > ATTRIBUTE_NAME_MAX:
        node.fail(f"an attribute name of at most {ATTRIBUTE_NAME_MAX} letters", found=f"{len(name)} letters")
    return name


def require_key_type(node: DocumentNode, *, given: str | None = None) -> KeyType:
    """Return the type of a key attribute, given in DynamoDB's letters or in words."""
    text = given if given is not None else node.text("a key type: S, N or B")
    return TYPES.get(text.lower()) or node.fail("a key type: S, N or B", found=quote_name(text))


def parse_definitions(
    node: DocumentNode, text: Text = require_text, name: str = "AttributeName", kind: str = "AttributeType"
) -> Any:
    """Return the types of the attributes in a list, by name."""
    found: dict[str, KeyType] = {}
    for one in node.list("a list of attributes with their types"):
        found[require_attribute_name(one.require_map()[name], text)] = require_key_type(
            one[kind], given=text(one[kind])
        )
    return found


def parse_key_schema(
    node: DocumentNode,
    types: Mapping[str, KeyType],
    text: Text = require_text,
    names: tuple[str, str] = ("AttributeName", "KeyType"),
) -> Parts:
    """Return the partition key and the sort key of a KeySchema, in order."""
    parts: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
    for one in node.list("a list of key attributes: AttributeName, and KeyType HASH or RANGE"):
        name = require_attribute_name(one.require_map()[names[0]], text)
        kind = text(one[names[1]])
        if kind not in parts:
            one[names[1]].fail("HASH or RANGE", found=quote_name(kind))
        if name not in types:
            one[names[0]].fail("an attribute whose type the table defines", found=quote_name(name))
        parts[kind].append(KeyAttribute(name, types[name]))
    return require_parts(node, tuple(parts["HASH"]), tuple(parts["RANGE"]))


def require_parts(node: DocumentNode, partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]) -> Parts:
    """Return the parts of a key. Raises ImportedFileError without a partition key, or with too many attributes."""
    names = [one.name for one in (*partition, *sort)]
    if not partition:
        node.fail("a partition key")
    if max(len(partition), len(sort)) > KEY_ATTRIBUTES_MAX or len(set(names)) < len(names):
        node.fail(f"different attributes, at most {KEY_ATTRIBUTES_MAX} in a key", found=f"{len(names)}")
    return partition, sort


def make_key_parts(
    node: DocumentNode, partition: DocumentNode, sort: DocumentNode, attribute: Callable[[DocumentNode], KeyAttribute]
) -> Parts:
    """Make the parts of a key, each given as one attribute, as a list, or not at all."""
    if not partition:
        partition.fail("a partition key")
    return require_parts(
        node, tuple(map(attribute, partition.list_entries())), tuple(map(attribute, sort.list_entries()))
    )


def make_table_key(node: DocumentNode, parts: Parts) -> tuple[KeyAttribute, ...]:
    """Make the key of a table: one or two attributes."""
    partition, sort = parts
    if len(partition) > 1 or len(sort) > 1:
        found = f"{len(partition)} and {len(sort)}"
        node.fail("one partition key and at most one sort key, as a table has", found=found)
    return (*partition, *sort)


def parse_projection(node: DocumentNode, text: Text = require_text) -> Projection:
    """Return the projection of an index in a request; None if it is not given."""
    if not node:
        return None
    kind = text(node.require_map()["ProjectionType"]) if node["ProjectionType"] else ""
    return choose_projection(kind, node["NonKeyAttributes"], text)


def choose_projection(kind: str, included: DocumentNode, text: Text = require_text) -> Projection:
    """Return the projection for a kind such as ALL or keys_only; `included` lists the attributes for the kind
    INCLUDE.
    """
    if kind.lower() == "include":
        names = [require_attribute_name(one, text) for one in included.list("a list of attributes")]
        return tuple(dict.fromkeys(names)) or "keys"
    return PROJECTIONS.get(kind.lower())


def parse_indexes(
    node: DocumentNode, types: Mapping[str, KeyType], text: Text = require_text, *, local: bool = False
) -> list[Index]:
    """Return the secondary indexes in a list of global or local indexes."""
    found = []
    for one in node.list("a list of indexes"):
        name = text(one.require_map()["IndexName"])
        partition, sort = parse_key_schema(one["KeySchema"], types, text)
        found.append(Index(name, partition, sort, parse_projection(one["Projection"], text), local))
    return found


def parse_stream(node: DocumentNode) -> Stream:
    enabled = isinstance(node.value, dict) and node["StreamEnabled"].value is not False
    return choose_stream(node["StreamViewType"].value, enabled=enabled)


def choose_stream(view: object, *, enabled: bool) -> Stream:
    """Return the kind of stream for a view type."""
    if not enabled:
        return "none"
    return "both" if view == IMAGES else "other" if isinstance(view, str) else "unknown"


def fill_table(table: FoundTable, node: DocumentNode, text: Text = require_text) -> None:
    """Fill a table with the key, the indexes and the stream of a request, a description or a template's properties."""
    types = parse_definitions(node["AttributeDefinitions"], text)
    table.key = make_table_key(node["KeySchema"], parse_key_schema(node["KeySchema"], types, text))
    table.indexes += parse_indexes(node["GlobalSecondaryIndexes"], types, text)
    table.indexes += parse_indexes(node["LocalSecondaryIndexes"], types, text, local=True)
    table.stream = parse_stream(node["StreamSpecification"])


def make_key(attributes: Mapping[str, str]) -> tuple[KeyAttribute, ...]:
    """Make key attributes from valid names and types."""
    return tuple(KeyAttribute(name, cast("KeyType", kind)) for name, kind in attributes.items())
