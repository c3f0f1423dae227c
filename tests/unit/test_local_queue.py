"""The queue in the process: delays, at least once, and what a checkpoint sees of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules import local_queue
from sync_rules.errors import StoreError
from sync_rules.local_queue import LocalQueue
from sync_rules.messages import PullMessage
from sync_rules.model import ItemKey
from tests.fake_stream import Clock


def pull(number: int) -> PullMessage:
    return PullMessage(ItemKey("shop", (("PK", "S", f"item-{number}"),)))


def queue_with(*delays: int):
    clock = Clock()
    queue = LocalQueue(clock.now_ms)
    for number, delay in enumerate(delays):
        queue.send(pull(number), delay)
    return clock, queue


def test_local_queue_delivers_a_message_when_its_delay_is_over():
    """A message is out of sight until its delay is over, by the clock that was given."""
    clock, queue = queue_with(60)
    assert (queue.take(10), queue.due, queue.waiting) == ((), 0, 1)
    clock.ms += 60_000
    assert [taken.message for taken in queue.take(10)] == [pull(0)]


def test_local_queue_delivers_what_is_due_first_first():
    """Of the due messages, those due first are taken first, up to the number asked for."""
    clock, queue = queue_with(20, 10, 30)
    clock.ms += 30_000
    assert [taken.message for taken in queue.take(2)] == [pull(1), pull(0)]


def test_local_queue_hides_a_taken_message_from_others():
    """A message that is being handled is not given to anyone else."""
    _, queue = queue_with(0)
    assert len(queue.take(10)) == 1
    assert (queue.take(10), queue.due) == ((), 0)


def test_local_queue_forgets_a_message_only_when_acknowledged():
    """A taken message stays pending, and so in the checkpoint, until it is acknowledged."""
    _, queue = queue_with(0)
    (taken,) = queue.take(10)
    assert [pending.message for pending in queue.pending] == [pull(0)]
    queue.acknowledge(taken)
    assert queue.pending == ()


def test_local_queue_waits_longer_for_a_message_given_back_again():
    """A message that was given back comes again after 1, 2, 4, ... seconds, at most 900."""
    clock, queue = queue_with(0)
    waits = []
    for _ in range(12):
        (taken,) = queue.take(1)
        queue.give_back(taken)
        waits.append((queue.pending[0].due_ms - clock.ms) // 1000)
        clock.ms = queue.pending[0].due_ms
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]


def test_local_queue_refuses_more_than_it_may_hold(monkeypatch):
    """A full queue says so, and the sender's work comes again."""
    monkeypatch.setattr(local_queue, "PENDING_MAX_MESSAGES", 1)
    _, queue = queue_with(0)
    with pytest.raises(StoreError, match="QueueFull"):
        queue.send(pull(1), 0)


@given(
    st.lists(st.tuples(st.sampled_from(["send", "take", "acknowledge", "give back", "restart"]), st.integers(0, 900)))
)
def test_local_queue_loses_no_message(steps):
    """Whatever is sent, taken, given back or restored from what was pending: every message not acknowledged is pending."""
    clock = Clock()
    queue, expected, in_hand, sent = LocalQueue(clock.now_ms), set(), [], 0
    for what, number in steps:
        clock.ms += number * 100
        match what:
            case "send":
                queue.send(pull(sent), number)
                expected.add(pull(sent))
                sent += 1
            case "take":
                in_hand.extend(queue.take(2))
            case "acknowledge" if in_hand:
                taken = in_hand.pop()
                queue.acknowledge(taken)
                expected.remove(taken.message)
            case "give back" if in_hand:
                queue.give_back(in_hand.pop())
            case "restart":
                queue, in_hand = LocalQueue(clock.now_ms, queue.pending), []
        assert {pending.message for pending in queue.pending} == expected
