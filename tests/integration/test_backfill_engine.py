"""`sync-rules plan` and `backfill` on the embedded engine: every kind, killed with SIGKILL and resumed, stopped by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sync_rules.adapters.state import TableState, read_applied_fingerprints
from sync_rules.cli.options import STATE
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.rules.ledger import hide_amount
from tests.support.builders import n, s, table
from tests.support.every_kind import RULES, order, part, post, text_of, user
from tests.support.sites import Site
from tests.unit.lab.test_emulator import wait_until

ORDERS = 300


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

    def create_state_table(self, name: str) -> None:
        self.client.create_table(**make_table_parameters(table(name, {"id": "S"}), stream=False))

    def right(self) -> int:
        """The number of orders that have the name of their user."""
        return sum(item.get("user_name") == s("Ada") for item in self.items("shop"))

    def by_key(self) -> dict[str, dict]:
        """Every item by its key as it is shown, without the amounts that keys of the ledger have in them."""
        return {
            str(hide_amount(table.key_of(item))): item
            for name, table in self.rules.tables.items()
            for item in self.items(name)
        }

    def run(self, verb: str, *options: str) -> tuple[int, list[dict]]:
        code = self.command(verb, "--format", "jsonl", *options)
        return code, [json.loads(line) for line in self.capsys.readouterr().out.splitlines()]

    def backfill(self, *options: str) -> tuple[int, dict]:
        code, rows = self.run("backfill", *options)
        return code, rows[-1]["summary"]


@pytest.fixture
def shop(engine, tmp_path, capsys, monkeypatch) -> Shop:
    monkeypatch.chdir(tmp_path)
    return Shop(engine, tmp_path, capsys)


def test_backfill_engine_changes_what_plan_lists_and_brings_every_kind_in_line(shop):
    """Plan touches nothing, and lists the items that the backfill changes; afterwards verify finds no drift, plan nothing
    to write, and a second backfill writes nothing.
    """
    shop.fill()
    before, listed = shop.by_key(), shop.folder / "writes.jsonl"
    code, (plan,) = shop.run("plan", "--format", "json", "--writes", str(listed), "--detailed-exitcode")
    assert (code, shop.by_key()) == (1, before)
    assert {one["is"] for one in plan["rules"].values()} == {"new"}
    code, summary = shop.backfill()
    assert (code, summary["done"], summary["parked"], summary["failed"]) == (0, True, 0, 0)
    after = shop.by_key()
    writes = [json.loads(line) for line in listed.read_text().splitlines()]
    keys = {f"{row['table']}[{', '.join(row['key'].values())}]" for row in writes}
    assert keys == {key for key in {**before, **after} if before.get(key) != after.get(key)}
    assert len({row["write"] for row in writes}) == plan["writes"]
    code, rows = shop.run("verify", "--grace-seconds", "0")
    assert code == 0, rows
    code, (again,) = shop.run("plan", "--format", "json", "--detailed-exitcode")
    assert (code, again["writes"]) == (0, 0)
    assert {one["is"] for one in again["rules"].values()} == {"unchanged"}
    code, summary = shop.backfill()
    assert (code, summary["copied"], summary["writes"]) == (0, 0, 0)


@pytest.mark.night
def test_backfill_engine_keeps_its_state_in_a_table(shop):
    """With a table as --state there is no file: the table has which rules were done, for all machines."""
    state = shop.prefix + "state"
    shop.create_state_table(state)
    shop.fill()
    code, _ = shop.backfill("--state", f"table:{state}", "--rule", "names", "--rule", "counted")
    assert code == 0
    assert not Path(STATE).exists()
    assert read_applied_fingerprints(TableState(shop.client, state)).keys() == {"names", "counted"}
    code, summary = shop.backfill("--state", f"table:{state}", "--changed")
    assert code == 0
    assert summary["rules"].keys() & {"names", "counted"} == set()
    code, _ = shop.run("verify", "--grace-seconds", "0")
    assert code == 0


@pytest.mark.night
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_backfill_engine_that_a_signal_ends_goes_on(shop, number, code):
    """A backfill that was stopped or killed resumes, and ends with the same items as one that ran through. Its rate leaves
    seconds for the signal.
    """
    shop.put("shop", user("1", name=s("Ada")), *(order("1", str(i), i, user_name=s("?")) for i in range(ORDERS)))
    words = ["--rule", "names", "--rate", "60", "--format", "jsonl"]
    command = [sys.executable, "-m", "sync_rules", "backfill", str(shop.file), "--endpoint-url", shop.url, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: process.poll() is not None or shop.right() > 0, 60)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert 0 < shop.right() < ORDERS
    if number == signal.SIGTERM:
        summary = json.loads(out.splitlines()[-1])["summary"]
        assert (summary["done"], summary["left"]) == (False, [])
    code, summary = shop.backfill("--rule", "names", "--resume")
    assert (code, summary["done"], shop.right()) == (0, True, ORDERS)
    code, summary = shop.backfill("--rule", "names")
    assert (code, summary["writes"]) == (0, 0)
