"""The effort of a rule: what it reads and writes for one event, in times of whole items. Costs follow from it.

The pages of docs/rules state the same in words, and tests count it at the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from sync_rules.model.values import Path

Paths = tuple[Path, ...] | None  # those that an update changed; None: not known, or the item came or went


class Occasion(Enum):
    """An event that a rule acts on."""

    SOURCE = auto()  # a source came, went, or changed in what the rule reads of it
    TARGET = auto()  # a target came, or names another source
    BACKFILL = auto()  # a first backfill makes a target, or the parts of a source


@dataclass(frozen=True, slots=True)
class Effort:
    """The work for one target: how many times the units of a whole target, or of the source, are written and read. A
    write in a transaction counts twice, and `transactions` says how many of the writes those are.

    `listings`: how many times everything is listed that the target is made of. `ledger_writes`, `ledger_reads` are
    units, of the pipeline's own small items. `of_all`: every target of the source is looked at, found by its listing.
    `moves`: two targets are concerned, an old one and a new one. `each`: what is said of a target is so for each target
    that the source has, together with what is said of the source. `comes`: a target that is written is a new item.
    `taken`: what is taken to be so, in a sentence.
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
