"""`sync-rules run`: saves after the effect, stops on a signal, resumes without loss, and shows its progress."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import MemoryState, save_applied_fingerprints
from sync_rules.cli import main
from sync_rules.cli.commands.run import (
    LOOK_EVERY_SECONDS,
    Edited,
    format_status,
    is_resumed,
    list_link_notices,
    list_summary_lines,
    run_loop,
)
from sync_rules.cli.show.text import format_duration
from sync_rules.jobs.consume import checkpoint
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import STREAMS_EVERY_MS, LocalRun, RunStatus
from sync_rules.jobs.consume.run_start import RunBeginnings
from sync_rules.jobs.local_files import Files
from sync_rules.jobs.redrive.work import make_work
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import RecordError, StoreError, UserError
from sync_rules.model.items import Call, Change, Failure, ItemKey, Outcome
from sync_rules.model.limits import DELAY_MAX_SECONDS, Bounds
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.failed_entries import read_entry
from sync_rules.pipeline.messages import PullMessage, PushMessage
from sync_rules.pipeline.telemetry import Telemetry
from sync_rules.rules import fingerprints
from tests.support.depth import deep
from tests.support.every_kind import rules_of
from tests.support.fake_stream import ARN, NOON_MS, Clock, FakeShard, FakeStream, failed, positions, record
from tests.support.worlds import Scene

NEW_ARN = ARN.replace("2026-11-21", "2026-11-22")


def pull(number: int) -> PullMessage:
    return PullMessage(ItemKey("shop", (("PK", "S", f"item-{number}"),)))


class FakeConsumer:
    """Leaves a message for later with every record; remembers what was done."""

    def __init__(self, world, bench: Bench, delay_seconds: int = 60) -> None:
        self.world = world
        self.bench = bench
        self.delay_seconds = delay_seconds
        self.telemetry = Telemetry()

    def handle_event(self, event, remaining_ms):
        assert remaining_ms() > 0
        self.bench.before("event")
        for number in positions(event):
            self.world.queue.send(pull(number), self.delay_seconds)
            self.bench.done.append(number)
            self.telemetry.outcomes["names", Outcome.COPIED] += 1
            self.telemetry.lags["names"] = {self.bench.clock.ms // 1000: self.bench.clock.ms - NOON_MS}
        self.bench.before("answer")

    def handle_message(self, message, remaining_ms, *, again):
        assert remaining_ms() > 0
        self.bench.again.append(again)
        self.bench.before("message")
        self.bench.done.append(message)


class Bench:
    """A stream, files, a clock; runs that come and go."""

    def __init__(self, directory, *numbers: int) -> None:
        self.clock = Clock()
        self.stream = FakeStream({"shard-0": FakeShard(records=[record(n, f"item-{n % 3}") for n in numbers])})
        self.files = Files(directory / "c.json", directory / "f.jsonl")
        self.done: list = []
        self.again: list[bool] = []
        self.before = lambda _what: None

    def start(self, arns=(ARN,), fingerprint="f1", options=None, **given) -> LocalRun:
        """A run with these options, and with `given` settings of its mapping."""
        usual = {"now_ms": self.clock.now_ms, "sleep": self.clock.sleep, "settings": MappingSettings(**given)}
        return LocalRun(
            stream_arns=list(arns),
            rules_fingerprint=fingerprint,
            reader=self.stream,
            store=None,
            make_consumer=lambda world: FakeConsumer(world, self),
            files=self.files,
            **usual | (options or {}),
        )

    @property
    def records_done(self) -> list[int]:
        return sorted(done for done in self.done if isinstance(done, int))

    def run(self, local: LocalRun, *, stopping=lambda: False, once=True) -> None:
        run_loop(local, Quiet(), stopping=stopping, once=once, sleep=self.clock.sleep)


class Quiet:
    def say(self, text):
        pass

    def update(self, status):
        status()

    def summary(self, status, files):
        pass


def test_run_notes_the_beginning_of_a_call_rule_before_its_first_record(tmp_path):
    """A run that dies at once, and is started again, begins when it was first started: older changes do not call."""
    bench = Bench(tmp_path, 1)
    rules = rules_of()
    called = []

    class Phone:
        def call(self, call):
            called.append(call.change.created_ms)

    options = {"caller": Phone(), "beginnings": RunBeginnings(rules, None, None)}
    began = bench.clock.ms // 1000 * 1000
    assert "called calls" in bench.start(options=options).take_notices()[0]
    bench.clock.ms += 3_600_000
    caller = bench.start(options=options).consumer.world.caller
    key = ItemKey("shop", (("PK", "S", "a"),))
    for created_ms in (began - 1, began, began + 60_000):
        caller.call(Call("called", "f.g", Change(key, None, {}, "1", created_ms)))
    assert called == [began, began + 60_000]


def test_run_keeps_a_message_for_a_rule_that_is_gone(tmp_path):
    """No other process can know the rule of a message in the checkpoint: `redrive` finds the message, and its cure."""
    bench = Bench(tmp_path)
    local = bench.start()
    local.consumer = Consumer(rules_of("names"), local.consumer.world, THIS_PROCESS)
    source = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "S", "PROFILE")))
    local.pump.queue.send(PushMessage(("gone",), source, cursor={"PK": {"B": b"\x00"}}), 0)
    bench.run(local)
    (kept,) = map(read_entry, bench.files.failures.read_text().splitlines())
    assert kept == PushMessage(("gone",), source, cursor={"PK": {"B": b"\x00"}})
    assert local.status.parked == 1
    assert not checkpoint.load(bench.files.checkpoint, [ARN]).messages
    with pytest.raises(RecordError, match="no rule 'gone' any more: if it was renamed, say renamed_from: gone"):
        make_work(kept, rules_of("names"), Bounds())


def test_run_tells_the_consumer_that_a_message_comes_again(tmp_path):
    """A message that was taken before may have been worked on."""
    bench, failing = Bench(tmp_path), [StoreError("ThrottlingException")]

    def before(_what: str) -> None:
        if failing:
            raise failing.pop()

    bench.before = before
    local = bench.start()
    local.pump.queue.send(pull(1), 0)
    local.step()
    bench.clock.ms += 60_000
    local.step()
    assert (bench.again, bench.done) == ([False, True], [pull(1)])


def test_run_saves_less_often_when_saving_takes_long(tmp_path, monkeypatch):
    """Saving checkpoints takes at most a tenth of the time, and the end saves once more."""
    bench = Bench(tmp_path, *range(1, 401))
    local, saved_ms = bench.start(batch_size=1), []
    write = checkpoint.save

    def slowly(path, content):
        bench.clock.ms += 300
        saved_ms.append(bench.clock.ms)
        write(path, content)

    monkeypatch.setattr(checkpoint, "save", slowly)
    for _ in range(400):
        local.step()
        bench.clock.ms += 50
    assert len(saved_ms) > 3
    assert all(later - earlier >= 10 * 300 for earlier, later in pairwise(saved_ms))
    bench.run(local)
    assert checkpoint.load(bench.files.checkpoint, [ARN]).streams[ARN][0].after == "400"


def test_run_saves_even_when_a_step_raises(tmp_path):
    """An error in a step does not lose the progress before that step."""
    bench = Bench(tmp_path, 1)
    local = bench.start()
    bench.stream.faults["shards"] = []
    local.step()

    def broken():
        raise AssertionError("ours")

    local.pump.step = broken
    with pytest.raises(AssertionError):
        bench.run(local)
    assert checkpoint.load(bench.files.checkpoint, [ARN]).streams[ARN][0].after == "1"


def test_run_says_when_the_checkpoint_cannot_be_written(tmp_path):
    """A disk that is full is the world's fault and says which file."""
    bench = Bench(tmp_path / "missing", 1)
    with pytest.raises(StoreError, match=r"CheckpointNotWritten.*c\.json"):
        bench.start().step()


