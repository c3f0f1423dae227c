"""What a rule is to the pipeline, and the three families of rules.

Law: a rule is pure. It says which records are a reason to look and where, what is true of what it keeps, and under
which guard that may be written; it reads no store, no clock, and remembers nothing. There are three families, by what
is looked at: a `TargetRule` keeps attributes of targets, a `PartRule` keeps things that stand each for itself, an
`EffectRule` does something outside the tables. The kinds of rules are in `kinds`, one file each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import Change, Effect, ItemKey
from sync_rules.model.lookups import Find, KeyConditions, Link, Pointer
from sync_rules.model.values import AttributeValue, Item, Names, Path, changed, overlaps, standing
from sync_rules.model.writes import Condition, Write

Place = tuple[Entity, Path]
Desired = Mapping[Path, AttributeValue | None]  # what must stand at each path; None: nothing


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a rule cannot do what it should: for the failure record. `patient`: it may pass by itself within a moment, so
    it is only recorded if it is still so at the next look. `member` is the item that does not fit, if there is one.
    """

    reason: str
    patient: bool = False
    member: ItemKey | None = None


@dataclass(frozen=True, eq=False)
class Node:
    """One attribute that a rule writes, and what decides it: where the cycles and the cascades of rules are seen.

    `reads` is what the value is made of; `goes_by` what, on the target, says from which source, and whether.
    """

    rule: Rule
    writes: Place
    reads: tuple[Place, ...]
    goes_by: tuple[Place, ...] = ()


def causes(writer: Node, node: Node) -> bool:
    """Whether what one node writes decides what another node, of any rule, must be."""
    reads = node.reads if writer.rule is node.rule else (*node.reads, *node.goes_by)
    entity, path = writer.writes
    return any(entity is read_of and overlaps(path, read) for read_of, read in reads)


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

    @property
    def title(self) -> str:
        """The name of the rule in the rules file."""
        return self.name.partition(".")[0]

    @property
    def copies(self) -> tuple[Path, ...]:
        """The target paths this rule writes; no other rule writes them."""
        return ()

    def nodes(self) -> tuple[Node, ...]:
        """Each attribute it writes, with what decides it."""
        return ()

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:  # noqa: ARG002
        """The paths of which one must change for a record of this entity to be a reason to look at anything, where the
        item was there before and after; None: that cannot be said by paths.
        """
        return None

    @property
    def streamed(self) -> tuple[Table, ...]:
        """The tables whose records it must see, both images of them."""
        return (self.source.table, self.target.table)

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word by which the rules file calls its kind."""

    @abstractmethod
    def body(self) -> Mapping[str, object]:
        """What it says, as plain JSON-ready values: two rules of equal bodies do the same."""

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
        """Whether this record of the anchor is a reason to look at everything it lists."""
        return False


@dataclass(frozen=True, eq=False)
class ListingRule(Rule):
    """A rule whose target lists its sources. `link` pairs each identity field of the target with the place on a source
    where it is read.
    """

    link: Link = field(kw_only=True)

    @cached_property
    def pointer(self) -> Pointer:
        """From a source to its target."""
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
    `max_items` block it, unless so many are `enough` to decide by.
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
    gathers: bool = False  # whether targets are made of members, which are all in memory at once

    def hints(self, change: Change) -> Iterable[Hint]:  # noqa: ARG002
        """The targets that a record of a source names by itself, both as it was and as it is."""
        return ()

    @property
    @abstractmethod
    def relevant_paths(self) -> tuple[Path, ...]:
        """A change of any of these on a target is a reason to look at it: what guards compare or a listing goes by."""

    @property
    def watches_in_source(self) -> tuple[Path, ...] | None:
        """What it watches of a source."""
        return None

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        of_target = (*self.relevant_paths, *self.copies) if entity is self.target else ()
        of_source = self.watches_in_source if entity is self.source else ()
        return None if of_source is None else (*of_target, *of_source)

    def pulls(self, change: Change) -> bool:
        """Whether this record of a target is a reason to look at it: whoever wrote it, this pipeline included. It came,
        or changed in something relevant, or in the maps that its copies stand in.
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
        """The sources that a target names; empty when it names none, or when they are its `members`."""
        return ()

    def members(self, key: ItemKey, target: Item) -> Members | None:  # noqa: ARG002
        """How the items that this target is made of are listed; None for rules that are not made of several, and for a
        target that can have none.
        """
        return None

    def belongs(self, key: ItemKey, member: Item) -> bool:  # noqa: ARG002
        """Whether an item is one of those that the target of this key is made of."""
        return True

    @abstractmethod
    def desired(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked | None:
        """What the target must hold at each path (None: nothing there); None in all when the rule says nothing.

        `sources` are the items of `source_keys`, in order, or the members that belong to the target.
        """

    def deletes(self, target: Item) -> bool:  # noqa: ARG002
        """Whether this target is deleted when its source is."""
        return False

    def restricts(self, target: Item) -> bool:  # noqa: ARG002
        """Whether it is to be reported that this target's source was deleted."""
        return False

    def orphans(self, target: Item) -> bool:
        """Whether a target whose source does not exist is reported by verify, which cannot mend it."""
        return self.deletes(target) or self.restricts(target)

    @abstractmethod
    def link_guard(self, image: Item) -> tuple[Condition, ...]:
        """Still the same source, and still a target that the rule speaks of."""

    @property
    @abstractmethod
    def goes_by(self) -> tuple[Path, ...]:
        """The target paths that the link guard compares: another rule that writes one of them comes first."""

    def source_guard(self, source: Item | None) -> tuple[Condition, ...]:  # noqa: ARG002
        """The source still says what it said; for the transactions of strict rules and of deletes."""
        return ()


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a `PartRule` keeps true for itself: an element of a set, an entry of a ledger, a mirrored item.

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
        """The parts that a record of a source or of a target names, both as it was and as it is, whoever wrote it."""

    @abstractmethod
    def judge(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        """The write that makes a part true; None when it is."""


class EffectRule(Rule):
    """A rule that does something outside the tables for a change of its source."""

    @abstractmethod
    def effect(self, change: Change) -> Effect | None:
        """What to do about this record of a source, if anything."""

    def again(self, change: Change, attempt: int) -> Effect | None:  # noqa: ARG002
        """The effect that a message asks to retry; None when this kind sends no such messages."""
        return None


def attributes_read(asked: Iterable[tuple[Rule, Entity]]) -> dict[str, Names]:
    """The attributes that rules look at of items of an entity, by table: together, for one item may concern several."""
    found: dict[str, Names] = {}
    for rule, entity in dict.fromkeys(asked):
        table, paths = entity.table.name, rule.watches(entity)
        before = found.get(table, frozenset())
        found[table] = None if paths is None or before is None else before.union(path[0] for path in paths)
    return found
