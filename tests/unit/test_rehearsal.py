"""The pipeline in memory that scenarios are played on."""

from __future__ import annotations

import gzip

import pytest

from sync_rules import rehearsal
from sync_rules.errors import StoreError
from sync_rules.model import Delete, Put, Update
from sync_rules.rehearsal import Rehearsal, archived
from sync_rules.rulefile import parse_rules
from sync_rules.scenario import Expire
from tests.builders import author_item, book_item, key, n, s

RULES = parse_rules(
    """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
entities: {author: {table: authors}, book: {table: books}}
rules:
  names: copy author.name into book.name
  kept: {archive: book, into: s3://kept/books, when: expired}
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


def test_rehearsal_rests_when_all_is_right(stage):
    """After rest, every change was worked on, those of the pipeline too."""
    assert "name" not in (stage.item(BOOK) or {})
    assert stage.rest()
    assert (stage.item(BOOK) or {})["name"] == s("Ada")
    stage.do(Update(AUTHOR, ((("name",), s("Bea")),), (), ()))
    assert stage.rest()
    assert (stage.item(BOOK) or {})["name"] == s("Bea")


@pytest.mark.parametrize(("deed", "count"), [(Expire, 1), (lambda key: Delete(key, ()), 0)], ids=["expire", "delete"])
def test_rehearsal_tells_expiry_from_a_delete(stage, deed, count):
    """Only what expires is archived by a rule for what expires, whole."""
    assert stage.rest()
    stage.do(deed(BOOK))
    assert stage.rest()
    assert stage.item(BOOK) is None
    assert list(stage.objects("kept")) == [book_item("b", "a", pages=n(9), name=s("Ada"))] * count


def test_rehearsal_gives_up_rules_that_do_not_end(stage, monkeypatch):
    """What is not at rest after so many rounds never will be."""
    monkeypatch.setattr(rehearsal, "ROUNDS_MAX", 1)
    assert not stage.rest()


def test_rehearsal_rejects_what_dynamodb_would(stage):
    """A write that cannot be is an error of the scenario, not silence."""
    with pytest.raises(StoreError, match="ValidationException"):
        stage.do(Update(BOOK, ((("author_id",), n(7)),), (), ()))


def test_rehearsal_raises_what_fails(stage, monkeypatch):
    """Where nothing is lost or slow, work that fails is told and not left to come again."""

    def broken(_request):
        raise StoreError("Broken")

    monkeypatch.setattr(stage.store, "read", broken)
    with pytest.raises(StoreError, match="Broken"):
        stage.rest()


def test_archived_items_are_what_they_were():
    """An object's lines are items, binaries as bytes; an attribute that is called B stays a map's entry."""
    line = b'{"item":{"a":{"B":"AAE="},"b":{"BS":["AA=="]},"B":{"S":"x"},"m":{"M":{"B":{"N":"1"}}}}}\n'
    item = {"a": {"B": b"\0\1"}, "b": {"BS": [b"\0"]}, "B": s("x"), "m": {"M": {"B": n(1)}}}
    assert list(archived(gzip.compress(line * 2))) == [item, item]
