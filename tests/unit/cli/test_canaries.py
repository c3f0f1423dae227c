"""No value of an item reaches an output: canaries of every type stand everywhere, and every byte of every output of
commands and handlers is searched for them, also in base64, in hexadecimal digits and escaped as JSON.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.functions import logs
from sync_rules.language.load import parse_rules
from sync_rules.pipeline.failure_records import failure_record
from sync_rules.pipeline.messages import encode
from tests.support.builders import n, s
from tests.support.operated import Operated
from tests.unit.jobs.test_redrive import AT

RULES = """
tables:
  shop:   {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.owner.name
  posts: {embed: order, into: user.orders, fields: [note], limit: {items: 20}}
  roles: {collect: order, into: user.roles, as: "{role}-{order_id}"}
  heads: {derive: user.head, as: "{name}-{note}"}
  per:   {count: order, into: user.per, per: role}
  spent: {sum: order.total, into: user.spent, per: role}
  least: {min: order.total, into: user.least}
"""
TEXTS = ("Canary0Name", "Canary1Note", "Canary2Rolé🙂", "Canary3Stray", "Canary4Old")
NUMBERS = ("9182736455", "-81726354.25")
BINARY = b"Canary5Binary"


def canaries() -> Iterator[bytes]:
    """Every form in which a canary could stand in an output."""
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


def user(number: int, **values: object) -> dict:
    """A user with wrong copies, strays of every type, and nothing that the rules would have written."""
    return {
        "PK": s(f"USER#{number}"),
        "SK": s("PROFILE"),
        "name": s(TEXTS[0]),
        "note": s(TEXTS[1]),
        "orders": {"M": {TEXTS[3]: {"M": {"note": s(TEXTS[4])}}}},
        "roles": {"SS": [f"{TEXTS[3]}-7", TEXTS[4]]},
        "head": s(TEXTS[4]),
        "per": {"M": {TEXTS[3]: n(1)}},
        "spent": {"M": {TEXTS[3]: n(NUMBERS[0])}},
        "least": n(NUMBERS[1]),
        "extra": {"L": [{"B": BINARY}, {"BS": [BINARY]}, {"NS": [NUMBERS[0]]}, {"M": {TEXTS[0]: n(NUMBERS[0])}}]},
        **values,
    }


def order(number: int, **values: object) -> dict:
    owner: dict = {"M": {"name": s(TEXTS[4])}}
    keys = {"PK": s(f"USER#{number}"), "SK": s(f"ORDER#{number}")}
    return {**keys, "note": s(TEXTS[1]), "role": s(TEXTS[2]), "total": n(NUMBERS[0]), "owner": owner, **values}


ITEMS = (
    user(1),
    order(1),
    user(2, roles=s(TEXTS[4])),
    order(2, total=s(TEXTS[1]), owner=s(TEXTS[4]), role={"B": BINARY}),
    order(3),
    user(4, roles=s(TEXTS[4])),
    order(4),
)


@pytest.fixture
def account(tmp_path, monkeypatch) -> Iterator[Path]:
    """Tables full of canaries, and a rules file beside a recording of them."""
    for name, value in (("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_REGION", "eu-west-1")):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(aws, "is_aws", lambda _client: False)  # no PartiQL in memory
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "fewer.yaml").write_text(RULES.partition("  posts:")[0])
    with mock_aws():
        client = boto3.client("dynamodb", region_name="eu-west-1")
        for name in ("shop", "ledger"):
            client.create_table(
                TableName=name,
                KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
                AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in ("PK", "SK")],
                BillingMode="PAY_PER_REQUEST",
                StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            )
        for item in ITEMS:
            client.put_item(TableName="shop", Item=item)
        records = [recorded("INSERT", None, item) for item in ITEMS]
        records += [recorded("MODIFY", {**item, "role": s(TEXTS[3])}, item) for item in ITEMS]
        (tmp_path / "day.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
        yield tmp_path


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


COMMANDS = (
    "check",
    "graph",
    "plan --writes writes.jsonl",
    "plan --format json",
    "verify --grace-seconds 0",
    "verify --grace-seconds 0 --format jsonl",
    "explain --key USER#1",
    "explain --where-used USER#1 --format json",
    "replay day.jsonl --seeds 2",
    "replay day.jsonl --seeds 1 --with-copies --format json",
    "backfill --state state.json",
    "backfill --state state.json --format jsonl",
    "verify --grace-seconds 0 --repair",
    "failures --file .sync-rules-failures.jsonl",
    "failures --file .sync-rules-failures.jsonl --format json",
    "redrive --file .sync-rules-failures.jsonl",
    "prune rules.yaml fewer.yaml",
    "propose --table shop --out proposed.yaml",
    "propose --table shop --format json",
    "propose --table shop --why note",
)


def without_ledger(out: str) -> str:
    """The lines of a report that name no key of the ledger: a repair reads the key, which has the amount of min and max."""
    return "".join(line for line in out.splitlines(keepends=True) if '"target": {"table": "ledger"' not in line)


def test_no_command_shows_a_value(account, capsys, monkeypatch, caplog):
    """Each command runs on wrong data at DEBUG; its output, its files and the log hold no canary."""
    monkeypatch.setenv("SYNC_RULES_DEBUG", "1")
    caplog.set_level(logging.DEBUG, logger="sync_rules")
    shown = []
    for command in COMMANDS:
        words = [json.dumps({"PK": word, "SK": "PROFILE"}) if "#" in word else word for word in command.split()]
        code = main.main(words)
        out, err = capsys.readouterr()
        assert code in (0, 1), f"{command}\n{err}"
        assert found_in(f"{without_ledger(out)}{err}{caplog.text}".encode()) == [], command
        shown.append(out)
        caplog.clear()
    own = ("day.jsonl", "rules.yaml", "fewer.yaml", ".sync-rules-propose")  # the last one is what was read
    files = [one for one in account.iterdir() if one.name not in own]
    made = {"writes.jsonl", "state.json", ".sync-rules-failures.jsonl", "proposed.yaml"}
    assert {one.name for one in files} >= made
    for file in files:
        assert found_in(file.read_bytes()) == [], file.name
    assert "drift" in "".join(shown)


def test_no_handler_shows_a_value(monkeypatch, capsys):
    """Logs, messages and failure records of the handlers hold no canary, at DEBUG either."""
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    for keys in ("", "1"):
        monkeypatch.setenv("SYNC_RULES_LOG_KEYS", keys)
        at = Operated(parse_rules(RULES), monkeypatch, capsys)
        logging.getLogger("sync_rules").setLevel(logging.DEBUG)
        logs.logger.setLevel("DEBUG")
        at.scene.put("shop", *ITEMS)
        at.stream()
        for _ in range(3):
            at.scene.queue.messages = [(message, 0) for message, _ in at.scene.queue.messages]
            messages = [encode(message) for message, _ in at.scene.queue.messages]
            assert found_in("".join(one for one in messages if '"ledger"' not in one).encode()) == []
            at.fanout()
        assert found_in(capsys.readouterr().out.encode()) == []
        records = [json.dumps(failure_record(failure, AT)) for failure in at.scene.parked.failures]
        assert any('"roles"' in record for record in records)
        assert found_in("".join(records).encode()) == []
