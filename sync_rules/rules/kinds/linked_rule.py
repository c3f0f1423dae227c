"""Rules whose targets each point to one source: copies and paths.

Invariant: no target gets another source's value. Every guard compares the link. The record of a target whose link
changed checks that target again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sync_rules.model.entities import Entity
from sync_rules.model.errors import ConditionError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions, Link, Pointer, describe_link, translate_identity
from sync_rules.model.values import AttributeValue, Item, Path, get, is_same_value
from sync_rules.model.where import Where
from sync_rules.model.writes import Condition, expect_item
from sync_rules.rules.description import Connection, Moment, Operation, Use, format_entity_name
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import Blocked, list_uses_to_list

OnDelete = Literal["keep", "clear", "delete", "restrict"]


@dataclass(frozen=True, eq=False)
class LinkedRule(TargetRule):
    """A rule whose targets each name one source. `link`: how a target holds each identity field of its source.
    `settle_seconds`: how long an index may lag before the second look. `defaults`: by copy, the value that replaces
    a missing value.
    """

    link: Link
    where: Where | None = None
    on_delete: OnDelete = "keep"
    strict: bool = False
    defaults: Mapping[Path, AttributeValue] = field(default_factory=dict)

    def body(self) -> Mapping[str, object]:
        return {
            "link": describe_link(self.link),
            "via": self.find and self.find.index,
            "on_delete": self.on_delete,
            "settle_seconds": self.settle_seconds,
            **({"sparse": True} if self.sparse else {}),  # others keep the body of before
            **({"default": sorted(self.defaults.items())} if self.defaults else {}),
        }

    @property
    def connection(self) -> Connection:
        of_source = tuple((self.source, path) for path in (self.where.source_paths if self.where else ()))
        of_target = tuple((self.target, path) for path in (self.where.target_paths if self.where else ()))
        conditions, includes = (*of_source, *of_target), self._may_speak_of
        return Connection(self.target, self.source, self.link, (), includes, conditions, optional=self.hierarchical)

    def _may_speak_of(self, target: Item) -> bool:
        """False for a target that the rule leaves out whatever its source holds."""
        if self.where is not None and self.where.source_paths:
            return self.find is None or not self.find.leaves_out(target)
        return self.where_holds({}, target) is True

    @property
    def lists_by(self) -> tuple[object, ...]:
        return (self.target.name, self.find, self.link)

    def conditions(self, anchor: ItemKey) -> KeyConditions | None:
        return None if self.find is None else self.find.conditions(translate_identity(self.link, self.source, anchor))

    @cached_property
    def pointer(self) -> Pointer:
        return Pointer(self.link, self.source)

    def points(self, item: Item) -> bool:
        return self.pointer(item) is not None

    def source_keys(self, target: Item) -> tuple[ItemKey, ...]:
        key = self.pointer(target)
        return () if key is None else (key,)

    @cached_property
    def link_paths(self) -> tuple[Path, ...]:
        """The target paths that name the source, without those in the target's key, which cannot change."""
        return self.target.drop_key_paths(ref.path for _, ref in self.link)

    @cached_property
    def where_paths(self) -> tuple[Path, ...]:
        """The target paths that `where` reads, and those of a sparse index, without the target's key, which cannot
        change.
        """
        read = self.target.drop_key_paths(map(self.target.locate_field, self.where.target_paths if self.where else ()))
        return (*read, *self.sparse_paths)

    @cached_property
    def deciding_paths(self) -> tuple[Path, ...]:
        return (*self.link_paths, *self.where_paths)

    @cached_property
    def relevant_paths(self) -> tuple[Path, ...]:
        """Link, copies, `where`, and the index keys: a listing may miss an item that moves within its index."""
        index = self.find.index if self.find is not None else None
        keys = [a.name for a in self.target.table.index(index).attributes] if index else []
        return tuple(dict.fromkeys([*self.link_paths, *self.copies, *self.where_paths, *((name,) for name in keys)]))

    @property
    @abstractmethod
    def source_paths(self) -> tuple[Path, ...]:
        """The source paths that the rule reads. A change of one asks for a push."""

    @property
    def watches_in_source(self) -> tuple[Path, ...]:
        return self.source_paths

    def where_holds(self, source: Item, target: Item) -> bool | Blocked:
        """True if the rule applies to this pair. Blocked if `where` cannot be evaluated."""
        if self.find is not None and self.find.leaves_out(target):
            return False
        if self.where is None:
            return True
        of_source, of_target = self.where.source_paths, self.where.target_paths
        try:
            return self.where.holds(self.source.view(source, of_source), self.target.view(target, of_target))
        except ConditionError as error:
            return Blocked(error.reason)

    def compute_values_without_source(self, target: Item) -> Mapping[Path, AttributeValue | None] | None:
        """Return the values for a target without a source, or whose `where` does not hold; None if the rule leaves it
        alone.

        Only `clear` brings a default back. Other policies keep present values, and fill missing values by default.
        """
        if self.on_delete == "clear":
            return {copy: self.defaults.get(copy) for copy in self.copies}
        missing = {copy: value for copy, value in self.defaults.items() if get(target, copy) is None}
        return missing or None

    def deletes(self, target: Item) -> bool:
        """True if this target is deleted with its source. `check` refuses a `where` that would read the deleted
        source.
        """
        return self.on_delete == "delete" and self.where_holds({}, target) is True

    def restricts(self, target: Item) -> bool:
        return self.on_delete == "restrict" and self.where_holds({}, target) is True

    @property
    def needs_source(self) -> bool:
        return self.on_delete in ("delete", "restrict")

    def outlives(self, image: Item) -> bool:
        kept = (copy for copy in self.copies if get(image, copy) is not None and copy not in self.list_defaults(image))
        return bool(self.where_holds({}, image)) and any(kept)

    def list_defaults(self, item: Item) -> tuple[Path, ...]:
        return tuple(copy for copy, value in self.defaults.items() if is_same_value(get(item, copy), value))

    def find_value_sources(self, key: ItemKey, image: Item, paths: Iterable[Path]) -> tuple[ItemKey, ...]:
        return self.source_keys(image)

    def is_known_by_key(self, entity: Entity) -> bool:
        return True  # a target names its source by what it holds, and a source lists its targets

    def list_uses_to_find(self) -> Iterator[Use]:
        return list_uses_to_list(self, Moment.LISTED)

    def list_uses_to_write(self) -> Iterator[Use]:
        yield from super().list_uses_to_write() if self.copies else ()
        if self.on_delete == "delete":
            target, source = format_entity_name(self.target), format_entity_name(self.source)
            goes = f"on_delete: {target} goes with its {source}"
            yield Use(Moment.DELETED, Operation.DELETE, self.target.table, goes)
            yield Use(Moment.DELETED, Operation.CHECK, self.source.table, f"on_delete: {source} still is gone")

    def source_guard(self, source: Item | None) -> tuple[Condition, ...]:
        return expect_item(self.source.table.partition.name, source, self.source_paths)
