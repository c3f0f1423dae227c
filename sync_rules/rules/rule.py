"""The rule: what the pipeline and everything around it may ask of one, and the three families of rules.

Invariant: a rule is pure. It says which records are a reason to look and where, what is true of what it keeps, and
under which guard that may be written; it reads no store and no clock, and remembers nothing. A `TargetRule` keeps
attributes of targets, a `PartRule` keeps things that stand each for itself, an `EffectRule` acts outside the tables.
The kinds of rules are in `kinds`, one file each. Nobody else asks of which kind a rule is: each answer below has a
default that is safe, though not always cheap, and a kind overrides what it knows better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import Change, Effect, ItemKey
from sync_rules.model.lookups import Find, KeyConditions, Link, Pointer
from sync_rules.model.values import AttributeValue, Item, Names, Path, changed, overlaps, standing
from sync_rules.model.where import Where
from sync_rules.model.writes import Condition, Write, as_seen
from sync_rules.rules.uses import Moment, Operation, Use, name_of

AttributeRef = tuple[Entity, Path]
Desired = Mapping[Path, AttributeValue | None]  # what must stand at each path; None: nothing


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a rule cannot do what it should, for the failure record. `patient`: it may pass by itself within a moment,
    and is recorded only if the next look finds the same. `member` is the item that does not fit, if there is one.
    """

    reason: str
    patient: bool = False
    member: ItemKey | None = None


@dataclass(frozen=True, eq=False)
class Node:
    """An attribute that a rule writes, and what decides it: cycles and the order of rules follow from nodes.

    `reads` is what the value is made of; `goes_by` what, on the target, says from which source, and whether.
    """

    rule: Rule
    writes: AttributeRef
    reads: tuple[AttributeRef, ...]
    goes_by: tuple[AttributeRef, ...] = ()


