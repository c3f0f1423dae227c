"""mirror: an item for an item, under another key.

Invariant: a mirror exists exactly if its source exists, passes the condition, and names it. Each write is a transaction
that checks every attribute read of the source; of more than a condition holds, those that name the mirror or decide.
The rule writes only items that name this source. It reports a key that another item has, and leaves that item alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Entity, KeyType, Ref
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import Link, Pointer, describe_link
from sync_rules.model.sizes import find_index_key_limits, fit_value
from sync_rules.model.templates import Fields, Template
from sync_rules.model.values import AttributeValue, Item, Path, get, has_changed, list_elements
from sync_rules.model.where import Where
from sync_rules.model.writes import (
    Check,
    Condition,
    Delete,
    Put,
    Transaction,
    Update,
    Write,
    expect_existence,
    expect_item,
    expect_values,
    find_differences,
    find_misfit,
    make_update,
)
from sync_rules.rules.description import Drawing, Operation, TypeOf, Use
from sync_rules.rules.families import Part, PartRule
from sync_rules.rules.rule import Blocked, Node, let_in

Values = dict[Path, AttributeValue | None]

# A condition may have 4 KB. An attribute takes about 17 bytes of them, one inside maps more.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
CHECK_MAX_ATTRIBUTES: Final = 100
KEYS_HELD_MAX: Final = 3  # a mirror that goes may free the key that another one waits for


@dataclass(frozen=True, eq=False, kw_only=True)
class MirrorRule(PartRule):
    """A rule that keeps an item for each source, under another key. `fields`: how the source holds each field of the
    mirror's key. `each`: one more field, with a mirror for every element of a list or set. `attributes`: pairs of
    paths, on the source and on the mirror; None: all.
    """

    fields: tuple[tuple[str, Ref], ...]
    attributes: tuple[tuple[Path, Path], ...] | None
    each: tuple[str, Path] | None
    where: Where | None
    kind = "mirror"
    fills_index_keys = True
    rounds_max = KEYS_HELD_MAX

    def type_of(self, path: Path, known: TypeOf) -> str | None:
        if path[0] in self.index_keys:
            return None  # it is made as the index wants it
        read = {to: given for given, to in self.attributes or ()} | {ref.path: (field,) for field, ref in self.names}
        return known(self.source, read[path]) if path in read else None

    def body(self) -> Mapping[str, object]:
        return {
            "fields": describe_link(self.fields),
            "attributes": "all" if self.attributes is None else sorted(self.attributes),
            "each": self.each,
            "where": self.where and self.where.text,
        }

    # ---------------------------------------------------------------- what a mirror holds
    @cached_property
    def pointer(self) -> Pointer:
        return Pointer(self.names, self.source)

    @cached_property
    def names(self) -> Link:
        """How a mirror holds the identity of its source: in its key if that binds it, else in an attribute."""
        mirrored = {ref: field for field, ref in reversed(self.fields)}
        here = [(field, mirrored.get(self.source.ref(field), field)) for field in self.source.identity]
        return tuple((f, self.target.ref(m) if m in self.target.identity else Ref(m, (m,))) for f, m in here)

    @cached_property
    def identity_paths(self) -> tuple[Path, ...]:
        """The attributes outside a mirror's key that name its source."""
        return self.target.drop_key_paths(ref.path for _, ref in self.names)

    @cached_property
    def index_keys(self) -> Mapping[str, tuple[Template, KeyType, int]]:
        """The index key attributes that the rule builds: template, type, and greatest length. An attribute without a
        template is built only if the rule binds a field of its name.
        """
        bound = {field for field, _ in self.fields} | ({self.each[0]} if self.each else set())
        found: dict[str, tuple[Template, KeyType, int]] = {}
        for name, asked in find_index_key_limits(self.target.table).items():
            itself = Template(f"{{{name}}}", ("", ""), (name,))
            template = self.target.templates.get(name, itself)
            if (template != itself or name in bound) and self.target.drop_key_paths([(name,)]):
                found[name] = (template, *asked)
        return found

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        return self.puts

    @cached_property
    def puts(self) -> tuple[Path, ...]:
        """The paths that the rule writes on a mirror, without its key. With `all`, it writes every other attribute
        too.
        """
        given = (to for _, to in self.attributes or ())
        return self.target.drop_key_paths([*self.identity_paths, *((name,) for name in self.index_keys), *given])

    def nodes(self) -> tuple[Node, ...]:
        """Return a node for each path, the key included: mirrors of mirrors must not end where they began."""
        writes = [*((attribute.name,) for attribute in self.target.table.key), *self.copies]
        reads = tuple((self.source, path) for path in self._reads)
        if self.attributes is None:  # the empty path is the whole item
            writes, reads = [()], ((self.source, ()),)
        return tuple(Node(self, (self.target, path), reads) for path in writes)

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        return (self.target,)

    def owns(self, item: Item) -> bool:
        """True if an item names a source in the attributes where a mirror does."""
        return self.pointer(item) is not None

    def list_own_copies(self, key: ItemKey, item: Item) -> tuple[Path, ...]:
        """List all copies of a mirror; none if an application's own item has a mirror's key."""
        return self.copies if self.owns(item) else ()

    def is_known_by_key(self, entity: Entity) -> bool:
        known = True
        if entity is self.source:
            known = self.each is None and not entity.drop_key_paths(ref.path for _, ref in self.fields)
        return known and (entity is not self.target or not self.identity_paths)

    def draw(self) -> Drawing:
        pairs = (((), ()),) if self.attributes is None else self.attributes
        return Drawing(self.target, tuple(path for path, _ in pairs), tuple(path for _, path in pairs))

    def list_uses_to_write(self) -> Iterator[Use]:
        never = Operation.UPDATE if self.attributes is not None and not self.copies else None
        return (use for use in super().list_uses_to_write() if use.operation is not never)

    # ---------------------------------------------------------------- what is read of a source
    @cached_property
    def _reads(self) -> tuple[Path, ...]:
        paths = [ref.path for _, ref in self.fields]
        paths += [self.each[1]] if self.each else []
        paths += [self.source.locate_field(path) for path, _ in self.attributes or ()]
        paths += [self.source.locate_field(path) for path in (self.where.paths if self.where else ())]
        return tuple(dict.fromkeys([*(self.source.ref(field).path for field in self.source.identity), *paths]))

    @cached_property
    def source_paths(self) -> tuple[Path, ...]:
        """The source paths that the rules file names, and those that name the source, without its key."""
        return self.source.drop_key_paths(self._reads)

    def paths_of(self, *sources: Item | None) -> tuple[Path, ...]:
        """Return all paths that the rule reads of these sources. If all attributes are copied, these are all that the
        sources have.
        """
        if self.attributes is not None:
            return self.source_paths
        return self.source.drop_key_paths(
            (*self._reads, *sorted({(name,) for source in sources for name in source or ()}))
        )

    def list_read_paths(self, source: Item) -> tuple[Path, ...]:
        return self.paths_of(source)

    def mirrors(self, source: Item | None) -> dict[ItemKey, Fields]:
        """List the mirrors that a source names, each with the fields of its key, whether or not `where` lets the source
        in.
        """
        found: dict[ItemKey, Fields] = {}
        for fields in () if source is None else self._list_fields(source):
            key = self.target.key_of(fields)
            if key is not None:
                found.setdefault(key, fields)
        return found

    def _has_impossible_key(self, source: Item | None) -> bool:
        """True if a mirror has an impossible key although the source has all its fields: it is too long, or a field
        holds a separator or is neither text nor number.
        """
        return source is not None and any(
            self.target.key_of(fields) is None and all(_has_value(fields.get(field)) for field in self.target.identity)
            for fields in self._list_fields(source)
        )

    def _list_fields(self, source: Item) -> Iterator[Fields]:
        read = {field: ref.read(source) for field, ref in self.fields}
        fields = {field: value for field, value in read.items() if value is not None}
        yield from ({**fields, **each} for each in self._list_elements(source))

    def _list_elements(self, source: Item) -> Iterator[Fields]:
        if self.each is None:
            yield {}
            return
        field, path = self.each
        yield from ({field: element} for element in list_elements(get(source, path)))

    # ---------------------------------------------------------------- parts
    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """Return the mirrors that the old or the new image of a source names. For a mirror, return the part of each
        source that its images name.
        """
        found: list[Part] = []
        came_or_went = change.old is None or change.new is None
        if entity is self.source and (
            came_or_went or has_changed(change.old, change.new, self.paths_of(change.old, change.new))
        ):
            found += (Part(self, key, change.key) for key in {**self.mirrors(change.old), **self.mirrors(change.new)})
            if self._has_impossible_key(change.old) or self._has_impossible_key(change.new):
                found.append(Part(self, change.key, change.key))  # no mirror stands there: a look reports why
        if entity is self.target and (
            came_or_went or has_changed(change.old, change.new, self._list_own_paths(change.old, change.new))
        ):
            named = (self.pointer(image) for image in (change.old, change.new) if image is not None)
            found += (Part(self, change.key, source) for source in named if source is not None)
        return dict.fromkeys(found)

    def _list_own_paths(self, *mirrors: Item | None) -> tuple[Path, ...]:
        if self.attributes is not None:
            return self.copies
        return self.target.drop_key_paths((name,) for mirror in mirrors for name in mirror or ())

    def list_compared_paths(self, target: Item) -> tuple[Path, ...]:
        return self._list_own_paths(target)

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        if part.source is None:
            return None
        lets_in = source is not None and let_in(self.where, source, self.source)
        named = self.mirrors(source) if lets_in else {}
        if isinstance(lets_in, Blocked) and part.target in (*named, part.source):
            return replace(lets_in, member=part.source)
        owner = None if target is None else self.pointer(target)
        if part.target not in named:
            if part.target == part.source:  # the source itself, which is never written
                unnamed = lets_in and self._has_impossible_key(source)
                return Blocked("NoMirrorKey", member=part.source) if unnamed else None
            if target is None or owner != part.source:
                return None
            return self._add_check(part.source, source, Delete(part.target, self._expect_mirror(part.target, target)))
        if source is None or (target is not None and (owner != part.source or part.target == part.source)):
            # of another source: that one may be about to let it go
            return Blocked("KeyTaken", patient=owner is not None)
        desired = self._make_values(part.target, named[part.target], source)
        if target is None:
            absent = expect_item(self.target.table.partition.name, None, ())
            put = make_put(part.target, desired, absent)
            return self._add_check(part.source, source, put)
        changes = find_differences(target, {**dict.fromkeys(self._list_own_paths(target)), **desired})
        if not changes:
            return None
        if reason := find_misfit(target, changes):
            return Blocked(reason)
        return self._add_check(part.source, source, self._change(part.target, target, desired, changes))

    # ---------------------------------------------------------------- what is written
    def _make_values(self, key: ItemKey, fields: Fields, source: Item) -> Values:
        """The values that a mirror of this key must hold besides the key."""
        if self.attributes is None:
            held: Values = {path: source[path[0]] for path in self.source.drop_key_paths((name,) for name in source)}
        else:
            view = self.source.view(source, (path for path, _ in self.attributes))
            held = {to: get(view, path) for path, to in self.attributes}
        held |= {ref.path: self.source.ref(field).read(source) for field, ref in self.names}
        held = {path: held[path] for path in self.target.drop_key_paths(held)}
        item = _make_item(key, held)
        for name, (template, kind, max_bytes) in self.index_keys.items():
            known = {field: fields.get(field) or get(item, tuple(field.split("."))) for field in template.fields}
            value = template.build({f: v for f, v in known.items() if v is not None}, kind)
            held[(name,)] = fit_value(value, max_bytes)
        return held

    def _change(self, key: ItemKey, mirror: Item, desired: Values, changes: Values) -> Update | Put:
        """Update the differences, each guarded by the value read; put the whole item if a guard has no room for all."""
        still = self._expect_mirror(key, mirror)
        if self.attributes is None and len(changes) > CHECK_MAX_ATTRIBUTES:
            return make_put(key, desired, still)
        return make_update(key, mirror, changes, still)

    def _expect_mirror(self, key: ItemKey, mirror: Item) -> tuple[Condition, ...]:
        """Guard: the mirror exists and still names the source it named when read."""
        return (expect_existence(key), *expect_values(mirror, self.identity_paths))

    def _add_check(self, key: ItemKey, source: Item | None, action: Put | Delete | Update) -> Transaction:
        """The same check for all mirrors of a source that was read once: so that a move is one transaction."""
        checked = () if source is None else self._list_checked_paths(source)
        return Transaction((Check(key, expect_item(self.source.table.partition.name, source, checked)), action))

    def _list_checked_paths(self, source: Item) -> tuple[Path, ...]:
        """The paths that the check compares: all that were read, or, if a condition has no room for them, those that
        name the mirror or decide. Then a late write may show old attributes until its own record is processed.
        """
        paths = self.paths_of(source)
        return paths if len(paths) <= CHECK_MAX_ATTRIBUTES else self.source_paths


def make_put(key: ItemKey, held: Values, guard: tuple[Condition, ...]) -> Put:
    return Put(key, _make_item(key, held), guard)


def _make_item(key: ItemKey, held: Values) -> Item:
    update = make_update(key, key.attributes(), {path: value for path, value in held.items() if value is not None}, ())
    return {**key.attributes(), **{path[0]: value for path, value in update.sets}}


def _has_value(value: AttributeValue | None) -> bool:
    """True if a field has a value. NULL and empty text have none: a user without an email is not a failure."""
    return value is not None and "NULL" not in value and value.get("S") != ""
