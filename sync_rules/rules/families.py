"""The three families of rules: a `TargetRule` keeps attributes of targets, a `PartRule` keeps parts with a write of
their own, an `EffectRule` acts outside the tables. The target of a `ListingRule` lists its sources.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from sync_rules.model.entities import Entity
from sync_rules.model.items import Call, Change, ItemKey
from sync_rules.model.lookups import KeyConditions, Link, Pointer
from sync_rules.model.values import Item, Path, describe_place, has_changed
from sync_rules.model.writes import Condition, Desired, Write, expect_values
from sync_rules.rules.books import Books
from sync_rules.rules.description import Connection, Moment, Operation, Use, format_entity_name
from sync_rules.rules.rule import Blocked, Node, Rule, let_in, list_uses_to_list, list_uses_to_sweep, make_check_use


@dataclass(frozen=True, eq=False)
class ListingRule(Rule):
    """A rule whose target lists its sources. `link`: how a source holds each identity field of its target."""

    link: Link = field(kw_only=True)

    @cached_property
    def pointer(self) -> Pointer:
        return Pointer(self.link, self.target)

    def points(self, item: Item) -> bool:
        return self.pointer(item) is not None

    @property
    def connection(self) -> Connection | None:
        conditions = tuple((self.source, path) for where in self.filters.values() if where for path in where.paths)
        return Connection(self.source, self.target, self.link, (), self._includes, conditions)

    def _includes(self, item: Item) -> bool:
        """True if the rule's conditions let in an item that points."""
        if self.find is not None and self.find.leaves_out(item):
            return False
        where, omit = self.filters.get("where"), self.filters.get("omit")
        omitted = omit is not None and let_in(omit, item, self.source) is True
        return not omitted and let_in(where, item, self.source) is True

    @property
    def anchor(self) -> Entity:
        return self.target

    @property
    def listed_entity(self) -> Entity:
        return self.source

    @property
    def lists_by(self) -> tuple[object, ...]:
        return (self.listed_entity.name, self.find, self.link)


@dataclass(frozen=True, slots=True)
class Hint:
    """A request to check this target. `member`: the item that hints at a target made of several items."""

    target: ItemKey
    member: ItemKey | None = None


@dataclass(frozen=True, slots=True)
class Members:
    """The bounded Query for the items that a target is made of, from either end of a table or an index.

    An index shows only keys, and may lag. So the pipeline reads the items that it lists, those in `named`, and those
    that hinted at the target; `is_member` decides. More than `max_items` block the rule, unless they are `enough`.
    """

    table: str
    index: str | None
    conditions: KeyConditions
    max_items: int
    backward: bool = False
    named: tuple[ItemKey, ...] = ()
    enough: bool = False


