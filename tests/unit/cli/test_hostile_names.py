"""Items and rules with hostile names and secret values: no name controls the terminal or the log, and no value is shown.

Escapes, ends of lines and marks of direction are wherever the rules file and the tables take free text. Each verb
prints them escaped: its output has no control character but the ends of its own lines, and begins no line with the
text that follows an end of a line in a name, which GitHub would take for a command. Canaries of every type are the
values. Every output of commands and handlers is searched for them, also in base64, in hexadecimal digits and as JSON.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from moto import mock_aws

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.functions import logs
from sync_rules.language.kinds import registry
from sync_rules.language.load import load_rules, parse_rules
from sync_rules.model.items import Failure, ItemKey
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.messages import format_message
from tests.support.builders import n, s
from tests.support.depth import spread_over_night
from tests.support.operated import Operated
from tests.test_house import ROOT
from tests.unit.jobs.test_redrive import AT

BAD = "\x1b[31m\n::error::pwned\r\u2028::warning::p\x85::notice::q\u202e\t\x9b<b>|`@x"
COMMAND = re.compile(r"^\s*::(?:error|warning|notice)::", re.MULTILINE)
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


TEXTS = ("Canary0Name", "Canary1Note", "Canary2Rolé🙂", "Canary3Stray", "Canary4Old")
NUMBERS = ("9182736455", "-81726354.25")
BINARY = b"Canary5Binary"


def canaries() -> Iterator[bytes]:
    """The forms of a canary that an output could have."""
    for text in (*TEXTS, *NUMBERS, BINARY.decode()):
        raw = text.encode()
        yield raw
        yield raw.hex().encode()
        yield raw.hex().upper().encode()
        yield json.dumps(text)[1:-1].encode()
        for shift in range(3):  # at any place in a longer text
            coded = base64.b64encode(b"\0" * shift + raw)
            yield coded[4 if shift else 0 : len(coded) // 4 * 4 - 4]


CANARIES = frozenset(canary for canary in canaries() if len(canary) >= 8)


def found_in(content: bytes) -> list[bytes]:
    return sorted(canary for canary in CANARIES if canary in content)


def bad(name: str) -> str:
    return f"{name}{BAD}"


def quoted(name: str) -> str:
    """A hostile attribute as a segment of a path."""
    return f'"{bad(name)}"'


PREFIX = bad("USER") + "#"
RULES: dict[str, Any] = {
    "tables": {
        "shop": {"key": {"PK": "S", "SK": "S"}},
        "posts": {"key": {bad("id"): "S"}, "indexes": {"by_parent": {bad("parent"): "S"}}},
        "ledger": {"key": {"PK": "S", "SK": "S"}},
    },
    "entities": {
        "user": {"table": "shop", "key": {"PK": PREFIX + "{user_id}", "SK": bad("PROFILE")}},
        "order": {"table": "shop", "key": {"PK": PREFIX + "{user_id}", "SK": bad("ORDER") + "#{order_id}"}},
        "by_email": {"table": "shop", "key": {"PK": bad("EMAIL") + "#{email}", "SK": bad("EMAIL")}},
        "version": {"table": "shop", "key": {"PK": PREFIX + "{user_id}", "SK": bad("V") + "#{rank:pad(8)}"}},
        "post": {"table": "posts"},
    },
    "rules": {
        "names": {
            "copy": {f"user.{quoted('name')}": quoted("copied")},
            "into": "order",
            "where": f"role != '{BAD}'",
            "default": {quoted("copied"): BAD},
        },
        "posts": {"embed": "order", "into": f"user.{quoted('orders')}", "fields": [quoted("note")], "limit": {"items": 9}},
        "roles": {"collect": "order", "into": f"user.{quoted('roles')}", "as": bad("role") + "-{order_id}"},
        "heads": {"derive": f"user.{quoted('head')}", "as": bad("x") + "{role:m}", "map": {"m": {BAD: BAD}}},
        "counted": {"count": "order", "into": f"user.{quoted('count')}", "where": f"role != '{BAD}'"},
        "spent": {"sum": f"order.{quoted('total')}", "into": f"user.{quoted('spent')}"},
        "usual": {"mean": f"order.{quoted('total')}", "into": f"user.{quoted('usual')}"},
        "least": {"min": f"order.{quoted('total')}", "into": f"user.{quoted('least')}"},
        "most": {"max": f"order.{quoted('total')}", "into": f"user.{quoted('most')}", "mode": "recount"},
        "paths": {"path": f"post.{quoted('path')}", "parent": quoted("parent"), "separator": "/"},
        "mails": {"mirror": "user", "into": "by_email", "attributes": [quoted("name")]},
        "called": {"call": "tests.support.every_kind.told", "on": "order", "when": ["created"]},
        "versions": {"history": "user", "into": "version", "attributes": [quoted("name")]},
    },
    "patterns": {
        "orders": {"get": "order", "by": ["user_id"], "where": f"role != '{BAD}'", "order": "order_id"},
        "user": {"get": "user", "by": ["user_id"], "one": True},
        "unserved": {"get": "order", "by": [quoted("note")]},
        "rename": {"update": "user", "sets": [quoted("name")]},
    },
}  # fmt: skip
BROKEN: dict[str, Any] = {
    "tables": {"shop": {"name": bad("sh"), "key": {"PK": "S", "SK": "S"}}, bad("a"): {"key": {"id": BAD}}},
    "entities": {"user": {"table": bad("shop"), "key": {"PK": PREFIX + "{", "SK": BAD}}, bad("e"): {"table": "shop"}},
    "rules": {
        bad("r"): "copy user.a into user.b",
        "kind": {bad("copy"): "user"},
        "sentence": bad("copy user.a into user.b"),
        "unknown": {"copy": f"user.{BAD}", "into": bad("user.c"), bad("k"): 2, "where": f"a == '{BAD}' ||"},
        "formula": {"derive": "user.z", "as": bad("x{a")},
        "call": {"call": bad("a.b"), "on": bad("user")},
    },
    "patterns": {bad("p"): {"get": bad("user"), "by": [BAD]}},
    bad("top"): 1,
}


def user(number: int, **values: object) -> dict:
    """A user with wrong copies, strays of every type, and nothing that the rules would have written."""
    return {
        "PK": s(f"{PREFIX}{number}{BAD}"),
        "SK": s(bad("PROFILE")),
        "email": s(bad("e")),
        "rank": n(1),
        bad("name"): s(TEXTS[0]),
        bad("roles"): {"SS": [f"{TEXTS[3]}-7", TEXTS[4]]},
        bad("orders"): {"M": {bad(TEXTS[3]): {"M": {bad("note"): s(TEXTS[4])}}}},
        bad("head"): s(TEXTS[4]),
        bad("spent"): n(NUMBERS[0]),
        bad("least"): n(NUMBERS[1]),
        "extra": {"L": [{"B": BINARY}, {"BS": [BINARY]}, {"NS": [NUMBERS[0]]}, {"M": {TEXTS[0]: n(NUMBERS[0])}}]},
        **values,
    }


def order(number: int, **values: object) -> dict:
    keys = {"PK": s(f"{PREFIX}{number}{BAD}"), "SK": s(f"{bad('ORDER')}#{number}{BAD}")}
    mine = {bad("note"): s(TEXTS[1]), "role": s(TEXTS[2]), bad("total"): n(NUMBERS[0]), bad("copied"): s(TEXTS[4])}
    return {**keys, **mine, **values}


ITEMS = (
    user(1),
    order(1),
    user(2, **{bad("roles"): s(TEXTS[4])}),
    order(2, **{bad("total"): s(TEXTS[1]), "role": {"B": BINARY}}),
    order(3),
)
USER = json.dumps({"PK": f"{PREFIX}1{BAD}", "SK": bad("PROFILE")})
WRITE = {
    "actions": [{"put": {"entity": "order", "item": {"user_id": f"1{BAD}", "order_id": BAD, bad("note"): BAD}}}],
    "items": [{"entity": "user", "item": {"user_id": f"1{BAD}", bad("name"): BAD}}],
}
SCENARIO = {
    "rules": "rules.yaml",
    "data": {"shop": [{"PK": f"{PREFIX}1{BAD}", "SK": bad("PROFILE"), bad("name"): BAD}]},
    "steps": [
        {
            "say": bad("the name changes"),
            "update": {"shop": {"key": {"PK": f"{PREFIX}1{BAD}", "SK": bad("PROFILE")}, "set": {quoted("name"): BAD}}},
            "expect": {"shop": {"PK": f"{PREFIX}1{BAD}", "SK": bad("PROFILE"), quoted("name"): bad("other")}},
        }
    ],
}
# What each verb is given, and what prints a name of a rules file in none of its outputs.
COMMANDS: dict[str, tuple[str, ...]] = {
    "check": ("", "--format json", "--format github"),
    "patterns": (
        "",
        "--format json",
        "--format markdown",
        "--pattern orders",
        "--pattern user --format json",
        "--run --calls 1",
        "--run --calls 1 --format json",
    ),
    "graph": ("",),
    "plan": ("--writes writes.jsonl", "--format json", "--format markdown"),
    "preview": ("write.json", "write.json --format json"),
    "cost": ("--region eu-west-1", "--region eu-west-1 --format json"),
    "verify": ("--grace-seconds 0", "--grace-seconds 0 --format jsonl", "--grace-seconds 0 --repair"),
    "explain": (
        f"--key={USER}",
        f"--key={USER}\0--format\0json",
        f"--where-used={USER}",
    ),
    "replay": ("day.jsonl --seeds 1", "day.jsonl --seeds 1 --with-copies"),
    "backfill": (
        "--state state.json",
        "--state other.json --format jsonl",
    ),
    "failures": ("--file failures.jsonl", "--file failures.jsonl --format json"),
    "redrive": ("--file failures.jsonl --rule names",),
    "prune": ("rules.yaml fewer.yaml", "rules.yaml fewer.yaml --apply"),
    "propose": ("--table shop --out proposed.yaml", "--table shop --format json", "--table shop --why role"),
    "test": ("scenarios", "scenarios --format json"),
    "tables": ("create --region eu-west-1 --dry-run",),
    "infra": ("--rules rules.yaml", "iam --explain --rules rules.yaml", "--rules rules.yaml --check"),
    "record": ("--once --out tape.jsonl --region eu-west-1",),
    "run": ("--once --region eu-west-1",),
}
NAMELESS = {
    "init": "makes rules of its own",
    "schema": "reads no rules file",
    "demo": "plays examples of its own",
    "emulator": "says what tables prints",
    "playground": "reads no rules file",
    "doctor": "names resources of the stack, which CloudFormation restricts",
    "selftest": "plays rules of its own",
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The rules files, in the folder where the user is."""
    monkeypatch.chdir(tmp_path)
    fewer = {**RULES, "rules": {"names": RULES["rules"]["names"]}, "patterns": {}}
    for name, body in (("rules", RULES), ("broken", BROKEN), ("fewer", fewer)):
        (tmp_path / f"{name}.yaml").write_text(json.dumps(body))
    return tmp_path


