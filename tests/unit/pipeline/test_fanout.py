"""Push and pull: pages in rounds, index rows never as images, a second look after the last page, the rest as messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.messages import PushMessage
from sync_rules.pipeline.requests import List, Read
from tests.support.builders import author_item, book_item, key, library, n, s, user_item
from tests.support.worlds import Scene

EVE = author_item("a1", name=s("Eve"))


def scene_with(books: int, limits: Limits | None = None, **options) -> Scene:
    """An author who was renamed, the record not processed yet, and a number of books that still have the old name."""
    scene = Scene(library(**options), limits=limits)
    scene.there("books", *(book_item(f"b{i:05}", "a1", author_name=s("Ada")) for i in range(books)))
    scene.put("authors", EVE)
    return scene


def names(scene: Scene, books: int) -> set[str]:
    table = scene.rules.tables["books"]
    return {scene.item(key(table, f"b{i:05}"))["author_name"]["S"] for i in range(books)}


# ---------------------------------------------------------------- listing
TWO_ENTITIES = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  line: {table: shop, key: {PK: "USER#{user_id}", SK: "LINE#{order_id}#{line}"}}
rules:
  orders: copy user.name into order.user_name
  lines: {copy: user.rank, into: line.user.rank}
"""


def test_fanout_asks_for_what_the_rules_look_at_and_no_more():
    """A fan-out reads only keys of index rows, and of other items only the attributes that rules of the round use."""
    scene = scene_with(2)
    scene.deliver()
    (listed,), (targets, sources) = scene.tap.seen(List), scene.tap.seen(Read)
    assert listed.attributes == frozenset()
    assert targets.attributes == {"books": {"author_id", "book_id", "author_name", "author_bio"}}
    assert sources.attributes == {"authors": {"name", "bio"}}
    scene = Scene(parse_rules(TWO_ENTITIES))
    scene.there("shop", {"PK": s("USER#1"), "SK": s("LINE#1#1")})
    scene.put("shop", user_item("1", name=s("Ada"), rank=n(1)))
    scene.deliver()
    assert {request.attributes for request in scene.tap.seen(List)} == {frozenset({"user_name", "user"})}
    assert [request.attributes for request in scene.tap.seen(Read)] == [{"shop": {"rank"}}]  # there are no orders


# ---------------------------------------------------------------- the second look


def test_fanout_heals_what_the_index_hid():
    """A target that the index did not show at the first pass is right after the second."""
    scene = scene_with(1)
    hidden: list[tuple] = []
    propagate = scene.memory.propagate
    scene.memory.propagate = lambda *change: hidden.append(change)
    renamed = list(scene.records)
    late = scene.there("books", book_item("late", "a1", author_name=s("Ada")))
    scene.deliver(renamed)
    assert scene.item(late)["author_name"] == s("Ada")
    scene.memory.propagate = propagate
    for change in hidden:
        propagate(*change)
    scene.receive()
    assert scene.item(late)["author_name"] == s("Eve")


# ---------------------------------------------------------------- the rest as messages
def test_fanout_out_of_time_hands_over_everything():
    """Without time nothing is begun; the whole push becomes a message and the record is done."""
    scene = scene_with(5)
    assert scene.deliver(remaining_ms=1_000) == []
    assert scene.tap.requests == []
    scene.receive()
    scene.receive()
    assert names(scene, 5) == {"Eve"}


@pytest.mark.parametrize(("remaining_ms", "name"), [(1_000, "Ada"), (60_000, "Eve")], ids=["rest", "second look"])
def test_fanout_that_cannot_be_handed_over_fails(remaining_ms, name):
    """A push whose rest or second look cannot be queued is reported as failed, so its record is delivered again."""
    scene = scene_with(5)
    scene.queue.broken = "QueueNotFound"
    position = scene.records[0].position
    assert scene.deliver(remaining_ms=remaining_ms) == [position]
    assert names(scene, 5) == {name}


# ---------------------------------------------------------------- failures
TWO_TARGETS = """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
  talks: {key: {talk_id: S}, indexes: {by_speaker: {author_id: S}}}
  cities: {key: {city_id: S}}
  fairs: {key: {city_id: S, fair_id: S}}
entities: {author: {table: authors}, book: {table: books}, talk: {table: talks}, city: {table: cities}, fair: {table: fairs}}
rules:
  books: copy author.name into book.author_name
  talks: copy author.name into talk.speaker
  fairs: copy city.name into fair.city_name
"""


@pytest.mark.parametrize("missing", ["table", "index"])
def test_fanout_without_table_or_index_fails_its_own_source_alone(missing):
    """A missing target table or index fails only its source's record; other rules and other sources are processed."""
    rules = parse_rules(TWO_TARGETS)
    tables = dict(rules.tables)
    talks = tables.pop("talks")
    if missing == "index":
        tables["talks"] = replace(talks, indexes=())
    scene = Scene(rules, tables=tables)
    book = scene.there("books", book_item("b1", "a1"))
    fair = scene.there("fairs", {"city_id": s("c1"), "fair_id": s("f1")})
    scene.put("cities", {"city_id": s("c1"), "name": s("Rome")})
    scene.put("authors", EVE)
    author = scene.records[1].position
    assert scene.deliver() == [author]
    assert scene.item(book)["author_name"] == s("Eve")
    assert scene.item(fair)["city_name"] == s("Rome")


# ---------------------------------------------------------------- cursors that no longer fit
def refusing(scene, cursors):
    """The store refuses the cursors that the function is true of, as DynamoDB does those of another Query."""

    def before(request):
        if isinstance(request, List) and request.cursor is not None and cursors(request.cursor):
            raise StoreError("ValidationException")

    scene.tap.before = before


def test_fanout_a_cursor_of_another_query_starts_over():
    """A message whose cursor is not of this Query any more is listed from the start, and reaches every target."""
    scene = scene_with(5)
    scene.limits = scene.consumer.limits = Limits(fan_out_page_max_items=2)
    old = {"author_id": s("another"), "book_id": s("b0")}
    refusing(scene, lambda cursor: cursor == old)
    rules = tuple(scene.rules.rules)
    scene.consumer.handle_message(PushMessage(rules, scene.records[0].key, cursor=old))
    assert names(scene, 5) == {"Eve"}


def test_fanout_a_listing_that_never_goes_on_fails():
    """A store that refuses every cursor, its own too, fails the listing instead of being asked for ever."""
    scene = scene_with(5)
    scene.limits = scene.consumer.limits = Limits(fan_out_page_max_items=2)
    refusing(scene, lambda _cursor: len(scene.tap.requests) < 1_000 or pytest.fail("listed for ever"))
    position = scene.records[0].position
    assert scene.deliver() == [position]


# ---------------------------------------------------------------- targets made of members
def test_push_fails_if_an_item_was_unread_before_the_rest_is_sent_on():
    """No message can carry what an unread item needs, so the record is delivered again."""
    limits = Limits(fan_out_page_max_items=2, fan_out_round_max_items=2, fan_out_inline_max_items=4)
    scene = scene_with(6, limits)
    first, failed = key(scene.rules.tables["books"], "b00000"), []

    def fail_once(request):
        if isinstance(request, Read) and first in request.keys and not failed:
            failed.append(request)
            raise StoreError("ThrottlingException")

    scene.tap.before = fail_once
    changes = [*scene.records]
    assert scene.deliver() != []
    assert scene.deliver(changes) == []
    while scene.queue.messages:
        scene.receive()
    assert names(scene, 6) == {"Eve"}