def causes(writer: Node, node: Node) -> bool:
    """True if what one node writes decides what another node, of any rule, must be."""
    reads = node.reads if writer.rule is node.rule else (*node.reads, *node.goes_by)
    entity, path = writer.writes
    return any(entity is read_of and overlaps(path, read) for read_of, read in reads)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A rule as an arrow from its source: which paths make which paths of `to`. That is an entity, or a name outside
    the tables with the word for what is there. `writes` is None where the rule of the same title writes them;
    `notes` is what no path says.
    """

    to: Entity | tuple[str, str]
    reads: tuple[Path, ...]
    writes: tuple[Path, ...] | None = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchivePlace:
    """Objects of a bucket whose names begin with a prefix, made of items that were deleted, or that `when` expired."""

    bucket: str
    prefix: str
    when: str

    @property
    def text(self) -> str:
        """The address in S3."""
        return f"s3://{self.bucket}/{self.prefix}"


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """One declared derivation: `source` holds the truth, `target` holds what is derived from it.

    A rule of the rules file may be compiled into several; those beside the one of its name are called NAME.part.
    """

    name: str
    source: Entity
    target: Entity
    # how the items on one side are listed, given one of the other (None: never), and how long an index may lag
    find: Find | None = field(default=None, kw_only=True)
    settle_seconds: int = field(default=60, kw_only=True)

    strict = False  # each write is a transaction with a check of its source
    fills_index_keys = False  # it is there to fill the keys of indexes, so that a copy in one is no surprise
    hierarchical = False  # each round over a table makes one more level of a hierarchy right

    @property
    def title(self) -> str:
        """The name of the rule in the rules file."""
        return self.name.partition(".")[0]

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word by which the rules file calls its kind."""

    @abstractmethod
    def body(self) -> Mapping[str, object]:
        """The rule as plain JSON-ready values: two rules of equal bodies do the same."""

    @property
    def filters(self) -> Mapping[str, Where]:
        """The conditions that say of which items the rule speaks, by their options in the rules file."""
        given = ((option, getattr(self, option, None)) for option in ("where", "omit"))
        return {option: where for option, where in given if isinstance(where, Where)}

    def resolved(self, name: str) -> Self:  # noqa: ARG002
        """The rule after variables got their values, checked as the rules file `name` would have been.

        Raises:
            UserError: when a value does not fit.
        """
        return self

    # ---------------------------------------------------------------- what it reads and writes
    @property
    def copies(self) -> tuple[Path, ...]:
        """The target paths that this rule writes; no other rule writes them."""
        return ()

    def wrote(self, key: ItemKey, item: Item) -> tuple[Path, ...]:  # noqa: ARG002
        """The copies on this target that the rule wrote, and not the application."""
        return self.copies

    def nodes(self) -> tuple[Node, ...]:
        """Each attribute that the rule writes, with what decides it."""
        return ()

    def feeds(self, other: Rule) -> bool:
        """True if something this rule writes decides what something of another, or of its own, must be."""
        return any(causes(written, node) for written in self.nodes() for node in other.nodes())

    @property
    def rounds_max(self) -> int:
        """The number of rounds over the tables that make right whatever the rule feeds to itself."""
        return len(self.nodes()) if self.feeds(self) else 1

    def levels(self, image: Item) -> int:  # noqa: ARG002
        """The number of levels in the path of an item, for a hierarchical rule."""
        return 0

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:  # noqa: ARG002
        """The paths of which one must change for a record of this entity to trigger the rule, where the item was
        there before and after; None: that cannot be said by paths.
        """
        return None

    @property
    def streamed(self) -> tuple[Table, ...]:
        """The tables whose records the rule must see, with both images."""
        return (self.source.table, self.target.table)

    @property
    def swept(self) -> tuple[Entity, ...]:
        """The entities whose items are scanned to check all that the rule keeps; none for a rule that keeps nothing."""
        return (self.source, self.target)

    @property
    def owned(self) -> tuple[Entity, ...]:
        """The entities whose items belong to the pipeline as a whole, because this rule makes them."""
        return ()

    def owns(self, item: Item) -> bool:  # noqa: ARG002
        """True if an item of an owned entity is one that the rule makes."""
        return True

    @property
    def snapshot(self) -> bool:
        """True if the copies are meant to outlive their source, and the rule itself."""
        return False

    def known_by_key(self, entity: Entity) -> bool:
        """True if the key of an item of this entity, and the item as it is, say all that the item ever meant to the
        rule. Else an old image of the item may have named something that nobody can find any more.
        """
        return entity is not self.source and entity is not self.target

    @property
    def calls(self) -> str:
        """The user's function that the rule calls, as module.function; "" for none."""
        return ""

    @property
    def archive(self) -> ArchivePlace | None:
        """The place in S3 where the rule keeps objects, if it does."""
        return None

    def drawn(self) -> Drawing | None:
        """The rule as an arrow; None where another rule's arrow stands for it."""
        reads = (path for node in self.nodes() for entity, path in node.reads if entity is self.source)
        return Drawing(self.target, tuple(dict.fromkeys(reads)), self.copies)

    # ---------------------------------------------------------------- what it needs of tables
    @abstractmethod
    def uses(self) -> Iterator[Use]:
        """Everything that is done with tables for the rule. Of a moment, the operations are in order."""

    def _listing_uses(self, moment: Moment) -> Iterator[Use]:
        if self.find is not None:
            why = f"every {name_of(self.listed)} of one {name_of(self.anchor)}"
            yield Use(moment, Operation.QUERY, self.listed.table, why, self.find.index)
            if self.find.index is not None:
                yield Use(moment, Operation.READ, self.listed.table, "what the index lists, as it is now")

    def _sweeping_uses(self) -> Iterator[Use]:
        for table in dict.fromkeys(entity.table for entity in self.swept):
            yield Use(Moment.SCANNED, Operation.SCAN, table, "all that it keeps")
        for table in dict.fromkeys(self.streamed):
            yield Use(Moment.DESCRIBED, Operation.DESCRIBE, table, "that tables and indexes are as it needs them")

    def _checking_use(self, why: str = "") -> Use:
        why = f"{why}{name_of(self.source)} still is as it was read"
        return Use(Moment.WRITTEN, Operation.CHECK, self.source.table, why)

    # ---------------------------------------------------------------- what it lists
    @property
    def anchor(self) -> Entity:
        """The entity whose item starts a listing: the source, unless a rule lists the other way round."""
        return self.source

    @property
    def listed(self) -> Entity:
        """The entity whose items are listed."""
        return self.target

    @property
    def lists_by(self) -> tuple[object, ...]:
        """Rules of one anchor for which this is equal share a listing."""
        return (self.listed.name, self.find)

    def conditions(self, anchor: ItemKey) -> KeyConditions | None:
        """The Query for the items listed; None when there can be none."""
        raise NotImplementedError

    def pushes(self, change: Change) -> bool:  # noqa: ARG002
        """True if this record of the anchor is a reason to look at everything that the anchor lists."""
        return False


@dataclass(frozen=True, eq=False)
class ListingRule(Rule):
    """A rule whose target lists its sources. `link` pairs each identity field of the target with the place on a source
    where it is read.
    """

    link: Link = field(kw_only=True)

    @cached_property
    def pointer(self) -> Pointer:
        """From a source to the target that the source names."""
        return Pointer(self.link, self.target)

    @property
    def anchor(self) -> Entity:
        return self.target

    @property
    def listed(self) -> Entity:
        return self.source

    @property
    def lists_by(self) -> tuple[object, ...]:
        return (self.listed.name, self.find, self.link)


@dataclass(frozen=True, slots=True)
class Hint:
    """Look at this target. `member` is, where a target is made of several items, the one that hints at it."""

    target: ItemKey
    member: ItemKey | None = None


