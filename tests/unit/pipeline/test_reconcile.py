"""Reconcile: image first, source second, then compare-and-set; every outcome, every policy, nothing held up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.items import Failure, Outcome
from sync_rules.model.limits import Limits
from sync_rules.model.sizes import ITEM_MAX_BYTES, count_item_bytes
from sync_rules.pipeline.messages import PullMessage
from sync_rules.pipeline.requests import Read
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.ruleset import Rules
from tests.support.builders import author_item, book_item, library, mapping, n, rules_of, s
from tests.support.worlds import Scene, event_of

ADA = author_item("a1", name=s("Ada"), bio=s("..."))
BEA = author_item("a2", name=s("Bea"), bio=s("---"))
STALE = book_item("b1", "a1", author_name=s("old"), author_bio=s("..."))
RIGHT = {**STALE, "author_name": s("Ada")}
RULE = "author-on-books"


@pytest.fixture
def scene() -> Scene:
    scene = Scene(library())
    scene.there("authors", ADA, BEA)
    return scene


def outcomes(report) -> dict:
    return {outcome: count for (_, outcome), count in report.outcomes.items()}


def also(rules: Rules, **given) -> CopyRule:
    """Another rule between the same two entities."""
    (one,) = rules.rules.values()
    return replace(one, **given)


# ---------------------------------------------------------------- outcomes


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        ({**STALE, "author_name": s("newer")}, Outcome.SUPERSEDED),
        ({**STALE, "author_id": s("a2")}, Outcome.RELINKED),
        (RIGHT, Outcome.RIGHT),  # written by another, or by ourselves with the answer lost
        (None, Outcome.GONE),
    ],
)
def test_reconcile_refused_says_why(scene, now, outcome):
    """A target that changed after its image was read is left, and the outcome says how it changed."""
    book = scene.there("books", STALE)
    scene.memory.delete(book) if now is None else scene.put("books", now)
    assert outcomes(scene.pull(book, STALE)) == {outcome: 1}
    assert scene.memory.item(book) == now


# ---------------------------------------------------------------- several rules


TWO_SOURCES = """
tables:
  authors: {key: {author_id: S}}
  houses: {key: {house_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}, by_house: {house_id: S}}}
entities: {author: {table: authors}, house: {table: houses}, book: {table: books}}
rules:
  author: copy author.name into book.author_name
  house: copy house.name into book.house_name
"""
BOOK = {**book_item("b1", "a1"), "house_id": s("h1")}


# ---------------------------------------------------------------- strict


def test_reconcile_strict_gives_up_on_a_source_that_never_rests():
    """A source that changes under every try is reported as failed after a number of reads: its record comes again."""
    scene = Scene(library(strict=True))
    book = scene.there("books", STALE)
    names = iter("abcdefghijkl")
    scene.tap.before = lambda _request: scene.put("authors", {**ADA, "name": s(next(names))})
    report = scene.pull(book, STALE)
    assert report.failed[book].reason == "SourceChanging"
    assert len(scene.tap.seen(Read)) == scene.limits.source_reads_max_tries


# ---------------------------------------------------------------- deletion
def removed(scene: Scene) -> None:
    """The author is gone, and the record of it is not processed yet."""
    scene.memory.delete(scene.there("authors", ADA))


@pytest.mark.parametrize(
    ("on_delete", "left"), [("keep", RIGHT), ("clear", book_item("b1", "a1")), ("delete", None)]
)  # fmt: skip
def test_reconcile_obeys_the_delete_policy(on_delete, left):
    """When a source is deleted its copies are kept, cleared, or their items deleted; redelivery changes nothing more."""
    scene = Scene(library(on_delete=on_delete))
    book = scene.there("books", RIGHT)
    removed(scene)
    records = list(scene.records)
    scene.rest()
    assert scene.memory.item(book) == left
    writes = len(scene.tap.writes)
    scene.deliver(records)
    assert scene.memory.item(book) == left
    assert len(scene.tap.writes) == writes


# ---------------------------------------------------------------- parked
FULL = "x" * (400 * 1024 - 200)


def in_map(**given) -> Scene:
    """The name goes into a map; another rule's bio into an attribute of its own."""
    rules = library(mapping=mapping(name="author__name"))
    scene = Scene(rules_of(*rules.rules.values(), also(rules, name="bio", mapping=mapping(bio="author_bio"), **given)))
    scene.there("authors", ADA)
    return scene


