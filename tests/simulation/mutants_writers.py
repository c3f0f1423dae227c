"""Mutants of what applications do by themselves: transactions, writes that are followed, fresh looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import Mock, patch

from sync_rules.model.semantics import make_place
from sync_rules.model.writes import Check, Increment, Update
from sync_rules.write import composer, consequences, follower, judgement, needs
from sync_rules.write.composer import Planned
from sync_rules.write.follower import Followed
from sync_rules.write.read_through import ReadThrough
from sync_rules.write.transaction import PlannedTransaction, Transact
from tests.simulation.breaking import Mutation, replacing
from tests.simulation.worlds import among, small

COPIES, READERS = small("transact", "copy", "chain-copy"), small("readers", "copy", "chain-copy")
BASE = among("transact", "base")


# ---------------------------------------------------------------- the guards of a transaction, each taken out
def entry_without_total() -> Any:
    """Mutant: the entry of a child is written, and its total is not."""
    planned = composer._TransactionComposer.plan_actions

    def some(self: Any) -> list[Planned]:
        totals = {place for place, one in self._store.applied.items() if one.numbers}
        return [one for one in planned(self) if make_place(one.action.key) not in totals]

    return patch.object(composer._TransactionComposer, "plan_actions", some)


def whole_items_compared() -> Any:
    """Mutant: everything of an item is compared, whatever was read of it."""
    need = needs.Needs._need
    return patch.object(needs.Needs, "_need", lambda self, key, _paths: need(self, key, None))


def a_token_each_time() -> Any:
    """Mutant: a request whose answer was lost is sent as a new one."""
    numbers, sent = count(), Transact._send

    def send(self: Any, *given: Any) -> Any:
        client = self._client
        self._client = Mock(
            transact_write_items=lambda **request: client.transact_write_items(
                **{**request, "ClientRequestToken": str(next(numbers))}
            )
        )
        try:
            return sent(self, *given)
        finally:
            self._client = client

    return patch.object(Transact, "_send", send)


def writes_of_rules_unguarded() -> Any:
    """Mutant: a write of the rules is not compared with what they read of the item."""
    before = ReadThrough._list_unchanged_conditions
    unguarded = Update | Increment
    return patch.object(
        ReadThrough,
        "_list_unchanged_conditions",
        lambda self, action: () if isinstance(action, unguarded) else before(self, action),
    )


def from_a_read_before() -> Any:
    """Mutant: an attempt compares with what it read, and writes what the one before it has made."""
    original = Transact._attempt

    def rehearse(tx: Any, store: Any, *, fresh: bool) -> PlannedTransaction:
        attempt = original(tx, store, fresh=fresh)
        before = tx.__dict__.setdefault("before", {}).copy()
        tx.before = {one.action.key: one for one in attempt.planned}
        return replace(attempt, planned=[_as_before(before.get(one.action.key, one), one) for one in attempt.planned])

    return patch.object(Transact, "_attempt", rehearse)


def _as_before(old: Planned, new: Planned) -> Planned:
    changes = type(old.action) is type(new.action) and not isinstance(new.action, Check)
    return Planned(replace(old.action, guard=new.action.guard), new.own) if changes else new


def listings_believed() -> Any:
    """Mutant: a listing that shows another item than was read before is no reason to start over."""
    return patch.object(ReadThrough, "outdated", property(lambda _self: False, lambda *_args: None), create=True)


def shown_as_it_stands() -> Any:
    """Mutant: a fresh look shows the item as it was read."""
    return patch.object(judgement, "_judge_one", lambda *_args: frozenset())


def first_writes_alone() -> Any:
    """Mutant: what a followed write leads to is written, and what that leads to is not, nor told."""
    return patch.object(follower._Live, "_note", lambda *_args: None)


def followed_by_nobody() -> Any:
    """Mutant: writes are noted, and nothing follows."""

    def bring(_follow: Any) -> Followed:
        return Followed(0, ())

    return patch.object(follower.Follow, "bring", bring)


MUTANTS: Mapping[str, Mutation] = {
    "transact: sources not compared": Mutation(replacing(needs.Needs, "_need_sources", lambda *_args: None), COPIES),
    # it may have named other items by now
    "transact: former state not compared": Mutation(
        replacing(needs.Needs, "_need_own", lambda *_args: None), among("transact", "mirror")
    ),
    "transact: written from a read before the check": Mutation(from_a_read_before, COPIES),
    "transact: entry without total": Mutation(entry_without_total, small("transact", "count")),
    "transact: whole item compared": Mutation(whole_items_compared, small("transact", "copy")),
    "transact: one token for all attempts": Mutation(
        replacing(Transact, "_make_token", lambda self, _number: self._token or "one"), COPIES
    ),
    "transact: another token for the same request": Mutation(a_token_each_time, BASE),
    "transact: writes of rules not guarded": Mutation(writes_of_rules_unguarded, small("transact", "copy")),
    "transact: listings believed": Mutation(listings_believed, among("transact", "writes-where")),
    "transact: some rules look for all": Mutation(
        replacing(consequences.Consequences, "_note_partial_looks", lambda *_args: None),
        among("transact", "two-index"),
    ),
    "fresh: shown as it stands": Mutation(shown_as_it_stands, READERS),
    "follow: nothing follows": Mutation(followed_by_nobody, READERS),
    "follow: the first writes alone": Mutation(first_writes_alone, small("readers", "copy-derive", "count")),
}