@pytest.fixture
def account(folder, monkeypatch) -> Iterator[Path]:
    """Hostile tables, and the files that commands read."""
    for name, value in (("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-west-1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(aws, "is_aws", lambda _client: False)  # no PartiQL in memory
    call, one_at_a_time = BaseClient._make_api_call, Lock()  # requests are atomic in DynamoDB, and not in moto

    def call_alone(*words: Any) -> Any:
        with one_at_a_time:
            return call(*words)

    monkeypatch.setattr(BaseClient, "_make_api_call", call_alone)
    (folder / "write.json").write_text(json.dumps(WRITE))
    shutil.copy(ROOT / "template.yaml", folder)
    (folder / "scenarios").mkdir()
    (folder / "scenarios/scenario.yaml").write_text(json.dumps(SCENARIO | {"rules": "../rules.yaml"}))
    records = [recorded("INSERT", None, item) for item in ITEMS]
    records += [recorded("MODIFY", {**item, "role": s(TEXTS[3])}, item) for item in ITEMS]
    (folder / "day.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    failure = Failure(BAD, ItemKey("shop", (("PK", "S", BAD), ("SK", "S", BAD))), BAD, element=BAD)
    (folder / "failures.jsonl").write_text(json.dumps(make_failure_record(failure, AT)))
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="bucket", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        client = boto3.client("dynamodb", region_name="eu-west-1")
        for table in load_rules(folder / "rules.yaml").tables.values():
            client.create_table(**make_table_parameters(table, stream=True))
        for item in ITEMS:
            client.put_item(TableName="shop", Item=item)
        yield folder


def recorded(name: str, old: Mapping | None, new: Mapping) -> dict:
    images = {"NewImage": coded(new)} | ({"OldImage": coded(old)} if old else {})
    keys = {at: new[at] for at in ("PK", "SK")}
    arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/shop/stream/x"
    return {"eventName": name, "eventSourceARN": arn, "dynamodb": {"SequenceNumber": "1", "Keys": keys, **images}}


def coded(value: object) -> object:
    """An image as JSON."""
    if isinstance(value, Mapping):
        return {name: coded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [coded(inner) for inner in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def assert_safe(text: str, command: str) -> None:
    """Nothing in the output controls a terminal, and no line is a command to GitHub."""
    assert not (found := UNSAFE.search(text)), f"{command}: {text[max(0, found.start() - 200) : found.end() + 20]!r}"
    assert not (found := COMMAND.search(text)), f"{command}: {text[max(0, found.start() - 200) : found.end() + 20]!r}"


def test_hostile_rules_have_every_kind(folder):
    """The hostile file is valid, and has a rule of each kind."""
    kinds = {rule.kind for rule in load_rules(folder / "rules.yaml").rules.values()}
    assert kinds == set(registry.KINDS)


def test_hostile_verbs_are_all_tried():
    """Each verb prints no name of a rules file, for the reason given here, or is tried."""
    assert COMMANDS.keys() | NAMELESS.keys() == set(main.VERBS)


OWN_VALUES = {"preview", "test"}  # show the values that they are given; of `record` the file has them
READ = ("day.jsonl", "tape.jsonl", ".sync-rules-propose", "scenarios", "write.json")  # files with values


def without_ledger(out: str) -> str:
    """The lines of a report that name no key of the ledger: a repair reads the key, which has the amount of min and max."""
    return "".join(line for line in out.splitlines(keepends=True) if '"target": {"table": "ledger"' not in line)


@pytest.mark.parametrize("verb", spread_over_night(COMMANDS, share=2))
def test_hostile_names_are_printed_escaped_and_no_values(verb, account, capsys, monkeypatch, caplog):
    """Every form of every verb's output at DEBUG, with the log and the files that it makes."""
    monkeypatch.setenv("SYNC_RULES_DEBUG", "1")
    caplog.set_level(logging.DEBUG, logger="sync_rules")
    shown = ""
    for words in COMMANDS[verb]:
        given = words.split("\0") if "\0" in words or USER in words else words.split()
        code = main.main([verb, *given])
        out, err = capsys.readouterr()
        assert code in (0, 1), err
        assert_safe(out + err, f"{verb} {words}")
        assert "markdown" not in words or "@x" not in out, "GitHub sends a notice to a user of this name"
        if verb not in OWN_VALUES:
            assert found_in(f"{without_ledger(out)}{err}{caplog.text}".encode()) == [], words
        shown += out + err
    assert shown
    for file in account.iterdir():
        assert file.name in READ or found_in(file.read_bytes()) == [], file.name


def test_hostile_values_are_shown_by_no_handler(monkeypatch, capsys):
    """Logs, messages and failure records of the handlers hold no canary, at DEBUG either."""
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    for keys in ("", "1"):
        monkeypatch.setenv("SYNC_RULES_LOG_KEYS", keys)
        at = Operated(parse_rules(json.dumps(RULES)), monkeypatch, capsys)
        logging.getLogger("sync_rules").setLevel(logging.DEBUG)
        logs.logger.setLevel("DEBUG")
        at.scene.put("shop", *ITEMS)
        at.stream()
        for _ in range(3):
            at.scene.queue.messages = [(message, 0) for message, _ in at.scene.queue.messages]
            messages = [format_message(message) for message, _ in at.scene.queue.messages]
            assert found_in("".join(one for one in messages if '"ledger"' not in one).encode()) == []
            at.fanout()
        assert found_in(capsys.readouterr().out.encode()) == []
        records = [json.dumps(make_failure_record(failure, AT)) for failure in at.scene.parked.failures]
        assert any('"roles"' in record for record in records)
        assert found_in("".join(records).encode()) == []


@pytest.mark.parametrize("verb", ["check", "patterns", "graph", "explain", "plan", "cost", "backfill", "verify", "run"])
def test_hostile_problems_are_printed_escaped(verb, folder, capsys):
    """Each verb that refuses a broken rules file names its mistakes, and what is in the names does nothing."""
    assert main.main([verb, "broken.yaml"]) in (1, 2)
    out, err = capsys.readouterr()
    assert "pwned" in out + err
    assert_safe(out + err, verb)
