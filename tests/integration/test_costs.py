"""The cost of copies and of a hierarchy, counted at the store: every write requested, refused ones too, and every read.

The figures are promises to the users who pay. Each test lets the pipeline rest after one change, the records of its own
writes and the second looks included, and then counts.
"""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Update
from sync_rules.pipeline.requests import List, Read
from tests.support.builders import order_item, s, user_item
from tests.support.worlds import Scene

BASE = """
tables:
  shop:  {key: {PK: S, SK: S}}
  parts: {key: {id: S}, indexes: {kids: {parent: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  part:  {table: parts}
rules:
"""


def scene_of(rule: str) -> Scene:
    """A shop with this rule."""
    return Scene(parse_rules(f"{BASE}  one: {rule}\n"))


def part(name: str, parent: str | None) -> dict:
    return {"id": s(name), **({} if parent is None else {"parent": s(parent)})}


def settled(scene: Scene) -> Scene:
    """Let the pipeline come to rest, and forget the requests made so far."""
    finish(scene)
    scene.tap.requests.clear()
    return scene


def finish(scene: Scene) -> None:
    while scene.records or scene.queue.messages:
        scene.rest()
        scene.receive()
    assert scene.parked.failures == []


# ---------------------------------------------------------------- hierarchies and copies
@pytest.mark.parametrize("size", [1, 30, 150])
def test_costs_a_subtree_that_moves_is_one_write_per_item(size):
    """A move of a subtree of n items costs n writes, and one look at each: read once at each level, and once more."""
    scene = scene_of("{path: part.way, parent: parent, graph: graph, depth: depth}")
    scene.put("parts", part("a", None), part("b", None))
    scene.put("parts", *(part(str(i), "a" if i == 0 else str((i - 1) // 3)) for i in range(size)))
    scene = settled(scene)
    scene.put("parts", {**scene.item(scene.at("parts", "0")), "parent": s("b")})
    scene.rest()
    assert len(scene.tap.writes) == size
    assert all(isinstance(write, Update) for write in scene.tap.writes)
    assert read_keys(scene) <= 3 * size  # as a child through the index, as the parent of its own, as a target
    finish(scene)
    assert len(scene.tap.writes) == size  # second looks find nothing


def read_keys(scene: Scene) -> int:
    """The number of items read by key."""
    return sum(len(request.keys) for request in scene.tap.seen(Read))


def test_costs_a_copy_is_one_write_and_no_read_of_its_own():
    """A rename with n targets in the base table: n writes, and per page of them one Query and one read of the source.
    Their own records cost one read of the source and no write.
    """
    pages = 250 // Limits().fan_out_page_max_items + 1
    scene = scene_of("copy user.name into order.user_name")
    scene.put("shop", user_item("u", name=s("Ada")), *(order_item("u", f"{i:03}") for i in range(250)))
    scene = settled(scene)
    scene.put("shop", user_item("u", name=s("Eve")))
    scene.deliver()
    assert len(scene.tap.writes) == 250
    assert read_keys(scene) == len(scene.tap.seen(List)) == pages
    scene.rest()
    assert len(scene.tap.writes) == 250
    assert read_keys(scene) == pages + 1
