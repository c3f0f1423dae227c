"""A rules file as the prover reads it."""

from __future__ import annotations

from dataclasses import dataclass

from sync_rules.extras.design.patterns.answers import ProvedRequest, Request, Term, count_batches
from sync_rules.extras.design.patterns.declarations import find_design
from sync_rules.extras.design.patterns.key_makers import Makers
from sync_rules.model.entities import Entity
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class ProofInput:
    """Rules, and what makes their key attributes."""

    rules: Rules
    makers: Makers

    @classmethod
    def of(cls, rules: Rules) -> ProofInput:
        return cls(rules, Makers(rules))

    # ------------------------------------------------------------ requests
    def by_key(self, entity: Entity, request: Request) -> ProvedRequest:
        terms = tuple(
            Term(self.makers.choose_maker(entity, attribute, frozenset(entity.identity)), "equals", entity.identity)
            for attribute in entity.table.key
        )
        return ProvedRequest(request, entity, terms=terms, items=1, size_bytes=self.find_size(entity))

    def make_batch_read(
        self,
        entity: Entity,
        items: int | None,
        follows: str,
        projects: tuple[str, ...] | None = None,
        *,
        one: bool = False,
        consistent: bool = False,
        filters: str = "",
    ) -> ProvedRequest:
        """Make a read of `items` items whose keys an earlier request shows; None if the number is unknown."""
        return ProvedRequest(
            "GetItem" if one else "BatchGetItem",
            entity,
            projects=projects,
            follows=follows,
            filters=filters,
            consistent=consistent,
            requests=count_batches(items),
            items=items,
            size_bytes=self.find_size(entity),
        )

    # ------------------------------------------------------------ facts
    def find_size(self, entity: Entity) -> int | None:
        """Return the stated size of an item, in bytes; None if not stated."""
        volume = find_design(self.rules).volumes.get(entity.name)
        return None if volume is None else volume.size_bytes

    def find_item_count(self, entity: Entity) -> int | None:
        volume = find_design(self.rules).volumes.get(entity.name)
        return None if volume is None else volume.items

    def list_required_attributes(self, entity: Entity) -> frozenset[str]:
        """List the attributes that every item of an entity has, by the file's statement or by a rule."""
        given = (name for rule in self.rules.into_target(entity) for name in rule.always_writes)
        return frozenset((*entity.required, *given, *(attribute.name for attribute in entity.table.key)))

    def list_watched_attributes(self, entity: Entity) -> frozenset[str]:
        """The attributes of an entity that rules read or keep."""
        rules = (*self.rules.into_target(entity), *self.rules.from_source(entity))
        return frozenset(path[0] for rule in rules for path in rule.watches(entity) or () if path)

    def list_known_attributes(self, entity: Entity) -> frozenset[str]:
        """The attributes and fields that items of an entity have, as far as the file says."""
        keys = (attribute.name for attribute in entity.table.key_attributes)
        return self.list_watched_attributes(entity) | {
            *entity.identity,
            *entity.bound_fields,
            *self.list_required_attributes(entity),
            *keys,
        }
