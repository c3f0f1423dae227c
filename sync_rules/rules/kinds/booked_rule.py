"""Rules that keep an item in the ledger for each child: what tally, rank and values have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sync_rules.model.entities import Entity
from sync_rules.model.groups import GROUPS_MAX, Each, find_list, list_views
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import Link, Pointer
from sync_rules.model.numbers import read_text
from sync_rules.model.values import Item, Path, get, has_changed
from sync_rules.model.where import Where
from sync_rules.rules import fingerprints, ledger
from sync_rules.rules.books import Books
from sync_rules.rules.description import Connection, Drawing, Moment, Operation, Use
from sync_rules.rules.families import Part, PartRule
from sync_rules.rules.rule import AttributeRef, Blocked, let_in


@dataclass(frozen=True, eq=False, kw_only=True)
class BookedRule(PartRule):
    """A rule that keeps an item in the ledger for each child. `source` is the child, `target` its item in the ledger,
    `marks` the entity of the mark of these books. `link`: how a child holds each identity field of its parent.
    """

    parent: Entity
    marks: Entity
    link: Link
    where: Where | None = None
    transacts = True

    @property
    @abstractmethod
    def reads(self) -> tuple[Path, ...]:
        """The fields of a child that determine its item in the ledger."""

    @property
    def required_types(self) -> Mapping[Path, tuple[str, ...]]:
        return {} if self.each is None else {self.each.path: self.each.types}

    @cached_property
    def pointer(self) -> Pointer:
        return Pointer(self.link, self.parent)

    @property
    def connection(self) -> Connection:
        reads = tuple((self.source, path) for path in self.reads)
        conditions = tuple((self.source, path) for path in (self.where.paths if self.where else ()))
        return Connection(
            self.source, self.parent, self.link, reads, lambda item: self._speaks_of(item) is True, conditions
        )

    @cached_property
    def source_paths(self) -> tuple[Path, ...]:
        """The places where a child keeps what decides its ledger item, without the child's key, which cannot change."""
        read = (*self.reads, *(self.where.paths if self.where else ()))
        return self.source.drop_key_paths((*(ref.path for _, ref in self.link), *map(self.source.locate_field, read)))

    def list_read_paths(self, source: Item) -> tuple[Path, ...]:
        return self.source_paths

    def list_compared_paths(self, target: Item) -> tuple[Path, ...]:
        return self.target.drop_key_paths((name,) for name in target)

    @property
    def read_of_children(self) -> tuple[AttributeRef, ...]:
        """All attributes of a child that determine its ledger item, with the child's key: a rule may make the child."""
        keys = ((attribute.name,) for attribute in self.source.table.key)
        return tuple((self.source, path) for path in (*keys, *self.source_paths))

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        return self.source_paths if entity is self.source else None

    @cached_property
    def books(self) -> Books:
        mark = self.marks.key_of({})
        assert mark is not None, "the key of a mark has no field, and is short"
        return Books(mark, fingerprints.compute_books_fingerprint(self, self.parent))

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        return (self.target, self.marks)

    def draw(self) -> Drawing | None:
        return Drawing(self.parent, self.reads, None)

    def list_uses_to_write(self) -> Iterator[Use]:
        yield Use(Moment.WRITTEN, Operation.PUT, self.target.table, "the entry of a child")
        yield Use(Moment.WRITTEN, Operation.DELETE, self.target.table, "the entry of a child that counts no more")
        yield Use(Moment.WRITTEN, Operation.READ, self.marks.table, "the mark that names the rule of the entries")
        yield Use(Moment.WRITTEN, Operation.PUT, self.marks.table, "the mark, before the first entry")

    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """Return the ledger items of a child that came, went, or changed in what decides them. A record of a ledger
        item returns that item.
        """
        if entity is self.target:
            return (Part(self, change.key, ledger.read_key("child", self.source, entity.fields(change.key))),)
        if change.old is None or change.new is None or has_changed(change.old, change.new, self.source_paths):
            keys = dict.fromkeys(self._list_items(change))
            return [Part(self, key, change.key) for key in keys if key is not None]
        return ()

    @abstractmethod
    def _list_items(self, change: Change) -> Iterable[ItemKey | None]:
        """The ledger items of a changed child; for a blocked child a key without an item, whose check reports why."""

    @cached_property
    def each(self) -> Each | None:
        """The list, set or text on a child whose elements each name a parent; None if a child has one parent."""
        return find_list(self.link)

    def _find_parents(self, child: Item) -> Iterable[ItemKey | Blocked]:
        """The parents of a child, each once; Blocked for a value that should name one and cannot."""
        value = None if self.each is None else get(child, self.each.path)
        if self.each is not None and value is not None and not value.keys() & {*self.each.types}:
            return (Blocked("NotAText" if self.each.separator else "NotAList"),)
        views = list_views(self.link, child)
        if len(views) > GROUPS_MAX:
            return (Blocked("TooManyGroups"),)
        return dict.fromkeys(parent for view in views if (parent := self._find_parent(view)) is not None)

    def _find_parent(self, child: Item) -> ItemKey | Blocked | None:
        """The parent that a view of a child names; None if it names none. Blocked if a value cannot name a group, or if
        the values make no key of an item that rules make.
        """
        parent = self.pointer(child)
        if parent is not None or not self.parent.made:
            return parent
        values = [(ref, get(child, ref.path)) for _, ref in self.link]
        if fault := next(filter(None, (ref.find_fault(value) for ref, value in values)), ""):
            return Blocked(fault)
        return Blocked("NoParentKey") if all(read_text(ref.within(value)) for ref, value in values) else None

    def _speaks_of(self, child: Item) -> bool | Blocked:
        return let_in(self.where, child, self.source)

    def _make_vacant_key(self, child: ItemKey) -> ItemKey:
        return ledger.make_vacant_key(self.title, self.target.table, child)
