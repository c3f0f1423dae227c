"""history: an item for each version of an item, as the application numbers them.

Invariant: a version follows from one state of its source, which a record, scan or consistent read showed. The rule puts
it once and never changes it. Only this rule writes states from records, because past states are nowhere else. A second
state under one version is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.json_bytes import format_canonical_json
from sync_rules.model.lookups import Link
from sync_rules.model.sizes import find_index_key_limits
from sync_rules.model.templates import Fields
from sync_rules.model.values import Item, Path, has_changed, has_overlap
from sync_rules.model.writes import Write, expect_item, find_differences
from sync_rules.rules.description import Moment, Operation, Use, format_entity_name
from sync_rules.rules.families import Part, Seen
from sync_rules.rules.kinds.mirror import MirrorRule, Values, make_put
from sync_rules.rules.rule import Blocked, let_in

STATE: Final = "state"  # the element of a part that stood for a state of its source, and was parked
TAKEN: Final = "VersionTaken"  # another state of the source has this version
UNNUMBERED: Final = "NoVersion"  # the source lacks what makes the key of a version
LOST: Final = "VersionLost"  # the state was to be tried again, and is shown by nothing any more


def list_version_fields(source: Entity, target: Entity, fields: Link) -> list[str]:
    """List the fields of a version's key that differ between versions of one item: their source attributes may
    change.
    """
    return [field for field, ref in fields if field in target.identity and source.drop_key_paths([ref.path])]


@dataclass(frozen=True, eq=False, kw_only=True)
class HistoryRule(MirrorRule):
    """A rule that keeps every version of an item, once. It makes a version like a mirror: `fields` make the key,
    `attributes` are copied.
    """

    kind = "history"
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
        return frozenset(find_index_key_limits(self.target.table))

    def is_known_by_key(self, entity: Entity) -> bool:
        return entity is not self.source  # its states come and go

    def list_uses_to_write(self) -> Iterator[Use]:
        yield Use(
            Moment.WRITTEN,
            Operation.PUT,
            self.target.table,
            f"{format_entity_name(self.target)}, once for each version",
        )

    def is_version_field(self, path: Path) -> bool:
        """True if a version's key contains the source's value at this path."""
        return any(has_overlap(path, one) for one in self.source.drop_key_paths(ref.path for _, ref in self.fields))

    def holds(self, path: Path) -> bool:
        """True if a version contains the value that its source has at this path."""
        if self.attributes is None:
            return not path or path[0] in self.index_keys or path[0] not in self._index_key_names
        read = (self.source.locate_field(one) for one, _ in self.attributes)
        return any(has_overlap(path, one) for one in self.source.drop_key_paths(read))

    def label(self, part: Part) -> str:
        return STATE if part.seen is not None else part.element

    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """Return the versions of the old and the new image of a source. A deletion has none, because an application
        that erases an item may have erased its versions. A version that was created or changed returns itself.
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
        if (
            entity is self.target
            and new is not None
            and (old is None or has_changed(old, new, self._list_own_paths(old, new)))
        ):
            source = self.pointer(new)
            found += () if source is None else (Part(self, change.key, source),)
        return dict.fromkeys(found)

    def _state(self, key: ItemKey, image: Item) -> Part | None:
        """The part of a state, at the source's key if it has no version; None if the condition fails."""
        if let_in(self.where, image, self.source) is False:
            return None
        names = {*(path[0] for path in self.paths_of(image)), *key.attributes()}
        held = {name: value for name, value in image.items() if name in names}
        return Part(self, next(iter(self.mirrors(held)), key), key, seen=Seen(format_canonical_json(held), held))

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        """Return the put of a missing version. A part without a state uses the source as it is now."""
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
            differs = find_differences(target, {**dict.fromkeys(self._list_own_paths(target)), **desired})
            return Blocked(TAKEN, member=part.source) if differs else None
        if part.seen is None and part.element != STATE:
            return None  # somebody removed it
        absent = expect_item(self.target.table.partition.name, None, ())
        return make_put(part.target, desired, absent)
