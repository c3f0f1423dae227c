"""Access patterns as a rules file declares them: the application's requests, and their rates.

Invariant: a pattern changes nothing that the pipeline does. No fingerprint depends on a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sync_rules.model.values import AttributeValue
from sync_rules.model.where import Where
from sync_rules.rules.ruleset import Rules

RangeForm = Literal["between", "at_least", "at_most", "begins_with"]
Direction = Literal["under", "above", "children"]
Operation = Literal["put", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Volume:
    """The statements of a file about an entity: the size of an item in bytes, and the number of items."""

    size_bytes: int | None = None
    items: int | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """A range of one attribute. Each call gives its ends."""

    attribute: str
    form: RangeForm


@dataclass(frozen=True, kw_only=True)
class OfEntity:
    """A pattern that names one entity."""

    entity: str

    @property
    def entities(self) -> tuple[str, ...]:
        return (self.entity,)


@dataclass(frozen=True, kw_only=True)
class StatedPattern:
    """The part that all patterns share. `rate` is in calls per second. `busiest`: the share of the calls that asks for
    the same key, from 0 to 1. The last three are for people alone.
    """

    name: str
    rate: float | None = None
    busiest: float | None = None
    description: str = ""
    priority: str = ""
    peak_hours: str = ""


@dataclass(frozen=True, kw_only=True)
class ReadPattern(StatedPattern):
    """The part that all reads share. `returns`: the attributes that are needed, None for all; an attribute of another
    entity is `user.name`. `rate` is in calls per second, `page` in items per request; `items` counts all items that
    one call finds. `busiest`: the share of the calls for the same key, from 0 to 1.
    """

    returns: tuple[str, ...] | None = None
    page: int | None = None
    items: int | None = None

    @property
    def page_items(self) -> int | None:
        """The items of one page: no more than a call finds in all; None if neither is stated."""
        return min((number for number in (self.page, self.items) if number is not None), default=None)


@dataclass(frozen=True, kw_only=True)
class GetPattern(OfEntity, ReadPattern):
    """Items of one entity. `by` are the fields that each call gives; `fixed` the fields that the condition `where` sets
    to a value. `keeps`: the share of the items that meet the condition, from 0 to 1. `keys`: the number of items
    that a call reads by their keys. `beside`: other entities whose items the same Query finds.
    """

    beside: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    within: Range | None = None
    order: str | None = None
    backward: bool = False
    one: bool = False
    keys: int | None = None
    where: Where | None = None
    fixed: tuple[tuple[str, AttributeValue], ...] = ()
    keeps: float | None = None
    consistent: bool = False
    via: str | None = None

    @property
    def entities(self) -> tuple[str, ...]:
        return (self.entity, *self.beside)


@dataclass(frozen=True, kw_only=True)
class GraphPattern(ReadPattern):
    """The nodes that edges lead to from one item, of the entity `start`, in the order of the edges' sort key. `within`
    narrows that key to a text, by `at_least` or `begins_with`. `neighbours`: the entities around each node, read
    too. `link` maps fields, or key attributes, of start and neighbours to the fields of the edge that hold them, if
    the names differ.
    """

    node: str
    start: str
    edge: str
    within: tuple[RangeForm, str] | None = None
    backward: bool = False
    neighbours: tuple[str, ...] = ()
    link: tuple[tuple[str, str], ...] = ()
    via: str | None = None

    @property
    def entities(self) -> tuple[str, ...]:
        return (self.node, self.start, self.edge, *self.neighbours)


@dataclass(frozen=True, kw_only=True)
class TreePattern(OfEntity, ReadPattern):
    """Items of a hierarchy, around the item that `field` names: those under it, above it, or its children. `depth`: the
    greatest number of levels down. `itself`: include that item.
    """

    direction: Direction
    field: str
    depth: int | None = None
    itself: bool = False


@dataclass(frozen=True, kw_only=True)
class SearchPattern(OfEntity, ReadPattern):
    """The `top` items of an entity whose vectors are nearest to a vector that each call gives. Each call also gives a
    value for each of `by`: attributes of the items, or of an entity that they name. `via`: the vector index.
    """

    by: tuple[str, ...] = ()
    top: int | None = None
    via: str | None = None
    one = False
    consistent = False


@dataclass(frozen=True, kw_only=True)
class WritePattern(OfEntity, StatedPattern):
    """Writes of the application to items of one entity, `rate` per second. `sets`: the attributes that an update sets,
    None: not stated. `busiest`: as with reads.
    """

    operation: Operation
    sets: tuple[str, ...] | None = None


Pattern = GetPattern | GraphPattern | TreePattern | SearchPattern | WritePattern


@dataclass(frozen=True)
class Design:
    """The patterns of a file by their names, and the volumes that it states by entity."""

    patterns: Mapping[str, Pattern] = field(default_factory=dict)
    volumes: Mapping[str, Volume] = field(default_factory=dict)


def find_design(rules: Rules) -> Design:
    """Return the design of a file; an empty design if the file has no patterns and volumes."""
    found = rules.sections.get("patterns")
    return found if isinstance(found, Design) else Design()
