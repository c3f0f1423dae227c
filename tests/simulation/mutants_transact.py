"""The guards of a transaction, each taken out."""

from __future__ import annotations

from itertools import count

from sync_rules.model.semantics import place_of
from sync_rules.model.writes import Increment, Update
from sync_rules.write import composer, needs, transaction
from sync_rules.write.read_through import ReadThrough


def without_checks(monkeypatch):
    """The source of a copy is not compared."""
    monkeypatch.setattr(needs.Needs, "_need_sources", lambda *_: None)


def without_what_was_read(monkeypatch):
    """The former state of an own item is not compared: it may have named other items by now."""
    monkeypatch.setattr(needs.Needs, "_need_own", lambda *_: None)


def entry_without_total(monkeypatch):
    """The entry of a child is written, and its total is not."""
    planned = composer._TransactionComposer.plan_actions

    def some(self):
        totals = {place for place, one in self._store.applied.items() if one.numbers}
        return [one for one in planned(self) if place_of(one.action.key) not in totals]

    monkeypatch.setattr(composer._TransactionComposer, "plan_actions", some)


def check_of_the_whole_item(monkeypatch):
    """Everything of an item is compared, whatever was read of it."""
    need = needs.Needs._need
    monkeypatch.setattr(needs.Needs, "_need", lambda self, key, _paths: need(self, key, None))


def the_same_token_for_another_request(monkeypatch):
    """A transaction that was made anew has the token of the first."""
    monkeypatch.setattr(transaction.Transact, "_token_of", lambda self, _number: self._token or "one")


def another_token_for_the_same_request(monkeypatch):
    """A request whose answer was lost is sent as a new one."""
    numbers = count()
    sent = transaction.Transact._send

    def each(self, *given):
        client = self._client
        self._client = _Renamed(client, numbers)
        try:
            return sent(self, *given)
        finally:
            self._client = client

    monkeypatch.setattr(transaction.Transact, "_send", each)


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
