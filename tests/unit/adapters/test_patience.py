"""Patience: a command shows that a service fails, and gives up; time passes only in calls and waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace

import pytest
from botocore.exceptions import ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters import patience, retries
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.patience import FIRST_SHOWN_SECONDS, PATIENCE_SECONDS, SHOWN_EVERY_SECONDS, Patience, Wait
from sync_rules.cli.show.waits import format_wait
from sync_rules.model.errors import StoreError
from sync_rules.model.writes import WRITTEN, Status
from sync_rules.pipeline.requests import Apply, List, Read, Scan
from tests.support.builders import key, n, of_partition, s, shop, update
from tests.unit.adapters.test_batches import answers
from tests.unit.adapters.test_dynamodb import failed

TABLES = shop(prefix="real-").tables
SHOP = TABLES["shop"]
KEYS = tuple(key(SHOP, "USER#1", f"ORDER#{number}") for number in range(30))
TIMEOUT = ReadTimeoutError(endpoint_url="http://127.0.0.1")
LONGEST_CALL_SECONDS = 10.0
GAP_MAX_SECONDS = SHOWN_EVERY_SECONDS + LONGEST_CALL_SECONDS + retries.WAIT_MAX_SECONDS

FAULTS = {  # an error, or the code of each statement in a batch, and the seconds until it comes
    "throttled": (failed("ProvisionedThroughputExceededException"), 0.01),
    "503": (failed("503", status=503), 0.01),
    "timeout": (TIMEOUT, LONGEST_CALL_SECONDS),
    "in part": ("ProvisionedThroughputExceeded", 0.01),
}
REQUESTS = {
    "scan": Scan("shop", 10),
    "list": List("shop", None, of_partition("PK", s("USER#1")), 10),
    "get": Read(KEYS[:1]),
    "batch get": Read(KEYS),
    "update": Apply((update(SHOP, KEYS[0], a=n(1)),)),
    "batch": Apply(tuple(update(SHOP, key, a=n(1)) for key in KEYS)),
}


class World:
    """A service that answers each call from `until` on, and a clock that only its calls and waits move."""

    def __init__(self, fault: str, until: float) -> None:
        self.now, self.until = 1_000.0, 1_000.0 + until
        self.fault, self.seconds = FAULTS[fault]
        self.calls = 0
        model = SimpleNamespace(service_id="DynamoDB")
        self.meta = SimpleNamespace(endpoint_url="http://127.0.0.1:1", region_name="eu-west-1", service_model=model)
        self.shown: list[tuple[float, Wait]] = []
        self.store = DynamoStore(self, TABLES, workers=1, write_mode="batch", sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def show(self, wait: Wait) -> None:
        self.shown.append((self.now, wait))

    def __getattr__(self, operation: str):
        def call(**parameters):
            self.calls += 1
            down = self.now < self.until
            self.now += self.seconds if down else 0.001
            if down and isinstance(self.fault, Exception):
                raise self.fault
            if operation == "batch_execute_statement":
                return answers(*[self.fault if down else ""] * len(parameters["Statements"]))
            if down and operation == "batch_get_item":
                return {"Responses": {}, "UnprocessedKeys": parameters["RequestItems"]}
            if down:
                raise failed("ThrottlingException")
            return {"Items": [], "Responses": {}}

        call.__name__ = operation
        return call

    def ask(self, request: str):
        """Send a request: True if it was answered, else the error."""
        asked = REQUESTS[request]
        try:
            if isinstance(asked, Apply):
                (result,) = set(self.store.apply(asked))
                return result is WRITTEN or result.reason
            {Scan: self.store.scan, List: self.store.list, Read: self.store.read}[type(asked)](asked)
        except StoreError as error:
            return str(error)
        return True


@contextmanager
def commanded(world: World, seconds: float | None = PATIENCE_SECONDS) -> Iterator[Patience]:
    """The world in a command with so much patience, after a first answer; tenacity sees the world's clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tenacity.time", SimpleNamespace(monotonic=lambda: world.now))
        with patience.use_patience(Patience(world.show, seconds, lambda: world.now)) as one:
            one.note_answer("DescribeTable")
            yield one


