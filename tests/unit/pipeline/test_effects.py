"""Effects: done before the record is acknowledged, after the copies, and never in the way of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, Outcome
from sync_rules.model.limits import Limits
from sync_rules.pipeline.effects import TOO_LARGE
from sync_rules.pipeline.messages import CallMessage
from sync_rules.pipeline.requests import NULL_PORTS
from tests.support.builders import n, s
from tests.support.every_kind import order, user
from tests.support.worlds import scene_of

WHOLE = "{call: tests.support.every_kind.told, on: order}"


def test_effects_without_time_bring_the_record_again():
    """When time is up, an effect is not begun, and its record comes again."""
    scene = scene_of("called")
    scene.put("shop", order("1", "a", 1))
    first = scene.records[0].position
    assert scene.deliver(remaining_ms=1_000) == [first]
    assert (scene.caller.calls, scene.queue.messages) == ([], [])


def test_effects_come_after_the_copies():
    """A called function finds its item's copies and counts already written."""
    scene = scene_of("called", "names", "counted")
    scene.there("shop", user("1", name=s("Ada")))
    at = scene.put("shop", order("1", "a", 1))
    seen = []
    scene.caller.call = lambda _call: seen.append(
        (scene.item(at).get("user_name"), scene.item(scene.at("ledger", "counted/T/USER#1", "PROFILE"))["n"])
    )
    scene.deliver()
    assert seen == [(s("Ada"), n(1))]


def test_effects_a_call_that_fails_never_fails_the_batch():
    """A function that raises is called again later by a message; the record is done, and so is everything else."""
    scene = scene_of("called", "counted")
    at = scene.put("shop", order("1", "a", 1))
    (change,) = scene.records
    scene.caller.broken = "CallFailed"
    assert scene.deliver() == []
    assert scene.queue.messages == [(CallMessage("called", "tests.support.every_kind.told", change, 1), 60)]
    assert scene.item(scene.at("ledger", "counted/T/USER#1", "PROFILE"))["n"] == n(1)
    assert scene.consumer.telemetry.outcomes["called", Outcome.PARKED] == 1
    assert scene.consumer.telemetry.reasons == {"called CallFailed": 1}
    scene.caller.broken = ""
    scene.receive()
    assert [(call.change, call.attempt) for call in scene.caller.calls] == [(change, 1)]
    assert (scene.queue.messages, scene.parked.failures) == ([], [])
    assert change.key == at


def test_effects_a_call_that_fails_for_ever_is_left_to_people():
    """A function is called a bounded number of times for a change, less and less often; then a failure record says so."""
    scene = scene_of("called", limits=Limits(call_max_tries=4))
    at = scene.put("shop", order("1", "a", 1))
    (change,) = scene.records
    scene.caller.broken = "CallFailed"
    scene.deliver()
    assert [delay for _ in range(6) for delay in scene.receive()] == [60, 120, 240]
    assert scene.parked.failures == [Failure("called", at, "CallFailed", change.position)]
    assert scene.kept.fetch_call(scene.parked.failures[0].call).change == change
    assert scene.consumer.telemetry.outcomes["called", Outcome.FAILED] == 1


def test_effects_a_change_too_large_for_a_message_waits_in_the_bucket():
    """The message of a call that is too large says where its change is kept; each try is given both images, and the
    change is kept once.
    """
    scene = scene_of("called", each=WHOLE)
    at = scene.there("shop", order("1", "a", 1))
    scene.put("shop", order("1", "a", 2))
    (change,) = scene.records
    scene.caller.broken = "CallFailed"
    send = scene.queue.send

    def send_small(message, delay_seconds):
        if not message.kept:
            raise StoreError(TOO_LARGE)
        send(message, delay_seconds)

    scene.queue.send = send_small
    assert scene.deliver() == []
    for tries in (1, 2):
        ((message, _),) = scene.queue.messages
        assert (message.attempt, message.change.key, message.change.old, message.change.new) == (tries, at, None, None)
        assert scene.receive() == [60 * tries]
    scene.caller.broken = ""
    scene.receive()
    assert [(call.rule, call.change, call.attempt) for call in scene.caller.calls] == [("each", change, 3)]
    assert len(scene.kept.kept) == 1
    assert (scene.queue.messages, scene.parked.failures) == ([], [])


def test_effects_what_was_not_called_and_cannot_be_kept_comes_again():
    """A call that fits no message, where no bucket was given, brings its record again: nothing is acknowledged."""
    scene = scene_of("called")
    scene.put("shop", order("1", "a", 1))
    (position,) = (change.position for change in scene.records)
    scene.caller.broken, scene.queue.broken = "CallInProgress", TOO_LARGE
    scene.consumer.world = replace(scene.consumer.world, kept=NULL_PORTS)
    assert scene.deliver() == [position]
    assert scene.parked.failures == []


