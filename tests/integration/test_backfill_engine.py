"""`sync-rules backfill` on the embedded engine: every kind, killed with SIGKILL and resumed, stopped by a signal."""

from __future__ import annotations

import json
import signal

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from sync_rules.adapters.state import TableState, read_applied
from tests.scale.killed import Killer, contents, load, play, undisturbed
from tests.scale.worlds import items, rules_of
from tests.support import engines
from tests.support.builders import n, s
from tests.support.every_kind import RULES, order, part, post, text_of, user
from tests.support.sites import Site


def test_backfill_engine_killed_and_gone_on_with_ends_as_if_left_in_peace(engine, tmp_path):
    """A backfill killed three times and resumed ends like an undisturbed one, with under 1 % of its writes repeated."""
    assert play(engine, tmp_path, 6_000, wrong_each=4, seed=1) <= 0.01


def test_backfill_engine_stopped_by_a_signal_saves_and_goes_on(engine, tmp_path):
    """SIGTERM ends a backfill with exit code 130 and the way to resume; the resumed one repeats no write."""
    prefix = engines.unique_prefix()
    rules = rules_of(prefix)
    some = tuple(items(1_500, 2))
    expected, planned = undisturbed(rules, some)
    load(engine, rules, some)
    killer = Killer(engine, tmp_path, prefix)
    process = killer.start()
    waiting = Retrying(retry=retry_if_result(lambda done: not done), stop=stop_after_delay(60), wait=wait_fixed(0.005))
    waiting(lambda: process.poll() is not None or killer.writes().total() > 50)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert not summary["done"]
    assert summary["left"] == []
    assert killer.finish("--resume")["done"]
    assert contents(engine, rules) == expected
    assert killer.writes() == planned


class Shop(Site):
    """A shop with a rule of every kind, and things in it that no handler ever saw."""

    def __init__(self, url: str, tmp_path, capsys) -> None:
        super().__init__(url, tmp_path, lambda prefix: text_of(RULES, prefix))
        self.capsys = capsys

    def fill(self) -> None:
        self.put("shop", user("1", name=s("Ada"), rank=n(1), email=s("a@x")), user("2", name=s("Bo"), counted=n(9)))
        self.put("shop", *(order(str(1 + i % 2), str(i), i, user_name=s("?")) for i in range(12)))
        self.put("shop", {**user("3", name=s("Cy")), "orders": {"SS": ["7", "8"]}, "posts": {"M": {"x": s("?")}}})
        self.put("posts", *(post(str(i), str(1 + i % 2), f"post {i}") for i in range(4)))
        self.put("parts", part("c", "b"), part("b", "a"), {**part("a"), "path": s("wrong")})

    def run(self, verb: str, *options: str) -> tuple[int, list[dict]]:
        code = self.command(verb, "--format", "jsonl", *options)
        return code, [json.loads(line) for line in self.capsys.readouterr().out.splitlines()]

    def backfill(self, *options: str) -> tuple[int, dict]:
        code, rows = self.run("backfill", "--state", str(self.folder / "state.json"), *options)
        return code, rows[-1]["summary"]


@pytest.fixture
def shop(engine, tmp_path, capsys, monkeypatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    return Shop(engine, tmp_path, capsys)


def test_backfill_engine_brings_every_kind_in_line(shop):
    """A backfill with four workers makes every copy right; a second backfill writes nothing."""
    shop.fill()
    code, summary = shop.backfill()
    assert (code, summary["done"], summary["parked"], summary["failed"]) == (0, True, 0, 0)
    code, rows = shop.run("verify", "--grace-seconds", "0")
    assert code == 0, rows
    code, summary = shop.backfill()
    assert (code, summary["copied"], summary["writes"]) == (0, 0, 0)


def test_backfill_engine_keeps_its_state_in_a_table(shop):
    """With a table as --state there is no file: the table has which rules were done, for all machines."""
    state = shop.prefix + "state"
    shop.client.create_table(
        TableName=state,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    shop.fill()
    code, _ = shop.backfill("--state", f"table:{state}", "--rule", "names", "--rule", "counted")
    assert code == 0
    assert not (shop.folder / "state.json").exists()
    assert read_applied(TableState(shop.client, state)).keys() == {"names", "counted"}
    code, summary = shop.backfill("--state", f"table:{state}", "--changed")
    assert code == 0
    assert summary["rules"].keys() & {"names", "counted"} == set()
    code, _ = shop.run("verify", "--grace-seconds", "0")
    assert code == 0
