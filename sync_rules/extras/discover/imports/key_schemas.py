"""Keys as DynamoDB's own requests write them, which templates, plans and models of many tools take over: KeySchema,
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


def plain_text(node: DocumentNode) -> str:
    """The text of a node that must hold one."""
    return node.text()


def attribute_name(node: DocumentNode, text: Text = plain_text) -> str:
    name = text(node)
    if len(name) > ATTRIBUTE_NAME_MAX:
        node.fail(f"an attribute name of at most {ATTRIBUTE_NAME_MAX} letters", found=f"{len(name)} letters")
    return name


def key_type(node: DocumentNode, *, given: str | None = None) -> KeyType:
    """The type of a key attribute, in DynamoDB's letters or in words."""
    text = given if given is not None else node.text("a key type: S, N or B")
    return TYPES.get(text.lower()) or node.fail("a key type: S, N or B", found=quote_name(text))


def definitions(
    node: DocumentNode, text: Text = plain_text, name: str = "AttributeName", kind: str = "AttributeType"
) -> Any:
    """The types of attributes by name, of a list of them."""
    found: dict[str, KeyType] = {}
    for one in node.list("a list of attributes with their types"):
        found[attribute_name(one.require_map()[name], text)] = key_type(one[kind], given=text(one[kind]))
    return found


def schema(
    node: DocumentNode,
    types: Mapping[str, KeyType],
    text: Text = plain_text,
    names: tuple[str, str] = ("AttributeName", "KeyType"),
) -> Parts:
    """The partition key and the sort key of a KeySchema, in their order."""
    parts: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
    for one in node.list("a list of key attributes: AttributeName, and KeyType HASH or RANGE"):
        name = attribute_name(one.require_map()[names[0]], text)
        kind = text(one[names[1]])
        if kind not in parts:
            one[names[1]].fail("HASH or RANGE", found=quote_name(kind))
        if name not in types:
            one[names[0]].fail("an attribute whose type the table defines", found=quote_name(name))
        parts[kind].append(KeyAttribute(name, types[name]))
    return require_parts(node, tuple(parts["HASH"]), tuple(parts["RANGE"]))


def require_parts(node: DocumentNode, partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]) -> Parts:
    """The parts of a key, which must have a partition key and few attributes."""
    names = [one.name for one in (*partition, *sort)]
    if not partition:
        node.fail("a partition key")
    if max(len(partition), len(sort)) > KEY_ATTRIBUTES_MAX or len(set(names)) < len(names):
        node.fail(f"different attributes, at most {KEY_ATTRIBUTES_MAX} in a key", found=f"{len(names)}")
    return partition, sort


def key_parts(
    node: DocumentNode, partition: DocumentNode, sort: DocumentNode, attribute: Callable[[DocumentNode], KeyAttribute]
) -> Parts:
    """The parts of a key, each given as one attribute, as a list of them, or not at all."""
    if not partition:
        partition.fail("a partition key")
    return require_parts(node, tuple(map(attribute, partition.ones())), tuple(map(attribute, sort.ones())))


def table_key(node: DocumentNode, parts: Parts) -> tuple[KeyAttribute, ...]:
    """The key of a table: one attribute, or two."""
    partition, sort = parts
    if len(partition) > 1 or len(sort) > 1:
        found = f"{len(partition)} and {len(sort)}"
        node.fail("one partition key and at most one sort key, as a table has", found=found)
    return (*partition, *sort)


def projection(node: DocumentNode, text: Text = plain_text) -> Projection:
    """The projection of an index as requests have it; None where it is not given."""
    if not node:
        return None
    kind = text(node.require_map()["ProjectionType"]) if node["ProjectionType"] else ""
    return projection_of(kind, node["NonKeyAttributes"], text)


def projection_of(kind: str, included: DocumentNode, text: Text = plain_text) -> Projection:
    """The projection of a kind such as ALL or keys_only; `included` lists the attributes of the kind INCLUDE."""
    if kind.lower() == "include":
        names = [attribute_name(one, text) for one in included.list("a list of attributes")]
        return tuple(dict.fromkeys(names)) or "keys"
    return PROJECTIONS.get(kind.lower())


def indexes(
    node: DocumentNode, types: Mapping[str, KeyType], text: Text = plain_text, *, local: bool = False
) -> list[Index]:
    """The secondary indexes of a list of global ones, or of local ones."""
    found = []
    for one in node.list("a list of indexes"):
        name = text(one.require_map()["IndexName"])
        partition, sort = schema(one["KeySchema"], types, text)
        found.append(Index(name, partition, sort, projection(one["Projection"], text), local))
    return found


def stream(node: DocumentNode) -> Stream:
    enabled = isinstance(node.value, dict) and node["StreamEnabled"].value is not False
    return stream_of(node["StreamViewType"].value, enabled=enabled)


def stream_of(view: object, *, enabled: bool) -> Stream:
    """The stream that shows this view of each change."""
    if not enabled:
        return "none"
    return "both" if view == IMAGES else "other" if isinstance(view, str) else "unknown"


def fill(table: FoundTable, node: DocumentNode, text: Text = plain_text) -> None:
    """Fill a table with the key, the indexes and the stream of a request, a description or a template's properties."""
    types = definitions(node["AttributeDefinitions"], text)
    table.key = table_key(node["KeySchema"], schema(node["KeySchema"], types, text))
    table.indexes += indexes(node["GlobalSecondaryIndexes"], types, text)
    table.indexes += indexes(node["LocalSecondaryIndexes"], types, text, local=True)
    table.stream = stream(node["StreamSpecification"])


def as_key(attributes: Mapping[str, str]) -> tuple[KeyAttribute, ...]:
    """Key attributes of names and types that are known to be well."""
    return tuple(KeyAttribute(name, cast("KeyType", kind)) for name, kind in attributes.items())
