"""A batch from event to answer: the lowest failed sequence number, everything else done, nothing forgotten."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, Outcome
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.breaker import Breaker, DeduplicatedFailures, PendingWork
from sync_rules.pipeline.consumer import Consumer, find_lowest
from sync_rules.pipeline.messages import PullMessage, PushMessage
from sync_rules.pipeline.requests import Later, Remembering
from tests.support import every_kind
from tests.support.builders import author_item, book_item, key, library, n, order_item, s, shop, user_item
from tests.support.worlds import Parked, Scene, Tap, event_of


def books(scene: Scene, count: int = 4) -> list:
    """New books of one author, their records not processed yet; numbers of records grow from five digits to six."""
    scene.there("authors", author_item("a1", name=s("Ada")))
    return [scene.put("books", book_item(f"b{i}", "a1")) for i in range(count)]


def name_of(scene: Scene, at) -> str | None:
    return scene.item(at).get("author_name", {}).get("S")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 10**40), min_size=1), st.randoms())
def test_batch_lowest_is_by_value(numbers, chance):
    """The lowest of several sequence numbers is found by value, not by text; an empty one is lower than all."""
    texts = [str(number) for number in numbers]
    chance.shuffle(texts)
    assert find_lowest(texts) == str(min(numbers))
    assert find_lowest([*texts, ""]) == ""
    assert find_lowest([]) is None


def test_batch_an_unreadable_record_is_parked_and_stops_nothing():
    """A record that cannot be read leaves a failure record with its number and reason; the records around it are done."""
    scene = Scene(library())
    keys = books(scene)
    event = event_of(scene.rules, *scene.records)
    event["Records"][1] = {"dynamodb": {"SequenceNumber": "7"}}
    assert scene.consumer.handle_event(event, lambda: 60_000) == {"batchItemFailures": []}
    assert scene.parked.failures == [Failure("", None, "a stream record has no dynamodb.Keys", "7")]
    assert scene.consumer.telemetry.unreadable_records == 1
    assert [name_of(scene, at) for at in keys] == ["Ada", None, "Ada", "Ada"]


@pytest.mark.parametrize(("body", "reported"), [({"dynamodb": {"SequenceNumber": "7"}}, "7"), ({}, "")])
def test_batch_an_unreadable_record_that_cannot_be_parked_comes_again(body, reported):
    """An unreadable record that cannot be parked is reported; without a sequence number the whole batch is."""
    scene = Scene(library())
    scene.parked.broken = "QueueNotFound"
    (at,) = books(scene, 1)
    event = event_of(scene.rules, *scene.records)
    event["Records"].append(body)
    answer = scene.consumer.handle_event(event, lambda: 60_000)
    assert answer == {"batchItemFailures": [{"itemIdentifier": reported}]}
    assert name_of(scene, at) == "Ada"


# ---------------------------------------------------------------- the breaker
def test_batch_a_fight_over_an_attribute_ends():
    """An item whose copy another writer keeps resetting is parked after a bounded number of writes; others go on."""
    scene = Scene(shop(), limits=Limits(fixes_per_target_max_writes=5))
    scene.there("shop", user_item("1", name=s("Ada")))
    for turn in range(8):
        fought = scene.put("shop", order_item("1", "1", user_name=s(f"legacy {turn}")))
        scene.rest()
    other = scene.put("shop", order_item("1", "2"))
    scene.rest()
    assert scene.item(fought)["user_name"] == s("legacy 7")
    assert scene.item(other)["user_name"] == s("Ada")
    assert {(failure.key, failure.reason) for failure in scene.parked.failures} == {(fought, "Contended")}
    assert scene.outcomes()[Outcome.PARKED] == 3
    assert {message for message, _ in scene.queue.messages} == {PullMessage(fought, 1)}


def test_batch_breaker_gives_every_window_a_new_share():
    """A target has its share in each window, on its own; the count of targets remembered is bounded."""
    now = itertools.count()
    breaker = Breaker(2, 10, 3, replace(THIS_PROCESS, monotonic=lambda: float(next(now))))
    table = shop().tables["shop"]
    one, *others = (key(table, f"USER#{i}", "ORDER#1") for i in range(5))
    assert [breaker.allows(one) for _ in range(12)] == [True, True, *([False] * 8), True, True]
    assert all(breaker.allows(other) for other in others)
    assert len(breaker._windows) == 3


def test_batch_a_message_that_has_no_time_comes_again():
    """A message is never just handed over: without time to list a page it fails, so that its receives are counted."""
    scene = Scene(shop())
    user = scene.there("shop", user_item("1", name=s("Ada")))
    message = PushMessage(tuple(scene.rules.rules), user)
    with pytest.raises(StoreError, match="OutOfTime"):
        scene.consumer.handle_message(message, lambda: 100)
    assert scene.queue.messages == []


def test_batch_records_a_failure_once_in_a_while():
    """A failure of the same rule, item and reason is recorded once per window; a failed attempt does not count."""
    now, behind = [0.0], Parked()
    failures = DeduplicatedFailures(behind, Limits(), host=replace(THIS_PROCESS, monotonic=lambda: now[0]))
    order = Failure("names", key(shop().tables["shop"], "USER#1", "ORDER#1"), "ItemTooLarge")
    behind.broken = "QueueNotFound"
    with pytest.raises(StoreError):
        failures.park(order)
    behind.broken = ""
    for now[0] in (1.0, 2.0, 900.0, 901.0):
        failures.park(order)
        failures.park(Failure("", None, "unreadable"))
    failures.park(replace(order, rule="bios"))
    assert [failure.rule for failure in behind.failures if failure.key] == ["names", "names", "bios"]
    assert len([failure for failure in behind.failures if failure.key is None]) == 4


def test_batch_records_each_part_that_fails():
    """Failures of different parts are recorded each; those of one parent are recorded once."""
    behind = Parked()
    failures = DeduplicatedFailures(behind, Limits(), host=replace(THIS_PROCESS, monotonic=lambda: 0.0))
    target, *members = (key(shop().tables["shop"], "USER#1", f"ORDER#{i}") for i in range(3))
    for member in (*members, *members):
        failures.park(Failure("mirror", target, "KeyTaken", member=member, apart=True))
        failures.park(Failure("embed", target, "TooManyItems", member=member))
    assert [(failure.rule, failure.member) for failure in behind.failures] == [
        ("mirror", members[0]),
        ("embed", members[0]),
        ("mirror", members[1]),
    ]


# ---------------------------------------------------------------- all kinds at once
def test_batch_failures_of_all_families_are_reported_for_their_records():
    """Failed work of any family reports the record of the item that caused it: source, member, edge or child."""
    scene = Scene(every_kind.rules_of(effects=False))
    scene.put("shop", every_kind.user("1", name=s("Ada"), rank=n(1)), every_kind.user("2", name=s("Bea"), rank=n(1)))
    scene.rest()
    scene.put("shop", every_kind.order("2", "fine", 1))
    scene.put("shop", every_kind.order("1", "a", 10))
    scene.put("posts", every_kind.post("p", "1", "x"))
    fine, order, post = scene.records
    scene.tap.result = lambda write: Result(Status.FAILED, reason="Throttled") if "USER#2" not in str(write) else None
    assert scene.deliver() == [order.position]
    assert set(scene.consumer.telemetry.failed) == {order.key, post.key}
    assert scene.deliver([fine]) == []


def test_batch_and_message_begin_with_nothing_remembered():
    """A store that remembers what it read forgets it at each batch and message, which may run days later."""

    class Remembers(Tap, Remembering):
        forgotten = 0

        def forget(self) -> None:
            self.forgotten += 1

    scene = Scene(library())
    store = Remembers(scene.memory)
    consumer = Consumer(scene.rules, replace(scene.world, store=store), THIS_PROCESS)
    books(scene)
    consumer.handle_event(event_of(scene.rules, *scene.records), lambda: 60_000)
    consumer.handle_message(PullMessage(scene.at("books", "b0")))
    assert store.forgotten == 2


def test_look_that_is_of_no_parked_work_is_always_sent():
    """Only looks at parked work serve all that asked for one: a message without rules is sent each time."""
    scene = Scene(shop())
    world = replace(scene.world, pending=PendingWork(Limits(), THIS_PROCESS))
    message = PullMessage(key(scene.rules.tables["shop"], "USER#1", "ORDER#1"), attempt=1)
    for rules, sent in (((), 1), ((), 2), (("names",), 3), (("names",), 3), ((), 4)):
        world.answer(Later(message, 60, rules))
        assert len(scene.queue.messages) == sent
