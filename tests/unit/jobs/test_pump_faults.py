"""The event source mapping under everything that can go wrong: over any lineage of shards, with failures and crashes at
any call, nothing is lost, nothing overtakes, no position runs ahead.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.mapping import EventSourceMapping
from sync_rules.jobs.streams import ShardGoneError
from tests.support.depth import deep
from tests.support.fake_stream import ARN, Clock, FakeShard, FakeStream, failed, positions, record, throttled

TURNS_WITH_TROUBLE = 200
TURNS_MAX = 1_500


class CrashError(BaseException):
    """The process dies here."""


class Adversary:
    """A function, a destination and a life support that do their worst until they are healed. Remembers what they saw."""

    def __init__(self, held: dict[str, FakeShard], seed: int, trouble: float, given: MappingSettings) -> None:
        self.chance = random.Random(seed)
        self.trouble = trouble
        self.settings = given
        self.clock = Clock()
        self.stream = FakeStream(held, page_max_records=self.chance.choice([1, 3, 1_000]))
        self.finished: set[int] = set()
        self.given_up: set[int] = set()
        self.first_seen: dict[str, list[int]] = defaultdict(list)
        self._seen: set[int] = set()
        self._kept: tuple = ()
        self.mapping = self._make()

    def _make(self) -> EventSourceMapping:
        return EventSourceMapping(
            ARN,
            self.stream,
            self._invoke,
            lambda given_up: self.given_up.update(positions(json.loads(given_up["payload"]))),
            now_ms=self.clock.now_ms,
            settings=self.settings,
            progress=self._kept,
            concurrently=self._in_any_order,
        )

    def turn(self) -> None:
        """One poll, maybe with a read that fails, maybe with a checkpoint after it, maybe with a crash in it."""
        if self.chance.random() < self.trouble / 3:
            method = self.chance.choice(["shards", "iterator", "records"])
            faults = [throttled()] if method == "shards" else [throttled(), ShardGoneError()]
            self.stream.faults.setdefault(method, []).append(self.chance.choice(faults))
        try:
            self.mapping.poll()
        except CrashError:
            self.mapping = self._make()
        else:
            if self.chance.random() < 0.7:
                self._kept = self.mapping.progress
        self.clock.ms += self.chance.choice([1, 300, 40_000])

    def _invoke(self, event):
        numbers = positions(event)
        self._see(event)
        fate = self.chance.random() / self.trouble if self.trouble else 1.0
        if fate < 0.2:
            raise CrashError  # before the effect
        if fate < 0.5:
            raise RuntimeError
        if fate < 0.9:
            place = self.chance.randrange(len(numbers))
            self.finished.update(numbers[:place])
            later = self.chance.sample(numbers[place:], self.chance.randint(0, len(numbers) - place))
            return failed(*later, numbers[place])
        self.finished.update(numbers)
        if fate < 1.0:
            raise CrashError  # after the effect, before anyone knew
        return self.chance.choice([None, {}, {"batchItemFailures": []}])

    def _see(self, event) -> None:
        for body in event["Records"]:
            number = number_of(body)
            if number not in self._seen:
                self._seen.add(number)
                self.first_seen[body["dynamodb"]["Keys"]["PK"]["S"]].append(number)

    def _in_any_order(self, function, things):
        items = [{body["dynamodb"]["Keys"]["PK"]["S"] for body in thing.batch.event()["Records"]} for thing in things]
        assert sum(map(len, items)) == len(set().union(*items)), "one item in two batches at the same time"
        order = self.chance.sample(range(len(things)), len(things))
        answers = {place: function(things[place]) for place in order}
        return [answers[place] for place in range(len(things))]


@st.composite
def streams(draw):
    """A random lineage: each shard has an earlier one as its parent, or none. An item lives in one line of descent."""
    held: dict[str, FakeShard] = {}
    for n in range(draw(st.integers(1, 5))):
        held[f"shard-{n}"] = FakeShard(draw(st.sampled_from([None, *held])) if held else None)
    number = 9
    for name, shard in held.items():
        shard.closed = bool(children(held, name)) or draw(st.booleans())
        for _ in range(draw(st.integers(0, 12))):
            number += draw(st.sampled_from([1, 7, 10**21]))  # their width grows
            shard.records.append(record(number, f"{line_of(held, name)}/{draw(st.integers(0, 3))}"))
    order = draw(st.permutations(list(held)))
    return {name: held[name] for name in order}


def children(held, name):
    return [other for other, shard in held.items() if shard.parent == name]


def line_of(held, name):
    """The first shard of the longest line without a branch that ends here: items go from parent to only child."""
    parent = held[name].parent
    return line_of(held, parent) if parent is not None and len(children(held, parent)) == 1 else name


def number_of(body):
    return int(body["dynamodb"]["SequenceNumber"])


@settings(max_examples=deep(150), deadline=None)
@given(
    held=streams(),
    seed=st.integers(0, 2**32),
    trouble=st.sampled_from([0.0, 0.2, 0.5]),
    given=st.builds(
        MappingSettings,
        parallelization_factor=st.integers(1, 4),
        batch_size=st.integers(1, 6),
        maximum_retry_attempts=st.sampled_from([0, 1, 3, 10_000]),
        read_ahead_max_records=st.sampled_from([5, 2_000]),
    ),
)
def test_pump_loses_nothing_whatever_fails_or_dies(held, seed, trouble, given):
    """Each record is answered for or given up, an item's records are first delivered in order and never in two batches at
    once, and no position ever passes a record that was not finished; once troubles end, the stream is drained.
    """
    world = Adversary(held, seed, trouble, given)
    for turn in range(TURNS_MAX):
        if turn == TURNS_WITH_TROUBLE:
            world.trouble = 0.0
        world.turn()
        for progress in world.mapping.progress:
            records = [number_of(body) for body in held[progress.shard_id].records]
            passed = {n for n in records if progress.done or n <= int(progress.after or 0)}
            assert passed <= world.finished | world.given_up
        if world.mapping.idle and world.trouble == 0.0:
            break
    every = {number_of(body) for shard in held.values() for body in shard.records}
    assert world.mapping.idle
    assert world.finished | world.given_up == every
    assert all(numbers == sorted(numbers) for numbers in world.first_seen.values())
