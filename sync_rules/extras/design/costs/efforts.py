"""The effort of each kind of rule: the writes and reads that one event takes. Tests count the same at the store. A kind
that this module does not name takes no work.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from functools import singledispatch

from sync_rules.model.item_change import When
from sync_rules.model.values import Path, has_overlap, show_path
from sync_rules.rules.kinds.booked_rule import BookedRule
from sync_rules.rules.kinds.call import CallRule
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.kinds.history import HistoryRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.kinds.rank import RankedRule
from sync_rules.rules.kinds.recount import RecountRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from sync_rules.rules.rule import Rule

Paths = tuple[Path, ...] | None  # that an update changed; None: unknown, or the item was created or deleted


class Occasion(Enum):
    """An event that a rule acts on."""

    SOURCE = auto()  # a source is created, deleted, or changed at a path that the rule reads
    TARGET = auto()  # a target is created, or names another source


@dataclass(frozen=True, slots=True)
class Effort:
    """The work for one target: how often a whole target or source is written and read. A write in a transaction counts
    twice, and `transactions` is the number of such writes. `listings`: listings of all members of the target.
    `ledger_writes`, `ledger_reads`: units, of the pipeline's own small items. `of_all`: the work is for every target
    that the source lists. `moves`: an old and a new target are written. `each`: the numbers are for each target of
    the source. `comes`: a written target is a new item. `taken`: an assumption, as a sentence.
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


def follows(rule: Rule, when: When) -> bool:
    """Return True if the rule may act on such a change of a source."""
    return not isinstance(rule, CallRule) or when in rule.when


@singledispatch
def find_effort(_rule: Rule, _occasion: Occasion, _paths: Paths = None) -> Effort | None:
    """Return the work that a rule causes for one event of this occasion; None for no work. `_paths` are the paths that
    an update changed.
    """
    return None


@find_effort.register
def _(rule: CallRule, occasion: Occasion, paths: Paths = None) -> Effort | None:
    """The table that remembers calls is written before and after each."""
    unwatched = (
        paths is not None and rule.watch and not any(has_overlap(a, b) for a in paths for b in rule.watched_paths)
    )
    return Effort(ledger_writes=2) if occasion is Occasion.SOURCE and not unwatched else None


@find_effort.register
def _(rule: CollectRule, occasion: Occasion, paths: Paths = None) -> Effort:
    """A write of the node, without or with a check of the edge; node and edge are read twice. An element that changes
    goes out and in. A node that came lists its edges.
    """
    if occasion is Occasion.TARGET:
        return Effort(listings=1 if rule.find is None or rule.find.index is None else 2)
    if paths is not None:
        writes, checks = (4, 4) if rule.strict else (2, 0)
        return Effort(writes, checks, target_reads=2, source_reads=2, transactions=writes + checks if checks else 0)
    if rule.strict:
        return Effort(2, 2, target_reads=2, source_reads=2, transactions=4)
    return Effort(target_writes=1, target_reads=2, source_reads=2)


@find_effort.register
def _(_rule: DeriveRule, occasion: Occasion, _paths: Paths = None) -> Effort | None:
    """A write of the item: its record shows all that is needed."""
    return None if occasion is Occasion.TARGET else Effort(target_writes=1)


@find_effort.register
def _(rule: GatheredRule, occasion: Occasion, _paths: Paths = None) -> Effort:
    """A write of the target, and two looks at all its members; through an index a third one, later. A target that
    came is looked at, too.
    """
    looks = 2 if rule.find is None or rule.find.index is None else 3
    if occasion is Occasion.SOURCE:
        return Effort(target_writes=1, target_reads=1, listings=looks)
    return Effort(listings=looks - 1)


@find_effort.register
def _(rule: RecountRule, occasion: Occasion, _paths: Paths = None) -> Effort | None:
    """One item is read where an end of the list is enough, and the mark of the books."""
    if not rule.ends:
        gathered: Effort | None = find_effort.dispatch(GatheredRule)(rule, occasion)
        return gathered
    if occasion is Occasion.SOURCE:
        return Effort(target_writes=1, target_reads=1, ledger_reads=6)
    return Effort(ledger_reads=2)