class DeadError(BaseException):
    """The process is killed here."""


@settings(max_examples=deep(60), deadline=None)
@given(seed=st.integers(0, 2**32), records=st.integers(1, 12), factor=st.integers(1, 3))
def test_run_loses_nothing_when_killed_anywhere(tmp_path_factory, seed, records, factor):
    """Killed before or after any effect and started again, every record is done and every message it left is handled."""
    chance = random.Random(seed)
    bench = Bench(tmp_path_factory.mktemp("run"), *range(1, records + 1))

    def maybe_die(_what):
        if chance.random() < 0.15:
            raise DeadError

    def life(*, mortal: bool) -> bool:
        local = bench.start(parallelization_factor=factor, batch_size=chance.randint(1, 4))
        bench.before = maybe_die if mortal else lambda _what: None
        for _ in range(400):
            try:
                local.step()
                maybe_die("step") if mortal else None
            except DeadError:
                return False
            bench.clock.ms += chance.choice([10, 600, 61_000])
            if local.pump.idle and not local.pump.queue.pending_messages:
                local.save()
                return True
        return False

    for _ in range(12):
        life(mortal=True)
    assert life(mortal=False)
    assert set(range(1, records + 1)) <= {d for d in bench.done if isinstance(d, int)}
    assert {pull(n) for n in range(1, records + 1)} <= {d for d in bench.done if isinstance(d, PullMessage)}


