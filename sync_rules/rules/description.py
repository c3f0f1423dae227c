"""The description of a rule: the answers that only tools need, such as permissions, `graph` and `check`.

No answer here decides what the pipeline writes: `rule.Rule` and the families have those. docs/contributing.md lists
each answer, who asks for it, and its default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.lookups import Link
from sync_rules.model.values import Item, Path
from sync_rules.model.where import Where

TypeOf = Callable[[Entity, Path], str | None]


class Operation(Enum):
    """An operation on a table. A transaction has one for each of its actions."""

    READ = auto()  # GetItem and BatchGetItem
    QUERY = auto()
    SCAN = auto()
    DESCRIBE = auto()
    CHECK = auto()  # a condition within a transaction
    DELETE = auto()
    PUT = auto()
    UPDATE = auto()
    UPDATES = auto()  # BatchExecuteStatement, or UpdateItem


class Moment(Enum):
    """The moment at which an operation is needed."""

    CHECKED = auto()  # the check of a target or part, besides the read of its own image
    HINTED = auto()  # a record of a source names a target, whose image the record lacks
    BY_KEY = auto()  # only the key of a target is known
    PRICED = auto()  # the image of a target came in a record, and its table has a limit of write units
    LISTED = auto()  # one item lists others: a source its targets, a node its edges
    SCANNED = auto()  # backfill and verify
    DESCRIBED = auto()  # the preflight checks keys and indexes
    WRITTEN = auto()  # a target differs from the rule
    DELETED = auto()  # a target is deleted with its source


@dataclass(frozen=True, slots=True)
class Use:
    """One operation on a table, or on one of its indexes, and why a rule needs it."""

    moment: Moment
    operation: Operation
    table: Table
    why: str
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Drawing:
    """An arrow for a rule, from the paths `reads` of its source to the paths `writes` of `to`. `to`: an entity, or a
    name outside the tables and its sort. `writes` is None if another rule of the same title writes them.
    """

    to: Entity | tuple[str, str]
    reads: tuple[Path, ...]
    writes: tuple[Path, ...] | None = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Connection:
    """The link of a rule: items of `pointing` name items of `named` by `link`. `reads`: the attributes of the rule's
    value, each with its entity. `conditions`: those of its conditions. `includes` is false for an item of `pointing`
    that a condition or a sparse index leaves out. `optional`: an item may name nothing.
    """

    pointing: Entity
    named: Entity
    link: Link
    reads: tuple[tuple[Entity, Path], ...]
    includes: Callable[[Item], bool]
    conditions: tuple[tuple[Entity, Path], ...] = ()
    optional: bool = False


class Description(ABC):
    """The answers of a rule that only tools ask for."""

    fills_index_keys = False  # `check` warns of a copy in an index's key, unless the rule exists to fill it
    transacts = False  # each write is a transaction

    @property
    @final
    def filters(self) -> Mapping[str, Where]:
        """The conditions of the rule, by their options in the rules file."""
        given = ((option, getattr(self, option, None)) for option in ("where", "omit"))
        return {option: where for option, where in given if isinstance(where, Where)}

    @property
    def always_writes(self) -> tuple[str, ...]:
        """The top-level attributes that this rule writes on every target, whatever else the target holds."""
        return ()

    def type_of(self, path: Path, known: TypeOf) -> str | None:
        """Return the DynamoDB type of the value at this path, one of `copies`; None if items decide. `known` gives the
        types of attributes.
        """
        return None

    @property
    def required_types(self) -> Mapping[Path, tuple[str, ...]]:
        """The DynamoDB types that fields of the source must have; a value of another type is parked."""
        return {}

    def list_defaults(self, item: Item) -> tuple[Path, ...]:
        """List the copies on this target whose value is the rule's default."""
        return ()

    @property
    def pull_only(self) -> bool:
        """True if nothing lists the targets of a source: a late source reaches them only by backfill or repair."""
        return False

    @property
    def snapshot(self) -> bool:
        """True if the copies are meant to outlive their source, and the rule itself."""
        return False

    @property
    def connection(self) -> Connection | None:
        """The link of the rule; None for a rule without one, and for a rule that reads its own books."""
        return None

    def draw(self) -> Drawing | None:
        """Return the arrow of the rule; None if the arrow of another rule includes it."""
        return None

    @abstractmethod
    def uses(self) -> Iterator[Use]:
        """List the operations on tables that the rule needs, in order within one moment."""

    @final
    def list_transaction_uses(self) -> Iterator[Use]:
        """List the writes and checks that the rule makes in transactions. Their tables must allow transactions."""
        uses = [use for use in self.uses() if use.operation is not Operation.READ]
        for moment in (Moment.WRITTEN, Moment.DELETED):
            of_moment = [use for use in uses if use.moment is moment]
            if self.transacts or any(use.operation is Operation.CHECK for use in of_moment):
                yield from of_moment

    @property
    def times_to_live(self) -> tuple[tuple[Table, str], ...]:
        """The tables that must delete items by Time to Live, each with the attribute that holds it."""
        return ()

    @property
    def calls_from_horizon(self) -> bool:
        """True if the rule also calls for changes from before its first deployment that the stream still holds."""
        return False


def format_entity_name(entity: Entity) -> str:
    """Format the name of an entity for people. Items of a ledger are called ledger entry or total."""
    words = {"ledger": "ledger entry", "total": "total", "rank": "ledger entry"}
    return words.get(entity.name.rpartition(".")[2], entity.name) if "." in entity.name else entity.name
