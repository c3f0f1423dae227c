"""Handover of a push: chunks of target keys, the rest of a spread, the second look, and nothing twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.sqs import MESSAGE_MAX_BYTES
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds, Limits
from sync_rules.pipeline.consumer import process_message
from sync_rules.pipeline.handover import split_keys
from sync_rules.pipeline.messages import ChunkMessage, Message, PushMessage, format_message, parse_message
from sync_rules.pipeline.requests import run_work
from tests.support.builders import book_item, library, s, shop
from tests.support.depth import deep
from tests.support.every_kind import order, user
from tests.support.worlds import Scene, deliver_whatever_fails
from tests.unit.pipeline.test_fanout import EVE, scene_with

RULE = "author-on-books"
SMALL = Limits(
    fan_out_page_max_items=3,
    fan_out_inline_max_items=6,
    fan_out_spread_max_items=9,
    fan_out_chunk_max_items=4,
    chunk_step_max_items=2,
)


def names(scene: Scene) -> Counter[str]:
    return Counter(item["author_name"]["S"] for item in scene.memory.items("books"))


def received(scene: Scene) -> list[tuple[Message, int]]:
    """Handle every message, those that come of it included, until none is left. Returns all of them, in order."""
    found: list[tuple[Message, int]] = []
    while scene.queue.messages:
        found += scene.queue.messages
        scene.receive()
    return found


def author(scene: Scene) -> ItemKey:
    return scene.at("authors", "a1")


def chunk(scene: Scene, *books: str, **more: object) -> ChunkMessage:
    keys = tuple(scene.at("books", book) for book in books)
    return ChunkMessage(**{"rules": (RULE,), "source": author(scene), "targets": keys, **more})


# ---------------------------------------------------------------- what is sent


def test_handover_of_a_second_look_remembers_what_it_found():
    """A second look that wrote something and was handed over is followed by another look, whatever its rest finds."""
    scene = Scene(library(), limits=replace(SMALL, fan_out_second_look_max_items=6))
    right = [book_item(f"b{i:05}", "a1", author_name=s("Eve")) for i in range(20)]
    scene.there("authors", EVE)
    scene.there("books", *right, {**right[0], "author_name": s("Ada")})  # written while the index did not show it
    scene.queue.send(PushMessage((RULE,), author(scene), delay_seconds=60), 60)
    sent = received(scene)
    assert [delay for message, delay in sent if message.cursor is None] == [60, 120]
    rests = [message.found for message, _ in sent if message.cursor is not None]
    assert rests == [True] * 3 + [False] * 3  # of the look that found something, then of the one that did not
    assert names(scene) == {"Eve": 20}


@pytest.mark.parametrize("world", ["index", "base table"])
@settings(max_examples=deep(150), deadline=None)
@given(
    targets=st.integers(1, 25),
    limits=st.builds(
        Limits,
        fan_out_page_max_items=st.integers(1, 5),
        fan_out_inline_max_items=st.integers(1, 8),
        fan_out_spread_max_items=st.integers(1, 12),
        fan_out_relay_max_items=st.integers(1, 6),
        apply_max_writes=st.integers(1, 4),
        fan_out_chunk_max_items=st.integers(1, 5),
        chunk_step_max_items=st.integers(1, 3),
        fan_out_chunk_max_bytes=st.sampled_from([1, 30, 10_000]),
        fan_out_second_look_max_items=st.integers(1, 8),
    ),
    failing=st.sets(st.integers(0, 80)),
)
def test_handover_reaches_every_target_whatever_fails(world, targets, limits, failing):
    """With any limits, and with any requests, writes and sends failing once, every target is right after redelivery:
    those of an index, which go on as chunks of keys, and those of a base table, page by page.
    """
    if world == "index":
        scene = scene_with(targets, limits)
    else:
        scene = Scene(shop(), limits=limits)
        scene.there("shop", *(order("1", f"{number:02}", 5) for number in range(targets)))
        scene.put("shop", user("1", name=s("Eve")))
    deliver_whatever_fails(scene, failing)
    copied = [scene.memory.items(table) for table in scene.rules.tables if table != "authors"]
    shown = [item.get("author_name", item.get("user_name")) for items in copied for item in items if "name" not in item]
    assert shown == [s("Eve")] * targets


# ---------------------------------------------------------------- how large a chunk is
TEXTS = {"ascii": "k", "control": "\x01", "two bytes": "é", "three bytes": "€", "four bytes": "😀", "quotes": '"'}


@pytest.mark.parametrize("text", [*TEXTS, "binary"])
def test_chunk_always_fits_into_a_message(text):
    """Keys of the largest size, in whatever letters JSON makes most of, with the longest names, and rules by the dozen:
    a chunk fits into a message of SQS, and even into one of before August 2025.
    """
    name = "n" * 255
    of = {"binary": lambda size: b"\xff" * size} | {
        key: lambda size, one=one: one * (size // len(one.encode())) for key, one in TEXTS.items()
    }
    kind = "B" if text == "binary" else "S"

    def largest() -> ItemKey:
        return ItemKey(name, ((name, kind, of[text](2048)), (name.upper(), kind, of[text](1024))))

    found = split_keys([largest()] * 500, Limits())
    assert sum(map(len, found)) == 500
    for keys in found:
        body = format_message(ChunkMessage((name,) * 24, largest(), tuple(keys)))
        assert len(body.encode()) <= MESSAGE_MAX_BYTES // 4
        assert parse_message(body).targets == tuple(keys)  # type: ignore[union-attr]


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 5), st.integers(1, 60))
def test_chunks_keep_within_both_limits(sizes, most, room):
    """No chunk has more keys or bytes than allowed, but for a single key that is too large by itself; none could take
    the first of the next.
    """
    keys = [ItemKey("t", (("k", "S", "x" * size),)) for size in sizes]
    limits = Limits(fan_out_chunk_max_items=most, fan_out_chunk_max_bytes=room)
    found = split_keys(keys, limits)
    assert [key for some in found for key in some] == keys
    weights = [[len(key.values[0][2]) + 5 for key in some] for some in found]
    assert all(found) or not keys
    assert all(len(some) == 1 or (len(some) <= most and sum(some) <= room) for some in weights if some)
    for one, two in pairwise(weights):
        assert len(one) == most or sum(one) + two[0] > room


# ---------------------------------------------------------------- messages of before, and rules of before


def test_chunk_of_known_and_unknown_rules_goes_on_for_the_unknown_alone():
    """The rules that this version knows are applied once; a message goes on for the others."""
    scene = scene_with(3, SMALL)
    scene.queue.messages.clear()
    scene.consumer.handle_message(chunk(scene, "b00000", rules=("gone", RULE)))
    assert names(scene)["Eve"] == 1
    assert scene.queue.messages == [(chunk(scene, "b00000", rules=("gone",)), 0)]
    scene.queue.broken = "QueueNotFound"
    with pytest.raises(StoreError, match="QueueNotFound"):
        scene.consumer.handle_message(chunk(scene, "b00000", rules=("gone", RULE)))


# ---------------------------------------------------------------- what takes long
def handled(scene: Scene, message: Message, *, looks: int) -> bool:
    """Handle a message with time for a number of looks at the clock. Returns true if it is done."""
    left = [looks]

    def out_of_time() -> bool:
        left[0] -= 1
        return left[0] < 0

    bounds = Bounds(scene.limits, out_of_time)
    report = run_work(process_message(message, scene.rules, bounds), scene.world)
    return not report.failed


@pytest.mark.parametrize("looks", range(12))
def test_chunk_that_takes_long_goes_on_as_what_is_left_of_it(looks):
    """When time is up after some targets, the others are a new message, of fewer targets each time; before the first are
    done, it comes again whole. So what is slow ends after all, however often SQS gives a message up.
    """
    scene = scene_with(6, SMALL)
    message = chunk(scene, *(f"b{i:05}" for i in range(6)))
    done = handled(scene, message, looks=looks)
    rest = [sent for sent, _ in scene.queue.messages]
    right = [at for at in message.targets if scene.item(at)["author_name"] == s("Eve")]
    if not done:
        assert (rest, len(right) < SMALL.chunk_step_max_items or looks == 0) == ([], True)
    elif len(right) < 6:
        (left,) = rest
        assert isinstance(left, ChunkMessage)
        assert set(message.targets) - set(right) <= set(left.targets) < set(message.targets)
        assert (left.rules, left.source, left.removed) == (message.rules, message.source, message.removed)
    else:
        assert rest == []
    scene.queue.messages = [] if done else [(message, 0)]
    for sent in rest:
        assert handled(scene, sent, looks=99)
    if done:
        assert names(scene) == {"Eve": 6}


def test_chunk_whose_rest_cannot_be_sent_comes_again():
    """The message is done only when another one stands for what is left."""

    def refused(_message: Message, _delay_seconds: int) -> None:
        raise StoreError("Throttled")

    for looks in range(12):
        scene = scene_with(6, SMALL)
        scene.queue.send = refused  # type: ignore[method-assign]
        done = handled(scene, chunk(scene, *(f"b{i:05}" for i in range(6))), looks=looks)
        assert done is (names(scene) == {"Eve": 6})
