"""`sync-rules run` on the streams of the embedded engine: what was written arrives, whole, once resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.support.builders import order_item, s, user_item
from tests.support.sites import Site
from tests.unit.lab.test_emulator import wait_until

WAIT_MAX_SECONDS = 60
RULES = """\
tables:
  shop: {{name: {prefix}shop, key: {{PK: S, SK: S}}}}
entities:
  user: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  user-name-on-orders: copy user.name into order.user_name
"""


class Shop(Site):
    """A user and an order on an engine, and the files of a run."""

    def __init__(self, endpoint_url: str, folder) -> None:
        super().__init__(endpoint_url, folder, lambda prefix: RULES.format(prefix=prefix))
        self.put("shop", user_item("a", name=s("Ada")), order_item("a", "1"))
        self.files = ["--checkpoint", str(folder / "c.json"), "--failures", str(folder / "f.jsonl")]

    def copied_name(self) -> str | None:
        return self.item("shop", "USER#a", "ORDER#1").get("user_name", {}).get("S")


@pytest.fixture
def shop(engine, tmp_path) -> Shop:
    return Shop(engine, tmp_path)


def test_run_once_makes_the_copies_right(shop, capsys):
    """`run --once` makes every copy right and prints how many it wrote."""
    assert shop.command("run", *shop.files, "--once", "--parallelization", "3") == 0
    assert shop.copied_name() == "Ada"
    first, second, *_ = out = capsys.readouterr().out.splitlines()
    assert f"1 rule over 1 table at {shop.url} (Region us-east-1): {shop.name('shop')}." in first
    assert "reads the streams from their beginning" in second
    assert any("1 copied" in text for text in out)


def test_run_refuses_tables_that_are_not_there(shop, capsys):
    """Every missing table is named before anything is read."""
    shop.client.delete_table(TableName=shop.name("shop"))
    assert shop.command("run", *shop.files, "--once") == 2
    assert f"{shop.name('shop')}: it does not exist" in capsys.readouterr().err


def test_run_stops_on_a_signal_and_resumes(shop, tmp_path):
    """SIGINT ends a run with exit code 0, a summary and a checkpoint; the next run does only what came after."""
    command = [sys.executable, "-m", "sync_rules", "run", str(shop.file), "--endpoint-url", shop.url, *shop.files]
    command += ["--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ}, text=True) as running:
        wait_until(lambda: shop.copied_name() == "Ada", WAIT_MAX_SECONDS)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=WAIT_MAX_SECONDS)
    assert running.returncode == 0
    summary = json.loads(out.splitlines()[-1])["summary"]
    assert (summary["copied"], summary["parked"]) == (1, 0)
    shop.put("shop", user_item("a", name=s("Ada Lovelace")))
    again = subprocess.run([*command, "--once"], capture_output=True, check=True, text=True)
    resumed = json.loads(again.stdout.splitlines()[-1])["summary"]
    assert shop.copied_name() == "Ada Lovelace"
    assert resumed["records"] <= summary["records"] + 2
    assert json.loads((tmp_path / "c.json").read_text())["version"] == 1
