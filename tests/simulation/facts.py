"""A small world: the items there can be, and the facts that must be true of them.

Invariant: a `Fact` says a second time, in plain Python and without the core, what must be true, so that a fault in the
core cannot excuse itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sync_rules.model.values import AttributeValue, Item, Path

if TYPE_CHECKING:
    from tests.simulation.truths import Truth

Place = tuple[str, tuple[str, ...]]  # a table and the key values of one item
SOURCES, TARGETS = ("s0", "s1", "s2"), ("t0", "t1", "t2", "t3", "t4")
IMPOSSIBLE = ("x" * 1_100, "")  # links that name a key no item can have: too long for a sort key, and empty


@dataclass(frozen=True)
class Kind:
    """Items an application works with: their keys, what is true only here (`truths`), how they name sources (`links`),
    which copies they hold, and the other attributes the workload touches. `truth_values`: what the first truth is chosen
    from; none: every value is this item's own. `numbers`: the truths that are numbers. `first_links`: what the
    first link of each item is when a history begins. `sets`: the truths that are sets of texts. `made`: when a history
    begins, none of these items is there but what the pipeline would have made. `mixed`: the truths that are sometimes
    something that no rule can use.
    """

    table: str
    keys: tuple[Item, ...]
    truths: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    link_values: tuple[str, ...] = SOURCES
    copies: tuple[Path, ...] = ()
    rank: str | None = None
    flag: str | None = None
    truth_values: tuple[str | AttributeValue, ...] = ()
    numbers: tuple[str, ...] = ()
    first_links: tuple[str | None, ...] = ()
    sets: tuple[str, ...] = ()
    made: bool = False
    mixed: tuple[str, ...] = ()

    def places(self) -> tuple[Place, ...]:
        return tuple((self.table, tuple(value["S"] for value in key.values())) for key in self.keys)


@dataclass(frozen=True)
class Fact:
    """One rule as an observer states it. `link` gives the place of an item's source, None when it names none;
    `attached_by` are the attributes whose change puts a target into another place of the listing; `where_by` those of
    a target that `where` reads; `view` is what a rule sees of a source: its attributes and what its key says.
    `defaults` are, by copy, what stands where there is nothing to copy.
    """

    rule: str
    target: str  # the table; `applies` tells items of one table apart
    link: Callable[[Item], Place | None]
    pairs: tuple[tuple[Path, Path], ...]
    on_delete: str = "clear"
    snapshot: bool = False
    unlisted: bool = False  # nothing finds the targets of a source
    strict: bool = False
    where: Callable[[Item, Item], bool] | None = None
    attached_by: tuple[str, ...] = ()
    where_by: tuple[str, ...] = ()
    view: Callable[[Item], Item] = lambda item: item
    defaults: Mapping[Path, AttributeValue] = field(default_factory=dict)
    applies: Callable[[Place], bool] = lambda _place: True

    def speaks_of(self, target: Item) -> bool:
        """True if `where` holds for a target whose source is deleted."""
        return self.where is None or self.where({}, target)

    def goes_by(self, name: str) -> bool:
        """True if a rule that writes this attribute of a target changes the judgement of this fact."""
        return name in self.attached_by or name in self.where_by


@dataclass(frozen=True)
class Configuration:
    """One small world. `facts` are its copies, `truths` everything else. `indexed`: some listing goes through an index,
    which may lag; `attaching` are then the operations that may add a row to it or move one there, beside the usual.
    `exact_cost`: one write for every item that a change makes wrong; False: at most `cost_each` for each truth that
    speaks of it; None: nothing is known, for rules that build on each other write what is right for a moment only.
    """

    name: str
    rules: str
    kinds: tuple[Kind, ...]
    facts: tuple[Fact, ...] = ()
    truths: tuple[Truth, ...] = ()
    indexed: bool = False
    in_order: bool = True
    attaching: frozenset[str] = frozenset()
    exact_cost: bool | None = True
    cost_each: int = 1

    @property
    def plain(self) -> bool:
        """True if copies always equal their source, so that renames alone say everything about them."""
        return all(truth.plain for truth in self.truths) and all(
            not fact.snapshot and fact.where is None and not any(fact.goes_by(to[0]) for to in self.copies)
            for fact in self.facts
        )

    @property
    def copies(self) -> tuple[Path, ...]:
        return tuple(to for fact in self.facts for _, to in fact.pairs)


# ---------------------------------------------------------------- building blocks
def valued(given: str | AttributeValue) -> AttributeValue:
    """A value, of which texts are written in short."""
    return {"S": given} if isinstance(given, str) else given


def text(item: Item, name: str) -> str | None:
    value = item.get(name)
    return None if value is None else value.get("S")


def at(table: str, *names: str) -> Callable[[Item], Place | None]:
    """The place whose key values stand in these attributes of a target."""

    def place(item: Item) -> Place | None:
        values = tuple(value for name in names if (value := text(item, name)) is not None)
        return (table, values) if len(values) == len(names) else None

    return place


def keys(slots: tuple[str, ...], name: str, **fixed: str) -> tuple[Item, ...]:
    return tuple({**{key: {"S": value} for key, value in fixed.items()}, name: {"S": slot}} for slot in slots)
