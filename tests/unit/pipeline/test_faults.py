"""The faults of docs/faults.md: after any fault at any request, everything ends as the rules say."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.audit.verifier import Verifier
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change
from sync_rules.model.writes import Result, Status, Transaction, Write
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import NULL_PORTS, Apply, List, Read, Request, World
from tests.support.builders import s
from tests.support.depth import deep
from tests.support.every_kind import order, part, post, rules_of, user
from tests.support.worlds import Scene, event_of

SHARE = 0.15  # of requests at which something goes wrong
ROOT = Path(__file__).parents[3]


class Weather:
    """A shop with a rule of every kind, an application that writes, and random faults."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.scene = Scene(rules_of(effects=False))
        self.bad = True
        self.poison = False
        self.remaining_ms: Callable[[], int] = lambda: 60_000
        self.met = 0  # how often something went wrong

    def strikes(self) -> bool:
        """Draw at random if a fault strikes now."""
        strikes = self.bad and self.random.random() < SHARE
        self.met += strikes
        return strikes

    def write(self) -> None:
        """One thing that an application does."""
        store, pick = self.scene.memory, self.random.randrange
        who, what = str(pick(3)), str(pick(4))
        match pick(7):
            case 0 | 1:
                store.put("shop", user(who, name=s(f"n{pick(9)}"), rank=s("r"), email=s(f"e{who}-{pick(2)}")))
            case 2 | 3:
                store.put("shop", order(who, what, pick(50)))
            case 4:
                store.put("posts", post(what, who, f"t{pick(9)}"))
            case 5:
                store.put("parts", part(what, str(pick(int(what))) if what > "0" else None))  # no rings
            case _:
                key = self.scene.at("shop", f"USER#{who}", f"ORDER#{what}")
                store.delete(key)

    def deliver(self) -> None:
        """Hand over all records there are; what was reported comes again at some other time, before what is new."""
        records = self.scene.records
        self.scene.records = []
        event = event_of(self.scene.rules, *records)
        if self.poison:
            event["Records"].insert(self.random.randint(0, len(records)), {"dynamodb": {"Keys": {"PK": "no value"}}})
        answer = self.scene.consumer.handle_event(event, self.remaining_ms)
        failed = [int(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]
        if failed:
            again = [change for change in records if int(change.position) >= failed[0]]
            self.scene.records[:0] = again
        taken, self.scene.queue.messages = self.scene.queue.messages, []
        for message, delay in taken:
            try:
                self.scene.consumer.handle_message(message, self.remaining_ms)
            except StoreError:
                self.scene.queue.messages.append((message, delay))

    def pass_over(self) -> None:
        """Make changes under faults; then end the faults and let the pipeline come to rest."""
        for number in range(4):
            self.scene.memory.put("parts", part(str(number), str(number - 1) if number else None))
        for _ in range(40):
            self.write()
            if self.random.random() < 0.4:
                self.deliver()
        self.bad = self.poison = False
        self.remaining_ms = lambda: 60_000
        for _ in range(200):
            if not self.scene.records and not self.scene.queue.messages:
                break
            self.deliver()
        else:
            pytest.fail("it does not come to rest")

    def drift(self) -> list[Any]:
        """The differences from the rules that a verify finds."""
        rules = self.scene.rules
        names = rules.kept
        world = World(self.scene.memory, NULL_PORTS, self.scene.parked)
        return [found.difference for found in Verifier(rules, world, names, grace_seconds=0).sweep()]


def throttled(weather: Weather) -> None:
    def before(request: Request) -> None:
        if isinstance(request, Read | List) and weather.strikes():
            raise StoreError("ThrottlingException")

    weather.scene.tap.before = before
    weather.scene.tap.result = lambda _write: (
        Result(Status.FAILED, reason="ProvisionedThroughputExceededException") if weather.strikes() else None
    )


def conflicting(weather: Weather) -> None:
    weather.scene.tap.result = lambda _write: (
        Result(Status.FAILED, reason="TransactionConflict") if weather.strikes() else None
    )


def unanswered(weather: Weather) -> None:
    """Make some writes and lose their answers."""

    def result(write: Write) -> Result | None:
        if not weather.strikes():
            return None
        weather.scene.memory.apply(Apply((write,)))
        return Result(Status.FAILED, reason="ReadTimeoutError")

    weather.scene.tap.result = result


def short_of_time(weather: Weather) -> None:
    """End some invocations at a look at the clock; a later delivery has more time."""
    weather.remaining_ms = lambda: 0 if weather.strikes() else 60_000


def poisoned(weather: Weather) -> None:
    weather.poison = True
    weather.met = 1


def skewed(weather: Weather) -> None:
    """No clock can be trusted: not the one here, not those that stamp the records."""
    scene, random = weather.scene, weather.random
    scene.consumer = Consumer(
        scene.rules, scene.world, limits=scene.limits, host=replace(THIS_PROCESS, now=lambda: random.uniform(0, 4e9))
    )
    note = scene.memory.on_change
    assert note is not None

    def stamped(*change: Any) -> None:
        note(*change)
        scene.records[-1] = replace(scene.records[-1], created_ms=random.choice([None, 0, 10**12, 10**13]))

    scene.memory.on_change = stamped
    weather.met = 1


@pytest.mark.parametrize("seed", range(deep(12)))
@pytest.mark.parametrize(
    "trouble",
    [throttled, conflicting, unanswered, short_of_time, poisoned, skewed],
    ids=lambda trouble: trouble.__name__,
)
def test_fault_leaves_no_drift(trouble, seed):
    """No drift is left after any fault at any request while an application writes."""
    weather = Weather(seed)
    trouble(weather)
    weather.pass_over()
    assert weather.met
    assert weather.drift() == []


@pytest.mark.parametrize("seed", range(4))
def test_fault_a_lost_answer_counts_nothing_twice(seed):
    """Each transaction is made once and its answer lost once: the books are exact."""
    weather = Weather(seed)
    lost: set[str] = set()

    def result(write: Write) -> Result | None:
        if isinstance(write, Transaction) and repr(write) not in lost:
            lost.add(repr(write))
            weather.scene.memory.apply(Apply((write,)))
            return Result(Status.FAILED, reason="ReadTimeoutError")
        return None

    weather.scene.tap.result = result
    weather.pass_over()
    assert lost
    assert weather.drift() == []


def test_fault_a_poison_record_is_set_aside_and_named():
    """A poison record is parked once with its reason, and the records beside it are processed."""
    weather = Weather(0)
    weather.poison = True
    weather.scene.put("shop", user("1", name=s("Ada")), order("1", "1", 5))
    weather.deliver()
    weather.poison = False
    weather.scene.rest()
    assert [rule for rule, _ in weather.scene.parked.told] == [""]
    assert weather.scene.consumer.telemetry.unreadable_records == 1
    assert weather.scene.item(weather.scene.at("shop", "USER#1", "ORDER#1"))["user_name"] == s("Ada")


def test_fault_a_clock_never_makes_lag_negative():
    """A record from the future has no lag."""
    weather = Weather(0)
    key = weather.scene.put("shop", user("1", name=s("Ada")))
    weather.scene.records[:] = [Change(key, None, weather.scene.item(key), "1", created_ms=10**13)]
    weather.deliver()
    assert set(weather.scene.consumer.telemetry.lag_ms.values()) == {0}


# ---------------------------------------------------------------- the table
def test_fault_table_names_tests_that_exist():
    """Each row of docs/faults.md says which test shows it, and there is such a test."""
    rows = re.findall(r"^\| (?!what goes wrong|---)(.*) \|$", (ROOT / "docs/faults.md").read_text(), re.MULTILINE)
    named = [re.findall(r"`(test_\w+)`", row.rpartition("|")[2]) for row in rows]
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(rows) >= 20
    assert all(named)
    assert {name for names in named for name in names} <= there
