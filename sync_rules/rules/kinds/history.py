"""history: an item for each version of an item, as the application numbers them.

Invariant: a version follows from one state of its source, which a record, scan or consistent read showed. The rule puts
it once and never changes it. Only this rule writes states from records, because past states are nowhere else. A second
state under one version is reported. The newest state, under version 0, is a mirror of the source as it is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.json_bytes import canonical
from sync_rules.model.lookups import Find, Link
from sync_rules.model.numbers import text_of
from sync_rules.model.sizes import index_key_limits
from sync_rules.model.templates import Fields
from sync_rules.model.values import AttributeValue, Item, Path, has_changed, overlaps
from sync_rules.model.writes import Delete, Write, differences, expect_item
from sync_rules.rules.description import Drawing, Moment, Operation, Use, name_of
from sync_rules.rules.families import Members, Part, Seen
from sync_rules.rules.kinds.mirror import CHECK_MAX_ATTRIBUTES, MirrorRule, Values, put_of
from sync_rules.rules.rule import Blocked, Node, let_in

STATE: Final = "state"  # the element of a part that stood for a state of its source, and was parked
TAKEN: Final = "VersionTaken"  # another state of the source has this version
UNNUMBERED: Final = "NoVersion"  # the source lacks what makes the key of a version
LOST: Final = "VersionLost"  # the state was to be tried again, and is shown by nothing any more


ZERO: Final[AttributeValue] = {"N": "0"}  # the version under which the newest state stands
BEYOND: Final = Seen("beyond", {})  # of a part that a listing showed


def list_version_fields(source: Entity, target: Entity, fields: Link) -> list[str]:
    """The fields of a version's key that tell it from others of its item: what they are read from may change."""
    return [field for field, ref in fields if field in target.identity and source.drop_key_paths([ref.path])]


@dataclass(frozen=True, eq=False, kw_only=True)
class VersionRule(MirrorRule):
    """A version is made like a mirror, of `fields` for its key and `attributes`. `version`: the key field that is 0 for
    the newest state; "" without `newest`.
    """

    version: str = ""
    kind = "history"

    def is_newest(self, key: ItemKey) -> bool:
        """True for the key under which the newest state stands."""
        fields = self.target.fields(key)
        return fields is not None and text_of(fields.get(self.version)) == ZERO["N"]

    def _make_values(self, key: ItemKey, fields: Fields, source: Item) -> Values:
        """The values besides a version's key; `all` leaves out index keys, which would list it as current."""
        held = super()._make_values(key, fields, source)
        if self.attributes is not None:
            return held
        return {
            path: v for path, v in held.items() if path[0] in self.index_keys or path[0] not in self._index_key_names
        }

    @cached_property
    def _index_key_names(self) -> frozenset[str]:
        return frozenset(index_key_limits(self.target.table))


@dataclass(frozen=True, eq=False, kw_only=True)
class NewestRule(VersionRule):
    """The newest state of an item, under version 0. `fields` are without the version."""

    def draw(self) -> Drawing:
        return replace(super().draw(), notes=("the newest",))

    def owns(self, item: Item) -> bool:
        key = self.target.table.key_of(item)
        return key is not None and self.is_newest(key) and super().owns(item)

    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        if entity is self.target and not self.is_newest(change.key):
            return ()
        return super().parts(change, entity)

    def _each(self, source: Item) -> Iterator[Fields]:
        yield {self.version: ZERO}


def _number(key: ItemKey) -> tuple[Decimal, str]:
    _, kind, value = key.values[-1]
    return (Decimal(str(value)), "") if kind == "N" else (Decimal(0), str(value))


@dataclass(frozen=True, eq=False, kw_only=True)
class KeepRule(VersionRule):
    """Deletes the versions of an item beyond the newest `keep`, by the order of their keys; version 0 does not count.
    The record of each put version requires a look, so a version that an old record puts again is deleted again.
    """

    keep: int
    by_listing = True
    rounds_max = 1

    def body(self) -> Mapping[str, object]:
        return {**super().body(), "keep": self.keep}

    def nodes(self) -> tuple[Node, ...]:
        return ()  # it makes nothing

    def draw(self) -> Drawing:
        return Drawing(self.target, (), (), (f"keeps the newest {self.keep}",))

    @property
    def copies(self) -> tuple[Path, ...]:
        return ()

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        return ()

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        return (self.target,)

    @property
    def streamed_tables(self) -> tuple[Table, ...]:
        return (self.target.table,)

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        return ()

    def is_known_by_key(self, entity: Entity) -> bool:
        return True

    def uses(self) -> Iterator[Use]:
        versions = f"every {name_of(self.target)} of one {name_of(self.source)}"
        yield Use(Moment.CHECKED, Operation.QUERY, self.target.table, versions)
        yield from super().uses()

    def list_uses_to_write(self) -> Iterator[Use]:
        yield Use(
            Moment.WRITTEN, Operation.DELETE, self.target.table, f"{name_of(self.target)}, where there are too many"
        )

    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        if entity is not self.target or change.old is not None or change.new is None:
            return ()
        source = self.pointer(change.new)
        return () if source is None or self._is_zero(change.key) else (Part(self, change.key, source),)

    def _is_zero(self, key: ItemKey) -> bool:
        return bool(self.version) and self.is_newest(key)

    def listing(self, part: Part) -> Members | None:
        """The versions of one item, from the newest; a few more at once than there should be."""
        image = part.source.attributes() if part.source is not None else {}
        read = {field: ref.read(image) for field, ref in self.fields if field in self.target.identity}
        fields = {field: value for field, value in read.items() if value is not None}
        conditions = self._find.conditions(fields)
        if conditions is None:
            return None
        return Members(self.target.table.name, None, conditions, self.keep + 3, backward=True, enough=True)

    @cached_property
    def _find(self) -> Find:
        partition, *sort = ((one, self.target.templates[one.name]) for one in self.target.table.key)
        return Find(None, (partition,), tuple(sort))

    def list_wrong_parts(self, source: ItemKey, keys: Iterable[ItemKey]) -> Iterable[Part]:
        mine = sorted((key for key in dict.fromkeys(keys) if self._is_of(source, key)), key=_number, reverse=True)
        return [Part(self, key, source, seen=BEYOND) for key in mine[self.keep :]]

    def is_first_part(self, part: Part, key: ItemKey) -> bool:
        return part.source is not None and self._is_of(part.source, key) and _number(key) <= _number(part.target)

    def _is_of(self, source: ItemKey, key: ItemKey) -> bool:
        """True for the key of a version of an item, and not of something else in its partition."""
        return self.target.has(key) and self.pointer(key.attributes()) == source and not self._is_zero(key)

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        """Delete a version that a listing showed to be one too many, as it was read."""
        if target is None or part.seen is None:
            return None
        held = self.target.drop_key_paths((name,) for name in sorted(target))
        return Delete(part.target, expect_item(self.target.table.partition.name, target, held[:CHECK_MAX_ATTRIBUTES]))


