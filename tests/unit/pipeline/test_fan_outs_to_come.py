"""Large fan-outs of a source that changes all the time: one that is still to come serves what asks before it begins."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Limits
from sync_rules.pipeline.breaker import PendingWork
from sync_rules.pipeline.messages import PushMessage
from sync_rules.pipeline.requests import NULL_PORTS, Host, Later, World

SOURCE = ItemKey("shop", (("PK", "S", "USER#1"),))
REST = PushMessage(("name",), SOURCE, cursor={"PK": {"S": "ORDER#999"}}, spread=True)
ASKED = Later(REST, rules=REST.rules)


class Process:
    """A process with a queue that it shares with others, and clocks that are set."""

    def __init__(self, sent=None):
        self.wall = self.monotonic = 1_000.0
        self.sent = [] if sent is None else sent
        self.refuses = False
        host = Host(lambda: self.wall, lambda: self.monotonic, nullcontext)
        self.pending = PendingWork(Limits(), host)
        self.world = World(NULL_PORTS, self, NULL_PORTS, pending=self.pending)

    def send(self, message, delay_seconds):
        if self.refuses:
            raise StoreError("QueueDown")
        self.sent.append((round(self.wall), delay_seconds, message))

    def ask(self, request=ASKED):
        self.world.answer(request)

    def passes(self, seconds):
        self.wall += seconds
        self.monotonic += seconds

    @property
    def delays(self):
        return [delay for _, delay, _ in self.sent]


@pytest.fixture
def process():
    return Process()


def test_fan_outs_of_a_source_that_changes_all_the_time_are_few(process):
    """3,600 batches in an hour ask for a fan-out, and each wait is twice the one before it, up to five minutes."""
    for _ in range(3_600):
        process.ask()
        process.passes(1)
    assert process.delays[:8] == [0, 5, 10, 20, 40, 80, 160, 300]
    assert len(process.sent) <= 8 + 3_600 / 300


@pytest.mark.parametrize("last", [3.5, 4.5])
def test_fan_out_in_its_last_two_seconds_serves_nothing_more(process, last):
    """Clocks are not exact."""
    for seconds in (0, 1, last):
        process.passes(seconds)
        process.ask()
    assert process.delays == [0, 5, 10]


@pytest.mark.parametrize(
    "other",
    [
        replace(REST, removed=True),
        replace(REST, rules=("name", "city")),
        replace(REST, cursor={"PK": {"S": "ORDER#998"}}),
        replace(REST, source=ItemKey("shop", (("PK", "S", "USER#2"),))),
    ],
)
def test_fan_out_serves_only_what_it_covers(process, other):
    """A removal, other rules, another source or other targets have a fan-out of their own."""
    process.ask()
    process.ask()
    process.ask(Later(other, rules=other.rules))
    assert process.delays == [0, 5, 0]


@pytest.mark.parametrize("late", ["wall", "monotonic"])
def test_fan_out_is_to_come_only_if_both_clocks_say_so(process, late):
    """One clock stood still for the five seconds of the wait, as in a process that was frozen."""
    process.ask()
    process.ask()
    process.passes(5)
    setattr(process, late, getattr(process, late) - 5)
    process.ask()
    assert process.delays == [0, 5, 10]