@given(st.sampled_from(sorted(REQUESTS)), st.sampled_from(sorted(FAULTS)), st.floats(0.1, 300))
def test_outage_is_shown_from_the_start_to_the_end_or_until_the_command_gives_up(request, fault, seconds):
    """Whatever fails, no silence is longer than a call and its wait, and the end that is shown comes as shown."""
    world = World(fault, seconds)
    began = world.now
    with commanded(world):
        found = world.ask(request)
    waits = [(at, wait) for at, wait in world.shown if wait.reason]
    ends = [(at, wait) for at, wait in world.shown if not wait.reason]
    silent = [began, *(at for at, _ in waits), min(world.now, world.until)]
    assert max(b - a for a, b in pairwise(silent)) <= GAP_MAX_SECONDS
    for at, wait in waits:
        assert (at - wait.seconds, at + wait.left_seconds) == (
            pytest.approx(began, abs=LONGEST_CALL_SECONDS), pytest.approx(began + PATIENCE_SECONDS, abs=LONGEST_CALL_SECONDS)
        )  # fmt: skip
    if found is True:
        assert len(ends) == bool(waits)
        assert world.now <= began + max(seconds, PATIENCE_SECONDS) + GAP_MAX_SECONDS
    else:
        assert seconds > PATIENCE_SECONDS - GAP_MAX_SECONDS
        assert PATIENCE_SECONDS <= world.now - began <= PATIENCE_SECONDS + 2 * GAP_MAX_SECONDS
        assert waits
        assert not ends


def test_short_fault_is_not_shown():
    """A throttle that passes within seconds is everyday work."""
    world = World("throttled", FIRST_SHOWN_SECONDS - 2 * retries.WAIT_MAX_SECONDS)
    with commanded(world):
        assert world.ask("scan") is True
    assert world.shown == []


def test_call_that_fails_among_answered_ones_ends_with_its_attempts():
    """One hot key is not an outage: the patience is for a service that answers nothing."""
    world = World("throttled", 1_000)
    with commanded(world) as command:

        def answer_another(seconds):
            world.now += seconds
            command.note_answer("UpdateItem of real-shop")

        world.store = DynamoStore(world, TABLES, workers=1, write_mode="update", sleep=answer_another)
        (result,) = world.store.apply(Apply((update(SHOP, KEYS[0], a=n(1)),)))
    assert (result.status, world.calls) == (Status.FAILED, retries.ATTEMPTS_MAX)


def test_all_calls_fail_at_once_after_the_patience_until_one_is_answered():
    """The next one fails after one attempt; an answer restores the patience."""
    world = World("503", 150)
    with commanded(world) as command:
        assert world.ask("scan") is not True
        assert command.is_over()
        calls = world.calls
        assert world.ask("scan") is not True
        assert world.calls == calls + 1
        world.now = world.until
        assert world.ask("scan") is True
        assert not command.is_over()


def test_command_without_end_keeps_its_attempts_and_says_that_it_goes_on():
    """`run` tries records again by itself."""
    world = World("timeout", 1_000)
    with commanded(world, None) as command:
        assert world.ask("scan") is not True
        assert (world.calls, command.is_over()) == (retries.ATTEMPTS_MAX, False)
    assert {wait.left_seconds for _, wait in world.shown} == {None}


def test_user_who_stops_a_command_ends_its_waits():
    """Ctrl-C waits for one attempt, and not for the end of the outage."""
    world = World("503", 1_000)
    with commanded(world) as command:
        command.stopping = lambda: True
        assert world.ask("scan") is not True
    assert world.calls == 1


def test_command_that_was_answered_before_waits_for_its_service():
    """Only the first call of a command takes a silent address for a wrong one."""
    world, called = World("timeout", 60), []

    def describe(**_):
        called.append(world.now)
        if world.now < world.until:
            world.now += LONGEST_CALL_SECONDS
            raise TIMEOUT

    with commanded(world) as command:
        first = retries.make_retry(sleep=world.sleep, first=True)
        with pytest.raises(ReadTimeoutError):
            first(describe)
        assert len(called) == 1  # it took longer than a first call may
        command.note_answer("Describe")
        first(describe)
    assert world.now >= world.until


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (
            Wait("Scan of shop", "503", 30, 90),
            "waiting since 11:59:30 (30 s) for Scan of shop: 503. Without an answer this command stops at 12:01:30.",
        ),
        (
            Wait("Scan", "503", 30, 90, first=True),
            "waiting since 11:59:30 (30 s) for Scan: 503. No call was answered yet: the next attempts are the last.",
        ),
        (
            Wait("GetRecords", "503", 30, None),
            "waiting since 11:59:30 (30 s) for GetRecords: 503. This command keeps trying until you stop it.",
        ),
        (
            Wait("Scan of shop", "", 60, None),
            "Scan of shop is answered again: the command waited since 11:59:00 (60 s)",
        ),
    ],
)
def test_line_of_a_wait(wait, words):
    """The line has the call, the error code, since when and until when."""
    assert format_wait(wait, datetime(2026, 1, 1, 12, tzinfo=UTC)) == words
