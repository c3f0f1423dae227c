"""The rule: everything that decides what the pipeline writes. Consumer, backfill, verify and redrive ask here.

Invariant: a rule is pure. It names the records that matter, the items to look at, the values they must hold, and the
guard of each write. It reads no store and no clock, and keeps no state.

`description` has the answers that only tools need. `families` has the three families of rules, `kinds` one file for
each kind. No other room asks for a rule's kind. docs/contributing.md lists all answers with their safe defaults.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self, final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.errors import ConditionError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import Find, KeyConditions
from sync_rules.model.prefixes import Prefixes
from sync_rules.model.values import Item, Names, Path, has_overlap
from sync_rules.model.where import Where
from sync_rules.rules.description import Description, Drawing, Moment, Operation, Use, format_entity_name

AttributeRef = tuple[Entity, Path]


@dataclass(frozen=True, slots=True)
class Blocked:
    """The reason why a rule cannot write, for the failure record. `patient`: the reason may pass within a moment, so it
    is recorded only if the next look finds it again. `member`: the item that does not fit, if any. `of_target`: the
    reason is on the target and blocks all parts of it.
    """

    reason: str
    patient: bool = False
    member: ItemKey | None = None
    of_target: bool = False


def let_in(where: Where | None, item: Item, entity: Entity) -> bool | Blocked:
    """True if the condition holds for an item of this entity, or there is no condition. Blocked if it cannot be
    evaluated.
    """
    try:
        return where is None or where.holds_for(item, entity)
    except ConditionError as error:
        return Blocked(error.reason)


class Waiting(Enum):
    """The step that must come before a rule may write."""

    BACKFILL = "backfill"  # the rule's books may lack children


@dataclass(frozen=True, eq=False)
class Node:
    """An attribute that a rule writes, and what it depends on. Cycles and the order of rules follow from nodes.

    `reads`: the attributes that the value is made of. `deciding_paths`: the attributes of the target that choose its
    source, or decide whether the rule applies.
    """

    rule: Rule
    writes: AttributeRef
    reads: tuple[AttributeRef, ...]
    deciding_paths: tuple[AttributeRef, ...] = ()


def is_cause(writer: Node, node: Node) -> bool:
    """True if the attribute that `writer` writes decides the value of `node`."""
    reads = node.reads if writer.rule is node.rule else (*node.reads, *node.deciding_paths)
    entity, path = writer.writes
    return any(entity is read_of and has_overlap(path, read) for read_of, read in reads)


def list_causes(nodes: Iterable[Node]) -> dict[Node, tuple[Node, ...]]:
    """List, for each node, the other nodes among these that cause it, in order."""
    nodes = tuple(nodes)
    writers: dict[Entity, Prefixes[Node]] = {}
    for node in nodes:
        entity, path = node.writes
        writers.setdefault(entity, Prefixes()).add(path, node)
    found: dict[Node, tuple[Node, ...]] = {}
    for node in nodes:
        read = ((path, writers[entity]) for entity, path in (*node.reads, *node.deciding_paths) if entity in writers)
        near = dict.fromkeys(writer for path, of_entity in read for writer in of_entity.find_overlaps(path))
        found[node] = tuple(writer for writer in near if is_cause(writer, node))
    return found


@dataclass(frozen=True, eq=False)
class Rule(Description):
    """One declared derivation from items of `source` to items of `target`.

    An entry of the rules file may be compiled into several rules. The others are called NAME.part.
    """

    name: str
    source: Entity
    target: Entity
    # the Query for the items of one side, given one of the other (None: no listing), and how long an index may lag
    find: Find | None = field(default=None, kw_only=True)
    settle_seconds: int = field(default=60, kw_only=True)
    renamed_from: str | None = field(default=None, kw_only=True)  # its name in the rules file before it was renamed

    strict = False  # each write is a transaction with a check of its source
    hierarchical = False  # each round over a table makes one more level of a hierarchy right

    @property
    @final
    def title(self) -> str:
        """The name of the rule in the rules file."""
        return self.name.partition(".")[0]

    @property
    @final
    def former_name(self) -> str | None:
        """The name that this rule had before `renamed_from`; None without it."""
        return None if self.renamed_from is None else self.renamed_from + self.name.removeprefix(self.title)

    @property
    @final
    def message_name(self) -> str:
        """The name of this rule in messages: the former one, if any, because older versions know only that."""
        return self.former_name or self.name

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word for the rule's kind in the rules file."""

    @abstractmethod
    def body(self) -> Mapping[str, object]:
        """Return the rule as plain values, ready for JSON. Rules with equal values do the same."""

    def adapt_to(self, others: Iterable[Rule]) -> Self:
        """Return the rule with what it must know of the other rules in its file."""
        return self

    @property
    def makes(self) -> bool:
        """True if the rule makes targets with members, and removes targets without any."""
        return False

    @property
    def copies(self) -> tuple[Path, ...]:
        """The target paths that this rule writes; no other rule writes them."""
        return ()

    @property
    def puts(self) -> tuple[Path, ...]:
        """The target paths that get a value from this rule, also those that it writes once and never checks."""
        return self.copies

    def fills(self, path: Path, item: Item) -> bool | None:
        """True if the rule gives this target a value at one of `copies`, now or later; None if other items decide."""
        return None

    def list_own_copies(self, key: ItemKey, item: Item) -> tuple[Path, ...]:
        """List the copies on this target that belong to the rule and not to the application."""
        return self.copies

    def nodes(self) -> tuple[Node, ...]:
        """Return a node for each attribute that the rule writes, with the attributes that decide it."""
        return ()

    @final
    def feeds(self, other: Rule) -> bool:
        """True if an attribute that this rule writes decides an attribute that `other` writes."""
        return any(is_cause(written, node) for written in self.nodes() for node in other.nodes())

    def draw(self) -> Drawing | None:
        """Return the arrow from all that the nodes read of the source to the copies."""
        reads = (path for node in self.nodes() for entity, path in node.reads if entity is self.source)
        return Drawing(self.target, tuple(dict.fromkeys(reads)), self.copies)

    @property
    def rounds_max(self) -> int:
        """The greatest number of rounds over the tables until all that the rule feeds to itself is right."""
        return len(self.nodes()) if self.feeds(self) else 1

    def levels(self, image: Item) -> int:
        """Return the number of levels in the path of an item, for a hierarchical rule."""
        return 0

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        """The paths whose change makes a MODIFY record of this entity matter to the rule; None: any change does."""
        return None

    @property
    def streamed_tables(self) -> tuple[Table, ...]:
        """The tables whose stream, with both images, the rule needs."""
        return (self.source.table, self.target.table)

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        """The entities to scan to check everything that the rule keeps; none for a rule with effects only."""
        return (self.source, self.target)

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        """The entities whose items this rule creates and deletes."""
        return ()

    def owns(self, item: Item) -> bool:
        """True if the rule makes this item of an owned entity."""
        return True

    def is_known_by_key(self, entity: Entity) -> bool:
        """True if the key and the present image of an item show everything that the item ever named for the rule.
        Else an old image may have named an item that redrive cannot find any more.
        """
        return entity is not self.source and entity is not self.target

    @property
    def calls(self) -> str:
        """The user's function that the rule calls, as module.function; "" for none."""
        return ""

    @property
    @final
    def sparse(self) -> bool:
        """True if the rule applies only to items that its index lists."""
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
        """The identity of the rule's listing. Rules with the same anchor and an equal value share a listing."""
        return (self.listed_entity.name, self.find)

    def conditions(self, anchor: ItemKey) -> KeyConditions | None:
        """Return the Query for the items that an anchor lists; None if it can list none."""
        raise NotImplementedError

    def pushes(self, change: Change) -> bool:
        """True if this record of the anchor asks for a check of all items that the anchor lists."""
        return False


