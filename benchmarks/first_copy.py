"""`python -m benchmarks.first_copy`: the time from a change to its first right copy, and where that time goes.

A user is renamed again and again, at uneven times, while the loop of `sync-rules run` consumes the stream of an engine
on this machine. Each time begins when the engine has accepted the change, and ends when it has accepted the first copy.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from benchmarks.emulator import RULES, Shop
from benchmarks.running import LOOPBACK
from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.preflight import require_tables
from sync_rules.cli.commands.run import make_settings, run_loop
from sync_rules.cli.show.display import Display
from sync_rules.jobs.consume.local_run import LocalRun
from sync_rules.jobs.local_files import Files
from sync_rules.jobs.streams import DynamoDBStreams
from sync_rules.lab.embedded_engine import run_engine
from sync_rules.language.load import parse_rules
from sync_rules.pipeline.consumer import Consumer

COPIES: Final = 3
PAUSES_SECONDS: Final = (0.2, 0.6)
PATIENCE_SECONDS: Final = 60.0
STEPS: Final = {
    "asked": "until the stream is asked, which is the pause between two questions",
    "read": "the answer with the record",
    "write": "the source and the targets read and compared",
    "copied": "the write",
}


class Watch:
    """Notes when each step of one change came first."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.done = threading.Event()

    def begin(self) -> None:
        self.times, self.done = {}, threading.Event()

    def of(self, reader: DynamoDBStreams, store: DynamoStore) -> None:
        """Watch what is asked of the stream and written to the table."""
        records, apply = reader.records, store.apply

        def read(*asked: Any) -> Any:
            began = time.monotonic()
            page = records(*asked)
            if page.records and "asked" not in self.times:
                self.times |= {"asked": began, "read": time.monotonic()}
            return page

        def write(request: Any) -> Any:
            began = time.monotonic()
            results = apply(request)
            if "copied" not in self.times and "read" in self.times:
                self.times |= {"write": began, "copied": time.monotonic()}
                self.done.set()
            return results

        reader.records, store.apply = read, write  # type: ignore[method-assign]


def measure(changes: int) -> list[Mapping[str, float]]:
    """The milliseconds of each step, for each change."""
    found: list[Mapping[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="sync-rules-bench-") as folder, run_engine() as engine:
        aws.isolate_engine(engine.url)
        rules, watch, stop = parse_rules(RULES, environ={}), Watch(), threading.Event()
        shop = Shop(Path(folder), engine.url, engine.process.pid)
        reader = DynamoDBStreams(aws.dynamodbstreams(engine.url))
        store = DynamoStore(shop.client, rules.tables)
        watch.of(reader, store)
        local = LocalRun(
            stream_arns=list(require_tables(shop.client, rules).stream_arns),
            rules_fingerprint=rules.fingerprint,
            reader=reader,
            store=store,
            make_consumer=lambda world: Consumer(rules, world, THIS_PROCESS),
            files=Files(Path(folder) / "checkpoint.json", Path(folder) / "failures.jsonl"),
            settings=make_settings(100, 1, own_engine=True),
        )
        local.begin()
        display: Any = Display(say=lambda _text: None, show=lambda _status: None)
        thread = threading.Thread(
            target=run_loop, args=(local, display), kwargs={"stopping": stop.is_set, "once": False}
        )
        thread.start()
        try:
            watch.begin()
            shop.load(COPIES)
            for number in range(changes):
                assert watch.done.wait(PATIENCE_SECONDS), "no copy was written"
                time.sleep(random.uniform(*PAUSES_SECONDS))
                watch.begin()
                shop.rename(f"name {number}")
                began = time.monotonic()
                assert watch.done.wait(PATIENCE_SECONDS), "no copy was written"
                found.append(steps(began, watch.times))
        finally:
            stop.set()
            thread.join()
    return found


def steps(began: float, times: Mapping[str, float]) -> dict[str, float]:
    """The milliseconds of each step, and of all."""
    ends = [began, *(max(times[name], began) for name in STEPS)]
    each = {name: (after - before) * 1e3 for name, before, after in zip(STEPS, ends, ends[1:], strict=False)}
    return {**each, "in all": (ends[-1] - began) * 1e3}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the steps as a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_copy", description=__doc__)
    parser.add_argument("--changes", metavar="N", type=int, default=60)
    asked = parser.parse_args(arguments)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    os.environ |= {"AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
    found = measure(asked.changes)
    print("| from a change to its first copy, ms | median | p95 |\n|---|---:|---:|")
    for name in (*STEPS, "in all"):
        values = [one[name] for one in found]
        print(f"| {STEPS.get(name, name)} | {median(values):.0f} | {quantiles(values, n=20)[-1]:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
