"""Links between items, and the Query that finds the items that link to one.

Invariant: an item links by the fields that make the other item's key. One Query lists all links to an item. A value
that no key can hold names no item, and is never queried.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from sync_rules.model.entities import Entity, KeyAttribute, Ref
from sync_rules.model.items import ItemKey
from sync_rules.model.templates import PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES, Fields, Template, is_possible
from sync_rules.model.values import AttributeValue, Item, get

KEY_TYPES: Final = frozenset({"S", "N", "B"})
NOTHING: Final[AttributeValue] = {}
LINKS_KEPT_MAX: Final = 1_024  # more than a page of targets; each is some hundred bytes

KeyValue = tuple[str, Any]
Link = tuple[tuple[str, Ref], ...]  # an identity field of the item pointed to, and where the pointing item carries it


def describe_link(link: Link) -> list[tuple[str, object]]:
    """Describe a link for fingerprints. A field of another name is named if its key template has several fields."""
    found: dict[str, object] = {}
    for name, ref in link:
        several = ref.template is not None and len(ref.template.fields) > 1
        found[name] = (ref.body, ref.field) if several and ref.field != name else ref.body
    return sorted(found.items(), key=itemgetter(0))


@dataclass(frozen=True)
class Find:
    """The Query of the base table or of an index that finds the targets of a source.

    Each key attribute has the template that builds it from target fields. Of the last attribute in `sort`, only the
    beginning may be known. `needs`: the index key attributes without which a target is not listed. The pipeline reports
    such a target, or ignores it if the index is `sparse`.
    """

    index: str | None
    partition: tuple[tuple[KeyAttribute, Template], ...]
    sort: tuple[tuple[KeyAttribute, Template], ...] = ()
    needs: tuple[KeyAttribute, ...] = ()
    sparse: bool = False

    def list_missing_attributes(self, item: Item) -> tuple[KeyAttribute, ...]:
        return tuple([attribute for attribute in self.needs if attribute.type not in item.get(attribute.name, NOTHING)])

    def leaves_out(self, item: Item) -> bool:
        """True if an item does not belong to the rule, because it is not in the sparse index."""
        return self.sparse and bool(self.list_missing_attributes(item))

    def conditions(self, fields: Fields) -> KeyConditions | None:
        """The key conditions for a source with these fields (named as on the target); None if no target can exist."""
        equals: list[tuple[str, AttributeValue]] = []
        for attribute, template in self.partition:
            value = template.build(fields, attribute.type)
            if value is None or not is_possible(value, PARTITION_KEY_MAX_BYTES):
                return None
            equals.append((attribute.name, value))
        for attribute, template in self.sort:
            if all(field in fields for field in template.fields):
                value = template.build(fields, attribute.type)
                if value is None or not is_possible(value, SORT_KEY_MAX_BYTES):
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


class Pointer:
    """A function from an item to the key of the item of `entity` that it names by `link`; None if it names none.

    Keys are cached, because many targets name one source: 0.6 us in place of 7.8 (`python -m benchmarks.shortcuts`).
    """

    def __init__(self, link: Link, entity: Entity) -> None:
        self._link = link
        self._entity = entity
        self._paths = tuple(ref.path for _, ref in link)
        self._known: dict[tuple[KeyValue, ...], ItemKey | None] = {}

    def __call__(self, item: Item) -> ItemKey | None:
        asked: tuple[KeyValue, ...] = ()
        for path in self._paths:
            value = item.get(path[0]) if len(path) == 1 else get(item, path)
            if value is None:
                return None
            asked += tuple(value.items())
        try:
            return self._known[asked]
        except KeyError:
            key = self._find_key(asked)
        except TypeError:  # a list, a map or a set: no key
            return None
        if len(self._known) >= LINKS_KEPT_MAX:
            self._known.clear()
        self._known[asked] = key
        return key

    def _find_key(self, values: tuple[KeyValue, ...]) -> ItemKey | None:
        fields: dict[str, AttributeValue] = {}
        for (field, ref), (kind, content) in zip(self._link, values, strict=True):
            value = ref.within({kind: content}) if kind in KEY_TYPES else None
            if value is None:
                return None
            fields[field] = value
        return self._entity.key_of(fields)


def translate_identity(link: Link, entity: Entity, key: ItemKey) -> Fields:
    """Return the identity in `key`, under the field names of the items that link to it."""
    fields = entity.fields(key) or {}
    return {ref.field: fields[field] for field, ref in link}
