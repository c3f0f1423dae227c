"""Redrive: failed entries are processed again, removed when done, and left with their reason otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.redrive import redriver as redrive
from sync_rules.jobs.redrive.entries import LeftEntry
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.jobs.streams import TRIMMED, IteratorExpiredError, RecordsTrimmedError, ShardGoneError
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, Failure
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Result, Status, Transaction
from sync_rules.pipeline.failed_entries import FailedEntry
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.messages import (
    CallMessage,
    ChunkMessage,
    PartMessage,
    PullMessage,
    PushMessage,
    format_message,
)
from sync_rules.pipeline.requests import NULL_PORTS, List
from tests.support import every_kind
from tests.support.builders import author_item, book_item, library, order_item, s, shop, user_item
from tests.support.every_kind import order, post, user
from tests.support.fake_stream import ARN, NOON_MS, FakeShard, FakeStream, record
from tests.support.worlds import Parked, Scene, event_of

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NO_LOOKS = Limits(parked_max_looks=0, failure_again_seconds=0)


class Shelf:
    """A FailureStore in memory: texts by their number."""

    def __init__(self, *bodies: object) -> None:
        self.texts = {number: body if isinstance(body, str) else json.dumps(body) for number, body in enumerate(bodies)}
        self.broken = ""
        self.released: list[int] = []

    def entries(self) -> Iterator[FailedEntry]:
        for number, text in [*self.texts.items()]:
            yield FailedEntry(text.encode(), f"shelf:{number}", number)

    def remove(self, entry: FailedEntry) -> None:
        if self.broken:
            raise StoreError(self.broken)
        del self.texts[entry.handle]

    def replace(self, entry: FailedEntry, text: str) -> None:
        self.texts[entry.handle] = text

    def release(self, entry: FailedEntry) -> None:
        self.released.append(entry.handle)

    def close(self) -> None:
        pass

    @property
    def bodies(self) -> list[dict]:
        return [json.loads(text) for text in self.texts.values()]


class Days:
    """A clock that only sleep moves, and how long was slept."""

    def __init__(self) -> None:
        self.now = NOON_MS / 1000
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds))
        self.now += seconds


class Bench:
    """A scene whose work failed, and a redrive of it."""

    def __init__(self, rules=None, **options) -> None:
        self.scene = Scene(rules or every_kind.rules_of(), limits=NO_LOOKS)
        self.days = Days()
        self.left: list[LeftEntry] = []
        self.options = options
        self.recorded = Parked()

    def redrive(self, *shelves: Shelf, rest: bool = True, **options) -> Redriver:
        self.left.clear()
        world = replace(self.scene.world, queue=NULL_PORTS, failures=self.recorded)
        usual = {"on_left": self.left.append, "clock": self.days.time, "sleep": self.days.sleep}
        redriver = Redriver(self.scene.rules, world, **usual | self.options | options)
        for shelf in shelves:
            redriver.take(shelf)
        if rest:
            redriver.rest()
        return redriver

    def failed(self) -> Shelf:
        """The failure records so far, as they would lie in a file."""
        taken, self.scene.parked.failures = self.scene.parked.failures, []
        return Shelf(*(make_failure_record(failure, AT) for failure in taken))

    def given_up(self, changes=None) -> dict:
        """The records not processed yet as a batch that was given up."""
        if changes is None:
            changes, self.scene.records = self.scene.records, []
        return batch_of(event_of(self.scene.rules, *changes))

    def drift(self) -> list:
        """The differences that verify finds at once, without orphans, which are no failures."""
        return [one for one in self.differences() if one.drift is not Drift.ORPHAN]

    def differences(self) -> list:
        """The same, and what should have gone with its source."""
        world = replace(self.scene.world, queue=NULL_PORTS)
        names = frozenset(n for n, rule in self.scene.rules.rules.items() if rule.kind != "call")
        return [one.difference for one in Verifier(self.scene.rules, world, names, grace_seconds=0).sweep()]


def batch_of(event: dict) -> dict:
    info = {"shardId": "shard-0", "startSequenceNumber": "1", "endSequenceNumber": "2", "streamArn": ARN}
    return {
        "requestContext": {"condition": "RetryAttemptsExhausted"},
        "DDBStreamBatchInfo": info,
        "payload": json.dumps(event),
    }


def plain(record: dict) -> tuple:
    return record["rule"], record["reason"]


# ---------------------------------------------------------------- in time
@pytest.mark.parametrize("sort", ["batch", "failure record", "message"])
def test_redrive_that_runs_out_of_time_leaves_what_was_at_work(sort):
    """An entry whose time runs out stays with that reason."""
    bench = Bench()
    items = [order("1", str(number), 1, user_name=s("old")) for number in range(3)]
    bench.scene.there("shop", user("1", name=s("Ada")), *items)
    at = bench.scene.at("shop", "USER#1", "ORDER#0")
    shelf = {
        "batch": lambda: Shelf(bench.given_up([Change(bench.scene.at("shop", "USER#1", "PROFILE"), None, user("1"))])),
        "failure record": lambda: Shelf(make_failure_record(Failure("names", at, "X"), AT)),
        "message": lambda: Shelf(format_message(PullMessage(at))),
    }[sort]()
    redriver = bench.redrive(shelf, remaining_ms=lambda: 0)
    assert (redriver.tally.again, redriver.tally.done) == (1, 0)
    assert [one.reason for one in bench.left] == ["OutOfTime"]
    assert len(shelf.texts) == 1
    assert bench.scene.tap.writes == []
    assert bench.redrive(shelf).tally.done == 1
    assert shelf.texts == {}


# ---------------------------------------------------------------- failure records
def stuck_copy(scene: Scene):
    scene.there("shop", order("1", "a", 1, user_name=s("old")), user("1", name=s("Ada")))
    at = scene.at("shop", "USER#1", "ORDER#a")
    scene.tap.result = lambda write: Result(Status.REJECTED, reason="ItemTooLarge") if write.key == at else None
    scene.put("shop", user("1", name=s("Bea")))
    scene.rest()
    scene.tap.result = lambda _write: None


def stuck_element(scene: Scene):
    scene.there("shop", user("1", orders=s("no set")))
    scene.put("shop", order("1", "a", 1))
    scene.rest()
    scene.there("shop", user("1"))


STUCK = {
    "copy": (stuck_copy, ("names", "ItemTooLarge")),
    "collect": (stuck_element, ("tags", "NotASet")),
}


@pytest.mark.parametrize("name", STUCK)
def test_redrive_puts_failure_records_through(name):
    """A failure record of any kind is enough to repair its item, and is then removed. One that fails again stays with its
    first time and its new reason, and is not recorded a second time.
    """
    bench = Bench()
    stuck, told = STUCK[name]
    stuck(bench.scene)
    (body,) = [one for one in bench.failed().bodies if plain(one) == told][:1]
    assert told[0] in {different.rule for different in bench.drift()}
    shelf = Shelf({**body, "reason": "Whatever"})
    bench.scene.tap.result = lambda _write: Result(Status.REJECTED, reason="Rejected")
    redriver = bench.redrive(shelf)
    assert [(left.reason, left.unreadable) for left in bench.left] == [("Rejected", False)]
    assert (redriver.tally.again, redriver.tally.done) == (1, 0)
    assert shelf.bodies == [{**body, "reason": "Rejected", "last": "2027-01-15T08:00:00.000+00:00"}]
    assert bench.recorded.failures == []
    bench.scene.tap.result = lambda _write: None
    redriver = bench.redrive(shelf)
    assert (shelf.bodies, bench.left) == ([], [])
    assert redriver.tally.written > 0
    bench.scene.rest()
    assert told[0] not in {different.rule for different in bench.drift()}


def without_old_image(bench: Bench) -> Shelf:
    """The failure record of the last record, which comes without what the item was; those before it never come."""
    event = event_of(bench.scene.rules, bench.scene.records[-1])
    bench.scene.records.clear()
    del event["Records"][0]["dynamodb"]["OldImage"]
    event["Records"][0]["dynamodb"]["StreamViewType"] = "KEYS_ONLY"
    bench.scene.consumer.handle_event(event, lambda: 60_000)
    shelf = bench.failed()
    assert len(shelf.bodies) == 1
    return shelf


def drifted(bench: Bench) -> set[str]:
    bench.scene.rest()
    return {different.rule.partition(".")[0] for different in bench.differences()}


@pytest.mark.parametrize("without", [(), ("least", "totals")], ids=["ranked", "not-ranked"])
def test_redrive_of_a_deleted_item_without_images_settles_what_its_key_names(without):
    """A deleted item's element, ledger entry and recounts are repaired by its key alone.

    Its rank item is not known by the key: that keeps the failure record, with the cure.
    """
    bench = Bench(every_kind.rules_of(*without, effects=False))
    scene = bench.scene
    scene.put("shop", user("1", name=s("Ada")), order("1", "a", 9), order("1", "b", 7))
    scene.rest()
    scene.memory.delete(scene.at("shop", "USER#1", "ORDER#a"))
    shelf = without_old_image(bench)
    assert drifted(bench) >= {"tags", "counted", "spent", "recounted"} - set(without)
    bench.redrive(shelf)
    assert drifted(bench) == ({"least", "totals"} - set(without))
    assert len(shelf.bodies) == (not without)
    for body in shelf.bodies:
        assert body["reason"].startswith("this record lacks the old image of the item, for least, totals")
        assert "`sync-rules verify --repair` repairs it" in body["reason"]


@pytest.mark.parametrize("what", ["mirror", "mirror of one that is gone", "embed"])
def test_redrive_keeps_what_only_the_missing_image_named(what):
    """A failure record is kept if only the missing image named the item to repair."""
    bench = Bench(every_kind.rules_of(effects=False))
    scene = bench.scene
    scene.put("shop", user("1", name=s("Ada"), email=s("a@x")), user("2", name=s("Bea")))
    scene.put("posts", post("p", "1", "t"))
    scene.rest()
    match what:
        case "mirror":
            scene.put("shop", {**scene.item(scene.at("shop", "USER#1", "PROFILE")), "email": s("b@x")})
        case "embed":
            scene.put("posts", post("p", "2", "t"))
        case _:
            scene.memory.delete(scene.at("shop", "USER#1", "PROFILE"))
    shelf = without_old_image(bench)
    bench.redrive(shelf)
    scene.rest()
    rule = "posts" if what == "embed" else "mails"
    assert rule in drifted(bench)
    assert [
        body["reason"].startswith(f"this record lacks the old image of the item, for {rule}") for body in shelf.bodies
    ] == [True]
    if what == "mirror":
        assert scene.item(scene.at("shop", "EMAIL#b@x", "EMAIL")) is not None
    if what == "embed":
        assert scene.item(scene.at("shop", "USER#2", "PROFILE"))["posts"]["M"].keys() == {"p"}


@pytest.mark.parametrize(("on_delete", "reason"), [("delete", "Rejected"), ("restrict", "SourceDeleted")])
def test_redrive_keeps_an_orphan_until_its_source_is_there_again(on_delete, reason):
    """A pull never deletes: while the target is there without its source, its failure record is too."""
    bench = Bench(shop(on_delete=on_delete))
    scene = bench.scene
    source = scene.put("shop", user_item("1", name=s("Ada")))
    target = scene.put("shop", order_item("1", "1"))
    scene.rest()
    scene.memory.delete(source)
    rejected = Result(Status.REJECTED, reason="Rejected")
    scene.tap.result = lambda write: rejected if isinstance(write, Transaction) else None
    assert scene.deliver() == []
    scene.tap.result = lambda _write: None
    shelf = bench.failed()
    assert [body["reason"] for body in shelf.bodies] == [reason]
    bench.redrive(shelf)
    assert [body["reason"] for body in shelf.bodies] == ["SourceDeleted"]
    scene.put("shop", user_item("1", name=s("Bea")))
    bench.redrive(shelf)
    assert shelf.bodies == []
    assert scene.item(target)["user_name"] == s("Bea")


# ---------------------------------------------------------------- records that do not say which part they are about
def test_redrive_keeps_a_mirror_of_nobody_knows_what():
    """A mirror that is not there, of a source that neither its key nor its failure record names, is no success."""
    bench = Bench(every_kind.rules_of(effects=False))
    scene = bench.scene
    scene.there("shop", user("1", name=s("Ada"), email=s("a@x")))
    source, mirror = scene.at("shop", "USER#1", "PROFILE"), scene.at("shop", "EMAIL#a@x", "EMAIL")
    shelf = Shelf(failure("mails", mirror))
    bench.redrive(shelf)
    assert [body["reason"].startswith("it does not say which item") for body in shelf.bodies] == [True]
    shelf = Shelf(failure("mails", mirror, member=source))
    bench.redrive(shelf)
    assert (shelf.bodies, scene.item(mirror)["name"]) == ([], s("Ada"))


def failure(rule: str, key=None, **more) -> dict:
    return make_failure_record(Failure(rule, key, "Stuck", **more), AT)


def test_redrive_names_what_cannot_be_put_through():
    """Rules and tables that are gone, keys of another table, effects without their values, what is no entry at all: each
    is named and left as it is, and what lies beside it is done.
    """
    bench = Bench()
    scene = bench.scene
    at, mirror = scene.at("shop", "USER#1", "ORDER#a"), scene.at("shop", "EMAIL#x", "EMAIL")
    odd = scene.at("parts", "p")
    half = at._replace(values=(at.values[0], ("sk", *at.values[1][1:])))
    told = {
        "there is no rule 'gone' any more: if it was renamed, say renamed_from: gone in the new one; otherwise": failure(
            "gone", at
        ),
        "there is no rule 'a, b' any more: if it was renamed, say renamed_from: OLD in the new one; otherwise": failure(
            "a, b", at, position="7"
        ),
        "no rule applies to its item": failure("", at, position="7"),
        "could not be read": failure("", None, position="7"),
        "the rules have no table 'shops'": {**failure("names", at), "table": "shops"},
        "a key that table shop does not have": {**failure("names", at), "key": {"PK": "USER#1"}},
        "rule names does not apply to this item": failure("names", mirror),
        "rule tags does not apply to this item": failure("tags", at, member=odd, element="a"),
        "rule called acts outside the tables": failure("called", at, position="7"),
        "not JSON": "{",
        "unknown form": {},
        "no rule writes its item": format_message(PullMessage(scene.at("posts", "p"))),
        "there is no rule 'gone' any more: if it was renamed": format_message(PartMessage("gone", at, None)),
        "no rule 'names' any more that calls": format_message(CallMessage("names", "f.g", Change(at, None, {}))),
        "no rule 'gone' any more: if it was renamed, say renamed_from: gone": format_message(
            PushMessage(("gone",), at)
        ),
        "no rule 'gone' any more": format_message(ChunkMessage(("gone",), at, (at,))),
        "concerns its item any more: names": format_message(
            ChunkMessage(("names",), scene.at("shop", "USER#1", "PROFILE"), (half,))
        ),
        "no rule writes its": format_message(PullMessage(half)),
        "rule tags does not apply": format_message(PartMessage("tags", half, at, "a")),
        "rule tags does not apply to this item any more": format_message(PartMessage("tags", at, at, "a")),
    }
    scene.there("shop", order("1", "a", 1), user("1", name=s("Ada")))
    shelf = Shelf(*told.values(), failure("names", at))
    before = dict(shelf.texts)
    tally = bench.redrive(shelf).tally
    assert (tally.unreadable, tally.done) == (len(told), 1)
    for words, left in zip(told, bench.left, strict=True):
        assert words in left.reason
        assert left.unreadable
    del before[len(told)]
    assert shelf.texts == before


# ---------------------------------------------------------------- batches


def test_redrive_names_batches_of_other_tables_and_poison():
    """A batch of another table, or with an unreadable record, stays; the readable records of the latter are processed."""
    bench = Bench()
    bench.scene.put("shop", user("1", name=s("Ada")), order("1", "a", 5))
    event = event_of(bench.scene.rules, *bench.scene.records)
    bench.scene.records.clear()
    poison = {"Records": [{"dynamodb": {"SequenceNumber": "5"}}, *event["Records"]]}
    foreign = json.loads(json.dumps(event).replace("table/shop/", "table/other/"))
    shelf = Shelf(batch_of(poison), batch_of(foreign))
    before = shelf.bodies
    tally = bench.redrive(shelf).tally
    assert (tally.unreadable, tally.done, shelf.bodies) == (2, 0, before)
    assert (
        "1 of its records cannot be retried, the first: 5: a stream record has no dynamodb.Keys" in bench.left[0].reason
    )
    assert "no rule uses the table" in bench.left[1].reason
    assert bench.recorded.failures == []
    assert bench.scene.item(bench.scene.at("shop", "USER#1", "ORDER#a"))["user_name"] == s("Ada")


def test_redrive_says_when_an_entry_cannot_be_removed():
    """An entry that was processed but cannot be removed is reported with the reason, and stays."""
    bench = Bench()
    bench.scene.put("shop", user("1"))
    shelf = Shelf(bench.given_up())
    shelf.broken = "AccessDenied"
    assert bench.redrive(shelf).tally.again == 1
    assert bench.left[0].reason == "done, but not removed: AccessDenied"
    assert len(shelf.bodies) == 1


# ---------------------------------------------------------------- effects
@pytest.mark.parametrize("fails", ["CallFailed", "ThrottlingException"])
def test_redrive_leaves_a_batch_whole_when_a_record_fails(fails):
    """A batch whose call or write failed, or a message whose call failed, stays as it is without a failure record; the
    batch's other copies are made, and the reason is noted on it. Days after the stream expired it is put through.
    """
    bench = Bench()
    scene = bench.scene
    scene.put("shop", user("1", name=s("Ada"), email=s("a@x")), order("1", "a", 5))
    gone = scene.put("shop", order("1", "b", 7))
    scene.memory.delete(gone)
    call = format_message(CallMessage("called", "f.g", scene.records[1], 7))
    shelf = Shelf(bench.given_up(), call)
    if fails == "CallFailed":
        scene.caller.broken = fails
    else:
        failed, at = Result(Status.FAILED, reason=fails), scene.at("shop", "USER#1", "PROFILE")
        scene.tap.result = lambda write: failed if getattr(write, "key", None) == at else None
    bench.redrive(shelf)
    assert {(left.reason, left.unreadable) for left in bench.left} == {(fails, False)}
    assert bench.recorded.failures == []
    body = shelf.bodies[0]
    assert body["redriven"] == {"reason": fails, "at": "2027-01-15T08:00:00.000+00:00"}
    assert len(json.loads(body["payload"])["Records"]) == 4
    assert scene.item(scene.at("shop", "USER#1", "ORDER#a"))["user_name"] == s("Ada")
    assert (shelf.texts.get(1) == call) is (fails == "CallFailed")
    scene.caller.broken, scene.tap.result = "", lambda _write: None
    tally = bench.redrive(shelf).tally
    assert (shelf.bodies, bench.left, tally.records) == ([], [], 4)
    scene.rest()
    assert bench.drift() == []
    assert {call.change.new["total"]["N"] for call in scene.caller.calls} == {"5", "7"}
    assert {call.function for call in scene.caller.calls} == {"tests.support.every_kind.told"}


def test_redrive_makes_a_call_that_was_given_up():
    """A call that failed each time is made from the place that its failure record names, with both images; one that
    fails again stays, and so does one whose rule was renamed without a word.
    """
    bench = Bench()
    bench.scene.put("shop", order("1", "a", 1))
    change = bench.scene.records[0]
    bench.scene.caller.broken = "CallFailed"
    bench.scene.consumer.handle_message(CallMessage("called", "f.g", change, 7))
    shelf = bench.failed()
    bench.redrive(shelf)
    assert [left.reason for left in bench.left] == ["CallFailed"]
    bench.scene.caller.broken = ""
    bench.redrive(shelf, only=frozenset({"names"}))
    assert len(shelf.texts) == 1
    renamed = replace(bench.scene.rules.rules["called"], name="told", renamed_from="called")
    others = {name: rule for name, rule in bench.scene.rules.rules.items() if name != "called"}
    for rules, done in ((others, False), ({**others, "told": renamed}, True)):
        bench.scene.rules = replace(bench.scene.rules, rules=rules)
        bench.redrive(shelf, only=frozenset({"told"}) if done else None)
        assert (shelf.texts == {}) is done
    assert [(call.rule, call.change) for call in bench.scene.caller.calls] == [("told", change)]
    assert bench.recorded.failures == []


# ---------------------------------------------------------------- messages
def test_redrive_puts_dead_letters_through():
    """Dead letters of each kind are processed and removed. Messages about items that are parked again stay, and are not
    recorded again.
    """
    bench = Bench()
    scene = bench.scene
    change = Change(scene.at("shop", "USER#1", "ORDER#a"), None, order("1", "a", 5), "1")
    scene.there("shop", user("1", name=s("Ada"), email=s("a@x")), *(order("1", name, 5) for name in "abc"))
    source = scene.at("shop", "USER#1", "PROFILE")
    shelf = Shelf(
        format_message(PullMessage(scene.at("shop", "USER#1", "ORDER#a"), attempt=11)),
        format_message(PushMessage(("names", "gone"), source)),
        format_message(ChunkMessage(("names", "gone"), source, (scene.at("shop", "USER#1", "ORDER#c"),))),
        format_message(PartMessage("mails", scene.at("shop", "EMAIL#a@x", "EMAIL"), source, attempt=11)),
        format_message(CallMessage("called", "an.old.name", change, 7)),
    )
    stuck = Shelf(*(shelf.texts[number] for number in (0, 3)))
    before = dict(stuck.texts)
    scene.tap.result = lambda _write: Result(Status.REJECTED, reason="ItemTooLarge")
    bench.redrive(stuck)
    assert [left.reason for left in bench.left] == ["ItemTooLarge"] * 2
    assert (stuck.texts, bench.recorded.failures) == (before, [])
    scene.tap.result = lambda _write: None
    tally = bench.redrive(shelf).tally
    assert (shelf.bodies, tally.done) == ([], 5)
    for name in "abc":
        assert scene.item(scene.at("shop", "USER#1", f"ORDER#{name}"))["user_name"] == s("Ada")
    assert scene.item(scene.at("shop", "EMAIL#a@x", "EMAIL"))["name"] == s("Ada")
    assert [call.change for call in scene.caller.calls] == [change]


# ---------------------------------------------------------------- what is left for later
def attached() -> Bench:
    """An author renamed; the record is in a batch that was given up."""
    bench = Bench(library())
    scene = bench.scene
    scene.there("authors", author_item("a1", name=s("Ada")))
    scene.there("books", book_item("b1", "a1", author_name=s("Ada")))
    scene.put("authors", author_item("a1", name=s("Bea")))
    return bench


def test_redrive_leaves_a_batch_whose_second_look_failed():
    """A batch is removed only after its second look has succeeded."""
    bench = attached()
    shelf = Shelf(bench.given_up())
    redriver = bench.redrive(shelf, rest=False)
    bench.scene.tap.refuse(List, StoreError("ThrottlingException"))
    redriver.rest()
    assert [left.reason for left in bench.left] == ["ThrottlingException"]
    assert [body["redriven"]["reason"] for body in shelf.bodies] == ["ThrottlingException"]


def test_redrive_holds_only_so_much_while_it_waits(monkeypatch):
    """Batches that wait for a look are in memory: with too much of them the looks come first, then the next batch."""
    bench = attached()
    body = bench.given_up()
    size = len(json.dumps(body))
    for most, slept in ((2 * size, [60]), (2 * size - 1, [60, 60]), (0, [60, 60, 60])):
        monkeypatch.setattr(redrive, "HELD_MAX_BYTES", most)
        shelf = Shelf(body, body, body) if most != 2 * size else Shelf(body, body)
        bench.days.slept.clear()
        bench.redrive(shelf)
        assert (shelf.bodies, bench.days.slept) == ([], slept)


def test_redrive_leaves_what_waits_behind_too_much(monkeypatch):
    """An entry whose message for later would be one too many stays, with that reason, and those before it are done."""
    monkeypatch.setattr(redrive, "WAITING_MAX_MESSAGES", 1)
    bench = attached()
    first = bench.given_up()
    bench.scene.put("authors", author_item("a2", name=s("Cy")))
    shelf = Shelf(first, bench.given_up(), first)
    bench.redrive(shelf)
    assert [(left.where, left.reason.partition(":")[0]) for left in bench.left] == [("shelf:1", "QueueFull")]
    assert [*shelf.texts] == [1]


def test_redrive_hands_looks_to_a_queue():
    """With a queue for them nothing is waited for: a batch is done when its messages are safe."""
    bench = attached()
    shelf = Shelf(bench.given_up())
    bench.redrive(shelf, queue=bench.scene.queue)
    assert (shelf.bodies, bench.days.slept) == ([], [])
    ((message, delay),) = bench.scene.queue.messages
    assert (type(message), delay) == (PushMessage, 60)
    shelf = Shelf(bench.given_up([]), *Shelf(batch_of(event_of(bench.scene.rules, *attached().scene.records))).bodies)
    bench.scene.queue.broken = "QueueNotFound"
    bench.redrive(shelf, queue=bench.scene.queue)
    assert [left.reason.partition(":")[0] for left in bench.left] == ["QueueNotFound"]


def test_redrive_does_not_look_for_ever():
    """A second look that keeps finding changes ends after a bounded number of tries, and the batch stays."""
    bench = attached()
    shelf = Shelf(bench.given_up())
    numbers = iter(range(1_000))

    def another(seconds):
        bench.days.sleep(seconds)
        bench.scene.there("books", book_item(f"b{next(numbers)}", "a1"))

    bench.redrive(shelf, sleep=another)
    assert [left.reason.partition(":")[0] for left in bench.left] == ["StillChanging"]
    assert len(shelf.bodies) == 1
    assert bench.days.slept == [60, 120, 240, 480, *[900] * (redrive.LOOKS_MAX - 4)]


# ---------------------------------------------------------------- some rules only
def test_redrive_of_one_rule():
    """Other rules' entries are left alone; a batch is processed for the given rule, and stays."""
    bench = Bench()
    bench.scene.put("shop", user("1", name=s("Ada"), email=s("a@x")), order("1", "a", 5))
    at = bench.scene.at("shop", "USER#1", "ORDER#a")
    shelf = Shelf(
        bench.given_up(), failure("names", at), failure("mails", at), format_message(PushMessage(("told", "names"), at)),
        failure("mails, names", at, position="7"), failure("names.part", at),
    )  # fmt: skip
    tally = bench.redrive(shelf, only=frozenset({"names"})).tally
    assert (tally.done, tally.skipped, tally.kept) == (1, 1, 2)
    assert [left.where for left in bench.left] == ["shelf:3", "shelf:5"]
    assert sorted(shelf.texts) == [0, 2, 3, 4, 5]
    item = bench.scene.item(at)
    assert item["user_name"] == s("Ada")
    assert bench.scene.memory.item(bench.scene.at("shop", "EMAIL#a@x", "EMAIL")) is None
    assert bench.scene.caller.calls == []


