"""The pipeline in memory that scenarios are played on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from sync_rules.lab import rehearsal
from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import Expire
from sync_rules.language.load import parse_rules
from sync_rules.model.writes import Delete, Put
from tests.support.builders import author_item, book_item, key, n, s
from tests.support.worlds import Telephone

RULES = parse_rules(
    """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
entities: {author: {table: authors}, book: {table: books}}
rules:
  names: copy author.name into book.name
  told: {call: books.gone, on: book, when: [deleted]}
""",
    environ={},
)
AUTHORS, BOOKS = RULES.tables["authors"], RULES.tables["books"]
AUTHOR, BOOK = key(AUTHORS, "a"), key(BOOKS, "b")


@pytest.fixture
def stage() -> Rehearsal:
    stage = Rehearsal(RULES)
    stage.do(Put(AUTHOR, author_item("a", name=s("Ada")), ()))
    stage.do(Put(BOOK, book_item("b", "a", pages=n(9)), ()))
    return stage


@pytest.mark.parametrize(("action", "expired"), [(Expire, True), (lambda key: Delete(key, ()), False)])
def test_rehearsal_tells_expiry_from_a_delete(action, expired):
    """A called function gets the item as it was, and sees if Time to Live deleted it."""
    caller = Telephone()
    stage = Rehearsal(RULES, caller)
    book = book_item("b", "a", pages=n(9))
    stage.do(Put(BOOK, book, ()))
    assert stage.rest()
    stage.do(action(BOOK))
    assert stage.rest()
    assert stage.item(BOOK) is None
    assert [(call.change.old, call.change.expired) for call in caller.calls] == [(book, expired)]


def test_rehearsal_gives_up_rules_that_do_not_end(stage, monkeypatch):
    """`rest` returns false if the rules are not at rest after the allowed number of rounds."""
    monkeypatch.setattr(rehearsal, "ROUNDS_MAX", 1)
    monkeypatch.setattr(rehearsal, "ROUNDS_PER_CHANGE", 0)
    assert not stage.rest()


# ---------------------------------------------------------------- deliveries


def test_rehearsal_meets_what_its_delivery_says():
    """A delivery with crashes and throttles has both, and after every one of them the work comes again."""
    faults = Counter()
    for seed in range(10):
        faulty = Rehearsal(RULES, delivery=replace(VARIANTS[-1], seed=seed))
        again = faulty._arrivals.retry

        def retry(arrival, failed=None, again=again):
            faults["failed" if failed else "died"] += 1
            again(arrival, failed)

        faulty._arrivals.retry = retry  # type: ignore[method-assign]
        faulty.do(Put(AUTHOR, author_item("a", name=s("Ada")), ()))
        faulty.do(Put(BOOK, book_item("b", "a"), ()))
        assert faulty.rest()
        assert (faulty.item(BOOK) or {})["name"] == s("Ada")
    assert min(faults["died"], faults["failed"]) > 0
