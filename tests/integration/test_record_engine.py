"""A recording made on the embedded engine while an application and a pipeline run: whole, redacted, replayed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.preflight import require
from sync_rules.cli import main
from sync_rules.jobs.consume.local_run import LocalRun
from sync_rules.jobs.local_files import Files
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recording import Header, Recording, open_recording, read
from sync_rules.lab.recording_replay import replay
from sync_rules.lab.tape import Tape, record_streams, select_tables
from sync_rules.pipeline.consumer import Consumer
from sync_rules.rules.kinds.copy import CopyRule
from tests.support import engines, every_kind
from tests.support.builders import n, s

WAIT_MAX_SECONDS = 60
DEEDS = 60


class Shop:
    """Tables on an engine, an application that does this and that, a pipeline."""

    def __init__(self, endpoint_url: str, folder) -> None:
        self.url = endpoint_url
        self.folder = folder
        prefix = engines.unique_prefix()
        self.rules = every_kind.rules_of(prefix=prefix, effects=False)
        (folder / "rules.yaml").write_text(every_kind.text_of(every_kind.RULES, prefix))
        engines.create(endpoint_url, self.rules.tables)
        self.client = aws.dynamodb(endpoint_url)
        self.arns = require(self.client, self.rules).stream_arns
        self.reader = DynamoDBStreams(aws.dynamodbstreams(endpoint_url))
        self.pipeline = LocalRun(
            stream_arns=self.arns,
            rules_fingerprint="",
            reader=self.reader,
            store=DynamoStore(self.client, self.rules.tables),
            make_consumer=lambda world: Consumer(self.rules, world, THIS_PROCESS),
            files=Files(folder / "checkpoint.json", folder / "failures.jsonl"),
        )

    def work(self, random: Random) -> None:
        """One action of the application."""
        user_id, order_id = random.choice("12"), random.choice("345")
        what = random.choice(("user", "order", "order", "post", "part", "delete"))
        if what == "delete":
            place = {"PK": s(f"USER#{user_id}"), "SK": s(f"ORDER#{order_id}")}
            self.client.delete_item(TableName=self._name("shop"), Key=place)
            return
        table, item = {
            "user": lambda: ("shop", every_kind.user(user_id, name=s(random.choice(("Ada", "Grace"))), rank=n(4))),
            "order": lambda: ("shop", every_kind.order(user_id, order_id, random.randrange(9), status=s("OPEN"))),
            "post": lambda: ("posts", every_kind.post(random.choice("pq"), user_id, "title")),
            "part": lambda: ("parts", every_kind.part(random.choice(("CM1", "CM2")), random.choice(("CM1", None)))),
        }[what]()
        self.client.put_item(TableName=self._name(table), Item=dict(item))

    def settle(self) -> None:
        """Let the pipeline catch up."""
        give_up = time.monotonic() + WAIT_MAX_SECONDS
        while True:
            self.pipeline.step()
            if self.pipeline.pump.idle:
                return
            assert time.monotonic() < give_up

    def _name(self, table: str) -> str:
        return self.rules.tables[table].physical_name


@pytest.fixture
def shop(engine: str, tmp_path) -> Shop:
    return Shop(engine, tmp_path)


def recorded_meanwhile(shop: Shop, do: Callable[[], None]) -> Recording:
    """The recording made while `do` runs."""
    path = shop.folder / "live.jsonl"
    done = threading.Event()
    arns = require(shop.client, select_tables(shop.rules, [])).stream_arns
    with open_recording(path, Header({name: one.physical_name for name, one in shop.rules.tables.items()})) as write:
        tape = Tape(write, shop.rules)
        thread = threading.Thread(target=record_streams, args=(tape, shop.reader, arns, done.is_set, lambda: None))
        thread.start()
        try:
            do()
        finally:
            done.set()
            thread.join(WAIT_MAX_SECONDS)
        assert not thread.is_alive()
        assert tape.tables.total() > 0
    return read(path, shop.rules)


def test_record_engine_records_what_happens_and_replay_ends_right(shop, capsys):
    """A recording made live is a prefix of the streams, replays without a mismatch, and reveals a broken rule."""
    random = Random(11)

    def do() -> None:
        for _ in range(DEEDS):
            shop.work(random)
            shop.pipeline.step()
        shop.settle()

    live = recorded_meanwhile(shop, do)
    options = ["--once", "--endpoint-url", shop.url, "--format", "json"]
    for name, words in {"all": [], "redacted": ["--redact"], "posts": ["--table", "posts"]}.items():
        out = str(shop.folder / f"{name}.jsonl")
        assert main.main(["record", str(shop.folder / "rules.yaml"), "--out", out, *options, *words]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    whole, redacted, posts = (read(shop.folder / f"{name}.jsonl", shop.rules) for name in ("all", "redacted", "posts"))
    assert {one.identity for one in live} <= {one.identity for one in whole}
    assert len(whole.records) == len(redacted.records) == told[0]["records"] > DEEDS // 2  # a action may change nothing
    assert set(told[0]["tables"]) == {"shop", "posts", "parts"}
    assert {one.change.key.table for one in posts} == {"posts"}
    assert redacted.header.redacted
    assert "Grace" not in (shop.folder / "redacted.jsonl").read_text()
    assert replay(live, shop.rules) is None  # a part of the whole, which comes in every way
    for seed, variant in enumerate(VARIANTS):
        recording, delivery = (whole, redacted)[seed % 2], replace(variant, seed=seed)
        assert replay(recording, shop.rules, delivery) is None
        assert replay(recording, shop.rules, delivery, with_copies=True) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CopyRule, "pushes", lambda *_given: False)
        patch.setattr(CopyRule, "pulls", lambda *_given: False)
        found = replay(redacted, shop.rules)
    assert found is not None
    assert found.rule in ("names", "told")
