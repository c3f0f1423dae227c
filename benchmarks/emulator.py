"""`python -m benchmarks.emulator`: copies through `sync-rules run` on an engine of this machine, and what they cost.

A user has many orders in one partition. `first` makes all copies, and reads the records of the loaded orders. `rename`
changes the user's name and makes all copies anew. `run` ends when it has also checked the records of its own writes.
The figures are seconds by the clock, and of CPU (user + system) of `run`, its start included, and of the engine. On a
busy machine only the CPU times say something; on two idle cores both processes run side by side.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.running import LOOPBACK, ROOT
from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import WRITES
from sync_rules.deploy.tables import compare_tables, create_missing_tables
from sync_rules.lab.embedded_engine import run_engine
from sync_rules.language.load import parse_rules

RULES: Final = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  user-name-on-orders: copy user.name into order.user_name
"""
BATCH_WRITE_MAX_ITEMS: Final = 25
NOTE: Final = {"S": "x" * 200}
TICKS: Final = os.sysconf("SC_CLK_TCK")
COLUMNS: Final = "{:<8} {:>10} {:>10} {:>12} {:>12} {:>16}"
Seconds = tuple[float, float, float]  # by the clock, CPU of `run`, CPU of the engine


def engine_seconds(pid: int) -> float:
    """The CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def children_seconds() -> float:
    """The CPU time of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Shop:
    """The tables of one run, and the commands on them."""

    def __init__(self, folder: Path, url: str, pid: int) -> None:
        self.folder, self.url, self.pid = folder, url, pid
        self.client: Any = aws.dynamodb(url)
        (folder / "rules.yaml").write_text(RULES)
        create_missing_tables(self.client, compare_tables(self.client, parse_rules(RULES, environ={})))

    def load(self, copies: int) -> None:
        """Put the orders, and then the user, whose record is the last one."""
        orders = [{"PK": {"S": "USER#1"}, "SK": {"S": f"ORDER#{n:07}"}, "note": NOTE} for n in range(copies)]
        for start in range(0, copies, BATCH_WRITE_MAX_ITEMS):
            puts = [{"PutRequest": {"Item": item}} for item in orders[start : start + BATCH_WRITE_MAX_ITEMS]]
            self.client.batch_write_item(RequestItems={"shop": puts})
        self.rename("Ada")

    def rename(self, name: str) -> None:
        user = {"PK": {"S": "USER#1"}, "SK": {"S": "PROFILE"}, "name": {"S": name}}
        self.client.put_item(TableName="shop", Item=user)

    def run(self) -> Seconds:
        """`sync-rules run --once`, as a user starts it."""
        began = time.perf_counter(), children_seconds(), engine_seconds(self.pid)
        command = [sys.executable, "-m", "sync_rules", "run", "--once", "--endpoint-url", self.url]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, check=True)
        ended = time.perf_counter(), children_seconds(), engine_seconds(self.pid)
        seconds, client, engine = (after - before for after, before in zip(ended, began, strict=True))
        return seconds, client, engine

    def require(self, copies: int, name: str) -> None:
        """Check that every order has the name."""
        pages = self.client.get_paginator("scan").paginate(TableName="shop", ConsistentRead=True)
        found = sum(item.get("user_name") == {"S": name} for page in pages for item in page["Items"])
        assert found == copies, f"{found} of {copies} copies are right"


def measure(copies: int) -> dict[str, Seconds]:
    """The seconds of the first copies and of a rename."""
    found: dict[str, Seconds] = {}
    with tempfile.TemporaryDirectory(prefix="sync-rules-bench-") as folder, run_engine() as engine:
        aws.isolate_engine(engine.url)
        shop = Shop(Path(folder), engine.url, engine.process.pid)
        shop.load(copies)
        for what, name in (("first", "Ada"), ("rename", "Grace")):
            if what == "rename":
                shop.rename(name)
            found[what] = shop.run()
            shop.require(copies, name)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the seconds for each way in which updates are sent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.emulator", description=__doc__)
    parser.add_argument("--copies", metavar="N", type=int, default=10_000)
    parser.add_argument("--writes", choices=("batch", "update"), action="append", help="default: both")
    asked = parser.parse_args(arguments)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
    print(COLUMNS.format("writes", "what", "seconds", "CPU of run", "of engine", "CPU us per copy"))
    for writes in asked.writes or ("batch", "update"):
        os.environ[WRITES] = writes
        for what, (seconds, client, engine) in measure(asked.copies).items():
            each = (client + engine) / asked.copies * 1e6
            figures = f"{seconds:.1f}", f"{client:.1f}", f"{engine:.1f}", f"{each:.0f}"
            print(COLUMNS.format(writes, what, *figures), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