def list_attributes_read(asked: Iterable[tuple[Rule, Entity]]) -> dict[str, Names]:
    """List the attributes that these rules read of items of these entities, by table (None: all)."""
    found: dict[str, Names] = {}
    for rule, entity in dict.fromkeys(asked):
        table, paths = entity.table.name, rule.watches(entity)
        before = found.get(table, frozenset())
        found[table] = None if paths is None or before is None else before.union(path[0] for path in paths)
    return found


def list_uses_to_list(rule: Rule, moment: Moment) -> Iterator[Use]:
    """List the reads of a listing; none for a rule without a listing."""
    if rule.find is not None:
        why = f"every {format_entity_name(rule.listed_entity)} of one {format_entity_name(rule.anchor)}"
        yield Use(moment, Operation.QUERY, rule.listed_entity.table, why, rule.find.index)
        if rule.find.index is not None:
            yield Use(moment, Operation.READ, rule.listed_entity.table, "what the index lists, as it is now")


def list_uses_to_sweep(rule: Rule) -> Iterator[Use]:
    """List the scans that check what a rule keeps, then the descriptions of its tables, which come before the first
    scan.
    """
    for table in dict.fromkeys(entity.table for entity in rule.swept_entities):
        yield Use(Moment.SCANNED, Operation.SCAN, table, "all that it keeps")
    for table in dict.fromkeys((rule.source.table, rule.target.table)):
        yield Use(Moment.DESCRIBED, Operation.DESCRIBE, table, "that tables and indexes are as it needs them")


def make_check_use(rule: Rule, why: str = "") -> Use:
    """Return the Use of a ConditionCheck: a transaction of the rule checks that its source is unchanged."""
    why = f"{why}{format_entity_name(rule.source)} still is as it was read"
    return Use(Moment.WRITTEN, Operation.CHECK, rule.source.table, why)