# ---------------------------------------------------------------- out of the stream
def test_redrive_of_one_function():
    """Batches of other functions under a shared prefix are left alone; failure records belong to every function."""
    bench = Bench()
    bench.scene.there("shop", order("1", "a", 5), user("1", name=s("Ada")))
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:mine"
    body = batch_of(event_of(bench.scene.rules, *bench.scene.records))
    batches = [
        {**body, "requestContext": {"functionArn": of} if of else {}} for of in (arn, f"{arn}:live", f"{arn}-not", "")
    ]
    for named in ("mine", arn):
        shelf = Shelf(*batches, failure("names", bench.scene.at("shop", "USER#1", "ORDER#a")))
        tally = bench.redrive(shelf, function=named).tally
        assert (tally.done, tally.skipped) == (3, 2)
        assert shelf.bodies == batches[2:]
    said = [*Redriver(bench.scene.rules, bench.scene.world, function="mine").rehearse(Shelf(*batches))]
    assert [words.rpartition(", of ")[2] for words in said] == [arn, f"{arn}:live"]


class Reader(FakeStream):
    """A stream in memory that can also be read at a sequence number."""

    def iterator_at(self, stream_arn, shard_id, position):
        self._fault("iterator_at", position)
        if shard_id not in self.held:
            raise ShardGoneError
        if int(position) <= self.held[shard_id].trimmed_to:
            raise RecordsTrimmedError
        return json.dumps([shard_id, int(position) - 1])


