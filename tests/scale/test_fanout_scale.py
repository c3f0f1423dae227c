"""A fan-out of 100,000 targets in memory, on a clock that stands still but for requests: every invocation stays within
its bounds, and workers are needed in parallel and not one after the other.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.model.items import Change
from sync_rules.model.limits import Limits
from sync_rules.model.values import Item
from sync_rules.model.writes import WRITTEN, Result
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import Message, PushMessage, format_message, parse_message
from sync_rules.pipeline.requests import Apply, List, Page, Read, World
from tests.support.builders import author_item, library, s
from tests.support.worlds import Parked, event_of

TARGETS = 100_000
LIMITS = Limits()
REQUEST_MS, WRITE_MS = 10, 1  # what each takes
TIMEOUT_MS = 300_000
EVE = author_item("a1", name=s("Eve"))


@dataclass
class Invocation:
    """One invocation: its begin and end in milliseconds; `depth` counts the invocations before it in a row."""

    kind: str
    depth: int
    began: int
    ended: int = 0
    listed: int = 0
    images: int = 0
    writes: int = 0
    requests: int = 0
    sent: int = 0


@dataclass
class Cloud:
    """A store that makes up its targets, and a queue with as many workers as there are messages."""

    now: Invocation = field(default_factory=lambda: Invocation("nobody", 0, 0))
    done: list[Invocation] = field(default_factory=list)
    written: Counter[str] = field(default_factory=Counter)
    delays: list[int] = field(default_factory=list)
    waiting: list[tuple[int, int, int, Message]] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def _takes(self, ms: int) -> None:
        self.now.requests += 1
        self.now.ended += ms

    def list(self, request: List) -> Page:
        self._takes(REQUEST_MS)
        start = int(request.cursor["book_id"]["S"]) + 1 if request.cursor else 0
        end = min(start + request.limit, TARGETS)
        items = tuple({"book_id": s(f"{i:06}"), "author_id": s("a1")} for i in range(start, end))
        self.now.listed += len(items)
        return Page(items, items[-1] if end < TARGETS else None)

    def read(self, request: Read) -> tuple[Item | None, ...]:
        self._takes(REQUEST_MS * -(-len(request.keys) // 100))
        if request.keys[0].table == "authors":
            return (EVE,)
        self.now.images += len(request.keys)
        return tuple({**key.attributes(), "author_id": s("a1")} for key in request.keys)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        self._takes(WRITE_MS * len(request.writes))
        self.now.writes += len(request.writes)
        self.written.update(str(write.key) for write in request.writes)
        return (WRITTEN,) * len(request.writes)

    def send(self, message: Message, delay_seconds: int) -> None:
        self._takes(REQUEST_MS)
        self.now.sent += 1
        if delay_seconds:
            self.delays.append(delay_seconds)
            return
        again = parse_message(format_message(message))
        heapq.heappush(self.waiting, (self.now.ended, next(self.numbers), self.now.depth + 1, again))

    def play(self) -> None:
        """The record of the author, then each message by a worker of its own, as soon as it was sent."""
        rules = library()
        consumer = Consumer(rules, World(self, self, Parked()), THIS_PROCESS, limits=LIMITS)
        key = rules.tables["authors"].key_of(EVE)
        assert key is not None
        self.now = Invocation("stream", 0, 0)
        event = event_of(rules, Change(key, None, EVE, "1"))
        assert consumer.handle_event(event, self._remaining_ms) == {"batchItemFailures": []}
        self.done.append(self.now)
        while self.waiting:
            at, _, depth, message = heapq.heappop(self.waiting)
            kind = "spread" if isinstance(message, PushMessage) else "chunk"
            self.now = Invocation(kind, depth, at, at)
            consumer.handle_message(message, self._remaining_ms)
            self.done.append(self.now)

    def _remaining_ms(self) -> int:
        return TIMEOUT_MS - (self.now.ended - self.now.began)

    def of(self, kind: str) -> list[Invocation]:
        return [one for one in self.done if one.kind == kind]


@pytest.mark.night
def test_scale_a_large_fan_out_is_the_work_of_many():
    """A shard is held up by 1,000 targets, no worker looks at more than 200, a chain is three messages long; all is done
    in a small part of the time that it would take one after the other; each target is written once.
    """
    cloud = Cloud()
    cloud.play()
    assert len(cloud.written) == TARGETS
    assert set(cloud.written.values()) == {1}
    assert cloud.delays == [60]

    (stream,) = cloud.of("stream")
    assert stream.images == stream.writes == LIMITS.fan_out_inline_max_items
    assert stream.sent == 1
    assert stream.requests < 50

    spreads, in_chunks = cloud.of("spread"), cloud.of("chunk")
    rest = TARGETS - LIMITS.fan_out_inline_max_items
    assert len(spreads) == -(-rest // LIMITS.fan_out_spread_max_items)
    for one in spreads:
        assert (one.images, one.writes) == (0, 0)
        assert one.listed <= LIMITS.fan_out_spread_max_items
        assert one.requests <= 500 + 250 + 2  # pages, chunks, the rest or the second look
    assert len(in_chunks) == -(-rest // LIMITS.fan_out_chunk_max_items)
    steps = -(-LIMITS.fan_out_chunk_max_items // LIMITS.chunk_step_max_items)
    for one in in_chunks:
        assert one.images == one.writes <= LIMITS.fan_out_chunk_max_items
        assert one.requests <= 3 * steps  # images, source, writes
        assert one.sent == 0

    assert max(one.depth for one in cloud.done) == 3  # the rest, the rest of the rest, its last chunk
    at_once = max(sum(other.began <= one.began < other.ended for other in in_chunks) for one in in_chunks)
    serially = sum(one.ended - one.began for one in cloud.done)
    assert at_once > 5
    assert max(one.ended for one in cloud.done) < serially / 5
