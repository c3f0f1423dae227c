"""A redrive in the account, in memory: place by place, in as many calls as it takes, and never without an end."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from sync_rules.jobs.account import account_redrive as redrive
from sync_rules.jobs.account.account_redrive import RedriveWork, add_counts, load_documents
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure
from sync_rules.pipeline.failed_entries import FailedEntry
from sync_rules.pipeline.failure_records import failure_record
from sync_rules.rules.fingerprints import of_each
from tests.support.builders import order_item, s, shop, user_item
from tests.support.inaccount import KilledError, Machine, SharedMemory
from tests.support.worlds import Scene
from tests.unit.jobs.test_remote_backfill import LONG_MS, InPeace


class Place:
    """Texts by their number. One that `hides` is a queue: what a call took is hidden until the call closes it, and for
    longer if the call is `gone`. Before a call gets any text, `before` may raise.
    """

    def __init__(self, *texts: str, hides: bool = False) -> None:
        self.lies = dict(enumerate(texts))
        self.hides = hides
        self.hidden: set[int] = set()
        self.gone = False
        self.closed = 0
        self.before: Callable[[], object] = lambda: None

    @property
    def texts(self) -> list[str]:
        return [*self.lies.values()]


class Opened:
    """A MarkedStore on a place for one call: what the calls before were given is left out."""

    hidden_seconds = 960
    held_count = 0

    def __init__(self, place: Place, mark: str) -> None:
        self.place, self.seen = place, json.loads(mark or "[]")
        self.mine: list[int] = []
        place.gone = False

    @property
    def mark(self) -> str:
        return json.dumps(self.seen)

    def entries(self):
        self.place.before()
        for number, text in [*self.place.lies.items()]:
            if number not in self.seen and number not in self.place.hidden:
                self.seen.append(number)
                self.mine.append(number)
                self.place.hidden |= {number} if self.place.hides else set()
                yield FailedEntry(text.encode(), f"place {number}", number)

    def remove(self, entry):
        del self.place.lies[entry.handle]

    def replace(self, entry, text):
        if not self.place.hides:
            self.place.lies[entry.handle] = text

    def close(self):
        self.place.closed += 1
        if not self.place.gone:
            self.place.hidden -= {*self.mine}


class Clock:
    """The time of one call after the other: each request to a store takes some of it."""

    def __init__(self, scene: Scene, request_ms: int) -> None:
        self.left = LONG_MS
        self.calls = 0
        self.request_ms = request_ms
        scene.tap.before = self.tick

    def tick(self, _request) -> None:
        self.left -= self.request_ms

    def remaining_ms(self) -> int:
        return self.left

    def begin(self) -> None:
        self.left = LONG_MS
        self.calls += 1


def text_of(scene: Scene, order_id: str, rule: str = "user-name-on-orders") -> str:
    return json.dumps(
        failure_record(Failure(rule, scene.at("shop", "USER#1", f"ORDER#{order_id}"), "X"), datetime.now(UTC))
    )


def orders() -> Scene:
    scene = Scene(shop())
    scene.there("shop", user_item("1", name=s("Ada")), *(order_item("1", str(i)) for i in range(6)))
    return scene


def batch_of(scene: Scene, *records: dict) -> str:
    """A batch that Lambda gave up."""
    table = scene.rules.tables["shop"]
    arn = f"arn:aws:dynamodb:us-east-1:1:table/{table.physical_name}/stream/x"
    event = {
        "Records": [
            {
                "eventID": str(number),
                "eventName": "MODIFY" if "OldImage" in record else "INSERT",
                "eventSourceARN": arn,
                "dynamodb": {
                    "Keys": {name: record["NewImage"][name] for name in ("PK", "SK")},
                    "SequenceNumber": str(10**21 + number),
                    "StreamViewType": "NEW_AND_OLD_IMAGES",
                    **record,
                },
            }
            for number, record in enumerate(records)
        ]
    }
    info = {"shardId": "shard", "startSequenceNumber": "1", "endSequenceNumber": "2", "streamArn": arn}
    return json.dumps({"DDBStreamBatchInfo": info, "payload": json.dumps(event)})


def machine_of(scene: Scene, boxes: dict, state: SharedMemory, remaining, begin=lambda: None) -> Machine:
    def make() -> RedriveWork:
        begin()
        return RedriveWork(
            scene.rules,
            lambda only, remaining_ms: Redriver(
                scene.rules, scene.world, queue=scene.queue, only=only, remaining_ms=remaining_ms
            ),
            {name: partial(Opened, box) for name, box in boxes.items()},
            state,
            remaining_ms=remaining,
        )

    return Machine(make, InPeace())


def asked(scene: Scene, *rules: str) -> dict:
    return {"rules": list(rules), "prints": of_each(scene.rules)}


def test_remote_redrive_goes_through_all_places():
    """A redrive in the account empties every store of what succeeds, keeps unreadable entries, and adds up its figures."""
    scene, state = orders(), SharedMemory()
    boxes = {"failures": Place(text_of(scene, "1"), text_of(scene, "2")), "batches": Place("?")}
    assert machine_of(scene, boxes, state, lambda: LONG_MS).run(asked(scene))["error"] == ""
    tally = add_counts(load_documents(state, "one", boxes).values())
    assert (tally.done, tally.written, tally.unreadable) == (2, 2, 1)
    assert (boxes["failures"].texts, boxes["batches"].texts) == ([], ["?"])
    assert boxes["failures"].closed == 1
    assert scene.item(scene.at("shop", "USER#1", "ORDER#1"))["user_name"] == s("Ada")


def test_remote_redrive_short_of_time_goes_on_and_ends():
    """A call processes the entries it has time for, and later calls the others."""
    scene, state = orders(), SharedMemory()
    gone = text_of(scene, "1", rule="gone")
    box = Place(gone, *(text_of(scene, str(i)) for i in range(6)))
    clock = Clock(scene, 300_000)  # two requests for each that can be put through
    machine = machine_of(scene, {"failures": box}, state, clock.remaining_ms, clock.begin)
    assert machine.run(asked(scene))["error"] == ""
    tally = add_counts(load_documents(state, "one", ["failures"]).values())
    assert (tally.done, tally.unreadable) == (6, 1)
    assert box.texts == [gone]
    assert box.closed > 2


def test_remote_redrive_tries_those_behind_what_fails_again():
    """Each entry is tried and counted once, even if earlier ones fail again and use up a call."""
    scene, state = orders(), SharedMemory()
    stuck = [text_of(scene, str(i)) for i in range(3)]
    box = Place(*stuck, *(text_of(scene, str(i)) for i in range(3, 6)))
    clock = Clock(scene, 0)

    def before(_request) -> None:
        clock.left = 100_000  # too little to begin another
        if clock.calls < 5:  # that of begin, and four of the unit
            raise StoreError("Throttled")

    scene.tap.before = before
    assert machine_of(scene, {"failures": box}, state, clock.remaining_ms, clock.begin).run(asked(scene))["error"] == ""
    tally = add_counts(load_documents(state, "one", ["failures"]).values())
    assert (tally.again, tally.done) == (3, 3)
    assert [json.loads(text)["reason"] for text in box.texts] == ["Throttled"] * 3


def test_remote_redrive_of_one_rule_goes_through_batches_that_are_kept():
    """Batches kept after a redrive for some rules do not hold up those behind them."""
    scene, state = orders(), SharedMemory()
    box = Place(*(batch_of(scene, {"NewImage": order_item("1", str(i))}) for i in range(6)))
    texts = [*box.texts]
    clock = Clock(scene, 200_000)  # two requests for each
    machine = machine_of(scene, {"batches": box}, state, clock.remaining_ms, clock.begin)
    assert machine.run(asked(scene, "user-name-on-orders"))["error"] == ""
    tally = add_counts(load_documents(state, "one", ["batches"]).values())
    assert (tally.kept, tally.again, tally.unreadable) == (6, 0, 0)
    assert box.texts == texts
    assert clock.calls > 3
    for number in range(6):
        assert scene.item(scene.at("shop", "USER#1", f"ORDER#{number}"))["user_name"] == s("Ada")


def test_remote_redrive_after_a_call_died_is_not_done():
    """A redrive after a call that died processes the rest, and says when the hidden messages return."""
    scene, state = orders(), SharedMemory()
    queue = Place(*(text_of(scene, str(i)) for i in range(6)), hides=True)
    requests = [0]

    def before(_request) -> None:
        requests[0] += 1
        if requests[0] == 6:
            queue.gone = True
            raise KilledError

    scene.tap.before = before
    said = machine_of(scene, {"failures": queue}, state, lambda: LONG_MS).run(asked(scene))
    assert said["error"] == "NotAllDone"
    assert "failures: a call died with messages in hand; they come back within 16 minutes" in said["cause"]
    assert len(queue.texts) == 1
    assert queue.hidden.issuperset(queue.lies)
    queue.hidden.clear()
    machine = machine_of(scene, {"failures": queue}, state, lambda: LONG_MS)
    machine.execution = "two"
    assert machine.run(asked(scene))["error"] == ""
    assert queue.texts == []


def test_remote_redrive_that_cannot_let_go_is_not_done(monkeypatch):
    """Messages that a call could not let go of are hidden like those of one that died."""
    monkeypatch.setattr(Opened, "held_count", 1)
    scene, state = orders(), SharedMemory()
    said = machine_of(scene, {"failures": Place()}, state, lambda: LONG_MS).run(asked(scene))
    assert "they come back within 16 minutes" in said["cause"]


def test_remote_redrive_of_a_place_that_fails_says_why():
    """A store that fails each time gives the reason of its unit; the unit completes once the store answers again."""
    scene, state = orders(), SharedMemory()
    box = Place(text_of(scene, "1"))
    troubles = ["SlowDown"] * 3

    def before() -> None:
        if troubles:
            raise StoreError(troubles.pop())

    box.before = before
    machine = machine_of(scene, {"failures": box}, state, lambda: LONG_MS)
    assert "failures: SlowDown" in machine.run(asked(scene))["cause"]
    machine.answer = {"run": {"execution": "one", "rules": []}}
    machine.work("failures")
    assert machine.ask({"do": "end", **machine.answer})["error"] == ""
    assert box.texts == []


def test_remote_redrive_with_too_many_that_stay_comes_to_an_end(monkeypatch):
    """A redrive ends with TooManyStay if the tried entries no longer fit into its mark."""
    monkeypatch.setattr(redrive, "MARK_MAX_CHARS", 2)
    scene, state = orders(), SharedMemory()
    box = Place(*(text_of(scene, str(i)) for i in range(6)))
    clock = Clock(scene, LONG_MS)
    said = machine_of(scene, {"failures": box}, state, clock.remaining_ms, clock.begin).run(asked(scene))
    assert "failures: TooManyStay" in said["cause"]
    assert box.closed == 1


def test_remote_redrive_ends_a_heavy_batch_in_time():
    """A batch that exceeds the time stays with the reason, and is counted."""
    scene, state = Scene(shop()), SharedMemory()
    for user in range(20):
        scene.there("shop", user_item(str(user), name=s("Ada")), *(order_item(str(user), str(i)) for i in range(50)))
    renamed = [
        {"NewImage": user_item(str(user), name=s("Ada")), "OldImage": user_item(str(user), name=s("Bob"))}
        for user in range(20)
    ]
    scene.queue.broken = "Down"  # or the pushes would be handed over
    box = Place(batch_of(scene, *renamed))
    clock = Clock(scene, LONG_MS)
    scene.tap.requests.clear()
    assert machine_of(scene, {"batches": box}, state, clock.remaining_ms, clock.begin).run(asked(scene))["error"] == ""
    assert len(scene.tap.requests) <= 1 + scene.limits.side_by_side_max_lists
    tally = add_counts(load_documents(state, "one", ["batches"]).values())
    assert (tally.again, tally.done) == (1, 0)
    (kept,) = box.texts
    assert json.loads(kept)["redriven"]["reason"] in ("OutOfTime", "Down")


def test_remote_redrive_of_rules_that_are_not_there_is_refused():
    """A redrive for a rule that is not deployed is refused by name."""
    scene = orders()
    said = machine_of(scene, {}, SharedMemory(), lambda: LONG_MS).run(asked(scene, "nobody"))
    assert (said["error"], "nobody" in said["cause"]) == ("Refused", True)


def test_remote_redrive_goes_on_from_a_tally_of_an_older_version():
    """A stack that is updated in the middle of a redrive: the document has not all counts of today."""
    scene, state = orders(), SharedMemory()
    before = {"done": 3, "again": 0, "kept": 0, "skipped": 0, "unreadable": 0, "records": 0, "written": 3, "parked": 0}
    body = {"done": False, "lost": False, "begun": False, "reason": "", "mark": "", "tally": before}
    state.save(redrive.name_document("one", "failures"), body)
    box = Place(text_of(scene, "1"))
    assert machine_of(scene, {"failures": box}, state, lambda: LONG_MS).run(asked(scene))["error"] == ""
    tally = add_counts(load_documents(state, "one", ["failures"]).values())
    assert (tally.done, tally.acted) == (4, 0)