@dataclass(frozen=True, slots=True)
class Members:
    """The items that a target is made of: a Query of the base table or of an index, from either end, bounded.

    `named` are keys of members that are known already. From an index rows are but keys, and it may lag: then the items
    listed, those named and those that hinted at the target are all read, and `belongs` decides. More members than
    `max_items` block the rule, unless so many are `enough` to decide by.
    """

    table: str
    index: str | None
    conditions: KeyConditions
    max_items: int
    backward: bool = False
    named: tuple[ItemKey, ...] = ()
    enough: bool = False


class TargetRule(Rule):
    """A rule that keeps paths of a target equal to what its sources say: one guarded update per target."""

    strict: bool = False
    gathers: bool = False  # targets are made of members, which are all in memory at once

    def hints(self, change: Change) -> Iterable[Hint]:  # noqa: ARG002
        """The targets that a record of a source names, both as the source was and as it is."""
        return ()

    @property
    @abstractmethod
    def goes_by(self) -> tuple[Path, ...]:
        """The target paths that name the source or let it in: another rule that writes one of them comes first."""

    @cached_property
    def relevant_paths(self) -> tuple[Path, ...]:
        """The target paths that guards compare or a listing goes by: a change of one is a reason to look."""
        return (*self.goes_by, *self.copies)

    @property
    def watches_in_source(self) -> tuple[Path, ...] | None:
        """The source paths of which a change triggers the rule; None: any change."""
        return None

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        of_target = (*self.relevant_paths, *self.copies) if entity is self.target else ()
        of_source = self.watches_in_source if entity is self.source else ()
        return None if of_source is None else (*of_target, *of_source)

    def pulls(self, change: Change) -> bool:
        """True if this record of a target, whoever wrote it, is a reason to look at the target: it came, or changed in
        something relevant, or in the maps that its copies stand in.
        """
        if change.new is None or change.old is None:
            return change.new is not None
        if changed(change.old, change.new, self.relevant_paths):
            return True
        return any(standing(change.old, path) != standing(change.new, path) for path in self._maps)

    @cached_property
    def _maps(self) -> tuple[Path, ...]:
        """The maps that its copies stand in."""
        return tuple(dict.fromkeys(copy[:length] for copy in self.copies for length in range(1, len(copy))))

    def source_keys(self, target: Item) -> tuple[ItemKey, ...]:  # noqa: ARG002
        """The sources that a target names; empty when it names none, or when its sources are its `members`."""
        return ()

    def members(self, key: ItemKey, target: Item) -> Members | None:  # noqa: ARG002
        """The listing of the items that this target is made of; None for a rule whose targets are not made of several,
        and for a target that can have none.
        """
        return None

    def belongs(self, key: ItemKey, member: Item) -> bool:  # noqa: ARG002
        """True if an item is one of those that the target of this key is made of."""
        return True

    @abstractmethod
    def desired(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked | None:
        """The value that the target must hold at each path (None: nothing there); None in all when the rule says
        nothing.

        `sources` are the items of `source_keys`, in order, or the members that belong to the target.
        """

    def deletes(self, target: Item) -> bool:  # noqa: ARG002
        """True if this target is deleted when its source is."""
        return False

    def restricts(self, target: Item) -> bool:  # noqa: ARG002
        """True if it is to be reported that this target's source was deleted."""
        return False

    def orphans(self, target: Item) -> bool:
        """True if a target whose source does not exist is reported by verify, which cannot repair it."""
        return self.deletes(target) or self.restricts(target)

    def outlives(self, image: Item) -> bool:  # noqa: ARG002
        """True if a target holds copies of a source that is gone which the rule has it keep. Snapshots do not count."""
        return False

    def stands_for(self, key: ItemKey, image: Item, paths: Iterable[Path]) -> tuple[ItemKey, ...] | None:  # noqa: ARG002
        """The sources for which values at these paths of a target stand; None: for none that could be gone alone."""
        return None

    def nodes(self) -> tuple[Node, ...]:
        """Each copy, made of all that the rule watches of a source; of a whole source where that cannot be said."""
        watched = ((),) if self.watches_in_source is None else self.watches_in_source
        reads = tuple((self.source, path) for path in watched)
        goes_by = tuple((self.target, path) for path in self.goes_by)
        return tuple(Node(self, (self.target, copy), reads, goes_by) for copy in self.copies)

    def link_guard(self, image: Item) -> tuple[Condition, ...]:
        """Guard: the target still names the same source, and the rule still speaks of the target."""
        return as_seen(image, self.goes_by)

    def source_guard(self, source: Item | None) -> tuple[Condition, ...]:  # noqa: ARG002
        """Guard: the source is as it was read. For the transactions of strict rules and of deletes."""
        return ()

    @property
    def swept(self) -> tuple[Entity, ...]:
        return (self.target,)

    # ---------------------------------------------------------------- what it needs of tables
    def uses(self) -> Iterator[Use]:
        on, table = name_of(self.target), self.target.table
        yield from self.judging_uses()
        yield from self.finding_uses()
        yield Use(Moment.BY_KEY, Operation.READ, table, f"{on}, of which only the key is known")
        writes = tuple(self.writing_uses())
        yield from writes
        if writes and table.max_write_units_per_second is not None:
            yield Use(Moment.PRICED, Operation.READ, table, f"{on}: how large it is, as its table has a limit")
        yield from self._sweeping_uses()

    def judging_uses(self) -> Iterator[Use]:
        """Reads whenever a target is judged, its own image aside."""
        why = f"{name_of(self.source)}, whose values {name_of(self.target)} has"
        yield Use(Moment.JUDGED, Operation.READ, self.source.table, why)

    def finding_uses(self) -> Iterator[Use]:
        """Reads of targets that records of a source name, and listings."""
        why = f"{name_of(self.target)}, which a record of {name_of(self.source)} names"
        yield Use(Moment.HINTED, Operation.READ, self.target.table, why)
        yield from self._listing_uses(Moment.LISTED)

    def writing_uses(self) -> Iterator[Use]:
        """Writes where something is not as the rule says."""
        update = Operation.UPDATE if self.strict else Operation.UPDATES
        yield Use(Moment.WRITTEN, update, self.target.table, f"copies on {name_of(self.target)}")
        if self.strict:
            yield self._checking_use("strict: ")


@dataclass(frozen=True, slots=True)
class Part:
    """A thing that a `PartRule` keeps true for itself: an element of a set, an entry of a ledger, a mirrored item.

    `target` is the item it is written on, `source` the one it is made from, None when there cannot be one.
    """

    rule: PartRule
    target: ItemKey
    source: ItemKey | None
    element: str = ""


class PartRule(Rule):
    """A rule that keeps parts: each is judged by two items, its target first and its source then."""

    @abstractmethod
    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """The parts that a record of a source or of a target names, as the item was and as it is, whoever wrote it."""

    @abstractmethod
    def judge(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        """The write that makes a part true; None for a part that is."""

    def nodes(self) -> tuple[Node, ...]:
        """The target as a whole, made of the source as a whole: the empty path is all of an item."""
        return (Node(self, (self.target, ()), ((self.source, ()),)),)

    def unconditional(self) -> Self:
        """The rule without what reads attributes to decide whether there is a part, not which."""
        return self

    def adds_to(self, item: Item) -> ItemKey | None:  # noqa: ARG002
        """The total in which a part that stands as this item is counted; None when it is in none."""
        return None

    # ---------------------------------------------------------------- what it needs of tables
    def uses(self) -> Iterator[Use]:
        target, source = name_of(self.target), name_of(self.source)
        read = Operation.READ
        yield Use(Moment.JUDGED, read, self.target.table, f"{target} as it is, before it is written")
        yield Use(Moment.JUDGED, read, self.source.table, f"{source}, from which it is made")
        yield from self._listing_uses(Moment.LISTED)
        yield from self.writing_uses()
        yield from self._sweeping_uses()

    def writing_uses(self) -> Iterator[Use]:
        """Writes where something is not as the rule says."""
        table, name = self.target.table, name_of(self.target)
        yield Use(Moment.WRITTEN, Operation.PUT, table, f"{name}, where one is missing")
        yield Use(Moment.WRITTEN, Operation.DELETE, table, f"{name}, where there should be none")
        yield Use(Moment.WRITTEN, Operation.UPDATE, table, f"what differs on {name}")
        yield self._checking_use()


class EffectRule(Rule):
    """A rule that does something outside the tables for a change of its source."""

    @abstractmethod
    def effect(self, change: Change) -> Effect | None:
        """The effect of this record of the source, if it has one."""

    @property
    def swept(self) -> tuple[Entity, ...]:
        return ()

    def known_by_key(self, entity: Entity) -> bool:  # noqa: ARG002
        return True  # it keeps nothing

    def uses(self) -> Iterator[Use]:
        return iter(())

    def again(self, change: Change, attempt: int) -> Effect | None:  # noqa: ARG002
        """The effect that a message asks to retry; None when this kind sends no such messages."""
        return None


def attributes_read(asked: Iterable[tuple[Rule, Entity]]) -> dict[str, Names]:
    """The attributes that these rules read of items of these entities, by table."""
    found: dict[str, Names] = {}
    for rule, entity in dict.fromkeys(asked):
        table, paths = entity.table.name, rule.watches(entity)
        before = found.get(table, frozenset())
        found[table] = None if paths is None or before is None else before.union(path[0] for path in paths)
    return found
