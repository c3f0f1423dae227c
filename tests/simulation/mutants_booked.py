"""Mutants of count, sum, min, max and values with a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

from sync_rules.model.writes import Delete, Increment, Put, Transaction
from sync_rules.pipeline import joint_writes, parts
from sync_rules.rules.kinds import counted_rule, tally, values
from sync_rules.rules.kinds.counted_rule import Weights
from sync_rules.rules.kinds.rank import RankPlace, RankRule
from sync_rules.rules.kinds.recount import RecountRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from sync_rules.rules.kinds.values import ValueRule, ValuesRule
from sync_rules.rules.rule import Blocked
from tests.simulation.breaking import Mutant, Mutation, replacing
from tests.simulation.mutants_parts import ALWAYS, judged, kept, no_parts_of_target, only_new, parts_from, without_check
from tests.simulation.worlds import among, small

BOOKED, RANKED, VALUED = small("", "count"), small("", "ranked"), small("", "values")
WEIGHTS = among("", "booked-weights")


def entry_unguarded(write: Any) -> Any:
    """An entry is written whatever it says by now."""
    actions = (replace(one, guard=ALWAYS) if isinstance(one, (Put, Delete)) else one for one in write.actions)
    return Transaction(tuple(actions))


@contextmanager
def two_writes() -> Iterator[None]:
    """The totals move in one write, the entry is made in another."""
    original = parts.join_writes

    def join_writes(wanted: Any) -> Any:
        for joint in original(wanted):
            actions = joint.write.actions if isinstance(joint.write, Transaction) else ()
            totals = tuple(one for one in actions if isinstance(one, Increment))
            others = tuple(one for one in actions if not isinstance(one, Increment))
            if not totals:
                yield joint
                continue
            yield replace(joint, write=Transaction(others))
            yield replace(joint, write=Transaction(totals))

    with patch.object(parts, "join_writes", lambda wanted: list(join_writes(wanted))):
        yield


def old_total_kept() -> Any:
    """Mutant: a changed child's earlier contribution is not subtracted."""
    original = tally._compute_moves
    return patch.object(tally, "_compute_moves", lambda _held, wanted, **options: original(None, wanted, **options))


def troubled_kept(rule_type: Any, shares: Callable[[Any, Any, Any], Any]) -> Mutant:
    """Mutant: a child that can no longer be counted stays counted."""
    original = rule_type.write_for

    def write_for(rule: Any, part: Any, target: Any, source: Any) -> Any:
        there = target is not None and source is not None
        if there and any(isinstance(one, Blocked) for one in shares(rule, part, source)):
            return None
        return original(rule, part, target, source)

    return replacing(rule_type, "write_for", write_for)


def never(*_args: Any) -> bool:
    return False


def none(*_args: Any) -> tuple[()]:
    return ()


def one_shard() -> Any:
    """Mutant: only the first of several shards of a total is read."""
    original = TotalRule.source_keys
    return patch.object(TotalRule, "source_keys", lambda rule, target: original(rule, target)[:1] * rule.shards)


def unsummed(one: Increment, _two: Increment) -> Increment:
    """Mutant: the second of two increments of one total is lost."""
    return one


def nothing_for_nothing() -> Any:
    """Mutant: a child without the attribute that weighs it counts nothing."""
    original = Weights.of
    return patch.object(Weights, "of", lambda one, value: Decimal(0) if value is None else original(one, value))


def first_end_only() -> Any:
    """Mutant: the first few items are listed from the beginning, whichever end is asked for."""
    original = ValuesRule.members

    def members(rule: Any, key: Any, target: Any) -> Any:
        found = original(rule, key, target)
        return found and replace(found, backward=False)

    return patch.object(ValuesRule, "members", members)


def present_kept() -> Any:
    """Mutant: a child that has an item keeps what the item holds."""
    original = ValueRule.write_for

    def write_for(rule: Any, part: Any, target: Any, source: Any) -> Any:
        wanted = original(rule, part, target, source)
        puts = isinstance(wanted, Transaction) and isinstance(wanted.actions[-1], Put)
        return None if puts and target is not None else wanted

    return patch.object(ValueRule, "write_for", write_for)


def where_it_was(rule: Any, change: Any, entity: Any, original: Any) -> Any:
    """A child that keeps its place is not looked at, though its fields may differ."""
    before, now = (
        [one.key for one in rule._places(change.key, image) if entity is rule.source and isinstance(one, RankPlace)]
        for image in (change.old, change.new)
    )
    if before and before == now:
        return []
    return original(rule, change, entity)


MUTANTS: Mapping[str, Mutation] = {
    # count and sum
    "count: entry unguarded": Mutation(judged(TallyRule, entry_unguarded), BOOKED),
    "count: totals outside the transaction": Mutation(two_writes, BOOKED),
    "count: old total kept": Mutation(old_total_kept, BOOKED),
    "count: entries not looked at again": Mutation(parts_from(TallyRule, no_parts_of_target), BOOKED),
    "count: increments lost when joined": Mutation(replacing(joint_writes, "_sum", unsummed), BOOKED),
    "count: parents not looked at again": Mutation(replacing(TotalRule, "pulls", never), BOOKED),
    "count: totals name no parent": Mutation(replacing(TotalRule, "hints", none), BOOKED),
    "count: one shard read": Mutation(one_shard, BOOKED),
    "count: a truth value has no weight": Mutation(replacing(counted_rule, "read_word", lambda _value: None), WEIGHTS),
    "count: no default without a value": Mutation(nothing_for_nothing, WEIGHTS),
    "count: what is of no use stays counted": Mutation(
        troubled_kept(TallyRule, lambda rule, part, child: [one for _, one in rule._shares(part.source, child)]), BOOKED
    ),
    # min and max
    "rank: old place kept": Mutation(judged(RankRule, kept), RANKED),
    "rank: only the new place": Mutation(parts_from(RankRule, only_new), RANKED),
    "rank: no check of the child": Mutation(judged(RankRule, without_check), among("", "ranked")),
    "rank: places not looked at again": Mutation(parts_from(RankRule, no_parts_of_target), small("meddled", "ranked")),
    "rank: what is of no use keeps its place": Mutation(
        troubled_kept(RankRule, lambda rule, part, child: rule._places(part.source, child)), RANKED
    ),
    "rank: parents not looked at again": Mutation(replacing(RecountRule, "pulls", never), RANKED),
    "rank: places name no parent": Mutation(replacing(RecountRule, "hints", none), RANKED),
    # values of children
    "values: old place kept": Mutation(judged(ValueRule, kept), VALUED),
    "values: old value kept": Mutation(present_kept, VALUED),
    "values: only the new place": Mutation(parts_from(ValueRule, only_new), VALUED),
    "values: no check of the child": Mutation(judged(ValueRule, without_check), among("", "valued")),
    "values: items not looked at again": Mutation(
        parts_from(ValueRule, no_parts_of_target), small("meddled", "values")
    ),
    "newest: fields not looked at again": Mutation(parts_from(ValueRule, where_it_was), VALUED),
    "values: what is of no use keeps its place": Mutation(
        troubled_kept(ValueRule, lambda rule, part, child: rule._places(part.source, child)), VALUED
    ),
    "values: parents not looked at again": Mutation(replacing(ValuesRule, "pulls", never), VALUED),
    "values: items name no parent": Mutation(replacing(ValuesRule, "hints", none), VALUED),
    "values: listed from the other end": Mutation(first_end_only, among("", "valued")),
    "values: all of one order": Mutation(replacing(values, "_make_order", lambda _value: ("", "")), VALUED),
}
