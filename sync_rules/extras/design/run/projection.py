"""Reads the attributes that a pattern returns from the items of an answer, each under its name in `attributes`.

Invariant: a request reads only attributes that the answer needs, and never one that an index does not show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sync_rules.extras.design.patterns.gets import find_copy, map_mirror_names
from sync_rules.extras.design.patterns.key_access import AccessPath
from sync_rules.model.entities import Entity, Index
from sync_rules.model.values import AttributeValue, Item, Path
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Sight:
    """An entity as a pattern reads it: `mirror` is the rule, if its items are mirrors of the pattern's entity."""

    rules: Rules
    entity: Entity
    mirror: MirrorRule | None = None

    def path(self, name: str) -> Path:
        """Return the path where an item stores a field."""
        return self._find_field(name)[0]

    def read(self, item: Item, name: str) -> AttributeValue | None:
        """Return the value of a field; a padded value is a number."""
        path, field = self._find_field(name)
        if len(path) > 1 or field not in self.entity.bound_fields:
            return self.entity.ref(field).read(item)
        return self.entity.view(item, [(field,)]).get(field)

    def paths(self, names: Iterable[str] | None) -> tuple[Path, ...] | None:
        """Return the paths of the key and of these fields; None for all."""
        return None if names is None else tuple(dict.fromkeys((*list_key_paths(self.entity), *map(self.path, names))))

    def view(self, item: Item, names: Iterable[str] | None) -> Item:
        """Return the values of these fields that an item has, by their names; for None, the whole item."""
        if names is None:
            return item
        read = {name: self.read(item, name) for name in names}
        return {name: value for name, value in read.items() if value is not None}

    def _find_field(self, name: str) -> tuple[Path, str]:
        field = name
        if self.mirror is not None:
            own = dict(self.mirror.names)
            field = map_mirror_names(self.mirror).get(name) or (own[name].field if name in own else name)
        return self.entity.ref(field).path, field

    def list_shown_fields(self, index: Index | None, names: Iterable[str]) -> tuple[str, ...]:
        """The fields of these that rows of an index, or of the table, show."""
        way = AccessPath(self.entity.table, index)
        return tuple(name for name in names if way.shows(self.entity, self._find_field(name)[1]))


@dataclass(frozen=True)
class OutputAttribute:
    """One attribute that a pattern returns: `name` as requested; `field` of the entity itself, or of the entity
    `other`.
    """

    name: str
    field: str
    other: Entity | None = None


def list_output_attributes(
    rules: Rules, entity: Entity, names: tuple[str, ...], there: Entity | None = None
) -> list[OutputAttribute]:
    """List the attributes that a pattern on an entity returns. For an attribute of another entity, use its copy if a
    rule keeps a copy on the items that are read: of the entity, or its mirror `there`.
    """
    found: list[OutputAttribute] = []
    for text in names:
        first, _, rest = text.partition(".")
        other = rules.entities.get(first)
        if other is None or not rest or other is entity:
            found.append(OutputAttribute(text, text))
            continue
        copied = find_copy(rules, other, rest, there or entity)
        found.append(OutputAttribute(text, rest, other) if copied is None else OutputAttribute(text, copied))
    return found


def list_key_paths(entity: Entity, index: Index | None = None) -> tuple[Path, ...]:
    """List the paths of the keys of a table and an index: a cursor and each further read need them."""
    attributes = (*entity.table.key, *(() if index is None else index.attributes))
    return tuple(dict.fromkeys((attribute.name,) for attribute in attributes))
