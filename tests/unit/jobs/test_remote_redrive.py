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
from sync_rules.model.items import Change, Failure
from sync_rules.pipeline.failed_entries import FailedEntry
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from tests.support.builders import key, order_item, s, shop, user_item
from tests.support.inaccount import KilledError, Machine, SharedMemory
from tests.support.worlds import Scene, event_of
from tests.unit.jobs.test_redrive import batch_of
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

    def release(self, entry):
        self.seen.remove(entry.handle)

    def close(self):
        self.place.closed += 1
        if not self.place.gone:
            self.place.hidden -= {*self.mine}


class Account:
    """A stack with places of failures, whose redrive has its time: each request to a store takes some of it."""

    def __init__(self, request_ms: int = 0, scene: Scene | None = None, **boxes: Place) -> None:
        self.scene = scene or orders()
        self.boxes = boxes
        self.state = SharedMemory()
        self.request_ms = request_ms
        self.left, self.calls = LONG_MS, 0
        self.scene.tap.before = self.spend

    def spend(self, _request) -> None:
        self.left -= self.request_ms

    def work(self) -> RedriveWork:
        """The work of one call, with all its time."""
        self.left, self.calls = LONG_MS, self.calls + 1
        scene = self.scene
        return RedriveWork(
            scene.rules,
            lambda only, remaining_ms: Redriver(
                scene.rules, scene.world, queue=scene.queue, only=only, remaining_ms=remaining_ms
            ),
            {name: partial(Opened, box) for name, box in self.boxes.items()},
            self.state,
            remaining_ms=lambda: self.left,
        )

    def machine(self, execution: str = "one") -> Machine:
        return Machine(self.work, InPeace(), execution)

    def run(self, *rules: str, execution: str = "one") -> dict:
        return self.machine(execution).run(
            {"rules": list(rules), "prints": compute_rule_fingerprints(self.scene.rules)}
        )

    @property
    def tally(self):
        return add_counts(load_documents(self.state, "one", self.boxes).values())

    def names(self) -> list[str | None]:
        """The user's name on each order."""
        items = [self.scene.item(self.scene.at("shop", "USER#1", f"ORDER#{number}")) for number in range(6)]
        return [item.get("user_name", {}).get("S") for item in items]


def orders() -> Scene:
    scene = Scene(shop())
    scene.there("shop", user_item("1", name=s("Ada")), *(order_item("1", str(i)) for i in range(6)))
    return scene


def text_of(order_id: str, rule: str = "user-name-on-orders") -> str:
    at = key(shop().tables["shop"], "USER#1", f"ORDER#{order_id}")
    return json.dumps(make_failure_record(Failure(rule, at, "X"), datetime.now(UTC)))


def six() -> list[str]:
    return [text_of(str(number)) for number in range(6)]


def test_remote_redrive_short_of_time_goes_on_and_ends():
    """A call processes the entries it has time for, and later calls the others."""
    gone = text_of("1", rule="gone")
    box = Place(gone, *six())
    account = Account(300_000, failures=box)  # two requests for each that can be put through
    assert account.run()["error"] == ""
    assert (account.tally.done, account.tally.unreadable, box.texts) == (6, 1, [gone])
    assert box.closed > 2


def test_remote_redrive_tries_those_behind_what_fails_again():
    """Each entry is tried and counted once, even if earlier ones fail again and use up a call."""
    box = Place(*six())
    account = Account(failures=box)

    def before(_request) -> None:
        account.left = 100_000  # too little to begin another
        if account.calls < 5:  # that of begin, and four of the unit
            raise StoreError("Throttled")

    account.scene.tap.before = before
    assert account.run()["error"] == ""
    assert (account.tally.again, account.tally.done) == (3, 3)
    assert [json.loads(text)["reason"] for text in box.texts] == ["Throttled"] * 3