def test_reconcile_looks_at_the_parked_again_less_and_less_often():
    """A parked target is looked at after 60 s, then twice as long, at most 900 s, with a failure record at first and
    one at the last look; then it is left to its next change.
    """
    scene = in_map()
    book = scene.there("books", book_item("b1", "a1", author=s("text"), author_bio=s("...")))
    scene.pull(book)
    delays = []
    while scene.queue.messages:
        assert [message for message, _ in scene.queue.messages] == [PullMessage(book, len(delays) + 1)]
        delays += scene.receive()
        assert len(scene.parked.failures) == 1 + (len(delays) == scene.limits.parked_max_looks)
    assert delays == [60, 120, 240, 480, *([900] * (scene.limits.parked_max_looks - 4))]


def test_reconcile_copies_what_had_no_room_once_there_is_room():
    """A record that makes a full item smaller is a reason to look at it, though it touches nothing that a rule watches,
    long after the last look; one that leaves it as large, or that of a small item, is none.
    """
    scene = Scene(library(), limits=Limits(parked_max_looks=0))
    scene.there("authors", {**ADA, "bio": s("b" * 1000)})
    full = scene.put("books", book_item("b1", "a1", text=s(FULL)))
    assert scene.deliver() == []
    assert scene.parked.failures == [Failure(RULE, full, "ItemTooLarge")]
    scene.put("books", book_item("b1", "a1", text=s("x" * len(FULL))))
    scene.tap.requests.clear()
    scene.deliver()
    assert scene.tap.requests == []
    scene.put("books", book_item("b1", "a1", text=s(FULL[2_000:])))
    scene.rest()
    assert scene.item(full)["author_name"] == s("Ada")
    scene.there("books", book_item("b2", "a1", text=s("x" * 10_000), author_name=s("Ada")))
    scene.put("books", book_item("b2", "a1", text=s("x"), author_name=s("Ada")))
    scene.tap.requests.clear()
    scene.deliver()
    assert scene.tap.requests == []


def test_reconcile_a_stuck_target_has_one_chain_of_looks():
    """However often its source changes, a target that cannot take a copy is looked at by one chain; what is stuck again
    after the chain has ended has another.
    """
    scene = Scene(library())
    scene.there("books", book_item("b1", "a1", text=s(FULL)))
    for version in range(50):
        scene.put("authors", {**ADA, "bio": s("b" * (1000 + version))})
        scene.deliver()
    assert len(scene.queue.messages) == 1 + 50  # the others are second looks at the index
    looks = [message for message, _ in scene.queue.messages if isinstance(message, PullMessage)]
    assert [look.attempt for look in looks] == [1]
    scene.there("books", book_item("b1", "a1", text=s("short")))
    scene.receive()
    scene.queue.messages.clear()
    scene.there("books", book_item("b1", "a1", text=s(FULL)))
    scene.put("authors", {**ADA, "bio": s("b" * 2000)})
    scene.deliver()
    assert [message for message, _ in scene.queue.messages if isinstance(message, PullMessage)] == looks


@pytest.mark.parametrize("strict", [False, True])
def test_reconcile_tries_a_write_without_room_once(strict):
    """A refused write costs the whole item. However often its source changes and however often it is looked at, a full
    item costs one write of each process, none if that only looks, and one failure record; then what has room is written.
    """
    (rule,) = library(strict=strict).rules.values()
    scene = Scene(rules_of(rule))
    full = scene.there("books", book_item("b1", "a1", text=s(FULL)))
    for version in range(50):
        scene.put("authors", {**ADA, "bio": s("b" * (1000 + version))})
        scene.deliver()
        scene.receive()
    assert len(scene.tap.writes) == 1
    assert scene.parked.failures == [Failure(RULE, full, "ItemTooLarge")]
    scene.tap.requests.clear()
    assert outcomes(scene.pull(full, attempt=1)) == {Outcome.PARKED: 1}  # in another process
    assert scene.tap.writes == []
    scene.put("books", book_item("b1", "a1", text=s(FULL[:-1100])))
    scene.rest()
    assert scene.item(full)["author_bio"] == s("b" * 1049)
    scene.tap.requests.clear()
    scene.put("books", book_item("b1", "a1", text=s("short")))
    scene.rest()
    assert scene.item(full)["author_bio"] == s("b" * 1049)
    assert scene.consumer._full == {}