def test_run_says_when_the_rules_changed(tmp_path):
    """A run with rules other than the checkpoint's starts with a notice, which advises what README says: a backfill,
    because a repair finds nothing that a new rule has never written.
    """
    bench = Bench(tmp_path, 1)
    bench.run(bench.start())
    assert bench.start().take_notices() == []
    (notice,) = bench.start(fingerprint="f2").take_notices()
    assert "rules changed" in notice
    assert "`sync-rules backfill --changed`" in notice
    assert "verify" not in notice


def test_run_follows_a_stream_that_is_made_anew(tmp_path):
    """A table whose stream is disabled and enabled again while a run reads it: the old stream is read to its end, the
    new one from its beginning, and the user is told once what may have been missed.
    """
    bench = Bench(tmp_path, 1)
    latest = {"shop": ARN}
    local = bench.start(options={"latest_streams": lambda: dict(latest)})
    local.step()
    bench.stream.held["shard-0"].records.append(record(2))
    bench.stream.held["shard-0"].closed = True
    bench.stream.other[NEW_ARN] = {"shard-9": FakeShard(records=[record(7)])}
    latest["shop"] = None
    bench.clock.ms += STREAMS_EVERY_MS
    local.step()
    (off,) = local.take_notices()
    assert "table shop has no stream any more" in off
    latest["shop"] = NEW_ARN
    for _ in range(10):
        bench.clock.ms += STREAMS_EVERY_MS
        local.step()
    assert bench.records_done == [1, 2, 7]
    (anew,) = local.take_notices()
    assert NEW_ARN.partition("/stream")[0] in anew
    assert "verify --repair" in anew
    local.save()
    assert list(checkpoint.load(bench.files.checkpoint, [NEW_ARN]).streams) == [NEW_ARN]
    assert local.status.shards == 1


def test_run_reads_an_old_stream_to_its_end_after_a_restart_too(tmp_path):
    """Records that an old stream still held when the run was stopped are not lost with the restart."""
    bench = Bench(tmp_path, 1)
    local = bench.start()
    local.step()
    local.save()
    bench.stream.held["shard-0"].records.append(record(2))
    bench.stream.held["shard-0"].closed = True
    bench.stream.other[NEW_ARN] = {"shard-9": FakeShard(records=[record(7)])}
    bench.run(bench.start(arns=[NEW_ARN]))
    assert bench.records_done == [1, 2, 7]


def test_run_reads_on_when_the_clock_is_set_back(tmp_path, monkeypatch):
    """The system's clock goes back by an hour: what is read, retried or waited for does not wait an hour."""
    bench = Bench(tmp_path, 1)
    shift_ns, true_ns = [0], time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: true_ns() + shift_ns[0])
    monkeypatch.setattr(FakeConsumer, "handle_event", lambda _self, event, _left: bench.done.extend(positions(event)))
    local = bench.start(options={"now_ms": None}, poll_idle_ms=1)
    for _ in range(3):
        local.step()
    assert bench.done == [1]
    shift_ns[0] = -3_600 * 10**9
    bench.stream.held["shard-0"].records.append(record(2))
    local.pump.queue.send(pull(1), 0)
    deadline = time.monotonic() + 5
    while len(bench.done) < 3 and time.monotonic() < deadline:
        local.step()
    assert sorted(bench.done, key=str) == sorted([1, 2, pull(1)], key=str)