RULES_ON_SHOP = parse_rules("""
tables: {shop: {key: {PK: S}}}
entities: {user: {table: shop, key: {PK: "{user_id}"}}}
rules: {seen: {derive: user.seen, as: "{user_id}!"}}
""")


def span(first: int, last: int, shard: str = "shard-0") -> dict:
    info = {"shardId": shard, "startSequenceNumber": str(first), "endSequenceNumber": str(last), "streamArn": ARN}
    return {"DDBStreamBatchInfo": info}


class Streamed(Bench):
    """Users u1 to u9, each with a record in a stream whose rule was never applied. The stream begins with the record
    `first`; `shard` has other fields of its shard.
    """

    def __init__(self, first: int = 1, **shard) -> None:
        super().__init__(RULES_ON_SHOP)
        self.scene.there("shop", *({"PK": s(f"u{number}")} for number in range(1, 10)))
        records = [
            record(
                number, f"u{number}", NewImage={"PK": s(f"u{number}")}, OldImage={"PK": s(f"u{number}"), "seen": s("!")}
            )
            for number in range(first, 10)
        ]
        self.stream = Reader({"shard-0": FakeShard(records=records, **shard)}, page_max_records=2)
        self.options = {"reader": self.stream}

    def seen(self) -> list[int]:
        return [n for n in range(1, 10) if "seen" in self.scene.item(self.scene.at("shop", f"u{n}"))]


