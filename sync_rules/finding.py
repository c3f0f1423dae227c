"""How items point to each other, and by which Query those that point to one are found.

Law: an item points by the fields that make the other's key. Whoever lists has one Query; what a key cannot hold names
nobody, and a Query for it is not asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sync_rules.attributes import AttributeValue, Item, get
from sync_rules.entities import Entity, KeyAttribute, Ref
from sync_rules.keys import PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES, Fields, Template, possible
from sync_rules.model import ItemKey

KEY_TYPES: Final = frozenset({"S", "N", "B"})
LINKS_KEPT_MAX: Final = 1_024  # a page of targets and more; each is some hundred bytes

Link = tuple[tuple[str, Ref], ...]  # an identity field of the item pointed to, and where the pointing item carries it


@dataclass(frozen=True)
class Find:
    """How a source finds the targets that point to it: one Query, of the base table or of an index.

    Each key attribute comes with the template that builds it from target fields; `sort` holds those sort key attributes
    that can be narrowed, of which the last may be known by its beginning only.
    """

    index: str | None
    partition: tuple[tuple[KeyAttribute, Template], ...]
    sort: tuple[tuple[KeyAttribute, Template], ...] = ()

    def conditions(self, fields: Fields) -> KeyConditions | None:
        """The Query's key conditions for a source with these fields (named as on the target); None: no such targets."""
        equals: list[tuple[str, AttributeValue]] = []
        for attribute, template in self.partition:
            value = template.build(fields, attribute.type)
            if value is None or not possible(value, PARTITION_KEY_MAX_BYTES):
                return None
            equals.append((attribute.name, value))
        for attribute, template in self.sort:
            if all(field in fields for field in template.fields):
                value = template.build(fields, attribute.type)
                if value is None or not possible(value, SORT_KEY_MAX_BYTES):
                    return None
                equals.append((attribute.name, value))
            elif attribute.type == "S" and template.prefix(fields):
                return KeyConditions(tuple(equals), (attribute.name, template.prefix(fields)))
            else:
                break
        return KeyConditions(tuple(equals))


@dataclass(frozen=True)
class KeyConditions:
    """Key attributes that must equal a value and, at most, one string that must begin with a prefix."""

    equals: tuple[tuple[str, AttributeValue], ...]
    begins_with: tuple[str, str] | None = None


def linked(link: Link, entity: Entity, item: Item) -> ItemKey | None:
    """The key of the item of `entity` that this item points to; None when it points to none."""
    places = tuple([_place(get(item, ref.path)) for _, ref in link])
    return None if None in places else _named(link, entity, places)


def _place(value: AttributeValue | None) -> tuple[str, Any] | None:
    """A value that a key may be made of; None for any other."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    return (kind, content) if kind in KEY_TYPES else None


@lru_cache(maxsize=LINKS_KEPT_MAX)
def _named(link: Link, entity: Entity, places: tuple[tuple[str, Any], ...]) -> ItemKey | None:
    """The targets of one source point to it with the same values, and each is asked several times."""
    fields: dict[str, AttributeValue] = {}
    for (field, ref), (kind, content) in zip(link, places, strict=True):
        value = ref.within({kind: content})
        if value is None:
            return None
        fields[field] = value
    return entity.key_of(fields)


def named_fields(link: Link, entity: Entity, key: ItemKey) -> Fields:
    """The identity of the item pointed to, in the names that those pointing to it use: what they are listed by."""
    fields = entity.fields(key) or {}
    return {ref.field: fields[field] for field, ref in link}
