"""A rules file as the prover reads it."""

from __future__ import annotations

from dataclasses import dataclass

from sync_rules.extras.design.patterns.answers import ProvedRequest, Request, Term, batches_of
from sync_rules.extras.design.patterns.declarations import design_of
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
            Term(self.makers.best(entity, attribute, frozenset(entity.identity)), "equals", entity.identity)
            for attribute in entity.table.key
        )
        return ProvedRequest(request, entity, terms=terms, items=1, size_bytes=self.size_of(entity))

    def batch_read(
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
        """A read of `items` items whose keys an earlier request shows; None if the number is unknown."""
        return ProvedRequest(
            "GetItem" if one else "BatchGetItem",
            entity,
            projects=projects,
            follows=follows,
            filters=filters,
            consistent=consistent,
            requests=batches_of(items),
            items=items,
            size_bytes=self.size_of(entity),
        )

    # ------------------------------------------------------------ facts
    def size_of(self, entity: Entity) -> int | None:
        """The stated size of an item, in bytes."""
        volume = design_of(self.rules).volumes.get(entity.name)
        return None if volume is None else volume.size_bytes

    def count_of(self, entity: Entity) -> int | None:
        volume = design_of(self.rules).volumes.get(entity.name)
        return None if volume is None else volume.items

    def list_required_attributes(self, entity: Entity) -> frozenset[str]:
        """The attributes that every item of an entity has, as the file states it, or by a rule."""
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
