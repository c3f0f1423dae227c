"""What the indexes of a table ask of the attributes that their keys are made of.

Law: DynamoDB refuses to write an item with a key that an index cannot hold, and the item then keeps the key it had. So
what cannot be a key is not written: the item is without it, and not in that index.
"""

from __future__ import annotations

from collections.abc import Mapping

from sync_rules.model.entities import KEY_MAX_BYTES, KeyType, Table
from sync_rules.model.templates import possible
from sync_rules.model.values import AttributeValue

Asked = tuple[KeyType, int]  # a type, and how many bytes at most


def asked_by_indexes(table: Table) -> Mapping[str, Asked]:
    """What is asked of each attribute that is part of an index's key: of several uses the one that takes least."""
    found: dict[str, Asked] = {}
    for index in table.indexes:
        for part, max_bytes in zip((index.partition, index.sort), KEY_MAX_BYTES, strict=True):
            for attribute in part:
                known = found.get(attribute.name)
                found[attribute.name] = (attribute.type, min(max_bytes, known[1]) if known else max_bytes)
    return found


def fitting(value: AttributeValue | None, max_bytes: int) -> AttributeValue | None:
    """The value if an index can hold it, else nothing."""
    return value if value is not None and possible(value, max_bytes) else None
