"""Delivery variants: which records reach a rehearsed pipeline, their order, and how often they come."""

from __future__ import annotations

from random import Random

import pytest

from sync_rules.lab.delivery import Arrival, Arrivals, Delivery
from sync_rules.model.entities import KeyAttribute, Table
from sync_rules.pipeline.messages import PullMessage
from tests.support.builders import key, n

TABLE = Table("items", "items", KeyAttribute("id", "S"), None, ())
A, B, C = (key(TABLE, name) for name in "abc")
WRITTEN = (A, B, A, C, B, A, A, B)


def arrivals(delivery: Delivery) -> Arrivals:
    on_the_way = Arrivals(delivery, Random(delivery.seed))
    for number, one in enumerate(WRITTEN):
        on_the_way.record(one, None, {**one.attributes(), "n": n(number)})
    return on_the_way


def delivered(on_the_way: Arrivals) -> list[tuple[str, ...]]:
    """All batches until nothing is left, by the positions of their records."""
    found = []
    while (arrival := on_the_way.next()) is not None:
        found.append(tuple(change.position for change in arrival.changes))
        on_the_way.finish(arrival)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_delivery_shuffled_keeps_the_order_of_each_item(seed):
    """Every record comes once, and those of one item in their order."""
    positions = [
        position
        for batch in delivered(arrivals(Delivery(seed=seed, shuffled=True, batch_max_records=3)))
        for position in batch
    ]
    assert sorted(positions) == [str(number) for number in range(1, len(WRITTEN) + 1)]
    for one in (A, B, C):
        mine = [position for position in positions if WRITTEN[int(position) - 1] == one]
        assert mine == sorted(mine)


def test_delivery_brings_back_what_was_not_finished_before_newer_records():
    """Everything from the first record of a failed item on is delivered again before newer records."""
    on_the_way = arrivals(Delivery(batch_max_records=4))
    arrival = on_the_way.next()
    assert arrival is not None
    on_the_way.retry(arrival, [B])
    again = on_the_way.next()
    assert again is not None
    assert [change.position for change in again.changes] == ["2", "3", "4", "5"]
    assert again.tries == 1
    on_the_way.retry(again)
    assert (on_the_way.next() or arrival).tries == 2


def test_delivery_what_was_set_aside_is_looked_at_while_something_changes():
    """A look that would find what the last one found is left out; where an item changed since, it is not."""
    on_the_way = Arrivals(Delivery(), Random(0))
    on_the_way.send(PullMessage(A, attempt=1), 60)
    assert on_the_way.next() is not None
    on_the_way.send(PullMessage(A, attempt=2), 60)
    assert on_the_way.next() is None
    on_the_way.send(PullMessage(A, attempt=2), 60)
    on_the_way.record(B, None, {})
    assert [bool((on_the_way.next() or Arrival()).changes) for _ in range(2)] == [True, False]
