"""The cost of each kind of rule, counted at the store: every write requested, refused ones included, and every read.

The figures are promises to whoever pays. Each test lets the pipeline rest after one change, the records of its own
writes and the second looks included, and then counts.
"""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.items import Change
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Update, Write
from sync_rules.pipeline.requests import List, Read
from tests.support.builders import n, order_item, s, user_item
from tests.support.worlds import Scene

BASE = """
tables:
  shop:    {key: {PK: S, SK: S}}
  reviews: {key: {review_id: S}, indexes: {by_user: {user_id: S}}}
  parts:   {key: {id: S}, indexes: {kids: {parent: S}}}
  ledger:  {key: {PK: S, SK: S}}
entities:
  user:     {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order:    {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  by_email: {table: shop, key: {PK: "EMAIL#{email}", SK: EMAIL}}
  review:   {table: reviews}
  part:     {table: parts}
rules:
"""
FORMS = {
    "copy": "copy user.name into order.user_name",
    "embed": "{embed: review, into: user.latest, fields: [stars], limit: {items: 500}}",
    "embed-base": "{embed: order, into: user.orders, fields: [total], limit: {items: 500}}",
    "collect": '{collect: review, into: user.reviews, as: "{review_id}-{stars}"}',
    "collect-strict": '{collect: review, into: user.reviews, as: "{review_id}-{stars}", strict: true}',
    "derive": '{derive: review.rank, as: "{stars:pad(3)}#{review_id}"}',
    "path": "{path: part.way, parent: parent, graph: graph, depth: depth}",
    "mirror": "{mirror: user, into: by_email, attributes: [name]}",
    "count": "count review into user.review_count",
    "sum": "sum review.stars into user.stars",
    "mean": "mean review.stars into user.mean_stars",
    "min": "min review.stars into user.worst",
    "max": "max review.stars into user.best",
    "recount": "{count: order, into: user.order_count, mode: recount}",
}
TOGETHER = [kind for kind in FORMS if kind != "collect-strict"]  # two rules may not write one attribute


def scene_of(*kinds: str) -> Scene:
    """A shop with one rule of each of these kinds."""
    return Scene(parse_rules(BASE + "".join(f"  {kind}: {FORMS[kind]}\n" for kind in kinds)))


def review(review_id: str, user_id: str = "u", stars: int = 5) -> dict:
    return {"review_id": s(review_id), "user_id": s(user_id), "stars": n(stars)}


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


def bill(scene: Scene) -> list[Write]:
    """Every write that was asked for since, down to rest."""
    finish(scene)
    writes = scene.tap.writes
    scene.tap.requests.clear()
    return writes


# ---------------------------------------------------------------- hierarchies and copies
@pytest.mark.parametrize("size", [1, 30, 150])
def test_costs_a_subtree_that_moves_is_one_write_per_item(size):
    """A move of a subtree of n items costs n writes, and one look at each: read once at each level, and once more."""
    scene = scene_of("path")
    scene.put("parts", part("a", None), part("b", None))
    scene.put("parts", *(part(str(i), "a" if i == 0 else str((i - 1) // 3)) for i in range(size)))
    scene = settled(scene)
    scene.put("parts", {**scene.item(key_of_part(scene, "0")), "parent": s("b")})
    scene.rest()
    assert len(scene.tap.writes) == size
    assert all(isinstance(write, Update) for write in scene.tap.writes)
    assert read_keys(scene) <= 3 * size  # as a child through the index, as the parent of its own, as a target
    scene.receive()
    assert len(bill(scene)) == size  # second looks find nothing


def key_of_part(scene: Scene, name: str):
    key = scene.rules.tables["parts"].key_of(part(name, None))
    assert key is not None
    return key


def read_keys(scene: Scene) -> int:
    """The number of items read by key."""
    return sum(len(request.keys) for request in scene.tap.seen(Read))


def test_costs_a_copy_is_one_write_and_no_read_of_its_own():
    """A rename with n targets in the base table: n writes, and per page of them one Query and one read of the source.
    Their own records cost one read of the source and no write.
    """
    pages = 250 // Limits().fan_out_page_max_items + 1
    scene = scene_of("copy")
    scene.put("shop", user_item("u", name=s("Ada")), *(order_item("u", f"{i:03}") for i in range(250)))
    scene = settled(scene)
    scene.put("shop", user_item("u", name=s("Eve")))
    scene.deliver()
    assert len(scene.tap.writes) == 250
    assert read_keys(scene) == len(scene.tap.seen(List)) == pages
    scene.rest()
    assert len(scene.tap.writes) == 250
    assert read_keys(scene) == pages + 1


# ---------------------------------------------------------------- when nothing differs
@pytest.mark.parametrize("kinds", [*([kind] for kind in FORMS), TOGETHER], ids=lambda kinds: "-".join(kinds[:2]))
def test_costs_nothing_when_nothing_differs(kinds):
    """A backfill of everything, or every record once more, asks for no write, not even for one that is refused."""
    scene = scene_of(*kinds)
    delivered: list[Change] = []
    scene.put("shop", *(user_item(u, name=s(u), email=s(f"{u}@x")) for u in "uv"))
    scene.put("shop", *(order_item("u", str(i), total=n(i)) for i in range(5)))
    scene.put("reviews", *(review(f"r{i}", "uv"[i % 2], i) for i in range(9)))
    scene.put("parts", part("a", None), *(part(str(i), "a") for i in range(5)), part("x", "3"))
    while scene.records or scene.queue.messages:
        delivered += scene.records
        assert scene.deliver() == []
        scene.receive()
    assert scene.tap.writes
    assert scene.parked.failures == []
    scene.tap.requests.clear()
    assert scene.deliver(delivered) == []
    for table, items in ((table, scene.memory.items(table)) for table in scene.rules.tables):
        keys = [scene.rules.tables[table].key_of(item) for item in items]
        fresh = [Change(key, None, item, str(i)) for i, (key, item) in enumerate(zip(keys, items, strict=True)) if key]
        assert scene.deliver(fresh) == []
    finish(scene)
    assert scene.tap.writes == []
