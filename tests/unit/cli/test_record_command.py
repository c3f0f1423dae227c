"""`sync-rules record`: what streams hold goes to a file, parents before children, until it is time to stop."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from sync_rules.cli.commands import record as command
from sync_rules.lab.tape import FromNow, Tape, record_streams
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from tests.support import every_kind
from tests.support.fake_stream import ARN, Clock, FakeShard, FakeStream, record, throttled

RULES = parse_rules(
    """
tables: {shop: {key: {PK: S}}}
entities: {thing: {table: shop}}
rules: {heads: {derive: thing.head, as: "{name}!"}}
"""
)


def shop_record(position: int, key: str = "a", name: str = "Ada") -> dict:
    image = {"PK": {"S": key}, "name": {"S": name}}
    return record(position, key, NewImage=image, StreamViewType="NEW_AND_OLD_IMAGES", OldImage=image)


def take(stream, stopping=lambda: False, *, once=True, **given) -> tuple[Tape, list[int]]:
    """The tape, and the positions of the records on it, in their order."""
    bodies: list = []
    clock, tape = Clock(), Tape(given.get("write", bodies.extend), RULES)
    sleeping = {"now_ms": clock.now_ms, "sleep": clock.sleep}
    record_streams(tape, stream, [ARN], stopping, lambda: None, once=once, **sleeping)
    return tape, [int(body["dynamodb"]["SequenceNumber"]) for body in bodies]


def test_record_goes_on_after_what_goes_wrong():
    """A throttle loses no record; records that expired before they were read are reported."""
    stream = FakeStream(
        {"s": FakeShard(records=[shop_record(1), shop_record(5)], trimmed_to=0)},
        faults={"records": [throttled()], "shards": [throttled()]},
    )
    tape, positions = take(stream)
    assert positions == [1, 5]
    tape.trimmed = 2
    assert "RECORDS EXPIRED" in command.format_progress(tape)


def test_record_stops_when_it_is_asked_to():
    """Ctrl-C ends it after the page in hand."""
    stream = FakeStream({"s": FakeShard(records=[shop_record(1)])})
    asked = []

    def third() -> bool:
        asked.append(1)
        return len(asked) == 3

    assert take(stream, third, once=False)[1] == [1]
    assert len(asked) == 3


class Latest(FakeStream):
    """A stream that can be read from its end."""

    def latest(self, stream_arn: str, shard_id: str) -> str:
        return self.iterator(stream_arn, shard_id, str(10**6))


def test_record_from_now_leaves_out_what_is_there():
    """`FromNow` skips the records of shards that are already there, and reads new shards from their first record."""
    held = {"old": FakeShard(closed=True, records=[shop_record(1)])}
    stream = Latest(held)
    reader = FromNow(stream, [ARN])
    held["new"] = FakeShard("old", records=[shop_record(2)])
    assert take(reader)[1] == [2]
    assert json.loads(reader.iterator(ARN, "old", "1")) == ["old", 1]


def test_record_ends_when_nothing_can_be_written():
    """A full disk ends it at once, and is not tried again and again; a bug of ours is not swallowed."""
    stream = FakeStream({"s": FakeShard(records=[shop_record(1)])})

    def full(_bodies):
        raise StoreError("FileNotWritten", "no space")

    with pytest.raises(StoreError, match="FileNotWritten"):
        take(stream, write=full)
    broken = FakeStream({"s": FakeShard(records=[{**shop_record(1), "eventSourceARN": "arn:nothing"}])})
    with pytest.raises(AssertionError):
        take(broken)


# ---------------------------------------------------------------- the command
ONCE = ("record", "--once", "--region", "eu-west-1")


@pytest.fixture(autouse=True)
def stream(here, monkeypatch):
    """A stream in memory, with one record."""
    (here / "rules.yaml").write_text(
        every_kind.text_of({name: every_kind.RULES[name] for name in ("names", "posts", "counted")})
    )
    image = {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}, "name": {"S": "Ada"}}
    body = {**record(1, NewImage=image), "eventName": "INSERT"}
    body["dynamodb"]["Keys"] = {name: image[name] for name in ("PK", "SK")}
    stream = Latest({"s": FakeShard(records=[body])})
    monkeypatch.setattr(
        command,
        "require_tables",
        lambda _, rules: SimpleNamespace(stream_arns=(ARN,) if {*rules.tables} == {"shop", "posts"} else ()),
    )
    monkeypatch.setattr(command, "DynamoDBStreams", lambda _client: stream)
    monkeypatch.setattr("sync_rules.jobs.consume.local_run.WAIT_SECONDS", 0)


def test_record_command_writes_a_recording(run, tmp_path):
    """A recording's header names its tables and its time and says that it is not redacted."""
    code, out, err = run(*ONCE, "--out", "r.jsonl")
    assert (code, out, err) == (0, "1 record (1 of shop) in r.jsonl\n", "")
    header, body = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    assert (header["redacted"], header["tables"]["shop"]) == (False, "shop")
    assert header["at"].endswith("+00:00")
    assert body["dynamodb"]["NewImage"]["name"] == {"S": "Ada"}
    code, out, _ = run(*ONCE, "--out", "r.jsonl", "--append", "--from-now", "--format", "json")
    assert (code, json.loads(out)["records"]) == (0, 0)
    assert run(*ONCE, "--out", "posts.jsonl", "--table", "posts")[:2] == (0, "no records in posts.jsonl\n")


def test_record_command_redacts_with_a_salt_of_its_own(run, tmp_path):
    """The salt is drawn and kept nowhere, so two recordings do not fit together; under one that is given they do."""
    files = {name: tmp_path / f"{name}.jsonl" for name in "abcd"}
    for name, words in {"a": [], "b": [], "c": ["--salt", 16 * "x"], "d": ["--salt", 16 * "x"]}.items():
        assert run(*ONCE, "--out", str(files[name]), "--redact", *words)[0] == 0
    texts = {name: file.read_text().splitlines()[1] for name, file in files.items()}
    assert "Ada" not in "".join(texts.values())
    assert texts["a"] != texts["b"]
    assert texts["c"] == texts["d"]
    assert json.loads(files["a"].read_text().splitlines()[0])["redacted"] is True
    assert not any("salt" in file.read_text() for file in files.values())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--out", "there.jsonl"], "no recording is overwritten"),
        (["--out", "there.jsonl", "--append"], "expected a recording to append to"),
        (["--out", "there.jsonl", "--append", "--redact"], "needs the --salt"),
        (["--out", "new.jsonl", "--redact", "--salt", "x"], "expected 16 characters or more, found 1"),
        (["--out", "new.jsonl", "--keep-shape"], "give --redact too"),
        (["--out", "r.jsonl", "--table", "shops"], "Did you mean 'shop'"),
        (["--out", "no/r.jsonl"], "expected a file that can be written"),
    ],
    ids=lambda value: "-".join(value).replace("/", "-") if isinstance(value, list) else None,
)
def test_record_command_of_a_mistake_is_2(run, tmp_path, words, found):
    """The mistake is named, nothing is written, and what is there stays."""
    (tmp_path / "there.jsonl").write_text("mine\n")
    code, out, err = run(*ONCE, *words)
    assert (code, out) == (2, "")
    assert found in err
    assert (tmp_path / "there.jsonl").read_text() == "mine\n"
    assert not (tmp_path / "r.jsonl").exists()
