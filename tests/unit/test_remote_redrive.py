"""A redrive in the account, in memory: place by place, in as many calls as it takes, and never without an end."""

from __future__ import annotations

import json

from sync_rules.failures import failure_record
from sync_rules.fingerprints import of_each
from sync_rules.model import Failure
from sync_rules.redriving.failed import Entry
from sync_rules.redriving.redriver import Redriver
from sync_rules.remote.redrive import RedriveWork, told, total
from sync_rules.sqs import utc_now
from tests.builders import order_item, s, shop, user_item
from tests.inaccount import Machine, SharedMemory
from tests.unit.test_remote_backfill import LONG_MS, InPeace
from tests.worlds import Scene


class Box:
    """A queue: what is taken and neither removed nor replaced is there again once it is closed."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.closed = 0

    def place(self) -> Box:
        return self

    def entries(self):
        for number, text in enumerate(list(self.texts)):
            yield Entry(text.encode(), f"box {number}", text)

    def remove(self, entry):
        self.texts.remove(entry.handle)

    def replace(self, entry, text):
        self.texts[self.texts.index(entry.handle)] = text

    def close(self):
        self.closed += 1


def text_of(scene: Scene, order_id: str, rule: str = "user-name-on-orders") -> str:
    return json.dumps(failure_record(Failure(rule, scene.at("shop", "USER#1", f"ORDER#{order_id}"), "X"), utc_now()))


def orders() -> Scene:
    scene = Scene(shop())
    scene.there("shop", user_item("1", name=s("Ada")), *(order_item("1", str(i)) for i in range(6)))
    return scene


def machine_of(scene: Scene, boxes: dict[str, Box], state: SharedMemory, remaining) -> Machine:
    def make() -> RedriveWork:
        return RedriveWork(
            scene.rules,
            lambda only: Redriver(scene.rules, scene.world, queue=scene.queue, only=only),
            {name: box.place for name, box in boxes.items()},
            state,
            remaining_ms=remaining,
        )

    return Machine(make, InPeace())


def asked(scene: Scene, *rules: str) -> dict:
    return {"rules": list(rules), "prints": of_each(scene.rules)}


def test_remote_redrive_goes_through_all_places():
    """What succeeds is gone from its place, what nobody can read stays; the figures are of all places."""
    scene, state = orders(), SharedMemory()
    boxes = {"failures": Box(text_of(scene, "1"), text_of(scene, "2")), "batches": Box("?")}
    assert machine_of(scene, boxes, state, lambda: LONG_MS).run(asked(scene))["error"] == ""
    tally = total(told(state, "one", boxes).values())
    assert (tally.done, tally.written, tally.unreadable) == (2, 2, 1)
    assert (boxes["failures"].texts, boxes["batches"].texts) == ([], ["?"])
    assert boxes["failures"].closed == 1
    assert scene.item(scene.at("shop", "USER#1", "ORDER#1"))["user_name"] == s("Ada")


def test_remote_redrive_short_of_time_goes_on_and_ends():
    """A call takes what it has time for, and the next goes on; one that only meets what fails again is the last."""
    scene, state = orders(), SharedMemory()
    gone = text_of(scene, "1", rule="gone")
    box = Box(gone, *(text_of(scene, str(i)) for i in range(6)))
    looks = [0]

    def remaining() -> int:
        looks[0] += 1
        return LONG_MS if looks[0] % 4 != 0 else 0  # the first look is at the beginning of a call

    machine = machine_of(scene, {"failures": box}, state, remaining)
    assert machine.run(asked(scene))["error"] == ""
    tally = total(told(state, "one", ["failures"]).values())
    assert (tally.done, tally.unreadable) == (6, 1)
    assert box.texts == [gone]
    assert box.closed > 2


def test_remote_redrive_of_rules_that_are_not_there_is_refused():
    """A rule that is not deployed is said to be missing."""
    scene = orders()
    said = machine_of(scene, {}, SharedMemory(), lambda: LONG_MS).run(asked(scene, "nobody"))
    assert (said["error"], "nobody" in said["cause"]) == ("Refused", True)


def test_remote_redrive_says_which_place_could_not_be_gone_through():
    """A place that does not answer is left, and named."""
    scene = orders()

    scene_state = SharedMemory()
    box = Box(text_of(scene, "1"))
    machine = machine_of(scene, {"failures": box, "batches": Box()}, scene_state, lambda: LONG_MS)
    machine.work = lambda unit: None if unit == "batches" else Machine.work(machine, unit)
    said = machine.run(asked(scene))
    assert said["error"] == "NotAllDone"
    assert "batches: NotFinished" in said["cause"]
    assert box.texts == []
