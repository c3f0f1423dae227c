"""Uses: what the pipeline does with tables and indexes for a rule, and when. Permissions follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from sync_rules.model.entities import Entity, Table


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


def name_of(entity: Entity) -> str:
    """An entity as people know it: those of the pipeline have names of their own."""
    words = {"ledger": "ledger entry", "total": "total", "rank": "ledger entry"}
    return words.get(entity.name.rpartition(".")[2], entity.name) if "." in entity.name else entity.name
