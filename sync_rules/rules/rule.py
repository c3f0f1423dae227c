"""The rule: everything that decides what is written. The consumer, a backfill, verify and redrive ask here.

Invariant: a rule is pure. It says which records are a reason to look and where, what is true of what it keeps, and
under which guard that may be written; it reads no store and no clock, and remembers nothing.

Tools ask more: `description` has those answers. The three families of rules are in `families`, the kinds in `kinds`,
one file each. No other room asks which kind a rule is. Each answer below but `kind` and `body` has a default that is
safe, though not always cheap; a kind overrides what it knows better. docs/contributing.md lists all answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Self, final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.errors import ConditionError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import Find, KeyConditions
from sync_rules.model.prefixes import Prefixes
from sync_rules.model.values import Item, Names, Path, overlaps
from sync_rules.model.where import Where
from sync_rules.rules.description import Description

AttributeRef = tuple[Entity, Path]
# in the body of a rule, where one that is not sparse has the body that it had before there were sparse rules
SPARSE: Final[Mapping[bool, Mapping[str, object]]] = MappingProxyType({False: {}, True: {"sparse": True}})


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a rule cannot do what it should, for the failure record. `patient`: it may pass by itself within a moment,
    and is recorded only if the next look finds the same. `member` is the item that does not fit, if there is one.
    `of_target`: it is one thing on the target, and in the way of all of its parts.
    """

    reason: str
    patient: bool = False
    member: ItemKey | None = None
    of_target: bool = False


def let_in(where: Where | None, item: Item, entity: Entity) -> bool | Blocked:
    """True if a condition over one item, of this entity, lets the item in; none lets all in. Blocked where the
    condition cannot be evaluated, which is reported.
    """
    try:
        return where is None or where.holds_for(item, entity)
    except ConditionError as error:
        return Blocked(error.reason)


class Waiting(Enum):
    """Why a rule writes nothing, though it may have to: another step comes first."""

    BACKFILL = "backfill"  # the books that it reads are not known to have every child


@dataclass(frozen=True, eq=False)
class Node:
    """An attribute that a rule writes, and what decides it: cycles and the order of rules follow from nodes.

    `reads`: the attributes that the value is made of. `deciding_paths`: the attributes of the target that choose its
    source, or decide whether the rule applies.
    """

    rule: Rule
    writes: AttributeRef
    reads: tuple[AttributeRef, ...]
    deciding_paths: tuple[AttributeRef, ...] = ()


def causes(writer: Node, node: Node) -> bool:
    """True if what one node writes decides what another node, of any rule, must be."""
    reads = node.reads if writer.rule is node.rule else (*node.reads, *node.deciding_paths)
    entity, path = writer.writes
    return any(entity is read_of and overlaps(path, read) for read_of, read in reads)


def causes_of(nodes: Iterable[Node]) -> dict[Node, tuple[Node, ...]]:
    """The nodes among these that write what decides each of them, as `causes` says, in order."""
    nodes = tuple(nodes)
    writers: dict[Entity, Prefixes[Node]] = {}
    for node in nodes:
        entity, path = node.writes
        writers.setdefault(entity, Prefixes()).add(path, node)
    found: dict[Node, tuple[Node, ...]] = {}
    for node in nodes:
        read = ((path, writers[entity]) for entity, path in (*node.reads, *node.deciding_paths) if entity in writers)
        near = dict.fromkeys(writer for path, of_entity in read for writer in of_entity.touching(path))
        found[node] = tuple(writer for writer in near if causes(writer, node))
    return found


