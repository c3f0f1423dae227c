"""Filters stream records that can concern no rule, by raw attribute values, before anything of them is read.

Invariant: a record is left out only if its key is of no entity that a rule speaks of, or if both images are there and
agree in every attribute that a rule watches, and made no room in a large item; when in doubt it passes. Records of
our own writes pass too: rules watch their copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from sync_rules.model.entities import Entity, Table
from sync_rules.model.sizes import ROOM_LEAST_BYTES, count_former_bytes
from sync_rules.model.templates import Beginnings
from sync_rules.model.values import Names
from sync_rules.rules.rule import Rule, list_attributes_read

Watched = Names  # None: any change may concern a rule


def count_freed_bytes(data: Mapping[str, Any]) -> int:
    """Return the former size of a large item that this record (its `dynamodb` part) made smaller; else 0."""
    size = data.get("SizeBytes")
    if type(size) is int and size < ROOM_LEAST_BYTES:
        return 0
    return count_former_bytes(data.get("OldImage"), data.get("NewImage"))


class RecordFilter:
    """A filter for the stream records of one table. It finds what rules watch by the beginnings of an item's keys."""

    def __init__(self, table: Table, concerned: Mapping[Entity, Iterable[Rule]]) -> None:
        """Make the filter. `concerned`: the rules that apply to each entity of the table."""
        self._partition = table.partition.name if table.partition.type == "S" else None
        self._sort = table.sort.name if table.sort is not None and table.sort.type == "S" else None
        found: dict[str, dict[str, Watched]] = {}
        for entity, rules in concerned.items():
            some = tuple(rules)
            watched = list_attributes_read((rule, entity) for rule in some).get(table.name, frozenset())
            if some:  # an entity without watched attributes still matters when an item comes or goes
                of_sort = found.setdefault(_find_beginning(entity, self._partition), {})
                begins = _find_beginning(entity, self._sort)
                before = of_sort.get(begins, frozenset())
                of_sort[begins] = _join_attribute_names(before, watched)
        self._by_partition = Beginnings({begins: Beginnings(of_sort) for begins, of_sort in found.items()})

    def find_watched_attributes(self, data: Mapping[str, Any]) -> Watched | Literal[False]:
        """Return the attributes of a record (its `dynamodb` part) that rules watch; False if the record can concern no
        rule.

        Raises:
            KeyError, TypeError, AttributeError: if the record is malformed. Read it in full to report why.
        """
        keys = data["Keys"]
        partition = "" if self._partition is None else keys[self._partition]["S"]
        sort = "" if self._sort is None else keys[self._sort]["S"]
        watched: Watched | Literal[False] = False
        for length in self._by_partition.lengths:
            of_sort = self._by_partition.values.get(partition[:length])
            if of_sort is None:
                continue
            for sort_length in of_sort.lengths:
                begins = sort[:sort_length]
                if begins in of_sort.values:
                    more = of_sort.values[begins]
                    watched = more if watched is False else _join_attribute_names(watched, more)
        if watched is False or not (_touches(watched, data) or count_freed_bytes(data)):
            return False
        return watched


def _touches(watched: Watched, data: Mapping[str, Any]) -> bool:
    if watched is None:
        return True
    old, new = data.get("OldImage"), data.get("NewImage")
    if not old or not new:
        return True
    if len(watched) > len(new) + len(old):
        watched = watched.intersection((*new, *old))
    for name in watched:  # noqa: SIM110 -- every record comes by here, and a generator doubles the time
        if old.get(name) != new.get(name):
            return True
    return False


def _join_attribute_names(one: Watched, other: Watched) -> Watched:
    return None if one is None or other is None else one | other


def _find_beginning(entity: Entity, attribute: str | None) -> str:
    """The literal text that the values of a key attribute begin with, for the items of an entity."""
    return "" if attribute is None else entity.templates[attribute].literals[0]