@pytest.mark.parametrize(
    ("stream", "where", "reason", "seen"),
    [
        ({"trimmed_to": 4}, span(3, 6), TRIMMED, []),
        ({}, span(3, 6, "shard-9"), TRIMMED, []),
        ({"first": 5}, span(3, 6), f"some of {TRIMMED}", [5, 6]),
        ({}, span(8, 12), "the shard ends before record 12", [8, 9]),
        ({"closed": True}, span(8, 12), "the shard ends before record 12", [8, 9]),
        (None, span(1, 2), "holds no records", []),
    ],
    ids=["trimmed", "no-shard", "trimmed-in-part", "after-an-open-shard", "after-a-closed-shard", "no-stream"],
)
def test_redrive_says_which_span_it_cannot_read(stream, where, reason, seen):
    """A span that the stream does not have as a whole stays, with the reason; what there is of it is put through."""
    bench = Streamed(**stream or {})
    shelf = Shelf(where)
    bench.redrive(shelf, reader=None if stream is None else bench.stream)
    (left,) = bench.left
    assert (left.reason == reason or (reason != TRIMMED and reason in left.reason), left.unreadable) == (True, True)
    assert "verify --repair" in TRIMMED
    assert (bench.seen(), len(shelf.bodies)) == (seen, 1)


