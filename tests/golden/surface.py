"""The product's frozen forms, made from fixed values; no other module here imports the product.

Every function returns text, by the name of the file in `expected` that holds it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import tempfile
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import typer.main

from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import FileState, TableState, read_applied_fingerprints, save_applied_fingerprints
from sync_rules.cli.main import main
from sync_rules.deploy.blocks import find_blocks, read_block
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.template import fill_template
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.jobs.account.account_backfill import BackfillWork
from sync_rules.jobs.account.account_redrive import RedriveWork
from sync_rules.jobs.account.account_verify import VerifyWork
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.job import BackfillRequest, Job
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.backfill.progress import load_unfinished_head
from sync_rules.jobs.backfill.scope import Scope
from sync_rules.jobs.consume.attempts import AttemptResult, Batch, MappingSettings, StreamRecord, make_invocation_record
from sync_rules.jobs.consume.checkpoint import Checkpoint, load, pack_messages, save
from sync_rules.jobs.consume.queue import Pending
from sync_rules.jobs.consume.shards import ShardProgress
from sync_rules.jobs.failure_log import FailureLog, JsonLines
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.lab.recording import Header, open_recording, read_recording
from sync_rules.language.load import parse_rules
from sync_rules.model.item_change import make_item_change
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.json_bytes import format_compact_json
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.failed_entries import FailedEntry, read_entry
from sync_rules.pipeline.failure_records import make_failure_record, read_failure_record
from sync_rules.pipeline.messages import (
    KINDS,
    CallMessage,
    ChunkMessage,
    PartMessage,
    PullMessage,
    PushMessage,
    format_message,
    parse_message,
)
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from sync_rules.rules.ruleset import Rules
from tests.golden.files import get

ROOT = Path(__file__).parent.parent.parent
EVERY_KIND = Path(__file__).parent / "every-kind.yaml"
BROKEN = Path(__file__).parent / "broken.yaml"
DEPLOYED = ROOT / "tests/deploy/rules.yaml"
TEMPLATE = ROOT / "template.yaml"
COMMITTED = ROOT / "examples/organisations-users-tickets/rules.yaml"  # the template in the repository is for these
AT = datetime(2026, 11, 21, 12, 0, 0, 1000, tzinfo=UTC)
AT_MS = 1_795_262_400_001
ARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/shop/stream/2026-11-21T00:00:00.000"
LONG_MS = 900_000
WORDED = ("message", "why", "cure")  # sentences for people
BEGAN, BEGUN = re.compile(r'"began": "[^"]+"'), f'"began": "{AT.isoformat(timespec="seconds")}"'
# Replaced in texts: values that differ each time, long ones frozen elsewhere, sentences for people.
MASKS = {
    re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00"): "TIME",
    re.compile(r"\b[0-9a-f]{32}\b"): "HOLDER",
    re.compile(r"(?<=-)[0-9a-f]{8}\b"): "UNIQUE",
    re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b"): r"\1..",
    re.compile(r'(?<="reason": )"[^"]* [^"]*"'): '"SENTENCE"',
}

USER = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "S", "PROFILE")))
ORDER = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "S", "ORDER#7")))
OTHER = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "S", "ORDER#é\n8")))
POST = ItemKey("posts", (("post_id", "S", "p1"),))
BINARY = ItemKey("odd", (("b", "B", b"\x00\xff"), ("n", "N", "-1.50")))
OLD = {"PK": {"S": "USER#1"}, "SK": {"S": "ORDER#7"}, "total": {"N": "5"}}
NEW = {**OLD, "raw": {"B": b"\x01"}, "all": {"L": [{"NULL": True}, {"M": {"x": {"BOOL": False}}}, {"SS": ["a", "b"]}]}}
CHANGE = Change(ORDER, OLD, NEW, "100", 1_700_000_000_000, in_order=False, expired=True)


def pretty(body: Any) -> str:
    """JSON for people, the same text for the same value; bytes as base64."""
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False, default=_bytes) + "\n"


def _bytes(value: object) -> str:
    assert isinstance(value, bytes)
    return base64.b64encode(value).decode()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rules_of(path: Path) -> Rules:
    return parse_rules(path.read_text(), path.name, {})


def rules_files() -> dict[str, Path]:
    found = [*sorted(ROOT.glob("examples/*/rules.yaml")), DEPLOYED, EVERY_KIND]
    return {path.relative_to(ROOT).as_posix(): path for path in found}


# ---------------------------------------------------------------- rules, template, schema
def fingerprints() -> Mapping[str, str]:
    files = {}
    for name, path in rules_files().items():
        rules = rules_of(path)
        files[name] = {
            "whole": rules.fingerprint,
            "each": compute_rule_fingerprints(rules),
            "compiled": sorted(rules.rules),
        }
    return {"fingerprints.json": pretty(files)}


def template() -> Mapping[str, str]:
    """Digests of each generated block for three rules files; the text of all for every kind; the hand-written rest
    without comments and descriptions, which are for people.
    """
    digests, text = {}, ""
    for path in (COMMITTED, DEPLOYED, EVERY_KIND):
        name = path.relative_to(ROOT).as_posix()
        text = fill_template(TEMPLATE.read_text(), read_deployment(path), path, TEMPLATE)
        digests[name] = {block: _sha256(read_block(text, block, "template.yaml")) for block in find_blocks(text, "")}
    blocks = "".join(f"# {block}\n{read_block(text, block, 'template.yaml')}" for block in find_blocks(text, ""))
    rest = TEMPLATE.read_text()
    for block in reversed(find_blocks(rest, "").values()):
        rest = rest[: block.start] + rest[block.end :]
    by_hand = pretty(_undescribed(read_yaml(rest, "template.yaml")))
    return {
        "template-digests.json": pretty(digests),
        "template-every-kind.yaml.gz": blocks,
        "template-by-hand.json": by_hand,
    }


def _undescribed(body: Any) -> Any:
    """Without descriptions; a property or parameter of that name, whose value is no text, stays."""
    if isinstance(body, dict):
        words = {name for name, value in body.items() if name.lower() == "description" and isinstance(value, str)}
        return {name: _undescribed(value) for name, value in body.items() if name not in words}
    return [_undescribed(one) for one in body] if isinstance(body, list) else body


def schema() -> Mapping[str, str]:
    """The JSON Schema as printed, and without descriptions, whose wording may change."""
    code, text = called("schema")
    assert code == 0
    return {"schema.json": text, "schema-without-descriptions.json.gz": pretty(_undescribed(json.loads(text)))}


# ---------------------------------------------------------------- messages, checkpoints, failures, recordings
def examples() -> dict[str, Any]:
    """A message of every kind, with and without what may be left out."""
    return {
        "push": PushMessage(("a", "b"), USER),
        "push, all": PushMessage(("a",), BINARY, removed=True, cursor=NEW, delay_seconds=60, found=True, spread=True),
        "chunk": ChunkMessage(("a", "b"), USER, (ORDER, OTHER, POST)),
        "chunk, all": ChunkMessage(("a",), BINARY, (BINARY,), removed=True),
        "pull": PullMessage(ORDER),
        "pull, all": PullMessage(BINARY, attempt=2, delay_seconds=60),
        "part": PartMessage("a", USER, None),
        "part, all": PartMessage("a", BINARY, ORDER, element="7", attempt=3),
        "call": CallMessage("a", "shop.told", Change(ORDER, None, OLD)),
        "call, all": CallMessage("a", "shop.told", CHANGE, attempt=1),
    }


def messages() -> Mapping[str, str]:
    assert {type(message) for message in examples().values()} == set(KINDS)
    lines = []
    for name, message in examples().items():
        text = format_message(message)
        assert parse_message(text) == message
        assert format_message(parse_message(text)) == text
        lines.append(f"{name}: {text}\n")
    return {"messages.txt": "".join(lines)}


def checkpoint() -> Mapping[str, str]:
    pending = [Pending(message, 1_000 + n, n) for n, message in enumerate(examples().values())]
    shards = [ShardProgress("shard-0", None, "123", done=True), ShardProgress("shard-1", "shard-0", None)]
    whole = Checkpoint("f1", {ARN: shards}, pack_messages(pending), parked=3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.json"
        save(path, whole)
        text, found = path.read_text(), load(path, [ARN])
    assert found is not None
    assert [shard.shard_id for shards in found.streams.values() for shard in shards] == ["shard-0", "shard-1"]
    assert [one.message for one in found.list_messages()] == list(examples().values())
    return {"checkpoint.json": text}


def failing() -> list[Failure]:
    return [
        Failure("a", None, "not understood"),
        Failure("a", ORDER, "ItemTooLarge", "100"),
        Failure("a", BINARY, "TooMany", "101", member=POST, apart=True, element="é", source=USER),
    ]


def failures() -> Mapping[str, str]:
    """Failure records and batches that were given up, as files hold them; each as it is written when it fails again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "failures.jsonl"
        log = FailureLog(path, lambda: AT_MS)
        for failure in failing():
            log.park(failure)
        text = path.read_text()
        found = [read_failure_record(json.loads(line)) for line in text.splitlines()]
        assert [one.failure(parse_rules(ODD, "rules.yaml", {}).tables) for one in found] == failing()
        again = [format_compact_json(one.again("StillTooLarge", AT)) + "\n" for one in found]
        batches = Path(folder) / "batches.jsonl"
        lines = JsonLines(batches)
        for body in given_up():
            lines.append(body)
        given = batches.read_text()
        given_again = [
            format_compact_json(read_entry(line).again("Throttled", AT)) + "\n" for line in given.splitlines()
        ]
    return {
        "failures.jsonl": text,
        "failures-again.jsonl": "".join(again),
        "batches.jsonl": given,
        "batches-again.jsonl": "".join(given_again),
    }


