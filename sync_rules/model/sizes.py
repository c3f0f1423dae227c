"""The size of an item in bytes, as DynamoDB counts it, the units of reads and writes, and the keys that it can hold.

Invariant: the arithmetic is that of the Developer Guide, "DynamoDB item sizes and formats": names and strings in UTF-8,
a number by its significant digits, one byte per element and three per list or map. The service itself rounds numbers as
it likes ("approximately"), so an answer near the limit may be a byte or two off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sync_rules.model.entities import KEY_MAX_BYTES, KeyAttribute, KeyType, Table
from sync_rules.model.items import ItemKey
from sync_rules.model.templates import PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES, is_possible
from sync_rules.model.values import AttributeValue, Item

ITEM_MAX_BYTES = 400 * 1024  # DynamoDB quota "Item size", names and values together
ROOM_LEAST_BYTES = 16 * 1024  # a smaller item has room for any copy of up to 384 KB
FULL_BYTES = ITEM_MAX_BYTES - ROOM_LEAST_BYTES  # a smaller one has room for any element of a set
TOO_LARGE: Final = "ItemTooLarge"
DOCUMENT_BYTES = 3
ELEMENT_BYTES = 1
READ_UNIT_BYTES: Final = 4096
WRITE_UNIT_BYTES: Final = 1024
TRANSACTION_TIMES: Final = 2  # an action of a transaction costs twice its units, in the table and not in its indexes
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_MAX_WRITE_UNITS: Final = 1_000  # write units a second that one partition accepts
PARTITION_MAX_READ_UNITS: Final = 3_000  # read units a second that one partition gives


def count_item_bytes(item: Item) -> int:
    return sum(_count_text_bytes(name) + count_value_bytes(value) for name, value in item.items())


def count_former_bytes(old: Item | None, new: Item | None) -> int:
    """Return the former size of a large item that became smaller, so that there may be room in it now; else 0."""
    if not old or not new:
        return 0
    before = count_item_bytes(old)
    return before if before >= ROOM_LEAST_BYTES and count_item_bytes(new) < before else 0


def is_too_large(item: Item | None) -> bool:
    """True if DynamoDB certainly cannot hold an item. Sizes of numbers are approximate, so they are counted as small as
    possible. False for None, an unknown item.
    """
    if item is None:
        return False
    return (
        sum(_count_text_bytes(name) + count_value_bytes(value, _count_digit_bytes) for name, value in item.items())
        > ITEM_MAX_BYTES
    )


def count_value_bytes(value: AttributeValue, number_bytes: Callable[[str], int] | None = None) -> int:
    """Count the bytes of one value, without its name. `number_bytes` counts the bytes of a number in another way."""
    ((kind, content),) = value.items()
    if kind == "S":  # as most are
        return len(content) if content.isascii() else len(content.encode())
    number_bytes = number_bytes or _count_number_bytes
    match kind:
        case "N":
            return number_bytes(content)
        case "B":
            return len(content)
        case "M":
            return (
                DOCUMENT_BYTES
                + sum(
                    ELEMENT_BYTES + _count_text_bytes(name) + count_value_bytes(inner, number_bytes)
                    for name, inner in content.items()
                )
            )  # fmt: skip
        case "L":
            return DOCUMENT_BYTES + sum(ELEMENT_BYTES + count_value_bytes(inner, number_bytes) for inner in content)
        case "SS":
            return sum(map(_count_text_bytes, content))
        case "NS":
            return sum(map(number_bytes, content))
        case "BS":
            return sum(map(len, content))
    return 1  # BOOL and NULL


def _count_text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _count_number_bytes(text: str) -> int:
    return _count_digit_bytes(text) + 1 + text.startswith("-")


def _count_digit_bytes(text: str) -> int:
    if text.isdecimal():  # as most are
        return (len(text.strip("0")) + 1) // 2
    digits = text.lower().partition("e")[0].lstrip("+-").replace(".", "").strip("0")
    return (len(digits) + 1) // 2


def is_possible_key(key: ItemKey) -> bool:
    for (_, kind, value), size in zip(key.values, KEY_MAX_BYTES, strict=False):
        if not (kind == "S" and 0 < 4 * len(value) <= size) and not is_possible({kind: value}, size):
            return False
    return True


def describe_impossible(table: Table, item: Item | None) -> str:
    """Return the reason why this table cannot hold this item; "" if it can, and for None, an unknown item."""
    if item is None:
        return ""
    for index in table.indexes:
        if not is_possible_row(item, index.partition, index.sort):
            return "ValidationException"
    return TOO_LARGE if count_item_bytes(item) > ITEM_MAX_BYTES else ""


def is_possible_row(item: Item, partition: Sequence[KeyAttribute], sort: Sequence[KeyAttribute]) -> bool:
    """True if an index with these key attributes takes the item: each is missing, or has its type and size."""
    for attribute in (*partition, *sort):
        value = item.get(attribute.name)
        if value is not None and not (
            attribute.type in value and is_possible(value, find_max_bytes(attribute.name, partition))
        ):
            return False
    return True


def find_max_bytes(name: str, partition: Iterable[KeyAttribute]) -> int:
    """Return the size limit of a key attribute: that of a partition key, or of a sort key."""
    for attribute in partition:
        if attribute.name == name:
            return PARTITION_KEY_MAX_BYTES
    return SORT_KEY_MAX_BYTES


KeyLimit = tuple[KeyType, int]  # type, and bytes at most


def find_index_key_limits(table: Table) -> Mapping[str, KeyLimit]:
    """Return the type and the smallest size limit of each attribute that is part of an index key."""
    found: dict[str, KeyLimit] = {}
    for index in table.indexes:
        for part, max_bytes in zip((index.partition, index.sort), KEY_MAX_BYTES, strict=True):
            for attribute in part:
                known = found.get(attribute.name)
                found[attribute.name] = (attribute.type, min(max_bytes, known[1]) if known else max_bytes)
    return found


def fit_value(value: AttributeValue | None, max_bytes: int) -> AttributeValue | None:
    return value if value is not None and is_possible(value, max_bytes) else None


# ---------------------------------------------------------------- units
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
def count_read_units(size_bytes: int, *, consistent: bool) -> float:
    """Count the units of one read: an item, or a page of a Query or Scan. Finding nothing costs one unit, or half a
    unit if the read is not consistent.

    GetItem and BatchGetItem round each item up; Query and Scan round the sum of what they read, before a filter and
    without regard to the attributes asked for.
    """
    return max(1, -(-size_bytes // READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


def count_write_units(size_bytes: int) -> int:
    """Count the units of one write, by the larger of the item's sizes before and after."""
    return max(1, -(-size_bytes // WRITE_UNIT_BYTES))


def count_index_write_units(before_bytes: int | None, after_bytes: int | None, *, moved: bool = False) -> int:
    """Count the units of one changed row of an index: one write for a row that comes, goes or changes, two for a row
    that moves because its key changed. None: the index has no such row. Do not ask about a row whose attributes all
    stay: it costs nothing. An index is not part of a transaction.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
    """
    if before_bytes is None or after_bytes is None:
        there = after_bytes if before_bytes is None else before_bytes
        return 0 if there is None else count_write_units(there)
    return count_write_units(before_bytes) * moved + count_write_units(after_bytes)
