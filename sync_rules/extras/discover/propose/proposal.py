"""The outcome of a search for rules: entities, proposed rules with their evidence, and all candidates.

Invariant: nothing here is applied. It holds no value of an item, except in the conditions of rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sync_rules.cli.show.text import format_count
from sync_rules.extras.discover.imports.imported_model import FoundTable

Confidence = Literal["high", "medium", "low"]
Progress = Callable[[str, float], None]  # the stage that begins, and the share of the whole that is done, 0 to 1


@dataclass(frozen=True)
class ProposedEntity:
    """A kind of item by its name in the rules file. `key` has the template of each attribute of the table's key."""

    name: str
    table: str
    items: int
    key: Mapping[str, str]
    attributes: tuple[str, ...] = ()
    always: tuple[str, ...] = ()  # the attributes that each of its items has
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProposedTable:
    """A table by its name in the rules file, with the entities that were seen in it."""

    name: str
    found: FoundTable
    items: int
    entities: tuple[ProposedEntity, ...]
    checks: tuple[str, ...] = ()


@dataclass(frozen=True)
class MissingIndex:
    """An index without which the rule's targets cannot be listed: its table, its name, and its YAML on one line."""

    table: str
    name: str
    text: str


@dataclass(frozen=True)
class Proposed:
    """A rule, and what speaks for it.

    `rule` is its mapping in the rules file, such as `{"copy": "user.name", "into": "order.user_name"}`. `checked` are
    the targets that name a source which exists; `agree` and `differ` are parts of them, and `orphans` are not.
    `sources` are the different sources among them. `held_back` says why the rule is written as a comment; None for one
    that is written as a rule.
    """

    name: str
    kind: str
    rule: Mapping[str, Any]
    source: str  # the entity that holds the truth
    target: str  # the entity that holds what is derived
    checked: int
    agree: int
    differ: int
    confidence: Confidence
    examples: tuple[str, ...] = ()  # keys of items that differ, such as `order 10256`
    held_back: str | None = None
    index: MissingIndex | None = None
    required: tuple[str, ...] = ()  # attributes that each target has, and must have to be listed
    sources: int = 0
    orphans: int = 0
    remarks: tuple[str, ...] = ()
    overwrites: int = 0  # values that a backfill would replace or remove; it may set others

    @property
    def agreement(self) -> float:
        """The share of the checked targets that agree."""
        return self.agree / self.checked if self.checked else 0.0


@dataclass(frozen=True)
class Candidate:
    """A comparison: a target attribute and its possible sources, with the evidence for and against. `target` and
    `source` are an entity and a path, such as `order.user_name`. `rule` is the name of the rule or comment that it
    became; "" if it became neither.
    """

    target: str
    source: str
    kind: str
    rule: str = ""
    spoke_for: tuple[str, ...] = ()
    spoke_against: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def taken(self) -> bool:
        """True for what became a rule or a comment."""
        return bool(self.rule)


@dataclass(frozen=True)
class Link:
    """A way from items to others that their values name. `fields` are pairs: field of the source, path of the target.

    `held` is the share of the targets whose source exists; `reached` the share of the sources that a target names.
    """

    source: str
    target: str
    fields: tuple[tuple[str, str], ...]
    targets: int
    held: float
    reached: float


@dataclass(frozen=True)
class Proposal:
    """All that was found. `nothing_because` says in one sentence why there are no rules; "" if there are some.
    `without_items` are tables that are left out, because their exports have no items that would show the key.
    """

    tables: tuple[ProposedTable, ...]
    rules: tuple[Proposed, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    links: tuple[Link, ...] = ()
    nothing_because: str = ""
    without_items: tuple[str, ...] = ()

    @property
    def overwritten(self) -> str:
        """The values that a backfill of the rules would overwrite, by rule, in one line."""
        found = {one.name: one.overwrites for one in self.rules if one.held_back is None and one.overwrites}
        by_rule = ", ".join(f"{name} {count:,}" for name, count in sorted(found.items(), key=lambda one: -one[1]))
        total = format_count(sum(found.values()), "value")
        return f"What a backfill of this file would overwrite: {f'{total}: {by_rule}' if found else 'no value'}"

    @property
    def entities(self) -> tuple[ProposedEntity, ...]:
        return tuple(entity for table in self.tables for entity in table.entities)