@find_effort.register
def _(_rule: HistoryRule, occasion: Occasion, _paths: Paths = None) -> Effort | None:
    """A write of the version; versions and item are read before it, and for its own record."""
    if occasion is Occasion.TARGET:
        return None
    return Effort(target_writes=1, target_reads=3, source_reads=1, comes=True)


@find_effort.register
def _(rule: LinkedRule, occasion: Occasion, _paths: Paths = None) -> Effort | None:
    """One write of each target. The record of a new target and the record of that write each read the source."""
    times, checked = (2, 2) if rule.strict else (1, 0)
    if occasion is Occasion.SOURCE:
        return None if rule.pull_only else Effort(times, checked, transactions=times + checked - 1, of_all=True)
    return Effort(times, checked, source_reads=2, transactions=times + checked - 1)


@find_effort.register
def _(_rule: TreeRule, occasion: Occasion, paths: Paths = None) -> Effort | None:
    """An item is written once; its parent is read for each of its two records, and its own children are listed."""
    if occasion is Occasion.SOURCE:
        return None
    moves = "an item that gets another parent or name is taken to have nothing below it: that would be rewritten"
    return Effort(target_writes=1, source_reads=2, ledger_reads=1, taken=moves if paths is not None else "")


@find_effort.register
def _(rule: MirrorRule, occasion: Occasion, paths: Paths = None) -> Effort | None:
    """A transaction of the mirror and its source, both read twice; of two mirrors if one moves."""
    if occasion is Occasion.TARGET:
        return None
    each = rule.each is not None
    if rule.each is not None and paths is not None and any(has_overlap(path, rule.each[1]) for path in paths):
        taken = f"an update of {show_path(rule.each[1])} is taken to change one element of it"
        return Effort(4, 2, target_reads=4, source_reads=2, transactions=6, taken=taken)
    keys = [ref.path for field, ref in rule.fields if field in rule.target.identity]
    if paths is not None and any(has_overlap(path, key) for path in paths for key in keys):
        return Effort(4, 2, target_reads=4, source_reads=2, transactions=6, each=each)
    return Effort(2, 2, target_reads=2, source_reads=2, transactions=4, each=each)


@find_effort.register
def _(rule: RankedRule, occasion: Occasion, paths: Paths = None) -> Effort | None:
    """A transaction of the entry and a check of the child; both are read twice, the mark of the books, too."""
    if occasion is Occasion.TARGET:
        return None
    taken = _describe_elements(rule)
    if paths is not None:  # its place is another one
        return Effort(source_writes=2, ledger_writes=4, transactions=6, source_reads=2, ledger_reads=5, taken=taken)
    return Effort(source_writes=2, ledger_writes=2, transactions=4, source_reads=2, ledger_reads=3, taken=taken)


@find_effort.register
def _(rule: TallyRule, occasion: Occasion, paths: Paths = None) -> Effort | None:
    """A transaction of the entry and the total; entry and child are read twice, the mark of the books, too."""
    if occasion is Occasion.TARGET:
        return None
    taken = _describe_elements(rule)
    if paths is not None and any(
        has_overlap(path, ref.path) for path in paths for _, ref in rule.link
    ):  # another parent
        units = 6 if rule.each is None else 8  # an entry is written again, or one goes and another comes
        return Effort(ledger_writes=units, transactions=units, source_reads=2, ledger_reads=3, moves=True, taken=taken)
    return Effort(ledger_writes=4, transactions=4, source_reads=2, ledger_reads=5, taken=taken)


def _describe_elements(rule: BookedRule) -> str:
    """The assumption about the groups of an item, for a rule with several; "" for others."""
    return "" if rule.each is None else f"{show_path(rule.each.path)} is taken to have one element, or to change one"


@find_effort.register
def _(_rule: TotalRule, occasion: Occasion, _paths: Paths = None) -> Effort:
    """A write of the parent, by its total, which is read twice with the mark of the books."""
    if occasion is Occasion.TARGET:
        return Effort(ledger_reads=2)
    return Effort(target_writes=1, target_reads=1, ledger_reads=4)
