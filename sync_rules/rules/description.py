"""The description of a rule: every answer that tools ask for, and no answer that decides what is written.

Permissions, costs, `graph`, `check`, `explain`, `doctor`, `prune` and access patterns ask here. The consumer, a
backfill and verify never do: they ask `rule.Rule` and the family. Each answer but `uses` has a default, so that most
kinds give few. docs/contributing.md lists each answer, who asks for it and its default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from sync_rules.model.entities import Entity, Table
from sync_rules.model.item_change import When
from sync_rules.model.lookups import Link
from sync_rules.model.values import Item, Path
from sync_rules.model.where import Where

TypeOf = Callable[[Entity, Path], str | None]
Paths = tuple[Path, ...] | None  # those that an update changed; None: not known, or the item came or went


# ---------------------------------------------------------------- permissions
class Operation(Enum):
    """An operation on a table. A transaction is made of those of its parts, each on the table of its part."""

    READ = auto()  # items by their keys
    QUERY = auto()
    SCAN = auto()
    DESCRIBE = auto()
    CHECK = auto()  # a condition within a transaction
    DELETE = auto()
    PUT = auto()
    UPDATE = auto()
    UPDATES = auto()  # many at a time as statements, or one


class Moment(Enum):
    """The moment at which an operation is needed."""

    CHECKED = auto()  # whenever a target or a part is checked: all that is read but its own image
    HINTED = auto()  # a record of a source names a target, whose image only other records have
    BY_KEY = auto()  # only the key of a target is known
    PRICED = auto()  # the image of a target came in a record, and its table has a limit of write units
    LISTED = auto()  # one item lists others: a source its targets, a node its edges
    SCANNED = auto()  # everything that a rule keeps is looked at
    DESCRIBED = auto()  # keys and indexes are looked at before anything is done
    WRITTEN = auto()  # something is not as the rule says
    DELETED = auto()  # a target goes with its source, which only the record of the source asks for


@dataclass(frozen=True, slots=True)
class Use:
    """One operation on a table, or on one of its indexes, and why a rule needs it."""

    moment: Moment
    operation: Operation
    table: Table
    why: str
    index: str | None = None


# ---------------------------------------------------------------- costs
class Occasion(Enum):
    """An event that a rule acts on."""

    SOURCE = auto()  # a source came, went, or changed in what the rule reads of it
    TARGET = auto()  # a target came, or names another source


@dataclass(frozen=True, slots=True)
class Effort:
    """The work for one target, in times of whole items: how many times the units of a whole target, or of the source,
    are written and read. A write in a transaction counts twice, and `transactions` says how many of the writes those
    are. The pages of docs/rules state the same in words, and tests count it at the store.

    `listings`: how many times everything is listed that the target is made of. `ledger_writes`, `ledger_reads` are
    units, of the pipeline's own small items. `of_all`: every target of the source is looked at, found by its listing.
    `moves`: two targets are concerned, an old one and a new one. `each`: the numbers are for each target that the
    source has, together with those for the source. `comes`: a target that is written is a new item. `taken`: an
    assumption, in a sentence.
    """

    target_writes: int = 0
    source_writes: int = 0
    ledger_writes: int = 0
    target_reads: int = 0
    source_reads: int = 0
    ledger_reads: int = 0
    listings: int = 0
    transactions: int = 0
    of_all: bool = False
    moves: bool = False
    each: bool = False
    comes: bool = False
    taken: str = ""


# ---------------------------------------------------------------- drawings, links, places
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


@dataclass(frozen=True)
class Connection:
    """Items of `pointing` name items of `named` by `link`. `reads` has the attributes that make the rule's value, each
    with the entity whose items hold it, and `conditions` those that its conditions read. `includes` is false for an
    item of `pointing` that the rule leaves out, by its own condition or because a sparse index lacks it. `optional`: an
    item that names nothing is an ordinary item.
    """

    pointing: Entity
    named: Entity
    link: Link
    reads: tuple[tuple[Entity, Path], ...]
    includes: Callable[[Item], bool]
    conditions: tuple[tuple[Entity, Path], ...] = ()
    optional: bool = False


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


class Description(ABC):
    """The answers of a rule that tools ask for."""

    fills_index_keys = False  # the rule exists to fill the keys of indexes: `check` does not warn of a copy in one
    transacts = False  # each write is a transaction, also one that checks no other item

    @property
    @final
    def filters(self) -> Mapping[str, Where]:
        """The conditions that say which items the rule speaks of, by their options in the rules file."""
        given = ((option, getattr(self, option, None)) for option in ("where", "omit"))
        return {option: where for option, where in given if isinstance(where, Where)}

    # ---------------------------------------------------------------- values
    @property
    def always_writes(self) -> tuple[str, ...]:
        """The top-level attributes that every target has by this rule, whatever else it holds."""
        return ()

    def type_of(self, path: Path, known: TypeOf) -> str | None:
        """The DynamoDB type of what the rule writes at one of its `copies`; None where that depends on the items.
        `known` gives the type of another attribute.
        """
        return None

    @property
    def takes(self) -> Mapping[Path, tuple[str, ...]]:
        """The DynamoDB types that a field of the source must have; of any other type it is refused at run time."""
        return {}

    def defaulted(self, item: Item) -> tuple[Path, ...]:
        """The copies on this target whose value is the rule's default."""
        return ()

    @property
    def pull_only(self) -> bool:
        """True if nothing lists the targets of a source, so that no record of a source is a push. A source that comes
        after its targets reaches them by a backfill or a repair alone.
        """
        return False

    @property
    def snapshot(self) -> bool:
        """True if the copies are meant to outlive their source, and the rule itself."""
        return False

    # ---------------------------------------------------------------- links and arrows
    @property
    def connection(self) -> Connection | None:
        """The link of the rule; None for a rule without one, and for one whose link starts at its own books."""
        return None

    @property
    def named_by(self) -> tuple[str, ...]:
        """The fields of a target that name its one source; none where a target has several, or is its own source."""
        return ()

    def drawn(self) -> Drawing | None:
        """The rule as an arrow; None where the arrow of another rule shows it."""
        return None

    # ---------------------------------------------------------------- needs of the account
    @abstractmethod
    def uses(self) -> Iterator[Use]:
        """Everything that is done with tables for the rule. The operations of one moment are in order."""

    @final
    def transacting(self) -> Iterator[Use]:
        """The writes and checks that go into transactions. The tables of all of them must allow transactions."""
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
    def archive(self) -> ArchivePlace | None:
        """The place in S3 where the rule keeps objects, if it does."""
        return None

    @property
    def calls_from_horizon(self) -> bool:
        """True if it calls for all changes that a stream still holds, and not from its first deployment on."""
        return False

    # ---------------------------------------------------------------- costs
    def follows(self, when: When) -> bool:
        """True if such a change of a source may be one that the rule acts on."""
        return True

    def effort(self, occasion: Occasion, paths: Paths = None) -> Effort | None:
        """The work that one such event takes; None: none. `paths`: those that an update changed, None where the item
        came or went, or where that is not known.
        """
        return None


def name_of(entity: Entity) -> str:
    """An entity as people know it: those of the pipeline have names of their own."""
    words = {"ledger": "ledger entry", "total": "total", "rank": "ledger entry"}
    return words.get(entity.name.rpartition(".")[2], entity.name) if "." in entity.name else entity.name
