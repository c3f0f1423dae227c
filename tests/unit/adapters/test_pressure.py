"""Batches at a table's limit: few writes are throttled, none is lost, and nearly all of the limit is used."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.answering import THROTTLED, Bucket
from sync_rules.adapters.batch_writer import (
    BATCH_WAIT_SECONDS,
    Pressure,
)
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.model.writes import WRITTEN, Result, Status
from sync_rules.pipeline.requests import Apply
from tests.support.builders import exists, n, update
from tests.unit.adapters.test_batches import SHOP, TABLES, answers, order, store_on
from tests.unit.adapters.test_dynamodb import Client
from tests.unit.adapters.test_rate import Clock

HOT = "ProvisionedThroughputExceeded"
CALL_SECONDS = 0.005


def updates(numbers: range):
    return tuple(update(SHOP, order(i), exists(SHOP), a=n(i)) for i in numbers)


class Limited:
    """A client of a table with a number of partitions, each with a limit of writes a second."""

    def __init__(self, clock: Clock, rate: float, partitions: int) -> None:
        self.clock = clock
        self.buckets = [Bucket(rate, clock) for _ in range(partitions)]
        self.written: list[int] = []
        self.throttled = 0

    def batch_execute_statement(self, Statements):  # noqa: N803 -- as DynamoDB names it
        self.clock.now += CALL_SECONDS
        return {"Responses": [self._answer(int(one["Parameters"][0]["N"])) for one in Statements]}

    def _answer(self, number: int):
        if self.buckets[number % len(self.buckets)].take():
            self.written.append(number)
            return {}
        self.throttled += 1
        return {"Error": THROTTLED}


def limited(rate: float, partitions: int, **options) -> tuple[DynamoStore, Limited, Clock]:
    clock = Clock()
    client = Limited(clock, rate, partitions)
    store = DynamoStore(client, TABLES, sleep=clock.sleep, workers=4, write_mode="batch", **options)
    store._writer._pressure._spread = Random(7).uniform
    return store, client, clock


@pytest.mark.parametrize(("rate", "partitions", "copies"), [(400, 1, 3_000), (1_000, 4, 20_000), (100, 1, 2_000)])
def test_pressure_uses_what_a_table_takes(rate, partitions, copies):
    """Batches use at least 95 % of a table's limit, with at most 0.3 throttled writes per copy."""
    store, client, clock = limited(rate, partitions)
    for start in range(0, copies, 100):
        assert set(store.apply(Apply(updates(range(start, start + 100))))) == {WRITTEN}
    assert sorted(client.written) == list(range(copies))
    assert client.throttled <= 0.3 * copies
    whole = rate * partitions
    assert (copies - whole) / whole >= 0.95 * (clock.now - 1_000)


def test_pressure_leaves_nothing_out_at_the_deadline():
    """Each write not done by the deadline fails with the throttle's reason; all others were written."""
    found: list[str] = []
    store, client, clock = limited(100, 1, remaining_seconds=lambda: 1_001.5 - clock.now, on_throttle=found.append)
    results = [one for start in range(0, 400, 100) for one in store.apply(Apply(updates(range(start, start + 100))))]
    assert clock.now <= 1_001.5 + 5 * CALL_SECONDS
    assert {i for i, one in enumerate(results) if one == WRITTEN} == set(client.written)
    late = Result(Status.FAILED, reason="ProvisionedThroughputExceededException")
    assert results.count(WRITTEN) + results.count(late) == 400
    assert 150 <= results.count(WRITTEN) <= 255
    assert len(found) == client.throttled


def test_pressure_lets_the_rest_wait():
    """After a throttle, batches go out one at a time, and none follows a batch that is largely throttled again.
    Throttled writes come last.
    """
    full, hot, little = answers(*[""] * 25), answers(*[HOT] * 25), answers(*[HOT] * 5, *[""] * 20)
    client = Client(full, hot, hot, full, full)
    store, waits = store_on(client)
    assert store.apply(Apply(updates(range(75)))) == (WRITTEN,) * 75
    sent = [[int(entry["Parameters"][0]["N"]) for entry in call["Statements"]] for _, call in client.calls]
    first, second, third = ([*range(start, start + 25)] for start in (0, 25, 50))
    assert sent == [first, second, third, second, third]
    assert len(waits) == 1
    client = Client(hot, full, little, answers(*[""] * 5))
    client.calls.clear()
    store._writer._client = client
    assert store.apply(Apply(updates(range(50)))) == (WRITTEN,) * 50
    sent = [[int(entry["Parameters"][0]["N"]) for entry in call["Statements"]] for _, call in client.calls]
    assert sent == [first, second, first, first[:5]]
    assert len(waits) == 3


@pytest.mark.parametrize("hot", [1, 8, 25, 100])
@pytest.mark.parametrize("before", [False, True], ids=["calm", "pressed"])
def test_pressure_of_a_hot_key_is_in_nobodys_way(hot, before):
    """A hot key that is throttled for ever fails alone: every update behind it is written, each time."""
    store, client, _ = limited(10_000, 1)
    healthy = client._answer
    client._answer = lambda number: healthy(number) if number >= hot else {"Error": THROTTLED}
    if before:
        store.apply(Apply(updates(range(hot + 1))))
    for _ in range(3):
        results = store.apply(Apply(updates(range(200))))
        assert [one == WRITTEN for one in results] == [False] * hot + [True] * (200 - hot)


def test_pressure_spreads_those_that_wait():
    """A pause is drawn from its upper half, so that throttled processes do not return together."""
    pressure = Pressure()
    pressure.slow_down()
    pauses = {pressure.pause() for _ in range(100)}
    assert len(pauses) > 90
    assert all(BATCH_WAIT_SECONDS / 2 <= pause <= BATCH_WAIT_SECONDS for pause in pauses)