def test_effects_each_change_that_was_given_up_is_a_failure_of_its_own():
    """Failures of several changes of one item are several records, each with its change; one change is one record."""
    scene = scene_of("called", each=WHOLE, limits=Limits(call_max_tries=1))
    scene.there("shop", order("1", "a", 1))
    scene.put("shop", *(order("1", "a", total) for total in (2, 3, 4)))
    changes = [*scene.records]
    scene.caller.broken = "CallFailed"
    for _ in range(2):
        assert scene.deliver(changes) == []
    assert [failure.position for failure in scene.parked.failures] == [change.position for change in changes]
    kept = [scene.kept.fetch_call(failure.call) for failure in scene.parked.failures]
    assert [message.change for message in kept] == changes


def test_effects_of_a_rule_that_is_gone_are_set_aside_and_carried_by_its_new_name():
    """A call that waits for a rule that was renamed is set aside with a reason; `renamed_from` carries it over."""
    scene = scene_of("called")
    scene.put("shop", order("1", "a", 1))
    change = scene.records[0]
    message = CallMessage("before", "tests.support.every_kind.told", change, 1)
    scene.consumer.handle_message(message)
    assert scene.caller.calls == []
    (failure,) = scene.parked.failures
    assert (failure.rule, failure.key, failure.reason) == ("before", change.key, "NoSuchRule")
    assert scene.kept.fetch_call(failure.call).change == change
    renamed = scene_of(after="{call: tests.support.every_kind.told, on: order, renamed_from: before}")
    renamed.consumer.handle_message(message)
    assert [(call.rule, call.change, call.attempt) for call in renamed.caller.calls] == [("after", change, 1)]
    assert renamed.parked.failures == []


def test_effects_of_a_rule_that_no_longer_admits_the_change_name_its_where():
    """The rule is there: the reason does not say that it is gone."""
    scene = scene_of(called='{call: tests.support.every_kind.told, on: order, where: "total > `5`"}')
    scene.put("shop", order("1", "a", 1))
    scene.consumer.handle_message(CallMessage("called", "tests.support.every_kind.told", scene.records[0], 1))
    assert scene.caller.calls == []
    assert [failure.reason for failure in scene.parked.failures] == ["WhereExcludes"]


@pytest.mark.parametrize("max_tries", [1, 8])
def test_effects_a_failed_call_that_cannot_be_kept_comes_again(max_tries):
    """A failed call whose message and failure record cannot be kept is reported, so its record is delivered again."""
    scene = scene_of("called", limits=Limits(call_max_tries=max_tries))
    scene.put("shop", order("1", "a", 1))
    (position,) = (change.position for change in scene.records)
    scene.caller.broken = "CallFailed"
    scene.queue.broken = scene.parked.broken = "QueueNotFound"
    assert scene.deliver() == [position]


def test_effects_a_function_that_changes_its_own_item_is_stopped():
    """A function whose write calls it again is stopped after a number of calls; its change waits for people, and calls
    for other items and other rules go on.
    """
    scene = scene_of(each=WHOLE, limits=Limits(calls_per_item_max_tries=5))
    at = scene.put("shop", order("1", "a", 0))

    def call(call):
        total = int(call.change.new["total"]["N"])
        if call.change.key == at:
            scene.put("shop", order("1", "a", total + 1))

    scene.caller.call = call
    scene.rest()
    assert scene.item(at)["total"] == n(5)
    assert [(failure.key, failure.reason) for failure in scene.parked.failures] == [(at, "CalledTooOften")]
    assert scene.kept.fetch_call(scene.parked.failures[0].call).change.new["total"] == n(5)
    scene.put("shop", order("1", "b", 7))
    scene.rest()
    assert scene.consumer.telemetry.outcomes["each", Outcome.DONE] == 6


def test_effects_a_function_that_hangs_is_waited_for_once_in_a_batch():
    """After a call that did not end, the batch sends the rule's other calls on without a try; other rules go on."""
    scene = scene_of("called", each=WHOLE)
    scene.put("shop", *(order("1", name, 1) for name in "abc"))
    scene.put("shop", order("1", "d", 1))
    tried = []

    def call(call):
        tried.append(call.rule)
        if call.rule == "each":
            raise StoreError("CallTimedOut")

    scene.caller.call = call
    assert scene.deliver() == []
    assert sorted(tried) == ["called"] * 4 + ["each"]
    assert sorted(message.attempt for message, _ in scene.queue.messages) == [0, 0, 0, 1]
    assert scene.consumer.telemetry.outcomes["each", Outcome.PARKED] == 4
