"""Read and write units of requests, by sizes in bytes.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
"""

from __future__ import annotations

from typing import Final

READ_UNIT_BYTES: Final = 4096
WRITE_UNIT_BYTES: Final = 1024
TRANSACTION_TIMES: Final = 2  # an action of a transaction costs twice its units, in the table and not in its indexes
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_MAX_WRITE_UNITS: Final = 1_000  # write units a second that one partition accepts
PARTITION_MAX_READ_UNITS: Final = 3_000  # read units a second that one partition gives


def read_units(size_bytes: int, *, consistent: bool) -> float:
    """Units of one read: an item, or a page of a Query or Scan. Finding nothing costs one unit, or half of it.

    GetItem and BatchGetItem round each item up; Query and Scan round the sum of what they read,
    before a filter and without regard to the attributes asked for.
    """
    return max(1, -(-size_bytes // READ_UNIT_BYTES)) * (1.0 if consistent else 0.5)


def write_units(size_bytes: int) -> int:
    """Units of one write, by the larger of the item's sizes before and after."""
    return max(1, -(-size_bytes // WRITE_UNIT_BYTES))


def index_write_units(before_bytes: int | None, after_bytes: int | None, *, moved: bool = False) -> int:
    """Units of one changed row of an index: one write for a row that comes, goes or changes, two for one that moves
    because its key changed. None: the index has no such row. A row whose attributes all stay costs nothing, and is not
    asked about here. An index is not part of a transaction.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html#GSI.ThroughputConsiderations.Writes
    """
    if before_bytes is None or after_bytes is None:
        there = after_bytes if before_bytes is None else before_bytes
        return 0 if there is None else write_units(there)
    return write_units(before_bytes) * moved + write_units(after_bytes)