class TargetRule(Rule):
    """A rule that keeps paths of a target equal to a function of its sources, by one guarded update."""

    strict: bool = False
    gathers: bool = False  # a target is made of members, and all of them are in memory at once
    books: Books | None = None  # the books that targets show; the rule writes only if these are complete

    def hints(self, change: Change) -> Iterable[Hint]:
        """List the targets that a record of a source names, both by its old and its new image."""
        return ()

    @property
    @abstractmethod
    def deciding_paths(self) -> tuple[Path, ...]:
        """The target paths that choose the source, or decide if the rule applies. Rules that write them run first."""

    @cached_property
    def relevant_paths(self) -> tuple[Path, ...]:
        """The target paths of guards and of the listing. A record that changes them asks for a check of the target."""
        return (*self.deciding_paths, *self.copies)

    @property
    def watches_in_source(self) -> tuple[Path, ...] | None:
        """The source paths that trigger the rule when they change; None: any change."""
        return None

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        of_target = (*self.relevant_paths, *self.copies) if entity is self.target else ()
        of_source = self.watches_in_source if entity is self.source else ()
        return None if of_source is None else (*of_target, *of_source)

    def pulls(self, change: Change) -> bool:
        """True if this record of a target requires a look at it: the target was created, changed at a relevant path or
        in a map around a copy, or became smaller, so that a copy may have room now.
        Every record of a target that rules make requires one.
        """
        if change.new is None or change.old is None:
            return self.makes or change.new is not None
        if self.makes or change.shrank_from:
            return True
        if has_changed(change.old, change.new, self.relevant_paths):
            return True
        for path in self._maps:  # noqa: SIM110 -- called for every record, and a generator doubles the time
            if describe_place(change.old, path) != describe_place(change.new, path):
                return True
        return False

    @cached_property
    def _maps(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(copy[:length] for copy in self.copies for length in range(1, len(copy))))

    @cached_property
    def alike(self) -> bool:
        """True if all targets of a source want the same values, whatever else they hold."""
        return False

    def source_keys(self, target: Item) -> tuple[ItemKey, ...]:
        """Return the keys of the sources that a target names; empty if it names none, or if its sources are its
        `members`.
        """
        return ()

    def members(self, key: ItemKey, target: Item) -> Members | None:
        """Return the Query for the items that this target is made of. None if it is not made of several, or can have
        none.
        """
        return None

    def is_member(self, key: ItemKey, member: Item) -> bool | Blocked:
        """True if an item is a member of the target with this key. Blocked if that cannot be decided."""
        return True

    @abstractmethod
    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked | None:
        """Compute the value for each path (None: no value). Return None if the rule does not apply to the target.
        `sources`: the items of `source_keys`, in order, or the members of the target.
        """

    def has_members(self, sources: Sequence[Item | None]) -> bool | Blocked:
        """True if a target that the rule makes has a member, given its sources."""
        return True

    def list_makers_beside(self) -> tuple[TargetRule, ...]:
        """List the other rules that make the same items."""
        return ()

    def find_unexpected_attribute(self, item: Item) -> Blocked | None:
        """Return why a target that the rule makes may not be removed; None if it may."""
        return None

    def apply_to(self, item: Item, sources: Sequence[Item | None]) -> Item:
        """Return the item as a hierarchical rule will leave it. An item that the rule cannot write stays as it is."""
        return item

    def find_omission(self, sources: Sequence[Item | None], target: Item) -> Blocked | None:
        """Find a part that the value lacks although it belongs there. It is reported, and the rest of the value is
        written.
        """
        return None

    def mask_paths(self, desired: Desired) -> tuple[Path, ...]:
        """These paths for reports, without names that are values of items."""
        return tuple(dict.fromkeys(self._copy_at(path) for path in desired))

    def _copy_at(self, path: Path) -> Path:
        """The copy that a path is, or lies in."""
        return next((copy for copy in self.copies if path[: len(copy)] == copy), path[:1])

    def copies_of(self, source: Item, target: Item) -> tuple[Path, ...]:
        """Return the copies on a target that this source, one of several, decides."""
        return self.copies

    def deletes(self, target: Item) -> bool:
        """True if this target is deleted when its source is."""
        return False

    def restricts(self, target: Item) -> bool:
        """True if the pipeline reports this target when its source is deleted."""
        return False

    @property
    def needs_source(self) -> bool:
        """False if the rule neither deletes nor restricts any target."""
        return False

    def orphans(self, target: Item) -> bool:
        """True if verify reports this target when its source does not exist. Verify cannot repair it."""
        return self.deletes(target) or self.restricts(target)

    def outlives(self, image: Item) -> bool:
        """True if a target keeps copies of a deleted source by `on_delete: keep`. Snapshots do not count."""
        return False

    def find_value_sources(self, key: ItemKey, image: Item, paths: Iterable[Path]) -> tuple[ItemKey, ...] | None:
        """Find the sources of the values at these paths of a target; None if it is unknown which source has which
        value.
        """
        return None

    def nodes(self) -> tuple[Node, ...]:
        """Return a node for each copy. It reads all watched paths of a source, or the whole source."""
        watched = ((),) if self.watches_in_source is None else self.watches_in_source
        reads = tuple((self.source, path) for path in watched)
        deciding = tuple((self.target, path) for path in self.deciding_paths)
        return tuple(Node(self, (self.target, copy), reads, deciding) for copy in self.copies)

    def link_guard(self, image: Item) -> tuple[Condition, ...]:
        """Return the conditions that the target still names the same source, and that the rule still applies to it."""
        return expect_values(image, self.deciding_paths)

    def source_guard(self, source: Item | None) -> tuple[Condition, ...]:
        """Return the conditions that the source is as it was read, for transactions of strict rules and of deletes."""
        return ()

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        return (self.target,)

    # ---------------------------------------------------------------- what it needs of tables
    def uses(self) -> Iterator[Use]:
        on, table = format_entity_name(self.target), self.target.table
        yield from self.list_uses_to_read()
        yield from self.list_uses_to_find()
        yield Use(Moment.BY_KEY, Operation.READ, table, f"{on}, if only its key is known")
        writes = tuple(self.list_uses_to_write())
        yield from writes
        if writes and table.max_write_units_per_second is not None:
            yield Use(Moment.PRICED, Operation.READ, table, f"{on}: how large it is, as its table has a limit")
        yield from list_uses_to_sweep(self)

    def list_uses_to_read(self) -> Iterator[Use]:
        """The reads for each check of a target, besides that of its own image."""
        why = f"{format_entity_name(self.source)}, whose values {format_entity_name(self.target)} has"
        yield Use(Moment.CHECKED, Operation.READ, self.source.table, why)

    def list_uses_to_find(self) -> Iterator[Use]:
        """The reads and listings that find targets from a record of a source."""
        why = f"{format_entity_name(self.target)}, which a record of {format_entity_name(self.source)} names"
        yield Use(Moment.HINTED, Operation.READ, self.target.table, why)
        yield from list_uses_to_list(self, Moment.LISTED)

    def list_uses_to_write(self) -> Iterator[Use]:
        update = Operation.UPDATE if self.strict else Operation.UPDATES
        yield Use(Moment.WRITTEN, update, self.target.table, f"copies on {format_entity_name(self.target)}")
        if self.strict:
            yield make_check_use(self, "strict: ")


