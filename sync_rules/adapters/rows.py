"""Items sorted by a key, as a table or an index of the memory store holds them: what a Query reads.

Law: an item that lacks an attribute of the key has no row. Numbers sort by value, strings as their UTF-8 bytes do,
binaries bytewise; rows of equal keys in an index sort by the primary key.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from sync_rules.adapters.expressions import comparable, key_values
from sync_rules.model.entities import KeyAttribute
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.values import Item

Values = tuple[str | bytes | Decimal, ...]


@dataclass
class Rows:
    """Items sorted by a key: each partition is a sorted list of (sort key values, then primary key values)."""

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...]
    items: dict[Values, Item] = field(default_factory=dict)
    places: dict[Values, tuple[Values, Values]] = field(default_factory=dict)
    partitions: dict[Values, list[Values]] = field(default_factory=dict)

    def put(self, key: Values, item: Item | None) -> None:
        """The item that now belongs to a primary key; one that lacks an attribute of these keys has no row."""
        place = None if item is None else self._place(key, item)
        before = self.places.get(key)
        if place != before:
            self._move(key, before, place)
        if item is None or place is None:
            self.items.pop(key, None)
        else:
            self.items[key] = item

    def _place(self, key: Values, item: Item) -> tuple[Values, Values] | None:
        partition, sort = key_values(item, self.partition), key_values(item, self.sort)
        return None if partition is None or sort is None else (partition, sort + key)

    def _move(self, key: Values, before: tuple[Values, Values] | None, after: tuple[Values, Values] | None) -> None:
        if before is not None:
            ranks = self.partitions[before[0]]
            del ranks[bisect_left(ranks, before[1])]
            if not ranks:
                del self.partitions[before[0]]
            del self.places[key]
        if after is not None:
            insort(self.partitions.setdefault(after[0], []), after[1])
            self.places[key] = after

    def query(self, conditions: KeyConditions, cursor: Values | None, *, backward: bool = False) -> Iterator[Item]:
        """The rows that meet the conditions, in order or from the last to the first, from behind the cursor on."""
        given = {name: comparable(*next(iter(value.items()))) for name, value in conditions.equals}
        ranks = self.partitions.get(tuple(given.pop(attribute.name) for attribute in self.partition), [])
        prefix: Values = tuple(given[attribute.name] for attribute in self.sort[: len(given)])
        width = len(prefix)
        if conditions.begins_with is None:
            start, end = bisect_left(ranks, prefix), bisect_right(ranks, prefix, key=lambda rank: rank[:width])
        else:
            begins = conditions.begins_with[1]
            beginning = (*prefix, begins)
            start = bisect_left(ranks, beginning)
            end = bisect_right(ranks, beginning, key=lambda r: (*r[:width], str(r[width])[: len(begins)]))
        if cursor is not None and backward:
            end = min(end, bisect_left(ranks, cursor))
        elif cursor is not None:
            start = max(start, bisect_right(ranks, cursor))
        places = range(end - 1, start - 1, -1) if backward else range(start, end)
        return (self.items[ranks[place][len(self.sort) :]] for place in places)