def test_remote_redrive_after_a_call_died_is_not_done():
    """A redrive after a call that died processes the rest, and says when the hidden messages return."""
    queue = Place(*six(), hides=True)
    account = Account(failures=queue)

    def before(_request) -> None:
        if len(account.scene.tap.requests) == 6:
            queue.gone = True
            raise KilledError

    account.scene.tap.before = before
    said = account.run()
    assert said["error"] == "NotAllDone"
    assert "failures: a call died with messages in hand; they come back within 16 minutes" in said["cause"]
    assert len(queue.texts) == 2  # one entry was done alone; the call died with the next two, which are a group
    assert queue.hidden.issuperset(queue.lies)
    queue.hidden.clear()
    assert account.run(execution="two")["error"] == ""
    assert queue.texts == []


def test_remote_redrive_that_cannot_let_go_is_not_done(monkeypatch):
    """Messages that a call could not let go of are hidden like those of one that died."""
    monkeypatch.setattr(Opened, "held_count", 1)
    assert "they come back within 16 minutes" in Account(failures=Place()).run()["cause"]


def test_remote_redrive_of_a_place_that_fails_says_why():
    """A store that fails each time gives the reason of its unit; the unit completes once the store answers again."""
    box = Place(text_of("1"))
    troubles = ["SlowDown"] * 3

    def before() -> None:
        if troubles:
            raise StoreError(troubles.pop())

    box.before = before
    account = Account(failures=box)
    assert "failures: SlowDown" in account.run()["cause"]
    machine = account.machine()
    machine.answer = {"run": {"execution": "one", "rules": []}}
    machine.work("failures")
    assert machine.ask({"do": "end", **machine.answer})["error"] == ""
    assert box.texts == []


def test_remote_redrive_with_too_many_that_stay_comes_to_an_end(monkeypatch):
    """A redrive ends with TooManyStay if the tried entries no longer fit into its mark."""
    monkeypatch.setattr(redrive, "MARK_MAX_CHARS", 2)
    box = Place(*six())
    assert "failures: TooManyStay" in Account(LONG_MS, failures=box).run()["cause"]
    assert box.closed == 1


def test_remote_redrive_ends_a_heavy_batch_in_time():
    """A batch that exceeds the time stays with the reason, and is counted."""
    scene = Scene(shop())
    for user in range(20):
        scene.there("shop", user_item(str(user), name=s("Ada")), *(order_item(str(user), str(i)) for i in range(50)))
    scene.queue.broken = "Down"  # or the pushes would be handed over
    users = [(scene.at("shop", f"USER#{user}", "PROFILE"), str(user)) for user in range(20)]
    renamed = [Change(at, user_item(user, name=s("Bob")), user_item(user, name=s("Ada")), "1") for at, user in users]
    box = Place(json.dumps(batch_of(event_of(scene.rules, *renamed))))
    account = Account(LONG_MS, scene, batches=box)
    assert account.run()["error"] == ""
    assert len(scene.tap.requests) <= 1 + scene.limits.side_by_side_max_lists
    assert (account.tally.again, account.tally.done) == (1, 0)
    (kept,) = box.texts
    assert json.loads(kept)["redriven"]["reason"] in ("OutOfTime", "Down")


def test_remote_redrive_of_rules_that_are_not_there_is_refused():
    """A redrive for a rule that is not deployed is refused by name."""
    said = Account().run("nothing")
    assert (said["error"], "nothing" in said["cause"]) == ("Refused", True)


def test_remote_redrive_goes_on_from_a_tally_of_an_older_version():
    """A stack that is updated in the middle of a redrive: the document has not all counts of today."""
    account = Account(failures=Place(text_of("1")))
    before = {"done": 3, "again": 0, "kept": 0, "skipped": 0, "unreadable": 0, "records": 0, "written": 3, "parked": 0}
    body = {"done": False, "lost": False, "begun": False, "reason": "", "mark": "", "tally": before}
    account.state.save(redrive.name_document("one", "failures"), body)
    assert account.run()["error"] == ""
    assert (account.tally.done, account.tally.acted) == (4, 0)