def test_run_does_not_wait_longer_for_a_message_because_its_time_was_noted_by_a_wrong_clock(tmp_path):
    """A checkpoint of a machine whose clock was a day ahead: the message is due when the longest delay is over."""
    bench = Bench(tmp_path)
    bench.clock.ms += 86_400_000
    local = bench.start()
    local.pump.queue.send(pull(1), 60)
    local.save()
    bench.clock.ms -= 86_400_000
    local = bench.start()
    bench.clock.ms += DELAY_MAX_SECONDS * 1_000
    local.step()
    assert bench.done == [pull(1)]


def test_run_says_once_that_its_rules_file_changed(tmp_path):
    """The run keeps the rules that it began with, and says so for each change; saving the same text again is none."""
    file, now = tmp_path / "rules.yaml", [0.0]
    file.write_text("a")
    edited = Edited(file, clock=lambda: now[0])

    def said(text: str | None) -> list[str]:
        file.unlink(missing_ok=True) if text is None else file.write_text(text)
        found = []
        for _ in range(3):
            now[0] += LOOK_EVERY_SECONDS
            found += edited.notices()
        return found

    assert said("a") == []
    (changed,) = said("b")
    assert f"{file} has changed" in changed
    assert "start it again" in changed
    (gone,) = said(None)
    assert "is gone or cannot be read" in gone
    (back,) = said("a")
    assert "again what this run was started with" in back


def test_run_counts_outcomes_and_lag(tmp_path):
    """The status groups outcomes as the display names them; lag is the age of the oldest record when it was done, for a minute."""
    bench = Bench(tmp_path, 1, 2)
    bench.clock.ms += 1_500
    local = bench.start()
    local.step()
    local.consumer.telemetry.outcomes.update({("names", Outcome.RELINKED): 2, ("other", Outcome.DELETED): 1})
    status = local.status
    assert (status.records, status.copied, status.refused, status.lag_ms, status.shards) == (2, 3, 2, 1_500, 1)
    assert (status.messages_due, status.messages_waiting, status.lags_ms) == (0, 2, {"names": 1_500})
    bench.clock.ms += 59_000
    assert local.status.lag_ms == 1_500
    bench.clock.ms += 1_000
    assert (local.status.lag_ms, local.status.lags_ms) == (None, {})


def test_run_appends_given_up_batches_beside_the_failures(tmp_path):
    """A batch that is given up stands, with its records, in a file of its own beside the failure records."""
    bench = Bench(tmp_path, 1, 2)
    local = bench.start(maximum_retry_attempts=0)
    local.pump.mappings[0]._invoke = lambda event: failed(*positions(event))
    local._failures.park(Failure("names", pull(1).target, "ItemTooLarge"))
    bench.run(local)
    (given_up,) = [json.loads(text) for text in (tmp_path / "f.batches.jsonl").read_text().splitlines()]
    assert positions(json.loads(given_up["payload"])) == [1, 2]
    assert (local.status.given_up, local.status.parked) == (2, 1)
    assert checkpoint.load(bench.files.checkpoint, [ARN]).parked == 1