def test_redrive_tries_a_span_again_that_could_not_be_read():
    """A stream that does not answer is an error of the world; so is an iterator that expired."""
    for fault in (StoreError("ThrottlingException"), IteratorExpiredError("...")):
        bench = Streamed()
        bench.stream.faults = {"records": [fault]}
        shelf = Shelf(span(1, 2))
        bench.redrive(shelf)
        assert bench.left[0].reason in ("ThrottlingException", "IteratorExpired")
        bench.redrive(shelf)
        assert shelf.bodies == []


# ---------------------------------------------------------------- only looking


NAMES = "run `sync-rules backfill --rule names`"


@pytest.mark.parametrize("given", ["nothing", "the rule", "the state"])
def test_redrive_does_not_accept_a_rule_by_itself(given):
    """A value of others stays until the rule is named, or the state says that it is accepted."""
    bench = Bench()
    bench.scene.there("shop", every_kind.user("1", name=s("Ada")))
    bench.scene.put("shop", every_kind.order("1", "a", 1, user_name=s("mine")))
    unaccepted = {"names": NAMES}
    bench.scene.consumer.unaccepted = lambda: unaccepted
    bench.scene.deliver()
    shelf = bench.failed()
    assert [body["reason"] for body in shelf.bodies] == [f"NotAccepted: {NAMES}"]
    order = bench.scene.at("shop", "USER#1", "ORDER#a")
    options = {
        "nothing": {},
        "the rule": {"only": frozenset({"names"})},
        "the state": {"unaccepted": lambda: unaccepted},
    }
    bench.redrive(shelf, **options[given])
    assert (bench.scene.item(order)["user_name"] == s("mine")) is (given != "the rule")
    assert bool(shelf.bodies) is (given != "the rule")
    unaccepted = {}
    bench.redrive(shelf, **options[given])
    assert bool(shelf.bodies) is (given == "nothing")