ODD = """
tables:
  shop:  {key: {PK: S, SK: S}}
  posts: {key: {post_id: S}}
  odd:   {key: {b: B, n: N}}
entities: {}
rules: {}
"""


def record(position: int, name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    """A stream record of table shop, as Lambda gives it."""
    images = {"OldImage": old, "NewImage": new}
    there = {image: item for image, item in images.items() if item is not None}
    item = new or old or {}
    return {
        "eventID": f"event-{position}",
        "eventName": name,
        "eventSource": "aws:dynamodb",
        "eventSourceARN": ARN,
        "awsRegion": "eu-west-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_700_000_000 + position,
            "Keys": {name: item[name] for name in ("PK", "SK")},
            **there,
            "SequenceNumber": str(position),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }


def records() -> list[dict[str, Any]]:
    """Changes of an application: a user is renamed, an order is made, one is changed, one is deleted."""
    ann, bea = _user("1", "Ann", "a@x"), _user("1", "Bea", "b@x")
    made, was, now, gone = _order("1", "7", 5), _order("1", "8", 6), _order("1", "8", 9), _order("1", "9", 7)
    return [
        record(100, "MODIFY", ann, bea),
        record(101, "INSERT", None, made),
        record(102, "MODIFY", was, now),
        record(103, "REMOVE", gone, None),
    ]


def given_up() -> list[dict[str, Any]]:
    """A batch that `run` gave up, and one as Lambda gives it up for its age, which redrive reads too."""
    records_of = tuple(StreamRecord(str(100 + n), body, "k", 10, AT_MS) for n, body in enumerate(records()[:2]))

    def body_of(batch: Batch, *, thrown: bool) -> dict[str, Any]:
        return make_invocation_record(
            AttemptResult(dropped=batch),
            shard_id="shard-0",
            stream_arn=ARN,
            request_id="request-1",
            thrown=thrown,
            settings=MappingSettings(),
            now_ms=AT_MS,
        )

    old = body_of(Batch(records_of[:1]), thrown=False)
    context = {**old["requestContext"], "condition": "RecordAgeExceeded"}
    return [
        body_of(Batch(records_of, invokes=11), thrown=True),
        {**old, "requestContext": context, "responseContext": None},
    ]


def recording() -> Mapping[str, str]:
    texts = {}
    headers = {
        "recording.jsonl": Header({"shop": "shop", "posts": "posts"}, redacted=True, at="2026-11-21T12:00:00+00:00"),
        "recording-ordered.jsonl": Header({}, ordered=True),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, header in headers.items():
            with open_recording(Path(folder) / name, header) as write:
                write(records())
            found = read_recording(Path(folder) / name, rules_of(EVERY_KIND))
            assert found.header == header
            identities = "".join(f"{one.number} {one.change.key} {one.identity}\n" for one in found)
            texts |= {name: (Path(folder) / name).read_text(), f"{name}.identities.txt": identities}
    return texts


# ---------------------------------------------------------------- a world in memory
def _user(user_id: str, name: str, email: str) -> dict[str, Any]:
    return {
        "PK": {"S": f"USER#{user_id}"},
        "SK": {"S": "PROFILE"},
        "name": {"S": name},
        "rank": {"S": "1"},
        "email": {"S": email},
    }


def _order(user_id: str, order_id: str, total: int, **more: Any) -> dict[str, Any]:
    return {"PK": {"S": f"USER#{user_id}"}, "SK": {"S": f"ORDER#{order_id}"}, "total": {"N": str(total)}, **more}


class Kept:
    """Everything outside the tables: what is sent, parked and called, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def send(self, message: Any, delay_seconds: int) -> None:
        self.lines.append(f"send after {delay_seconds} s {format_message(message)}")

    def park(self, failure: Failure) -> None:
        self.lines.append(f"park {json.dumps(make_failure_record(failure, AT))}")

    def call(self, call: Any) -> None:
        told = make_item_change(call)
        self.lines.append(f"call {call.function} {told.when} {told.id} {told.key} {told.old} {told.new}")


def shop(rules: Rules) -> MemoryStore:
    """Items as an application wrote them, without copies and with one that is wrong. Counters began before them."""
    store = MemoryStore(rules.tables)
    run_work(finish_empty(rules), World(store, NULL_PORTS, Kept()))
    store.put("shop", {**_user("1", "Bea", "b@x"), "head": {"S": "?"}})
    store.put("shop", _user("2", "Cy", "c@x"))
    for order_id, total in (("7", 5), ("8", 9)):
        store.put("shop", _order("1", order_id, total))
    store.put("shop", _order("2", "1", 3, user_name={"S": "?"}, status={"S": "VOID"}))
    for post_id in ("p1", "p2", "p3"):
        store.put("posts", {"post_id": {"S": post_id}, "user_id": {"S": "1"}, "title": {"S": post_id.upper()}})
    for part_id, parent in (("C1", None), ("C2", "C1"), ("C3", "C2")):
        above = {} if parent is None else {"parent_id": {"S": parent}}
        store.put("parts", {"part_id": {"S": part_id}, **above})
    return store


def contents(store: MemoryStore, rules: Rules) -> str:
    """All items, each with its attributes in order: ledgers, mirrors and copies as they lie in DynamoDB."""
    lines = []
    for name in sorted(rules.tables):
        lines += sorted(f"{name} {json.dumps(_sorted(item), sort_keys=True)}\n" for item in store.items(name))
    return "".join(lines)


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: sorted(one) if name in ("SS", "NS") else _sorted(one) for name, one in value.items()}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def stream() -> Mapping[str, str]:
    """Effects of an event of a stream: answer, messages, calls, and the tables afterwards."""
    rules = rules_of(EVERY_KIND)
    store, kept = shop(rules), Kept()
    world = World(store, kept, kept, kept, kept)
    said = Consumer(rules, world, THIS_PROCESS).handle_event({"Records": records()}, lambda: LONG_MS)
    lines = [f"answer {json.dumps(said)}", *sorted(kept.lines)]
    return {"stream-effects.txt": "".join(f"{line}\n" for line in lines), "stream-tables.txt": contents(store, rules)}


# ---------------------------------------------------------------- backfill on a machine
def _scope(rules: Rules) -> Scope:
    return Scope(compute_rule_fingerprints(rules), {"shop": f"{ARN} id-1"}, segments=2)


def backfill() -> Mapping[str, str]:
    """The state files of a backfill stopped after its first page and of a finished one, and the tables afterwards."""
    rules = rules_of(EVERY_KIND)
    kept = frozenset(rules.rules) - {"kept", "called"}
    store = shop(rules)
    store.page_items = lambda limit: min(limit, 1)  # type: ignore[method-assign]
    texts = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.json"

        def run(most: int, name: str) -> bool:
            items = [0]
            begun = BackfillRun(
                Selection(rules, kept),
                store,
                Kept(),
                FileState(path),
                _scope(rules).body(),
                supplies=make_supplies(rules, 2),
                completes=kept,
                name=name,
                on_page=lambda totals: items.append(totals.items),
                stopping=lambda: items[-1] >= most,
                sleep=lambda _seconds: None,
                clock=lambda: 0.0,
            )
            return begun.run()

        assert not run(3, "run-1")
        texts["state-stopped.json"] = BEGAN.sub(BEGUN, path.read_text())
        assert load_unfinished_head(FileState(path)) is not None
        assert run(1_000, "run-2")
        assert json.loads(path.read_text())["backfill"]["run"] == "run-1", "it resumes, and does not start over"
        save_applied_fingerprints(FileState(path), compute_rule_fingerprints(rules), AT)
        texts["state-ended.json"] = BEGAN.sub(BEGUN, path.read_text())
        assert read_applied_fingerprints(FileState(path)) == compute_rule_fingerprints(rules)
    return {**texts, "backfill-tables.txt": contents(store, rules)}


class Client:
    """A DynamoDB client that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        def ask(**parameters: Any) -> dict[str, Any]:
            self.asked.append([name, parameters])
            return {"Responses": {}}

        return ask


def state_tables() -> Mapping[str, str]:
    """The requests that keep documents in a table."""
    client = Client()
    body = {"cursor": {"b": {"B": b"\x00\xff"}}, "done": False}
    own = TableState(client, "state", retrying=_at_once)
    own.save("backfill", body)
    own.load("backfill")
    own.remove("backfill")
    shared = TableState(client, "state", keep_seconds=60, clock=lambda: 1_000.9, retrying=_at_once)
    shared.save("backfill", body)
    shared.swap("backfill", None, body)
    shared.swap("backfill", {"before": 1}, body)
    shared.load_many(["a", "b"])
    return {"state-table.json": pretty(client.asked)}


def _at_once(call: Callable[..., Any], *arguments: Any, **parameters: Any) -> Any:
    return call(*arguments, **parameters)


# ---------------------------------------------------------------- jobs in the account
class Documents:
    """A state in memory for several processes, which notes each document that is saved, as text."""

    def __init__(self, lines: list[str]) -> None:
        self._texts: dict[str, str] = {}
        self._lines = lines

    def load(self, name: str) -> Any:
        return json.loads(self._texts.get(name, "null"))

    def save(self, name: str, body: Mapping[str, Any]) -> None:
        self._texts[name] = json.dumps(body, sort_keys=True)
        self._lines.append(f"save {name} {self._texts[name]}")

    def remove(self, name: str) -> None:
        self._texts.pop(name, None)
        self._lines.append(f"remove {name}")

    def swap(self, name: str, before: Mapping[str, Any] | None, body: Mapping[str, Any]) -> bool:
        assert self.load(name) == (None if before is None else json.loads(json.dumps(before)))
        self.save(name, body)
        return True

    def load_many(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self.load(name) for name in names if name in self._texts}


class Shelf:
    """Reports in memory, noted as text."""

    def __init__(self, lines: list[str]) -> None:
        self._reports: dict[str, bytes] = {}
        self._lines = lines

    def write(self, name: str, file: Any) -> None:
        self._reports[name] = file.read()
        self._lines.append(f"report {name}\n{self._reports[name].decode().rstrip()}")

    def lines(self, name: str) -> Iterator[bytes]:
        return iter(self._reports[name].splitlines())


class Box:
    """A place of failures that a redrive reads."""

    hidden_seconds = 960
    held_count = 0

    def __init__(self, texts: Mapping[int, str], lines: list[str]) -> None:
        self.mark = ""
        self._texts = texts
        self._lines = lines

    def entries(self) -> Iterator[FailedEntry]:
        for number, text in self._texts.items():
            yield FailedEntry(text.encode(), f"box {number}", number)

    def remove(self, entry: FailedEntry) -> None:
        self._lines.append(f"removed {entry.where}")

    def replace(self, entry: FailedEntry, text: str) -> None:
        self._lines.append(f"replaced {entry.where} {text}")

    def release(self, entry: FailedEntry) -> None:
        self._lines.append(f"released {entry.where}")

    def close(self) -> None:
        self._lines.append("closed")


def _driven(lines: list[str], make: Callable[[], Any], asked: Mapping[str, Any]) -> str:
    """All questions of the state machine and their answers, until there is no more; with what was kept meanwhile."""

    def ask(question: Mapping[str, Any]) -> Any:
        said = json.loads(json.dumps(answer(json.loads(json.dumps(question)), make())))
        lines.append(f"{question['do']} {question.get('unit', '')}-> {json.dumps(said)}")
        return said

    said = ask({"do": "begin", "asked": asked, "execution": "one"})
    while said["more"]:
        for unit in said["units"]:
            while not ask({"do": "unit", "unit": unit, "run": said["run"]})["done"]:
                pass
        said = ask({"do": "end", "run": said["run"]})
    text = "".join(f"{line}\n" for line in lines)
    for pattern, instead in MASKS.items():
        text = pattern.sub(instead, text)
    return text


def remote() -> Mapping[str, str]:
    """Each document, report and answer of a backfill, a verify that repairs, and a redrive in the account."""
    return {
        "remote-backfill.txt": _remote_backfill(),
        "remote-verify.txt": _remote_verify(),
        "remote-redrive.txt": _remote_redrive(),
    }


def _remote_backfill() -> str:
    rules = rules_of(EVERY_KIND)
    store, lines = shop(rules), list[str]()
    state = Documents(lines)

    def job(names: frozenset[str], request: BackfillRequest) -> Job:
        titles = {rules.rules[name].title for name in names}
        prints = {title: digest for title, digest in compute_rule_fingerprints(rules).items() if title in titles}
        scope = Scope(prints, {"shop": "id-1"}, request.segments, request.table, request.where)
        return Job(Selection(rules, names), make_supplies(rules, request.segments or 1, ()), scope, {"shop": 5})

    def make() -> BackfillWork:
        return BackfillWork(
            rules,
            lambda _wait: store,
            Kept(),
            state,
            job,
            remaining_ms=lambda: LONG_MS,
            clock=lambda: 0.0,
            sleep=lambda _seconds: None,
        )

    asked = {
        "rules": [],
        "changed": False,
        "table": None,
        "where": None,
        "segments": 2,
        "workers": 2,
        "rate": 0.0,
        "resume": False,
        "restart": False,
        "prints": compute_rule_fingerprints(rules),
    }
    return _driven(lines, make, asked)


def _remote_verify() -> str:
    rules = rules_of(EVERY_KIND)
    store, kept, lines = shop(rules), Kept(), list[str]()
    world = World(store, NULL_PORTS, kept)
    state, shelf = Documents(lines), Shelf(lines)

    def make() -> VerifyWork:
        return VerifyWork(
            rules,
            world,
            state,
            shelf,
            lambda _names: {"shop": 5},
            remaining_ms=lambda: LONG_MS,
            sleep=lambda _seconds: None,
        )

    asked = {
        "rules": [],
        "repair": True,
        "grace_seconds": 0,
        "seed": None,
        "numbers": None,
        "segments": 2,
        "workers": 2,
        "prints": compute_rule_fingerprints(rules),
    }
    return _driven(lines, make, asked)


def _remote_redrive() -> str:
    rules = rules_of(EVERY_KIND)
    lines: list[str] = []
    kept = Kept()
    world = World(shop(rules), kept, kept, kept, kept)
    good = json.dumps(make_failure_record(Failure("names", ORDER, "Throttled", "100"), AT))
    texts = {1: good, 2: "not JSON", 3: format_message(PullMessage(ORDER))}
    state = Documents(lines)

    def make() -> RedriveWork:
        def redriver(only: frozenset[str] | None, remaining_ms: Callable[[], int]) -> Redriver:
            return Redriver(rules, world, only=only, remaining_ms=remaining_ms, sleep=lambda _seconds: None)

        return RedriveWork(
            rules, redriver, {"failures": lambda _mark: Box(texts, lines)}, state, remaining_ms=lambda: LONG_MS
        )

    return _driven(lines, make, {"rules": [], "prints": compute_rule_fingerprints(rules)})


# ---------------------------------------------------------------- the command line
@contextmanager
def _commands() -> Iterator[list[Any]]:
    """The commands that are made meanwhile, as the command line makes them."""
    made: list[Any] = []
    make = typer.main.get_command

    def get_command(app: Any) -> Any:
        made.append(make(app))
        return made[-1]

    with patch.object(typer.main, "get_command", get_command):
        yield made


def called(*arguments: str) -> tuple[int, str]:
    """The exit code of a command and what it printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()), patch.dict(os.environ, {"COLUMNS": "80"}):
        return main(list(arguments)), printed.getvalue()


def options() -> Mapping[str, str]:
    """The parameters of each verb, and the exit code of its --help. No sentence for people is in it."""
    with _commands() as made:
        assert called("--help")[0] == 0
        verbs = list(made[-1].commands)
        lines = []
        for verb in verbs:
            code, _ = called(verb, "--help")
            lines.append(f"{verb}: --help exits with {code}\n")
            lines += [f"  {_parameter(one)}\n" for one in made[-1].commands[verb].params]
    return {"options.txt": "".join(lines)}


def _parameter(one: Any) -> str:
    names = "/".join([*one.opts, *one.secondary_opts]) if one.param_type_name == "option" else "ARGUMENT"
    words = [names, _type(one.type_descriptor.annotation), f"default={_default(one.default)}"]
    words += ["required"] * one.required + ["repeated"] * one.multiple + ["hidden"] * one.hidden
    words += [f"{side}={getattr(one, side)}" for side in ("min", "max") if getattr(one, side) is not None]
    words += [f"nargs={one.nargs}"] * (one.nargs != 1) + [f"env={one.envvar}"] * (one.envvar is not None)
    return " ".join(words)


def _type(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(one.value) for one in annotation)
    if inner := [one for one in get_args(annotation) if one is not type(None)]:
        kind = "Literal" if typing.get_origin(annotation) is typing.Literal else ""
        return "|".join(str(one) if kind else _type(one) for one in inner)
    return str(getattr(annotation, "__name__", annotation))


def _default(value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_default, value))}]"
    assert value is None or isinstance(value, str | int | float | Path), value
    return str(value)


def exit_codes() -> Mapping[str, str]:
    """The exit codes of the quick calls in the expected file, which ask no service. A new call is a new line there."""
    calls = [line.split()[1:] for line in get("exit-codes.txt").decode().splitlines()]
    with _inside(ROOT):
        codes = "".join(f"{called(*one)[0]} {' '.join(one)}\n" for one in calls)
        _, problems = called("check", BROKEN.relative_to(ROOT).as_posix(), "--format", "json")
    shown = [{name: value for name, value in one.items() if name not in WORDED} for one in json.loads(problems)]
    assert all(one.keys() >= set(WORDED) for one in json.loads(problems))
    return {"exit-codes.txt": codes, "check-json.json": pretty(shown)}


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


PRODUCERS: tuple[Callable[[], Mapping[str, str]], ...] = (
    fingerprints,
    template,
    schema,
    messages,
    checkpoint,
    failures,
    recording,
    stream,
    backfill,
    state_tables,
    remote,
    options,
    exit_codes,
)
