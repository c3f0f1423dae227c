"""Mutants of the sieve: what a rule goes by, left out of what it watches, so that records are dropped unread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sync_rules.rules.families import TargetRule
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.kinds.values import ValueRule
from sync_rules.rules.rule import Rule
from tests.simulation.breaking import Mutant, Mutation, replacing
from tests.simulation.worlds import small


def unwatched(kind: type[Rule], *, source: bool = False) -> Mutant:
    """Mutant: rules of a kind watch nothing of their source, or nothing of other items."""
    original = kind.watches

    def watches(rule: Any, entity: Any) -> Any:
        return () if (entity is rule.source) is source else original(rule, entity)

    return replacing(kind, "watches", watches)


MUTANTS: Mapping[str, Mutation] = {
    "source not watched": Mutation(unwatched(LinkedRule, source=True)),
    "target not watched": Mutation(unwatched(TargetRule)),
    "derived item not watched": Mutation(unwatched(DeriveRule, source=True), small("", "derive")),
    "member not watched": Mutation(unwatched(GatheredRule, source=True), small("", "embed", "count-ranked")),
    "parent not watched": Mutation(unwatched(GatheredRule), small("", "embed", "count-ranked")),
    "counted child not watched": Mutation(unwatched(TallyRule, source=True), small("", "count")),
    "ranked child not watched": Mutation(unwatched(RankRule, source=True), small("", "ranked")),
    "child with a value not watched": Mutation(unwatched(ValueRule, source=True), small("", "values")),
    "edge not watched": Mutation(unwatched(CollectRule, source=True), small("", "collect")),
    "node not watched": Mutation(unwatched(CollectRule), small("", "collect")),
    "mirrored item not watched": Mutation(unwatched(MirrorRule, source=True), small("", "mirror")),
    "mirror not watched": Mutation(unwatched(MirrorRule), small("", "mirror")),
}
