"""`python -m benchmarks.delays`: how long changes wait in `sync-rules run` until their copy is right.

Users with one order change, 5 to 200 of them a second. Then five a second change beside two others. A hot user with
`--orders` orders changes `--rate` times a second. A giant with `--giant` orders changes once, after a third of the
time. At last `run` starts after an outage as long as a row. The time of a change begins when the engine has accepted
it, and ends when its copy is right. All rows use one machine, and each an engine of its own: compare them as ratios to
the first row.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.emulator import BATCH_WRITE_MAX_ITEMS, NOTE, RULES
from benchmarks.running import LOOPBACK, ROOT
from sync_rules.adapters import aws
from sync_rules.deploy.tables import compare_tables, create_missing_tables
from sync_rules.lab.embedded_engine import run_engine
from sync_rules.language.load import parse_rules

SMALL_USERS: Final = 400
RATES: Final = (5, 20, 100, 200)  # small changes a second
OUTAGE_RATE: Final = 20
HOT, GIANT = "hot", "giant"
READ_PAUSE_SECONDS: Final = 0.02  # between two looks at the copies: a look without a pause would keep the engine busy
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

    def __init__(self, shop: Shop, rate: float) -> None:
        self.shop, self.rate = shop, rate
        self.pending, self.seconds = dict[str, tuple[str, float]](), list[float]()
        self.made = 0

    def change(self) -> None:
        self.made += 1
        user = f"s{self.made % SMALL_USERS}"
        if user not in self.pending:
            self.shop.rename(user, f"name {self.made}")
            self.pending[user] = (f"name {self.made}", time.monotonic())

    def change_due(self, passed: float) -> None:
        """Make the changes that are due by now. `passed`: the seconds since the first one."""
        while self.made < passed * self.rate:
            self.change()

    def look(self) -> None:
        names = self.shop.names(list(self.pending))
        for user, (name, began) in list(self.pending.items()):
            if names.get(user) == name:
                self.seconds.append(time.monotonic() - began)
                del self.pending[user]

    def finish(self, max_seconds: float) -> None:
        """Look until each copy is right."""
        until = time.monotonic() + max_seconds
        while self.pending:
            assert time.monotonic() < until, f"{len(self.pending)} small changes were not copied"
            self.look()
            time.sleep(READ_PAUSE_SECONDS)


def rename_steadily(shop: Shop, rate: float, stop: threading.Event) -> None:
    number, began = 0, time.monotonic()
    while not stop.wait(max(0.0, began + number / rate - time.monotonic())):
        number += 1
        shop.rename(HOT, f"hot {number}")


def measure(shop: Shop, seconds: float, rate: float, hot_rate: float, options: Sequence[str]) -> list[float]:
    """The seconds of each small change. With a `hot_rate`, the hot source changes all the time and the giant once."""
    stop, small = threading.Event(), SmallChanges(shop, rate)
    hot = threading.Thread(target=rename_steadily, args=(shop, hot_rate, stop), daemon=True)
    with shop.running(*options):
        small.change()
        small.finish(END_MAX_SECONDS)  # until the run has begun
        small.seconds.clear()
        small.made, began, renamed = 0, time.monotonic(), not hot_rate
        if hot_rate:
            hot.start()
        while (passed := time.monotonic() - began) < seconds:
            if passed > seconds / 3 and not renamed:
                renamed = True
                shop.rename(GIANT, "a new name")
            small.change_due(passed)
            small.look()
            time.sleep(READ_PAUSE_SECONDS)
        stop.set()
        small.finish(END_MAX_SECONDS)
        if hot_rate:
            hot.join()
    return small.seconds


def measure_outage(shop: Shop, seconds: float, rate: float, options: Sequence[str]) -> float:
    """How many seconds of changes `run` makes up for in a second, its start included."""
    small, began = SmallChanges(shop, rate), time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        small.pending.clear()  # only the last change of each user can be seen later
        small.change_due(passed)
        time.sleep(READ_PAUSE_SECONDS)
    small.pending = {
        f"s{number % SMALL_USERS}": (f"name {number}", 0.0)
        for number in range(max(1, small.made - SMALL_USERS + 1), small.made + 1)
    }
    began = time.monotonic()
    with shop.running(*options):
        small.finish(END_MAX_SECONDS)
        return seconds / (time.monotonic() - began)


def draw(times: Sequence[Sequence[float]]) -> str:
    """A picture of p50, p95 and p99 by the rate, as Mermaid. `times`: in ms, one list for each of RATES."""
    lines = [f"  line [{', '.join(f'{one[place]:.0f}' for one in times)}]" for place in range(3)]
    axes = [f'  x-axis "changes a second" {json.dumps([str(rate) for rate in RATES])}', '  y-axis "ms"']
    return "\n".join(["```mermaid", "xychart-beta", *axes, *lines, "```"])


@contextmanager
def open_shop(sources: Mapping[str, int]) -> Iterator[Shop]:
    """A shop on an engine of its own, with small users and these sources with their orders. All copies are right."""
    with tempfile.TemporaryDirectory(prefix="sync-rules-bench-") as folder, run_engine() as engine:
        aws.isolate_engine(engine.url)
        shop = Shop(Path(folder), engine.url)
        for user, orders in {**sources, **dict.fromkeys((f"s{number}" for number in range(SMALL_USERS)), 1)}.items():
            shop.load(user, orders)
            shop.rename(user, "first")
        assert shop.start("--once").wait(END_MAX_SECONDS) == 0
        yield shop


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the times as a Markdown table, and as a picture."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delays", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("--rate", type=float, default=20.0, help="changes of the hot source, a second")
    parser.add_argument("--orders", type=int, default=2_000, help="targets of the hot source")
    parser.add_argument("--giant", type=int, default=8_000, help="targets of the source that changes once")
    asked, options = parser.parse_known_args(arguments)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
    print("| changes a second | changes | p50 ms | p95 ms | p99 ms | greatest ms |\n|---|---:|---:|---:|---:|---:|")
    beside = {HOT: asked.orders, GIANT: asked.giant}
    rows: list[tuple[str, float, float, Mapping[str, int]]] = [(f"{rate}", float(rate), 0.0, {}) for rate in RATES]
    rows.append((f"{RATES[0]}, beside a hot source and a giant", float(RATES[0]), asked.rate, beside))
    times: list[list[float]] = []
    for title, rate, hot_rate, sources in rows:
        with open_shop(sources) as shop:
            found = sorted(measure(shop, asked.seconds, rate, hot_rate, options))
        quantiles = [found[min(len(found) - 1, len(found) * share // 100)] for share in (50, 95, 99)]
        times.append([1000 * one for one in (*quantiles, found[-1])])
        print(f"| {title} | {len(found):,} | {' | '.join(f'{one:,.0f}' for one in times[-1])} |", flush=True)
    print(f"\n{draw(times[: len(RATES)])}")
    with open_shop({}) as shop:
        times_real = measure_outage(shop, asked.seconds, OUTAGE_RATE, options)
    outage = f"{asked.seconds:g} s with {OUTAGE_RATE} changes a second"
    print(f"\nAfter an outage of {outage}: {times_real:.1f} times real time.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
