"""The cost of each kind of rule, counted at the store: every write requested, refused ones included, and every read.

The figures are promises to whoever pays. Each test lets the pipeline rest after one change, the records of its own
writes and the second looks included, and then counts.
"""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.items import Change
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Action, Check, Delete, Increment, Put, Transaction, Update, Write
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


def acts(write: Write) -> list[type[Action]]:
    """The actions of a write, without its checks."""
    actions = write.actions if isinstance(write, Transaction) else (write,)
    return [type(action) for action in actions if not isinstance(action, Check)]


def elements(scene: Scene) -> list[type[Action]]:
    """The acts of all writes since: what a strict rule moves is one transaction, but two writes all the same."""
    return [act for write in bill(scene) for act in acts(write)]


# ---------------------------------------------------------------- elements of a parent
@pytest.mark.parametrize("kind", ["collect", "collect-strict", "embed"])
def test_costs_an_element_is_one_write(kind):
    """A child that comes, changes, moves or goes costs at most one write per element that comes or goes."""
    scene = scene_of(kind)
    scene.put("shop", user_item("u"), user_item("v"))
    key = scene.put("reviews", review("r1"))
    scene = settled(scene)
    scene.put("reviews", review("r2"))
    assert len(elements(scene)) == 1
    scene.put("reviews", review("r2", stars=4))  # an embedded entry changes, a set loses an element and gains another
    assert len(elements(scene)) == (1 if kind == "embed" else 2)
    scene.put("reviews", review("r2", user_id="v", stars=4))
    assert len(elements(scene)) == 2
    scene.put("reviews", {**review("r2", user_id="v", stars=4), "text": s("nobody shows it")})
    assert bill(scene) == []
    scene.memory.delete(key)
    assert len(elements(scene)) == 1


# ---------------------------------------------------------------- groups
@pytest.mark.parametrize("kind", ["count", "sum", "mean"])
def test_costs_a_count_is_one_transaction_of_three_and_one_copy(kind):
    """A child that comes or goes: its entry and its parent's total in one transaction, then one copy. One that moves:
    three writes in one transaction, and a copy on each parent.
    """
    scene = scene_of(kind)
    scene.put("shop", user_item("u"), user_item("v"))
    scene = settled(scene)
    key = scene.put("reviews", review("r"))
    assert [acts(write) for write in bill(scene)] == [[Increment, Put], [Update]]
    scene.put("reviews", review("r", user_id="v"))
    assert [acts(write) for write in bill(scene)] == [[Increment, Increment, Put], [Update], [Update]]
    scene.put("reviews", {**review("r", user_id="v"), "text": s("nobody counts it")})
    assert bill(scene) == []
    scene.memory.delete(key)
    assert [acts(write) for write in bill(scene)] == [[Increment, Delete], [Update]]


@pytest.mark.parametrize("kind", ["min", "max"])
def test_costs_the_least_and_the_greatest_are_one_transaction_and_one_copy(kind):
    """One rank item per child, checked against it; the parent is written only when its end of the ranks moves."""
    scene = scene_of(kind)
    scene.put("shop", user_item("u"))
    scene = settled(scene)
    scene.put("reviews", review("r1", stars=3))
    assert [acts(write) for write in bill(scene)] == [[Put], [Update]]
    scene.put("reviews", review("r2", stars=3))
    assert [acts(write) for write in bill(scene)] == [[Put]]
    scene.put("reviews", review("r2", stars=9 if kind == "max" else 1))
    (move, copy) = bill(scene)
    assert sorted(act.__name__ for act in acts(move)) == ["Delete", "Put"]
    assert isinstance(copy, Update)


# ---------------------------------------------------------------- one item, and another for it


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


# ---------------------------------------------------------------- what it costs to look
def reads_of(kind: str, children: int) -> tuple[int, int]:
    """The numbers of items read by key and of Queries, for a batch of one parent's children."""
    scene = scene_of(kind)
    scene.put("shop", user_item("u"))
    scene = settled(scene)
    scene.put("reviews", *(review(f"r{i:03}") for i in range(children)))
    scene.put("shop", *(order_item("u", str(i), total=n(i)) for i in range(children)))
    scene.rest()
    return read_keys(scene), len(scene.tap.seen(List))


@pytest.mark.parametrize(
    ("kind", "fixed", "each", "queries"),
    [
        ("collect", 2, 2, 0),  # each edge when it came and when its element did, the node both times
        # child and entry, when the child came and when the entry did; then parent and total, and the total once more;
        # the mark of the books before the first entry, and around each look at the total
        ("count", 8, 4, 0),
        ("sum", 8, 4, 0),
        ("embed-base", 1, 0, 2),  # the parent when its children came and, from its record, when it was written
        ("recount", 1, 0, 2),
        ("embed", 1, 2, 2),
    ],
)
def test_costs_reads_are_bounded(kind, fixed, each, queries):
    """A batch of n children of one parent needs a bounded number of reads by key and of Queries."""
    for children in (1, 10, 90):
        keys, asked = reads_of(kind, children)
        assert keys <= fixed + each * children, children
        assert asked <= queries, children


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
