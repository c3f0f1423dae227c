"""The event source mapping and its pump: one fact of Lambda's documented behaviour each."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import Pump
from sync_rules.jobs.consume.mapping import EventSourceMapping, StepCounts
from sync_rules.jobs.consume.queue import LocalQueue
from sync_rules.jobs.consume.shards import ShardProgress
from sync_rules.jobs.streams import RecordsTrimmedError, ShardGoneError
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.pipeline.messages import PullMessage
from tests.support.fake_stream import (
    ARN,
    Clock,
    FakeShard,
    FakeStream,
    expired,
    failed,
    positions,
    record,
    throttled,
)

SHARED = Path(os.environ.get("SHARED_CASES", Path(__file__).parents[4] / "shared" / "cases"))
RECORDED = SHARED / "events" / "derived-from-localstack"


class Harness:
    """One stream, one function that answers from a script, a mapping in between, and a clock in hand."""

    def __init__(self, *shards: FakeShard, answer=None, progress=(), **given) -> None:
        self.clock = Clock()
        self.stream = FakeStream({f"shard-{n}": shard for n, shard in enumerate(shards)})
        self.answer = answer or (lambda _event: None)
        self.delivered: list[list[int]] = []
        self.given_up: list[dict] = []
        self.settings = MappingSettings(**given)
        self.mapping = self.make(progress)

    def make(self, progress=()) -> EventSourceMapping:
        return EventSourceMapping(
            ARN,
            self.stream,
            self.invoke,
            self.given_up.append,
            now_ms=self.clock.now_ms,
            settings=self.settings,
            progress=progress,
        )

    def invoke(self, event):
        self.delivered.append(positions(event))
        return self.answer(event)

    def until_idle(self, limit: int = 500) -> StepCounts:
        total = StepCounts()
        self.mapping.look_again()
        for _ in range(limit):
            total += self.mapping.poll()
            if self.mapping.idle:
                return total
            self.clock.ms += 1_000
        pytest.fail("the mapping did not come to rest")

    def after(self, shard: str = "shard-0") -> str | None:
        return next(p.after for p in self.mapping.progress if p.shard_id == shard)


def test_pump_is_not_idle_before_it_knows_the_shards():
    """`run --once` would end with nothing done."""
    h = Harness(shard(1))
    assert not h.mapping.idle
    h.until_idle()
    assert h.mapping.idle
    h.mapping.look_again()
    assert not h.mapping.idle


def shard(*numbers: int, parent: str | None = None, closed: bool = False, keys: int = 1) -> FakeShard:
    return FakeShard(parent, closed, [record(n, f"item-{n % keys}") for n in numbers])


def test_mapping_asks_more_often_while_changes_are_made():
    """After an empty page a shard waits `poll_busy_ms` if it brought a record lately, and else `poll_idle_ms`."""
    h = Harness(shard(1), poll_busy_ms=20, busy_ms=1_000)
    asked = list[int]()
    records = h.stream.records
    h.stream.records = lambda *given: asked.append(h.clock.ms) or records(*given)
    for _ in range(300):
        h.mapping.poll()
        h.clock.ms += 10
    pauses = [after - before for before, after in itertools.pairwise(asked)]
    assert pauses[0] == 10  # a page with records is followed at once
    assert set(pauses[1:40]) == {20}
    assert set(pauses[-4:]) == {250}


def throws(_event):
    raise RuntimeError("secret value")


def fails_at(*numbers: int):
    return lambda event: failed(*(n for n in positions(event) if n in numbers))


# ---------------------------------------------------------------- shards


def test_pump_looks_for_children_at_once_when_a_shard_is_closed():
    """Children of a closed shard are read at once."""
    h = Harness(shard(1))
    h.mapping.poll()
    h.stream.held["shard-0"].closed = True
    h.stream.held["shard-9"] = shard(2, parent="shard-0")
    h.mapping.poll()
    h.mapping.poll()
    assert h.delivered == [[1], [2]]


# ---------------------------------------------------------------- batches
def poisoned_by(number: int):
    return lambda event: throws(event) if number in positions(event) else None


def trimmed_to(number: int) -> FakeShard:
    made = shard(1, 2, 3, 4)
    made.trimmed_to = number
    return made


BIG = [record(n, NewImage={"X": {"S": "x" * 2_500_000}}) for n in (1, 2, 3)]
DELIVERED = {
    "a parent that was trimmed is not waited for": ({}, shard(5, parent="shard-long-gone"), [[5]], 0, []),
    "a batch ends before its event would pass 6 MB": ({}, FakeShard(records=BIG), [[1, 2], [3]], 0, []),
    "reading goes on with the oldest record left": (
        {"progress": [ShardProgress("shard-0", after="1")]}, trimmed_to(3), [[4]], 1, [],
    ),
    "the children of a shard that is gone are read": (
        {"progress": [ShardProgress("shard-gone", after="1")]}, shard(5, parent="shard-gone"), [[5]], 1, [],
    ),
    "a thrown error splits the batch until the record alone is left": (
        {"answer": poisoned_by(3), "maximum_retry_attempts": 0}, shard(1, 2, 3, 4),
        [[1, 2, 3, 4], [1, 2], [3, 4], [3], [4]], 0, [3],
    ),
    **{
        f"an answer of {answer} means that the whole batch succeeded": (
            {"answer": lambda _event, answer=answer: answer}, shard(1, 2), [[1, 2]], 0, [],
        )
        for answer in (None, {}, [], {"batchItemFailures": []}, {"batchItemFailures": None})
    },
}  # fmt: skip


@pytest.mark.parametrize("why", DELIVERED)
def test_pump_delivers_as_lambda_does(why):
    """Each batch once, in this order; what was trimmed is counted, what always throws is given up."""
    given, held, delivered, trimmed, given_up = DELIVERED[why]
    h = Harness(held, **given)
    total = h.until_idle()
    assert (h.delivered, total.records_trimmed) == (delivered, trimmed)
    assert [positions(json.loads(one["payload"])) for one in h.given_up] == [[number] for number in given_up]
    assert h.after() == str(max(number for batch in delivered for number in batch))


def test_pump_reads_ahead_only_so_far():
    """A shard that is held up is not read on without limit."""
    h = Harness(shard(*range(1, 101)), answer=throws, read_ahead_max_records=10, maximum_retry_attempts=10_000)
    for _ in range(20):
        h.mapping.poll()
        h.clock.ms += 1_000
    assert h.mapping.outstanding_count == 10


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("name", ["", None, 2, "77", {"batch": 1}])
def test_pump_takes_an_unknown_identifier_for_a_complete_failure(name):
    """An identifier that is empty, null, no text, or of no record in the batch fails the whole batch."""
    answers = [{"batchItemFailures": [{"itemIdentifier": "2"}, {"itemIdentifier": name}]}, None]
    h = Harness(shard(1, 2), answer=lambda _e: answers.pop(0))
    h.until_idle()
    assert h.delivered == [[1, 2], [1, 2]]


def test_pump_takes_an_exception_for_a_complete_failure():
    """An exception fails the whole batch, which comes again after a pause; its text, which may hold values, is not kept. A
    batch that was given up after it says so: `functionError`.
    """
    h = Harness(shard(1), answer=throws, maximum_retry_attempts=1)
    h.mapping.poll()
    h.mapping.poll()
    assert h.delivered == [[1]]
    h.clock.ms += h.settings.retry_first_ms
    h.mapping.poll()
    assert h.delivered == [[1], [1]]
    assert h.mapping.thrown == {"RuntimeError": 2}
    assert [given["responseContext"]["functionError"] for given in h.given_up] == ["Unhandled"]


def test_pump_waits_longer_after_each_attempt():
    """The pause between attempts doubles up to a limit."""
    s = MappingSettings(retry_first_ms=500, retry_max_ms=4_000)
    assert [s.backoff_ms(n) for n in (1, 2, 3, 4, 5, 10_000)] == [500, 1_000, 2_000, 4_000, 4_000, 4_000]


# ---------------------------------------------------------------- bisect, retries, age


def test_pump_splits_without_consuming_retries():
    """After the splits, the record that throws still has its whole retry quota."""
    h = Harness(shard(1, 2, 3, 4), answer=throws, maximum_retry_attempts=2)
    h.until_idle()
    assert Counter(n for batch in h.delivered if len(batch) == 1 for n in batch) == {1: 3, 2: 3, 3: 3, 4: 3}


def test_pump_gives_up_after_the_retries_and_goes_on():
    """A batch whose retries are exhausted goes to the on-failure destination, and the shard continues after it."""
    h = Harness(shard(1, 2, 3), answer=fails_at(2), batch_size=2, maximum_retry_attempts=3)
    total = h.until_idle()
    assert h.delivered == [[1, 2], [2], [2], [2], [2], [3]]
    assert [g["requestContext"]["condition"] for g in h.given_up] == ["RetryAttemptsExhausted"]
    assert (total.records_dropped, total.finished, total.batches, h.after()) == (1, 2, 6, "3")


def test_pump_keeps_a_batch_that_the_destination_did_not_take():
    """Nothing is dropped before it is safe: when the destination fails, the batch stays."""
    h = Harness(shard(1), answer=throws, maximum_retry_attempts=0)
    refusals = [StoreError("Full"), OSError("disk")]

    def destination(given):
        if refusals:
            raise refusals.pop(0)
        h.given_up.append(given)

    h.mapping._on_failure = destination
    h.mapping.poll()
    assert h.after() is None
    h.until_idle()
    assert (len(h.given_up), h.after()) == (1, "1")


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the shared cases are not beside this checkout")
def test_pump_speaks_of_failures_in_the_fields_that_aws_recorded():
    """The record for the destination has the fields of one that AWS wrote to S3, in every part."""
    recorded = json.loads((RECORDED / "s3_on_failure_object.json").read_text())
    events = recorded["payload"]["Records"]
    h = Harness(FakeShard(records=events), answer=throws, maximum_retry_attempts=1)
    h.until_idle()
    (given,) = h.given_up
    assert given.keys() == recorded.keys()
    for part in ("requestContext", "responseContext", "DDBStreamBatchInfo"):
        assert given[part].keys() == recorded[part].keys()
    assert given["requestContext"]["approximateInvokeCount"] == recorded["requestContext"]["approximateInvokeCount"]
    assert given["responseContext"] == recorded["responseContext"]
    assert json.loads(given["payload"])["Records"] == events


# ---------------------------------------------------------------- the world


def test_pump_does_not_read_again_what_is_still_being_tried():
    """A new iterator starts after the last record read, not after the last one finished."""
    h = Harness(shard(1, 2), answer=throws, maximum_retry_attempts=10_000)
    h.mapping.poll()
    h.stream.faults["records"] = [expired()]
    h.mapping.poll()
    h.mapping.poll()
    assert (h.after(), h.stream.calls[-2]) == (None, ("iterator", ("shard-0", "2")))


def test_pump_does_not_deliver_twice_what_it_already_holds():
    """Reading from the horizon again skips records that were read before."""
    h = Harness(shard(1, 2, 3))
    h.until_idle()
    h.stream.faults["records"] = [RecordsTrimmedError("TrimmedDataAccessException")]
    h.until_idle()
    assert h.delivered == [[1, 2, 3]]


@pytest.mark.parametrize("call", ["iterator", "records"])
def test_pump_keeps_a_shard_that_is_not_found_and_still_listed(call):
    """DescribeStream may know a shard before GetShardIterator does: a shard it names is asked again, and none of its
    records is missed or called lost.
    """
    h = Harness(shard(1, 2, closed=True), shard(3, parent="shard-0"))
    h.stream.faults = {call: [ShardGoneError(), ShardGoneError()]}
    total = h.until_idle()
    assert (h.delivered, total.records_trimmed, total.read_errors) == ([[1, 2], [3]], 0, 2)


def test_pump_waits_longer_for_a_shard_that_is_not_found_again():
    """A shard that is listed and stays unreadable costs a read and a description now and then, not one per poll."""
    h = Harness(shard(1), shard_refresh_ms=3_600_000)
    h.stream.faults = {"iterator": [ShardGoneError() for _ in range(1_000)]}
    for _ in range(600):
        h.mapping.poll()
        h.clock.ms += 100
    asked = Counter(call for call, _ in h.stream.calls)
    assert asked["iterator"] < 10
    assert asked["shards"] < 10
    assert not h.mapping.idle


def test_pump_pauses_after_a_read_that_failed():
    """A shard whose read failed is not asked again before the pause is over, however often the mapping is polled."""
    h = Harness(shard(1))
    h.stream.faults = {"records": [throttled()]}
    h.mapping.poll()
    for _ in range(9):
        h.mapping.poll()
    assert [name for name, _ in h.stream.calls].count("records") == 1
    h.clock.ms += h.settings.retry_first_ms
    h.mapping.poll()
    assert h.delivered == [[1]]


# ---------------------------------------------------------------- pump and queue
PULL = PullMessage(ItemKey("shop", (("PK", "S", "a"),)))


def pump_of(h: Harness, handle, queue: LocalQueue | None = None) -> Pump:
    queue = queue or LocalQueue(h.clock.now_ms)
    return Pump([h.mapping], queue, handle, now_ms=h.clock.now_ms, sleep=h.clock.sleep)


def test_pump_drains_streams_and_due_messages():
    """Drained means: streams read to their end, due messages handled; a delayed one still waits."""
    h = Harness(shard(1, 2))
    handled = []
    pump = pump_of(h, lambda taken: handled.append(taken.message))
    pump.queue.send(PULL, 0)
    pump.queue.send(PullMessage(ItemKey("shop", (("PK", "S", "other"),))), 900)
    assert pump.drain(60_000)
    assert (h.delivered, handled, pump.queue.waiting_count) == ([[1, 2]], [PULL], 1)


def test_pump_drain_gives_up_at_its_deadline():
    """A record that never goes through does not hold a drain for ever."""
    h = Harness(shard(1), answer=throws, maximum_retry_attempts=10_000)
    assert not pump_of(h, lambda _m: None).drain(10_000)


@pytest.mark.parametrize(("workers", "ms", "handled"), [(1, 150, 2), (1, 5_000, 1), (4, 150, 8), (4, 0, 10)])
def test_pump_returns_to_the_streams_while_messages_wait(workers, ms, handled):
    """A step handles as many messages at once as there are workers. After 200 ms it begins no other message, so that
    records do not wait behind a large fan-out.
    """
    h = Harness(shard(1))
    pump = pump_of(h, lambda _m: None)
    pump.workers = workers
    together = pump.concurrently

    def concurrently(function, things):
        h.clock.ms += ms
        return together(function, things)

    pump.concurrently = concurrently
    for number in range(20):
        pump.queue.send(PullMessage(ItemKey("shop", (("PK", "S", str(number)),))), 0)
    assert pump.step().messages == handled
    h.stream.held["shard-0"].records.append(record(2))
    h.clock.ms += 1_000
    pump.step()
    assert h.delivered[-1][-1] == 2


def test_pump_brings_a_message_again_when_its_handler_raises():
    """A message whose handler raises is delivered again later; the errors are counted by their names."""
    h = Harness(shard())
    outcomes = [StoreError("ThrottlingException"), RuntimeError("secret value"), None]
    receives = []

    def handle(taken):
        receives.append(taken.receives)
        outcome = outcomes.pop(0)
        if outcome:
            raise outcome

    pump = pump_of(h, handle)
    pump.queue.send(PULL, 0)
    first = pump.step()
    assert (first.messages, pump.queue.waiting_count) == (1, 1)
    h.clock.ms += 1_000
    pump.step()
    h.clock.ms += 60_000
    pump.step()
    assert pump.queue.pending_messages == ()
    assert receives == [1, 2, 3]
    assert pump.thrown == {"ThrottlingException": 1, "RuntimeError": 1}