def test_reconcile_writes_what_fits_to_the_byte():
    """No write that fits is held back, also where numbers are smaller than the documented sum says."""
    scene = Scene(library())
    scene.there("authors", {**ADA, "bio": s("b")})
    book = book_item("b1", "a1", score=n(-7))
    room = ITEM_MAX_BYTES - count_item_bytes({**book, "author_name": s("Ada"), "author_bio": s("b"), "text": s("")})
    for spare, refused in ((0, []), (1, [1]), (3, [])):  # fits; DynamoDB must tell, as -7 has 1 to 3 bytes; cannot fit
        scene.there("books", {**book, "text": s("x" * (room + spare))})
        scene.tap.requests.clear()
        scene.pull(scene.at("books", "b1"), attempt=1)
        assert [spare for _ in scene.tap.writes] == (refused or [spare] * (spare == 0))


@pytest.mark.parametrize("strict", [False, True])
def test_reconcile_parks_only_the_rule_that_does_not_fit(strict):
    """The one rule whose copy is too large is parked; the others that share its write are copied."""
    rules = library(mapping=mapping(name="author_name"))
    bio = also(rules, name="bio", mapping=mapping(bio="author_bio"), strict=strict)
    scene = Scene(rules_of(*rules.rules.values(), bio))
    scene.there("authors", {**ADA, "bio": s("b" * 1000)})
    book = scene.put("books", book_item("b1", "a1", text=s(FULL)))
    scene.deliver()
    assert scene.item(book).get("author_name") == s("Ada")
    assert [failure.rule for failure in scene.parked.failures] == ["bio"]


def test_reconcile_fails_what_cannot_be_parked(scene):
    """A target that cannot be parked is reported as failed."""
    scene = in_map()
    book = scene.there("books", book_item("b1", "a1", author=s("text"), author_bio=s("...")))
    scene.parked.broken = "QueueNotFound"
    assert scene.pull(book).failed[book].reason == "QueueNotFound"


# ---------------------------------------------------------------- the world
def test_reconcile_stops_writing_when_time_is_up(scene):
    """Writes go out in slices; those that time does not allow are reported as failed, with none begun."""
    scene.limits = scene.consumer.limits = Limits(apply_max_writes=2)
    books = [scene.put("books", {**STALE, "book_id": s(f"b{i}")}) for i in range(5)]
    left = iter([60_000, 60_000])
    event = event_of(scene.rules, *scene.records)
    third = scene.records[2].position
    answer = scene.consumer.handle_event(event, lambda: next(left, 100))
    assert answer["batchItemFailures"] == [{"itemIdentifier": third}]
    assert [scene.item(book)["author_name"]["S"] for book in books] == ["Ada", "Ada", "old", "old", "old"]
    assert len(scene.tap.writes) == 2


def test_reconcile_a_missing_source_table_fails_only_its_own_rules():
    """A missing source table fails only the rules that read it, also on the same item."""
    rules = parse_rules(TWO_SOURCES)
    tables = {name: table for name, table in rules.tables.items() if name != "houses"}
    scene = Scene(rules, tables=tables)
    scene.there("authors", ADA)
    both = scene.put("books", BOOK)
    only = scene.put("books", book_item("b2", "a1"))
    first = scene.records[0].position
    assert scene.deliver() == [first]
    assert scene.item(only).get("author_name") == s("Ada")
    assert scene.item(both).get("author_name") == s("Ada")
    counted = scene.consumer.telemetry.outcomes
    assert (counted["house", Outcome.FAILED], counted["author", Outcome.FAILED]) == (1, 0)


# ---------------------------------------------------------------- keys, links and deletes that go wrong
LONG = "x" * 3_000
ORGANISATION = """
tables:
  org: {key: {PK: S, SK: S}}
entities:
  user: {table: org, key: {PK: "ORG#{org_id}", SK: "USER#{user_id}"}}
  task: {table: org, key: {PK: "ORG#{org_id}", SK: "TASK#{task_id}"}}
rules:
  names: copy user.name into task.user_name
"""


def test_reconcile_a_link_to_an_impossible_key_holds_up_nothing():
    """A link that names a key DynamoDB cannot have names no source; the other targets of the batch are fixed."""
    scene = Scene(parse_rules(ORGANISATION))
    scene.there("org", {"PK": s("ORG#1"), "SK": s("USER#u"), "name": s("Ada")})
    tasks = [
        scene.put("org", {"PK": s("ORG#1"), "SK": s(f"TASK#{user[:1]}"), "user_id": s(user)}) for user in (LONG, "u")
    ]
    assert scene.deliver() == []
    assert [scene.item(task).get("user_name") for task in tasks] == [None, s("Ada")]
