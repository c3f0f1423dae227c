"""Mutants of what applications do by themselves: transactions, writes that are followed, fresh looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from sync_rules.model.writes import Check
from sync_rules.write import follower, judgement, needs
from sync_rules.write.composer import Planned
from sync_rules.write.follower import Followed
from sync_rules.write.read_through import ReadThrough
from sync_rules.write.transaction import PlannedTransaction, Transact
from tests.simulation import mutants_transact as of_transactions
from tests.simulation.breaking import Mutant, Mutation
from tests.simulation.worlds import among

COPIES = among("transact", "base", "index", "two", "default", "writes-link")
READERS = among("readers", "base", "index", "two", "default", "writes-link")
PARTS = among("transact", "collect", "booked", "mirror", "embed")


def of_a_transaction(change: Any) -> Mutant:
    """A mutant of the tests of transactions."""

    @contextmanager
    def mutant() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as one:
            change(one)
            yield

    return mutant


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
    """Mutant: a listing that shows another item than was read before is no reason to begin anew."""
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
    "transact: sources not compared": Mutation(of_a_transaction(of_transactions.without_checks), COPIES),
    "transact: former state not compared": Mutation(of_a_transaction(of_transactions.without_what_was_read), PARTS),
    "transact: written from a read before the check": Mutation(from_a_read_before, COPIES),
    "transact: entry without total": Mutation(
        of_a_transaction(of_transactions.entry_without_total), among("transact", "booked")
    ),
    "transact: whole item compared": Mutation(
        of_a_transaction(of_transactions.check_of_the_whole_item), among("transact", "base", "two")
    ),
    "transact: one token for all attempts": Mutation(
        of_a_transaction(of_transactions.the_same_token_for_another_request), COPIES
    ),
    "transact: another token for the same request": Mutation(
        of_a_transaction(of_transactions.another_token_for_the_same_request), COPIES
    ),
    "transact: writes of rules not guarded": Mutation(
        of_a_transaction(of_transactions.without_guards_of_writes), COPIES
    ),
    "transact: what is said again not compared": Mutation(
        lambda: patch.object(needs, "_mentions", lambda *_args: False), COPIES
    ),
    "transact: listings believed": Mutation(listings_believed, among("transact", "base", "writes-where")),
    "fresh: shown as it stands": Mutation(shown_as_it_stands, READERS),
    "follow: nothing follows": Mutation(followed_by_nobody, READERS),
    "follow: the first writes alone": Mutation(first_writes_alone, among("readers", "cascade", "booked")),
}
