"""Storms: messages, listings and failures do not multiply or grow without end."""

from __future__ import annotations

from typing import Any

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.limits import Limits
from sync_rules.pipeline.messages import Message
from sync_rules.pipeline.requests import List, Read
from tests.support.builders import s
from tests.support.worlds import Scene

RECEIVES = 3  # as often as SQS tries a message before it gives up on it
TWO = """
tables:
  users: {key: {user_id: S}}
  firms: {key: {firm_id: S}}
  books: {key: {book_id: S}, indexes: {by_user: {user_id: S}, by_firm: {firm_id: S}}}
entities: {user: {table: users}, firm: {table: firms}, book: {table: books}}
rules:
  one: {copy: user.name, into: book.shown.name, settle_seconds: 0}
  two: {copy: firm.name, into: book.firm_name, settle_seconds: 0}
"""
SHOP = """
tables:
  shop:   {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
  other:  {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  post: {table: shop, key: {PK: "USER#{user_id}", SK: "POST#{post_id}"}}
rules:
  one: """
USER = {"PK": s("USER#u"), "SK": s("PROFILE")}


def post(name: object, **attributes: Any) -> dict[str, Any]:
    return {"PK": s("USER#u"), "SK": s(f"POST#{name}"), **attributes}


def handled(scene: Scene, rounds: int, dead: list[Message] | None = None) -> list[int]:
    """Count the messages to handle in each round; a failed one is tried again, then given up."""
    counts = []
    for _ in range(rounds):
        taken, scene.queue.messages = scene.queue.messages, []
        counts.append(len(taken))
        for message, _ in taken:
            for _ in range(RECEIVES):
                try:
                    scene.consumer.handle_message(message)
                    break
                except StoreError:
                    pass
            else:
                if dead is not None:
                    dead.append(message)
    return counts


# ---------------------------------------------------------------- messages
def test_looks_at_what_is_parked_do_not_multiply_while_something_else_of_it_fails():
    """A target that fails for another reason asks for no second look at its parked copy, or messages would double."""
    scene = Scene(parse_rules(TWO))

    def before(request: object) -> None:
        if isinstance(request, Read) and request.keys[0].table == "firms":
            raise StoreError("AccessDeniedException", "firms")

    scene.tap.before = before
    scene.put("users", {"user_id": s("u"), "name": s("Ann")})
    scene.put("books", {"book_id": s("k"), "user_id": s("u"), "firm_id": s("f"), "shown": s("no map")})
    scene.deliver([change for change in scene.records if change.key.table == "books"])
    assert max(handled(scene, 5)) <= 1


# ---------------------------------------------------------------- listings
@pytest.mark.parametrize(
    "rule",
    [
        "{embed: post, into: user.posts, fields: [a], where: active, limit: {items: 20}}",
        "{embed: post, into: user.posts, fields: [a], where: active, limit: {bytes: 10KB}}",
        "{count: post, into: user.posts, where: active, mode: recount}",
    ],
)
def test_a_look_at_a_target_is_bounded_whatever_where_leaves_out(rule):
    """Rows that are no members are counted too: a look at a parent of a million of them ends, and says so."""
    scene = Scene(parse_rules(f"{SHOP}{rule}\n"), limits=Limits(listed_rows_max_items=500))
    scene.there("shop", USER, *(post(f"{number:06}") for number in range(2_000)))
    scene.put("shop", post("x", active={"BOOL": True}))
    scene.deliver()
    assert len(scene.tap.seen(List)) <= 7
    assert [failure.reason for failure in scene.parked.failures] == ["TooManyMembers"]
