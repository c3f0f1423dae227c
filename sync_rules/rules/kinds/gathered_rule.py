"""Rules whose target is made of several members: embeds, recounts and values.

Invariant: the value is a function of the members as they are now: existing items that point to this target, that the
listing would show, and that satisfy `where`. Their order and the target's old value do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Entity, KeyAttribute
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import KeyConditions, describe_link, translate_identity
from sync_rules.model.values import Item, Path, has_changed, is_same_value
from sync_rules.model.where import Where
from sync_rules.rules.description import Connection, Moment, Use
from sync_rules.rules.families import Hint, ListingRule, Members, TargetRule
from sync_rules.rules.rule import Blocked, let_in, list_uses_to_list

MEMBERS_MAX_ITEMS: Final = 1000  # listed for one look at a target: of 1 KB each, one page of a Query
WHOLE: Final[Path] = ()  # stands for every attribute of an item; it overlaps any path


@dataclass(frozen=True, eq=False, kw_only=True)
class GatheredRule(ListingRule, TargetRule):
    """A rule whose sources are the members of its target. `find` lists the members of a target; `where` reads a member
    alone.
    """

    into: Path
    where: Where | None = None
    gathers = True
    deciding_paths = ()  # what a target's members point to is its key, which cannot change

    @property
    def copies(self) -> tuple[Path, ...]:
        return (self.into,)

    @property
    def reads(self) -> Iterable[Path]:
        """The fields of a member that make the value. WHOLE means every attribute."""
        raise NotImplementedError

    def body(self) -> Mapping[str, object]:
        return {
            "into": self.into,
            "link": describe_link(self.link),
            "where": self.where and self.where.text,
            "via": self.find and self.find.index,
            "settle_seconds": self.settle_seconds,
        }

    def is_known_by_key(self, entity: Entity) -> bool:
        return entity is not self.source or not self.source.drop_key_paths(ref.path for _, ref in self.link)

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        """The targets; also the members, if an index could omit one."""
        reported = self.find is not None and self.find.needs and not self.sparse
        return (self.target, self.source) if reported else (self.target,)

    def list_uses_to_read(self) -> Iterator[Use]:
        return list_uses_to_list(self, Moment.CHECKED)

    def list_uses_to_find(self) -> Iterator[Use]:
        return (use for use in super().list_uses_to_find() if use.moment is not Moment.LISTED)

    @property
    def connection(self) -> Connection | None:
        found = None if self.books is not None else super().connection
        return found and replace(found, reads=tuple((self.source, path) for path in self.reads if path != WHOLE))

    def conditions(self, anchor: ItemKey) -> KeyConditions | None:
        assert self.find is not None, "without a listing every target would look empty"
        return self.find.conditions(translate_identity(self.link, self.target, anchor))

    def members(self, key: ItemKey, target: Item) -> Members | None:
        conditions = self.conditions(key)
        if conditions is None:
            return None
        assert self.find is not None, "there are conditions"
        named = self.list_present_members(key, target) if self.find.index else ()
        return Members(self.source.table.name, self.find.index, conditions, MEMBERS_MAX_ITEMS, named=named)

    def list_present_members(self, key: ItemKey, target: Item) -> tuple[ItemKey, ...]:
        """List the members that the present value names: an index may not show them yet."""
        return ()

    def is_member(self, key: ItemKey, member: Item) -> bool | Blocked:
        """True if an item is a member. An item that the listing cannot show is not a member, even if a record names it.
        Otherwise the value would depend on the record.
        """
        at = self.source.table.key_of(member)
        if at is None or self.source.fields(at) is None:
            return False  # another entity's item among them
        if self.pointer(member) != key or not self._is_listed(key, member):
            return False
        belongs = let_in(self.where, member, self.source)
        return replace(belongs, member=at) if isinstance(belongs, Blocked) else belongs

    def _is_listed(self, key: ItemKey, member: Item) -> bool:
        conditions = self.conditions(key)
        if conditions is None or any(not is_same_value(member.get(name), value) for name, value in conditions.equals):
            return False
        if conditions.begins_with is not None:
            name, prefix = conditions.begins_with
            if not str(member.get(name, {}).get("S", "")).startswith(prefix):
                return False
        return all(attribute.type in member.get(attribute.name, {}) for attribute in self._index_key)

    @cached_property
    def _index_key(self) -> tuple[KeyAttribute, ...]:
        """The key of the index that members are listed by; an item without all of it has no row there."""
        return self.source.table.index(self.find.index).attributes if self.find and self.find.index else ()

    def in_key_order(self, members: Iterable[Item | None]) -> Sequence[tuple[ItemKey, Item]]:
        """Sort the members by their keys. The order of a listing does not matter then."""
        keyed = ((self.source.table.key_of(member), member) for member in members if member is not None)
        return sorted(
            ((key, member) for key, member in keyed if key is not None),
            key=lambda one: tuple(value for _, _, value in one[0].values),
        )

    @cached_property
    def read_paths(self) -> tuple[Path, ...]:
        """The places where a member keeps what decides: value, `where`, link, and its key in the listing index."""
        stored = (
            self.source.locate_field(path) if path else WHOLE
            for path in (*self.reads, *(self.where.paths if self.where else ()))
        )
        places = (*(ref.path for _, ref in self.link), *((attribute.name,) for attribute in self._index_key))
        return tuple(dict.fromkeys((*stored, *places)))

    @property
    def watches_in_source(self) -> tuple[Path, ...] | None:
        return None if WHOLE in self.read_paths else self.read_paths

    def hints(self, change: Change) -> Iterable[Hint]:
        """Return the targets that the old and the new image of a member name, whether or not `where` holds."""
        old, new = change.old, change.new
        if old is not None and new is not None and not self._touches(old, new):
            return ()
        targets = dict.fromkeys(self.pointer(image) for image in (old, new) if image is not None)
        return tuple(Hint(target, change.key) for target in targets if target is not None)

    def _touches(self, old: Item, new: Item) -> bool:
        if WHOLE in self.read_paths:
            return not is_same_value({"M": old}, {"M": new})
        return has_changed(old, new, self.read_paths)
