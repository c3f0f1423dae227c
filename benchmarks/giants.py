"""`python -m benchmarks.giants`: how long small changes wait in `sync-rules run` beside sources with many targets.

One user with `--orders` orders changes `--rate` times a second. After a third of the time another user with `--giant`
orders changes once. Users with one order change five times a second. The time of a small change begins when the engine
has accepted it, and ends when its copy is right. All runs use one engine and one machine, so compare them as ratios:
the first row has no giant.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.emulator import BATCH_WRITE_MAX_ITEMS, NOTE, RULES
from benchmarks.running import LOOPBACK, ROOT
from sync_rules.adapters import aws
from sync_rules.deploy.tables import compare_tables, create_missing_tables
from sync_rules.lab.embedded_engine import run_engine
from sync_rules.language.load import parse_rules

SMALL_USERS: Final = 100
SMALL_RATE: Final = 5  # changes a second
HOT, GIANT = "hot", "giant"
READ_PAUSE_SECONDS: Final = 0.02
END_MAX_SECONDS: Final = 300.0


class Shop:
    """The tables, and users with orders."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        self.client: Any = aws.dynamodb(url)
        (folder / "rules.yaml").write_text(RULES)
        create_missing_tables(self.client, compare_tables(self.client, parse_rules(RULES, environ={})))

    def load(self, user: str, orders: int) -> None:
        items = [{"PK": {"S": f"USER#{user}"}, "SK": {"S": f"ORDER#{n:07}"}, "note": NOTE} for n in range(orders)]
        for start in range(0, orders, BATCH_WRITE_MAX_ITEMS):
            puts = [{"PutRequest": {"Item": item}} for item in items[start : start + BATCH_WRITE_MAX_ITEMS]]
            self.client.batch_write_item(RequestItems={"shop": puts})

    def rename(self, user: str, name: str) -> None:
        item = {"PK": {"S": f"USER#{user}"}, "SK": {"S": "PROFILE"}, "name": {"S": name}}
        self.client.put_item(TableName="shop", Item=item)

    def names(self, users: Sequence[str]) -> dict[str, str]:
        """The copied name on the first order of each user."""
        found: dict[str, str] = {}
        for start in range(0, len(users), 100):
            keys = [{"PK": {"S": f"USER#{u}"}, "SK": {"S": "ORDER#0000000"}} for u in users[start : start + 100]]
            answer = self.client.batch_get_item(RequestItems={"shop": {"Keys": keys, "ConsistentRead": True}})
            for item in answer["Responses"]["shop"]:
                found[item["PK"]["S"].removeprefix("USER#")] = item.get("user_name", {}).get("S", "")
        return found

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start `sync-rules run`, as a user does."""
        accepted = ("--accept", "user-name-on-orders", "--format", "jsonl", *options)
        command = [sys.executable, "-m", "sync_rules", "run", "--endpoint-url", self.url, *accepted]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with (self.folder / "run.log").open("w") as log:
            return subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log)

    @contextmanager
    def running(self, *options: str) -> Iterator[None]:
        process = self.start(*options)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


class SmallChanges:
    """Changes users with one order, and notes how long each copy took, in seconds."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.pending, self.seconds = shop, dict[str, tuple[str, float]](), list[float]()

    def change(self, number: int) -> None:
        user = f"s{number % SMALL_USERS}"
        if user not in self.pending:
            self.shop.rename(user, f"name {number}")
            self.pending[user] = (f"name {number}", time.monotonic())

    def look(self) -> None:
        names = self.shop.names(list(self.pending))
        for user, (name, began) in list(self.pending.items()):
            if names.get(user) == name:
                self.seconds.append(time.monotonic() - began)
                del self.pending[user]


def rename_steadily(shop: Shop, rate: float, stop: threading.Event) -> None:
    number = 0
    while not stop.wait(1 / rate):
        number += 1
        shop.rename(HOT, f"hot {number}")


def measure(shop: Shop, seconds: float, rate: float, *, giant: bool, options: Sequence[str]) -> list[float]:
    """The seconds of each small change."""
    stop, small = threading.Event(), SmallChanges(shop)
    hot = threading.Thread(target=rename_steadily, args=(shop, rate, stop))
    with shop.running(*options):
        small.change(0)
        while small.pending:  # until the run has begun
            small.look()
            time.sleep(READ_PAUSE_SECONDS)
        small.seconds.clear()
        began, number, renamed = time.monotonic(), 0, not giant
        if rate:
            hot.start()
        while small.pending or time.monotonic() - began < seconds:
            passed = time.monotonic() - began
            if passed > seconds / 3 and not renamed:
                renamed = True
                shop.rename(GIANT, "a new name")
            if passed < seconds and number < passed * SMALL_RATE:
                number += 1
                small.change(number)
            if passed > seconds:
                stop.set()
            assert passed < seconds + END_MAX_SECONDS, f"{len(small.pending)} small changes were not copied"
            small.look()
            time.sleep(READ_PAUSE_SECONDS)
        stop.set()
        if rate:
            hot.join()
    return small.seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the times as a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.giants", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=20.0, help="changes of the hot source, a second")
    parser.add_argument("--orders", type=int, default=2_000, help="targets of the hot source")
    parser.add_argument("--giant", type=int, default=8_000, help="targets of the source that changes once")
    asked, options = parser.parse_known_args(arguments)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
    print("| small changes, seconds to the right copy | median | p99 | greatest |\n|---|---:|---:|---:|")
    for what, rate, giant in (("alone", 0.0, False), ("beside both", asked.rate, True)):
        with tempfile.TemporaryDirectory(prefix="sync-rules-bench-") as folder, run_engine() as engine:
            aws.isolate_engine(engine.url)
            shop = Shop(Path(folder), engine.url)
            for user, orders in ((HOT, asked.orders), (GIANT, asked.giant)):
                shop.load(user, orders)
                shop.rename(user, "first")
            for number in range(SMALL_USERS):
                shop.load(f"s{number}", 1)
                shop.rename(f"s{number}", "first")
            assert shop.start("--once").wait(END_MAX_SECONDS) == 0
            found = sorted(measure(shop, asked.seconds, rate, giant=giant, options=options))
            p99 = found[min(len(found) - 1, len(found) * 99 // 100)]
            print(f"| {what} | {median(found):.2f} | {p99:.2f} | {found[-1]:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
