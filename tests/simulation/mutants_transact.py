"""Each guard of a transaction, taken out: a test must notice."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from sync_rules.model.semantics import place_of
from sync_rules.model.writes import Check, Increment, Update
from sync_rules.write import composer, needs, transaction
from sync_rules.write.read_through import ReadThrough
from tests.support.transacted import Shop
from tests.unit.write import test_every_kind, test_transact

SEEDS = 100


def without_checks(monkeypatch):
    """The source of a copy is not compared."""
    monkeypatch.setattr(needs.Needs, "_need_sources", lambda *_: None)


def without_what_was_read(monkeypatch):
    """The former state of an own item is not compared: it may have named other items by now."""
    monkeypatch.setattr(needs.Needs, "_need_own", lambda *_: None)


def from_a_read_before(monkeypatch):
    """The check compares with what is there now, and the copy is from what was read before."""
    rehearse, kept = transaction.Transact._attempt, {}

    def again(self, store, *, fresh):
        attempt = rehearse(self, store, fresh=fresh)
        if not fresh:
            kept["writes"] = {one.action.key: one for one in attempt.planned if not isinstance(one.action, Check)}
            return attempt
        writes = [kept["writes"].get(one.action.key, one) for one in attempt.planned]
        guarded = [
            composer.Planned(composer.replace(old.action, guard=new.action.guard), old.own)
            for old, new in zip(writes, attempt.planned, strict=True)
        ]
        return transaction.replace(attempt, planned=guarded)

    monkeypatch.setattr(transaction.Transact, "_attempt", again)


def entry_without_total(monkeypatch):
    """The entry of a child is written, and its total is not."""
    planned = composer._TransactionComposer.planned

    def some(self):
        totals = {place for place, one in self._store.applied.items() if one.numbers}
        return [one for one in planned(self) if place_of(one.action.key) not in totals]

    monkeypatch.setattr(composer._TransactionComposer, "planned", some)


def check_of_the_whole_item(monkeypatch):
    """Everything of an item is compared, whatever was read of it."""
    need = needs.Needs._need
    monkeypatch.setattr(needs.Needs, "_need", lambda self, key, _paths: need(self, key, None))


def the_same_token_for_another_request(monkeypatch):
    """A transaction that was made anew has the token of the first."""
    monkeypatch.setattr(transaction.Transact, "_token_of", lambda self, _number: self._token or "one")


def without_absence(monkeypatch):
    """An item that was looked for and is not there is not compared."""
    monkeypatch.setattr(needs.Needs, "_need_absence", lambda *_: None)


def without_what_was_found_right(monkeypatch):
    """A copy or number that a rule found right is not compared."""
    monkeypatch.setattr(needs.Needs, "_need_looked_at", lambda *_: None)


def another_token_for_the_same_request(monkeypatch):
    """A request whose answer was lost is sent as a new one."""
    numbers = count()
    sent = transaction.Transact._sent

    def each(self, *given):
        client = self._client
        self._client = _Renamed(client, numbers)
        try:
            return sent(self, *given)
        finally:
            self._client = client

    monkeypatch.setattr(transaction.Transact, "_sent", each)


class _Renamed:
    def __init__(self, client, numbers) -> None:
        self._client, self._numbers = client, numbers

    def transact_write_items(self, **given):
        return self._client.transact_write_items(**{**given, "ClientRequestToken": str(next(self._numbers))})


def without_guards_of_writes(monkeypatch):
    """A write of the rules is not compared with what they read of the item."""
    apply = ReadThrough._of_before
    monkeypatch.setattr(
        ReadThrough,
        "_of_before",
        lambda self, action: () if isinstance(action, Update | Increment) else apply(self, action),
    )


def one_writer_in_between() -> None:
    for seed in range(SEEDS):
        test_every_kind.test_every_kind_another_writer_in_between_changes_nothing(seed)


def alone() -> None:
    for seed in range(SEEDS):
        test_every_kind.test_every_kind_a_transaction_does_what_the_stream_would_do(seed)


def on_the_shop(test: Callable[[Shop], None]) -> Callable[[], None]:
    return lambda: test(test_transact.made())


CAUGHT = {
    without_checks: on_the_shop(test_transact.test_transact_a_source_that_changes_meanwhile_is_read_anew),
    without_what_was_read: test_transact.test_transact_what_an_item_was_is_compared,
    from_a_read_before: on_the_shop(test_transact.test_transact_a_source_that_changes_meanwhile_is_read_anew),
    entry_without_total: alone,
    check_of_the_whole_item: on_the_shop(test_transact.test_transact_what_no_rule_reads_may_change_meanwhile),
    the_same_token_for_another_request: on_the_shop(test_transact.test_transact_retries_have_tokens_of_their_own),
    another_token_for_the_same_request: on_the_shop(test_transact.test_transact_a_lost_answer_is_asked_for_again),
    without_absence: lambda: test_transact.test_transact_a_source_that_comes_meanwhile_is_read_anew("tags"),
    without_what_was_found_right: test_transact.test_transact_copies_that_were_found_right_are_compared,
    without_guards_of_writes: one_writer_in_between,
}


@pytest.mark.parametrize("mutant", CAUGHT, ids=lambda mutant: mutant.__name__)
def test_mutants_are_caught(mutant, monkeypatch):
    """The code passes this test; the mutant fails it."""
    mutant(monkeypatch)
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever notices
        CAUGHT[mutant]()
    assert not isinstance(raised.value, AttributeError | NameError | TypeError), raised.value
