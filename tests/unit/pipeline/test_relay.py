"""The rest of a push through the base table: each worker lists one page, tells the next where to begin, and reconciles."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Limits
from sync_rules.pipeline.messages import PushMessage, format_message, parse_message
from sync_rules.pipeline.requests import Apply, List, Page, Read
from tests.support.builders import order_item, s, shop, user_item
from tests.support.worlds import Scene
from tests.unit.pipeline.test_handover import received

SMALL = Limits(
    fan_out_page_max_items=3, fan_out_inline_max_items=6, fan_out_relay_max_items=5, fan_out_chunk_max_items=4
)


def scene_with(orders: int, limits: Limits = SMALL, **options: object) -> Scene:
    """A user who was renamed, the record not processed yet, and orders in the user's partition with the old name."""
    scene = Scene(shop(**options), limits=limits)
    scene.there("shop", *(order_item("1", f"{i:03}", user_name=s("Ada")) for i in range(orders)))
    scene.put("shop", user_item("1", name=s("Eve")))
    return scene


def names(scene: Scene) -> Counter[str]:
    return Counter(item["user_name"]["S"] for item in scene.memory.items("shop") if "user_name" in item)


def at(scene: Scene, number: int) -> ItemKey:
    return scene.at("shop", "USER#1", f"ORDER#{number:03}")


def handed_over(scene: Scene) -> PushMessage:
    """The message that the record of the user ends with."""
    assert scene.deliver() == []
    ((message, delay),) = scene.queue.messages
    scene.queue.messages.clear()
    scene.tap.requests.clear()
    assert isinstance(message, PushMessage)
    assert (message.spread, delay) == (True, 0)
    return parse_message(format_message(message))  # type: ignore[return-value]


# ---------------------------------------------------------------- what is read and sent
def test_relay_reads_each_item_once():
    """With any number of workers, the pipeline lists each target once, reads it no other way, and writes it once."""
    scene = scene_with(40)
    listed: list[Page] = []
    answer = scene.memory.list
    scene.memory.list = lambda request: listed.append(answer(request)) or listed[-1]  # type: ignore[method-assign]
    message = handed_over(scene)
    scene.queue.send(message, 0)
    sent = received(scene)
    assert [type(one) for one, _ in sent] == [PushMessage] * 7  # 6 inline, then 5 each
    assert sum(len(page.items) for page in listed) == 40
    read = {str(key) for request in scene.tap.requests if isinstance(request, Read) for key in request.keys}
    assert read == {"shop[USER#1, PROFILE]"}
    assert names(scene) == {"Eve": 40}
    assert len(scene.tap.writes) == 40 - 6


@pytest.mark.parametrize("again", [False, True])
def test_relay_takes_its_image_first_and_sends_the_rest_ahead_but_once(again):
    """A page is listed, consistently, before its source is read. The rest is sent before the first write; by a message
    that comes again, which may have sent it before, after the last one, and as a push that one worker goes on with.
    """
    scene = scene_with(20)
    message = handed_over(scene)
    order_of: list[str] = []
    scene.tap.before = lambda request: order_of.append(type(request).__name__)
    send = scene.queue.send
    scene.queue.send = lambda *one: (order_of.append("send"), send(*one))[1]  # type: ignore[method-assign]
    scene.consumer.handle_message(message, again=again)
    assert order_of == (["List", "Read", "Apply", "send"] if again else ["List", "send", "Read", "Apply"])
    (page,) = [request for request in scene.tap.requests if isinstance(request, List)]
    assert page.index is None
    ((rest, _),) = scene.queue.messages
    assert isinstance(rest, PushMessage)
    assert (rest.spread, rest.cursor) == (not again, at(scene, 10).attributes())
    received(scene)
    assert names(scene) == {"Eve": 20}


# ---------------------------------------------------------------- what fails


def test_relay_that_dies_again_and_again_does_not_multiply():
    """An item that kills its worker each time costs its own page some deliveries, and those behind it none."""
    scene = scene_with(60)
    poison = {at(scene, 13), at(scene, 23), at(scene, 33), at(scene, 43)}
    scene.queue.send(handed_over(scene), 0)

    def dies(request: object) -> None:
        if isinstance(request, Apply) and any(write.key in poison for write in request.writes):
            raise MemoryError

    scene.tap.before = dies
    while scene.queue.messages:
        ((message, _), *others) = scene.queue.messages
        scene.queue.messages = others
        for receives in range(1, 9):
            with suppress(MemoryError):
                scene.consumer.handle_message(message, again=receives > 1)
                break
    assert sum(isinstance(request, List) for request in scene.tap.requests) == 7 + 4 * 8
    assert names(scene) == {"Eve": 40, "Ada": 20}