@dataclass(frozen=True, eq=False)
class Rule(Description):
    """One declared derivation: `source` holds the truth, `target` holds what is derived from it.

    A rule of the rules file may be compiled into several; those beside the one of its name are called NAME.part.
    """

    name: str
    source: Entity
    target: Entity
    # how the items on one side are listed, given one of the other (None: never), and how long an index may lag
    find: Find | None = field(default=None, kw_only=True)
    settle_seconds: int = field(default=60, kw_only=True)
    renamed_from: str | None = field(default=None, kw_only=True)  # its name in the rules file before it was renamed

    strict = False  # each write is a transaction with a check of its source
    moves = False  # its source goes for good when its target comes
    hierarchical = False  # each round over a table makes one more level of a hierarchy right

    @property
    @final
    def title(self) -> str:
        """The name of the rule in the rules file."""
        return self.name.partition(".")[0]

    @property
    @final
    def former_name(self) -> str | None:
        """The name of this rule before its rule of the rules file was renamed; None when it was not."""
        return None if self.renamed_from is None else self.renamed_from + self.name.removeprefix(self.title)

    @property
    @final
    def message_name(self) -> str:
        """The name of this rule in messages: the former one if it was renamed, which older and newer versions know."""
        return self.former_name or self.name

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word for its kind in the rules file."""

    @abstractmethod
    def body(self) -> Mapping[str, object]:
        """The rule as plain JSON-ready values: two rules of equal bodies do the same."""

    def resolve_variables(self, name: str) -> Self:
        """The rule after variables got their values, checked as the rules file `name` would have been.

        Raises:
            UserError: when a value does not fit.
        """
        return self

    def adapt_to(self, others: Iterable[Rule]) -> Self:
        """The rule, with what it must know of the other rules of its file."""
        return self

    # ---------------------------------------------------------------- what it reads and writes
    @property
    def copies(self) -> tuple[Path, ...]:
        """The target paths that this rule writes; no other rule writes them."""
        return ()

    @property
    def puts(self) -> tuple[Path, ...]:
        """The target paths that this rule gives a value: those that it keeps true, or once and for good."""
        return self.copies

    def fills(self, path: Path, item: Item) -> bool | None:
        """True if the rule gives this target a value at one of its `copies`, now or by a write to come; None where
        that depends on other items.
        """
        return None

    def list_own_copies(self, key: ItemKey, item: Item) -> tuple[Path, ...]:
        """The copies on this target that the rule wrote, and not the application."""
        return self.copies

    def nodes(self) -> tuple[Node, ...]:
        """Each attribute that the rule writes, with what decides it."""
        return ()

    @final
    def feeds(self, other: Rule) -> bool:
        """True if something this rule writes decides what something of another, or of its own, must be."""
        return any(causes(written, node) for written in self.nodes() for node in other.nodes())

    @property
    def rounds_max(self) -> int:
        """The number of rounds over the tables that make right whatever the rule feeds to itself."""
        return len(self.nodes()) if self.feeds(self) else 1

    def levels(self, image: Item) -> int:
        """The number of levels in the path of an item, for a hierarchical rule."""
        return 0

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        """The paths that trigger the rule: a record of this entity matters if one of them changed, where the item was
        there before and after; None: any change matters.
        """
        return None

    @property
    def streamed_tables(self) -> tuple[Table, ...]:
        """The tables whose records the rule must see, with both images."""
        return (self.source.table, self.target.table)

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        """The entities whose items are scanned to check all that the rule keeps; none for a rule that keeps nothing."""
        return (self.source, self.target)

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        """The entities whose items belong to the pipeline as a whole, because this rule makes them."""
        return ()

    def owns(self, item: Item) -> bool:
        """True if an item of an owned entity is one that the rule makes."""
        return True

    def is_known_by_key(self, entity: Entity) -> bool:
        """True if the key of an item of this entity, and the item as it is, say all that the item ever meant to the
        rule. Else an old image of the item may have named something that cannot be found any more.
        """
        return entity is not self.source and entity is not self.target

    @property
    def calls(self) -> str:
        """The user's function that the rule calls, as module.function; "" for none."""
        return ""

    # ---------------------------------------------------------------- what it lists
    @property
    @final
    def sparse(self) -> bool:
        """True if the rule means only those items that its index lists."""
        return self.find is not None and self.find.sparse

    @property
    @final
    def sparse_paths(self) -> tuple[Path, ...]:
        """The paths of an item that say whether a sparse index lists it."""
        return tuple((attribute.name,) for attribute in self.find.needs) if self.find and self.find.sparse else ()

    @property
    def anchor(self) -> Entity:
        """The entity whose item starts a listing: the source, unless a rule lists the other way round."""
        return self.source

    @property
    def listed_entity(self) -> Entity:
        """The entity whose items are listed."""
        return self.target

    def points(self, item: Item) -> bool:
        """True if a listed item names an anchor."""
        return True

    @property
    def lists_by(self) -> tuple[object, ...]:
        """Rules of one anchor share a listing if this is equal."""
        return (self.listed_entity.name, self.find)

    def conditions(self, anchor: ItemKey) -> KeyConditions | None:
        """The Query for the items listed; None when there can be none."""
        raise NotImplementedError

    def pushes(self, change: Change) -> bool:
        """True if this record of the anchor is a reason to look at everything that the anchor lists."""
        return False


def attributes_read(asked: Iterable[tuple[Rule, Entity]]) -> dict[str, Names]:
    """The attributes that these rules read of items of these entities, by table."""
    found: dict[str, Names] = {}
    for rule, entity in dict.fromkeys(asked):
        table, paths = entity.table.name, rule.watches(entity)
        before = found.get(table, frozenset())
        found[table] = None if paths is None or before is None else before.union(path[0] for path in paths)
    return found
