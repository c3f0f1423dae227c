"""The queue in the process: delays, at least once, and what a checkpoint sees of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.jobs.consume import queue as local_queue
from sync_rules.jobs.consume.queue import LocalQueue, Pending
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.pipeline.messages import ChunkMessage, PullMessage, PushMessage, format_message
from tests.support.fake_stream import Clock


def pull(number: int) -> PullMessage:
    return PullMessage(ItemKey("shop", (("PK", "S", f"item-{number}"),)))


def queue_with(*delays: int):
    clock = Clock()
    queue = LocalQueue(clock.now_ms)
    for number, delay in enumerate(delays):
        queue.send(pull(number), delay)
    return clock, queue


def test_local_queue_delivers_what_is_due_first_first():
    """Due messages are taken in the order in which they became due, up to the number asked for."""
    clock, queue = queue_with(20, 10, 30)
    clock.ms += 30_000
    assert [taken.message for taken in queue.take(2)] == [pull(1), pull(0)]


def test_local_queue_waits_longer_for_a_message_given_back_again():
    """A message that was given back comes again after 1, 2, 4, ... seconds, at most 900."""
    clock, queue = queue_with(0)
    waits = []
    for _ in range(12):
        (taken,) = queue.take(1)
        queue.give_back(taken)
        waits.append((queue.pending_messages[0].due_ms - clock.ms) // 1000)
        clock.ms = queue.pending_messages[0].due_ms
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_local_queue_refuses_more_than_it_may_hold(monkeypatch):
    """A full queue says so, and the sender's work comes again."""
    monkeypatch.setattr(local_queue, "PENDING_MAX_MESSAGES", 1)
    _, queue = queue_with(0)
    with pytest.raises(StoreError, match="QueueFull"):
        queue.send(pull(1), 0)


KEY = ItemKey("shop", (("PK", "S", "USER#1"),))
PUSHES = (
    PushMessage(("names",), KEY, delay_seconds=60),
    PushMessage(("names",), KEY, cursor={"PK": {"B": b"\x00"}}),
    PushMessage(("names",), KEY, removed=True),
)


def test_local_queue_keeps_one_pull_per_target():
    """Several pulls of one target become one, at the earliest time and with the lowest attempt."""
    clock, queue = queue_with()
    target = pull(0).target
    queue.send(PullMessage(target, 5), 600)
    queue.send(PullMessage(target, 1), 60)
    queue.send(PullMessage(target, 2), 120)
    assert queue.pending_messages == (Pending(PullMessage(target, 1), clock.ms + 60_000),)


def test_local_queue_keeps_one_of_equal_chunks():
    """A chunk is never too early: one that was sent again, or given back, is one with that which waits."""
    clock, queue = queue_with()
    chunk = ChunkMessage(("names",), KEY, (KEY,))
    queue.send(chunk, 0)
    clock.ms += 5
    queue.send(chunk, 0)
    queue.send(replace(chunk, removed=True), 0)
    assert [pending.message for pending in queue.pending_messages] == [chunk, replace(chunk, removed=True)]
    (taken, _) = queue.take(2)
    queue.send(chunk, 0)
    queue.give_back(taken)
    (pending,) = (one for one in queue.pending_messages if one.message == chunk)
    assert (pending.due_ms, pending.receives) == (clock.ms, 1)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60), st.sampled_from([10, 60, 900]))
def test_local_queue_gives_each_second_look_in_time_under_constant_traffic(pauses, delay):
    """Each requested second look happens one to two delays later, however often it is requested.

    At most two equal looks wait, and no three happen within one delay.
    """
    clock = Clock()
    queue, asked, looks = LocalQueue(clock.now_ms), [], []

    def run_until(ms):
        while clock.ms < ms:
            clock.ms = min([ms, *(p.due_ms for p in queue.pending_messages if p.due_ms > clock.ms)])
            for taken in queue.take(10):
                looks.append(clock.ms)
                queue.acknowledge(taken)

    for pause in pauses:
        queue.send(PushMessage(("names",), KEY, delay_seconds=delay), delay)
        asked.append(clock.ms)
        assert len(queue.pending_messages) <= 2
        run_until(clock.ms + pause * 1000)
    run_until(clock.ms + 2 * delay * 1000)
    assert queue.pending_messages == ()
    for at in asked:
        assert any(at + delay * 1000 <= look <= at + 2 * delay * 1000 for look in looks)
    assert all(later - look >= delay * 1000 for look, later in zip(looks, looks[2:], strict=False))


class Errands:
    """A queue that is sent to and worked off; remembers who is owed which look, and which looks there were."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.queue = LocalQueue(self.clock.now_ms)
        self.in_hand: list = []
        self.turn = 0
        self.owed: list[tuple[str, int, int]] = []  # what, asked in which turn, not before
        self.looks: list[tuple[str, int, int]] = []  # what, taken in which turn, and when

    def send(self, number: int) -> None:
        message = (*PUSHES, pull(0), pull(1))[number % 5]
        self.queue.send(message, number)
        not_before_ms = 0 if isinstance(message, PullMessage) else self.clock.ms + number * 1000
        self.owed.append((format_message(message), self.turn, not_before_ms))

    def take(self, _number: int) -> None:
        self.in_hand.extend((taken, self.turn, self.clock.ms) for taken in self.queue.take(2))

    def acknowledge(self, _number: int) -> None:
        if self.in_hand:
            taken, turn, at_ms = self.in_hand.pop()
            self.queue.acknowledge(taken)
            self.looks.append((format_message(taken.message), turn, at_ms))

    def give_back(self, _number: int) -> None:
        if self.in_hand:
            self.queue.give_back(self.in_hand.pop()[0])

    def restart(self, _number: int) -> None:
        self.queue, self.in_hand = LocalQueue(self.clock.now_ms, self.queue.pending_messages), []

    def do(self, what: str, number: int) -> None:
        self.turn += 1
        self.clock.ms += number * 100
        getattr(self, what)(number)


@given(
    st.lists(
        st.tuples(st.sampled_from(["send", "take", "acknowledge", "give_back", "restart"]), st.integers(0, 900)),
        max_size=80,
    )
)
def test_local_queue_loses_no_message(steps):
    """Every message sent is followed by the processing of an equal one, and for a push not before its time."""
    errands = Errands()
    for what, number in steps:
        errands.do(what, number)
        assert len(errands.queue.pending_messages) - len(errands.in_hand) <= 2 * len(PUSHES) + 2
    while errands.queue.pending_messages:
        errands.do("take", 10)
        errands.do("acknowledge", 0)
    for message, asked, not_before_ms in errands.owed:
        assert any(m == message and turn > asked and at >= not_before_ms for m, turn, at in errands.looks)
