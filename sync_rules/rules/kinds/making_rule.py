"""Rules that show a number from books on their target. They make the target too, if rules alone make its entity.

Invariant: such an item exists if any of these rules has a member of it. It holds its key, the index keys that follow
from its key, and what rules write. An item with anything else is never removed, because another program wrote that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from sync_rules.model.entities import Entity
from sync_rules.model.sizes import find_index_key_limits, fit_value
from sync_rules.model.values import AttributeValue, Item, Path, drop_path
from sync_rules.model.writes import Desired
from sync_rules.rules.description import Moment, Operation, Use, format_entity_name
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import AttributeRef, Blocked, Node, Rule

UNEXPECTED: Final = Blocked("UnexpectedAttribute")


@dataclass(frozen=True, eq=False, kw_only=True)
class MakingRule(TargetRule):
    """A rule that shows a number from books, and makes its targets if only rules make them. `beside`: the other rules
    that write on the same items.
    """

    beside: tuple[Rule, ...] = field(default=(), repr=False)

    @property
    def makes(self) -> bool:
        return self.books is not None and self.target.made

    def list_makers_beside(self) -> tuple[TargetRule, ...]:
        return tuple(rule for rule in self.beside if isinstance(rule, TargetRule) and rule.makes)

    def adapt_to(self, others: Iterable[Rule]) -> Self:
        return replace(self, beside=tuple(one for one in others if one.target is self.target)) if self.makes else self

    def watches(self, entity: Entity) -> tuple[Path, ...] | None:
        return None if self.makes and entity is self.target else super().watches(entity)

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        return (self.target,) if self.makes else ()

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        """The targets, and for a rule that makes them the books, which name items that are missing."""
        return (self.target, self.source) if self.makes else super().swept_entities

    def make_nodes(self, reads: tuple[AttributeRef, ...]) -> tuple[Node, ...]:
        """Make a node for the number, and a node for each key attribute of an item that the rule makes."""
        keys = tuple((key.name,) for key in self.target.table.key) if self.makes else ()
        return tuple(Node(self, (self.target, path), reads) for path in (*self.copies, *keys))

    def making_body(self) -> Mapping[str, object]:
        return {"makes": True} if self.makes else {}

    def make_index_keys(self, item: Item) -> Desired:
        """Make the index keys of a made item whose templates follow from its key."""
        found: dict[Path, AttributeValue | None] = {}
        key = self.target.table.key_of(item) if self.makes else None
        fields = (key and self.target.fields(key)) or {}
        for name, (kind, max_bytes) in find_index_key_limits(self.target.table).items() if key else ():
            template = self.target.templates.get(name)
            if template and fields.keys() >= set(template.fields) and self.target.drop_key_paths([(name,)]):
                found[(name,)] = fit_value(template.build(fields, kind), max_bytes)
        return found

    def find_unexpected_attribute(self, item: Item) -> Blocked | None:
        """Return why a made item is not removed: it holds something that neither rules nor its key make. None if it may
        be removed.
        """
        keys = ((attribute.name,) for attribute in self.target.table.key)
        written = (path for rule in (self, *self.beside) for path in rule.puts)
        for path in (*keys, *self.make_index_keys(item), *written):
            item = drop_path(item, path)
        return UNEXPECTED if item else None

    def list_uses_to_read(self) -> Iterator[Use]:
        yield from super().list_uses_to_read()
        if self.makes:
            why = f"{format_entity_name(self.target)}, which may be missing"
            yield Use(Moment.CHECKED, Operation.READ, self.target.table, why)

    def list_uses_to_write(self) -> Iterator[Use]:
        yield from super().list_uses_to_write()
        if self.makes:
            name, table = format_entity_name(self.target), self.target.table
            yield Use(Moment.WRITTEN, Operation.PUT, table, f"{name}, with its first member")
            yield Use(Moment.WRITTEN, Operation.DELETE, table, f"{name}, without members")