@pytest.mark.parametrize(("same_seconds", "end"), [(0, (130, b"")), (60, (0, b"still here\n"))])
def test_run_ends_at_once_on_a_second_signal(same_seconds, end):
    """Two signals end the process whatever it is in the middle of; what was in flight comes again. One that follows on
    the other's heels is the same one, passed on twice.
    """
    code = (
        "import os, signal\n"
        "from sync_rules.cli import signals\n"
        f"signals.SAME_SIGNAL_SECONDS = {same_seconds}\n"
        "with signals.stop_signals():\n"
        "    for _ in range(2): os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('still here')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == end


# ---------------------------------------------------------------- what is shown
BUSY = RunStatus(
    seconds=2.0,
    records=4_100,
    copied=3_020,
    right=44,
    refused=3,
    lag_ms=850,
    messages_due=1,
    messages_waiting=12,
    shards=2,
)


def test_run_counts_effects_and_what_is_tried_again_apart(tmp_path):
    """A call that was made is no copy, and one that raised and comes again is seen at once, not after its last try."""
    local = Bench(tmp_path, 1).start()
    local.consumer.telemetry.outcomes.update(
        {("c", Outcome.DONE): 3, ("c", Outcome.PARKED): 2, ("n", Outcome.COPIED): 1}
    )
    status = replace(local.status, messages_waiting=2)
    assert (status.copied, status.done, status.again, status.parked) == (1, 3, 2, 0)
    assert "copied 1 · done 3 · right 0 · refused 0 · failed 0 · again 2 · parked 0" in format_status(status, 0)
    assert "3 called. 2 to be retried." in list_summary_lines(status, Files())[0]
    assert format_status(BUSY, 340.4) == (
        "340 records/s · 4,100 records · copied 3,020 · right 44 · refused 3 · failed 0 · parked 0 · lag 850 ms · "
        "later 1 due, 12 waiting · 2 shards"
    )
    over = replace(status, messages_waiting=0)
    assert "again" not in format_status(over, 0), "once nothing waits, all of it was tried again"
    assert "to be retried" not in list_summary_lines(over, Files())[0]


def test_run_shouts_about_lost_records():
    """Records trimmed before they were read, given-up batches and errors are in the line and in the summary."""
    bad = RunStatus(trimmed=1, given_up=3, read_errors=2, parked=1, errors={"KeyError": 4})
    for text in (format_status(bad, 0), "\n".join(list_summary_lines(bad, Files()))):
        assert "RECORDS LOST" in text
        assert "verify --repair" in text
        assert "3 records given up" in text
        assert "KeyError 4" in text
    files = {"Failure records: .sync-rules-failures.jsonl.", "Batches given up: .sync-rules-failures.batches.jsonl."}
    assert files <= {*list_summary_lines(bad, Files())}
    assert "Failure records" not in "\n".join(list_summary_lines(BUSY, Files())), (
        "a file that was not written is not named"
    )


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (59_400, "59 s"), (59_999, "1 min"), (171_123, "2 min 51 s"),
     (3_599_999, "1 h"), (11_100_000, "3 h 5 min"), (86_400_000, "1 d"), (183_600_000, "2 d 3 h")],
)  # fmt: skip
def test_run_shows_times_as_people_say_them(ms, text):
    """Two units are enough to know how late a copy is."""
    assert format_duration(ms) == text


@pytest.mark.parametrize("option", ["--failures", "--checkpoint"])
@pytest.mark.parametrize("place", [".", "/", "", "nowhere/f", "rules.yaml"])
def test_run_refuses_bad_places_before_it_starts(tmp_path, monkeypatch, capsys, option, place):
    """A path that is a folder, in a missing folder, or the rules file is refused before any request."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text("rules")
    monkeypatch.setattr("sync_rules.adapters.aws.dynamodb", None)
    assert main.main(["run", option, place]) == 2
    assert f"{place or '.'}: " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["rules.yaml"]


LINKED = """
tables: {users: {key: {user_id: S}}, orders: {key: {order_id: S}, indexes: {by_user: {user_id: S}}}}
entities: {user: {table: users}, order: {table: orders}}
rules: {names: copy user.nmae into order.user_name}
"""


def test_run_stops_before_its_first_write_if_a_sample_hits_nothing():
    """A misspelled attribute is a mistake; --accept, an applied rule and empty tables go on."""
    scene = Scene(parse_rules(LINKED))

    def sampled(applied, accepted):
        documents = MemoryState()
        save_applied_fingerprints(documents, applied, datetime.now(UTC))
        return list_link_notices(scene.rules, documents, accepted, scene.tap)

    assert sampled({}, ()) == []
    scene.there("users", *({"user_id": {"S": f"u{i}"}, "name": {"S": "SECRET"}} for i in range(2)))
    with pytest.raises(UserError, match=r"no attribute nmae \(closest: name\)") as mistake:
        sampled({}, ())
    assert "--accept names" in str(mistake.value)
    assert "SECRET" not in str(mistake.value)
    assert sampled({}, ("names",)) == []
    assert sampled(fingerprints.compute_rule_fingerprints(scene.rules), ()) == []


def test_run_that_resumes_takes_no_sample(tmp_path):
    """A run with the same rules has begun before; with other rules, or another file, the sample is taken."""
    rules = parse_rules(LINKED)
    path = tmp_path / "c.json"
    assert not is_resumed(path, rules)
    checkpoint.save(path, checkpoint.Checkpoint(rules.fingerprint, {}, []))
    assert is_resumed(path, rules)
    assert not is_resumed(path, rules_of("names"))
    path.write_text("[]")
    assert not is_resumed(path, rules)