@dataclass(frozen=True, eq=False, kw_only=True)
class HistoryRule(VersionRule):
    """Every version of an item, once."""

    kept: KeepRule | None = None
    rounds_max = 1
    snapshot = True

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        return (self.source,)

    @property
    def streamed_tables(self) -> tuple[Table, ...]:
        return (self.source.table,)

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        if self.attributes is None:
            return None
        return (*(self._reads if entity is self.source else ()), *(self.copies if entity is self.target else ()))

    def body(self) -> Mapping[str, object]:
        return {**super().body(), "newest": self.version} if self.version else super().body()

    def owns(self, item: Item) -> bool:
        """True for a version. Version 0 may be the newest of a rule that had one: then that is left over."""
        key, numbers = self.target.table.key_of(item), list_version_fields(self.source, self.target, self.fields)
        fields = (self.target.fields(key) if key is not None else None) or {}
        return super().owns(item) and any(text_of(fields.get(field)) != ZERO["N"] for field in numbers)

    def mirrors(self, source: Item | None) -> dict[ItemKey, Fields]:
        """The version of a state. With `newest`, version 0 is not one."""
        named = super().mirrors(source)
        return {key: fields for key, fields in named.items() if not (self.version and self.is_newest(key))}

    def is_known_by_key(self, entity: Entity) -> bool:
        return entity is not self.source  # its states come and go

    def list_uses_to_write(self) -> Iterator[Use]:
        yield Use(Moment.WRITTEN, Operation.PUT, self.target.table, f"{name_of(self.target)}, once for each version")

    def is_version_field(self, path: Path) -> bool:
        """True if a version's key contains the source's value at this path."""
        return any(overlaps(path, one) for one in self.source.drop_key_paths(ref.path for _, ref in self.fields))

    def holds(self, path: Path) -> bool:
        """True if a version shows what its source has at a path."""
        if self.attributes is None:
            return not path or path[0] in self.index_keys or path[0] not in self._index_key_names
        read = (self.source.locate_field(one) for one, _ in self.attributes)
        return any(overlaps(path, one) for one in self.source.drop_key_paths(read))

    def label(self, part: Part) -> str:
        return STATE if part.seen is not None else part.element

    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """For a source, the versions of its old and new image; none for a deletion, because an application that erases
        an item may have erased its versions. For a version that was created or changed, itself.
        """
        old, new = change.old, change.new
        found: list[Part] = []
        if (
            entity is self.source
            and new is not None
            and (old is None or has_changed(old, new, self.paths_of(old, new)))
        ):
            states = (self._state(change.key, image) for image in (old, new) if image is not None)
            found += (state for state in states if state is not None)
        kept = entity is self.target and not (self.version and self.is_newest(change.key))
        if kept and new is not None and (old is None or has_changed(old, new, self._list_own_paths(old, new))):
            source = self.pointer(new)
            found += () if source is None else (Part(self, change.key, source),)
        return dict.fromkeys(found)

    def _state(self, key: ItemKey, image: Item) -> Part | None:
        """The part of a state, at the source's key if it has no version; None if the condition fails."""
        if let_in(self.where, image, self.source) is False:
            return None
        names = {*(path[0] for path in self.paths_of(image)), *key.attributes()}
        held = {name: value for name, value in image.items() if name in names}
        return Part(self, next(iter(self.mirrors(held)), key), key, seen=Seen(canonical(held), held))

    def find_removing_part(self, part: Part) -> Part | None:
        if self.kept is None or part.target == part.source:
            return None
        return Part(self.kept, part.target, part.source)

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        """Put a missing version. A part without a state means the source as it is."""
        state = source if part.seen is None else part.seen.item
        lets_in = state is not None and let_in(self.where, state, self.source)
        if isinstance(lets_in, Blocked):
            return replace(lets_in, member=part.source)
        named = self.mirrors(state) if lets_in else {}
        if part.target == part.source:
            return Blocked(UNNUMBERED, member=part.source) if lets_in and not named else None
        if state is None or part.target not in named:
            lost = target is None and part.element == STATE
            return Blocked(LOST, member=part.source) if lost else None
        desired = self._make_values(part.target, named[part.target], state)
        if target is not None:
            differs = differences(target, {**dict.fromkeys(self._list_own_paths(target)), **desired})
            return Blocked(TAKEN, member=part.source) if differs else None
        if part.seen is None and part.element != STATE:
            return None  # somebody removed it
        absent = expect_item(self.target.table.partition.name, None, ())
        return put_of(part.target, desired, absent)