@dataclass(frozen=True, slots=True)
class Seen:
    """A state of an item that a record or scan showed, for rules that record past states. `text` identifies it."""

    text: str
    item: Item = field(compare=False)


@dataclass(frozen=True, slots=True)
class Part:
    """One derived thing with a write of its own: an element of a set, an entry of a ledger, a mirrored item.

    `target` is the item that holds the part, `source` the item that it is derived from (None: no item can be). `seen`:
    the past state that it is derived from; no message, record or report contains it.
    """

    rule: PartRule
    target: ItemKey
    source: ItemKey | None
    element: str = ""
    seen: Seen | None = field(default=None, repr=False)


class PartRule(Rule):
    """A rule that keeps parts. The check of a part reads its target first, then its source."""

    @property
    def books(self) -> Books | None:
        """The books that the parts are in. They begin before the first part is written. None for parts without
        books.
        """
        return None

    @abstractmethod
    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """Return the parts that a record of a source or of a target names, by its old and its new image."""

    def expand_part(self, part: Part, target: Item | None, source: Item | None) -> Iterable[Part]:
        """Return the part itself. A part from a message or report names only items, and may mean several parts."""
        return (part,)

    def label(self, part: Part) -> str:
        """Return the element for messages, records and reports; "" if it could show values besides keys."""
        return ""

    def mask_paths(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Return these paths of a target for reports, without names that are values of items."""
        return tuple(paths)

    def list_read_paths(self, source: Item) -> tuple[Path, ...] | None:
        """List the paths of a source that its parts depend on; None: all."""
        return None

    def list_compared_paths(self, target: Item) -> tuple[Path, ...]:
        """List the paths of a target that decide whether its parts are right."""
        return self.copies

    @abstractmethod
    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        """Return the write that makes a part right. None if the part is right, Blocked if no write can make it so."""

    def rebuild_part(self, part: Part, target: Item | None, source: Item | None) -> Write | None:
        """The write that restores a damaged part without moving its total. The repair then adds up the total again."""
        return None

    def nodes(self) -> tuple[Node, ...]:
        """Return one node for the whole target, which reads the whole source: the empty path is the whole item."""
        return (Node(self, (self.target, ()), ((self.source, ()),)),)

    def unconditional(self) -> Self:
        """The rule without its conditions and its sparse index."""
        return self

    def find_total(self, item: Item) -> ItemKey | None:
        """Find the key of the total that counts the part in this item; None if no total does."""
        return None

    # ---------------------------------------------------------------- what it needs of tables
    def uses(self) -> Iterator[Use]:
        target, source = format_entity_name(self.target), format_entity_name(self.source)
        read = Operation.READ
        yield Use(Moment.CHECKED, read, self.target.table, f"{target} as it is, before it is written")
        yield Use(Moment.CHECKED, read, self.source.table, f"{source}, from which it is made")
        yield from list_uses_to_list(self, Moment.LISTED)
        yield from self.list_uses_to_write()
        yield from list_uses_to_sweep(self)

    def list_uses_to_write(self) -> Iterator[Use]:
        table, name = self.target.table, format_entity_name(self.target)
        yield Use(Moment.WRITTEN, Operation.PUT, table, f"{name}, where one is missing")
        yield Use(Moment.WRITTEN, Operation.DELETE, table, f"{name}, where there should be none")
        yield Use(Moment.WRITTEN, Operation.UPDATE, table, f"what differs on {name}")
        yield make_check_use(self)


class EffectRule(Rule):
    """A rule that does something outside the tables for a change of its source."""

    @abstractmethod
    def effect(self, change: Change) -> Call | None:
        """Return the call for this record of the source, if any. Its `unsure` says why the condition could not be
        evaluated.
        """

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        return ()

    def is_known_by_key(self, entity: Entity) -> bool:
        return True  # it keeps nothing

    def uses(self) -> Iterator[Use]:
        return iter(())

    @abstractmethod
    def retry(self, asked: Call) -> Call | None:
        """Return the call of a message with the rule's present function; None if the rule's present condition excludes
        the item.
        """
