"""Backfills on an engine that are killed with SIGKILL and resumed, against one that nobody disturbed.

Invariant: each is killed after a number of writes drawn from a seed, never by the clock. The undisturbed one runs on a
store in memory, over the same items.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from sync_rules.adapters import aws
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules
from tests.scale.worlds import items, rules_of, text_of
from tests.support import engines
from tests.support.worlds import Parked, Tap

ROOT = Path(__file__).parent.parent.parent
BATCH = 25
WAIT_MAX_SECONDS = 3_600


def load(endpoint_url: str, rules: Rules, some: Sequence[Item]) -> None:
    """Create the table and put the items in."""
    engines.create(endpoint_url, rules.tables)
    client = aws.dynamodb(endpoint_url)
    name = rules.tables["shop"].physical_name

    def put(start: int) -> None:
        requests = [{"PutRequest": {"Item": item}} for item in some[start : start + BATCH]]
        assert not client.batch_write_item(RequestItems={name: requests}).get("UnprocessedItems")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(0, len(some), BATCH)))


def undisturbed(rules: Rules, some: Sequence[Item]) -> tuple[dict, Counter[str]]:
    """The end state, and how often each item is written."""
    memory = MemoryStore(rules.tables)
    for item in some:
        memory.put("shop", item)
    tap = Tap(memory)
    names = frozenset(rules.rules)
    run = BackfillRun(Selection(rules, names), tap, Parked(), MemoryState(), {}, supplies=segments(rules, 1))
    assert run.run()
    return by_key(rules, memory.items("shop")), Counter(str(write.key) for write in tap.writes)


def by_key(rules: Rules, some: Sequence[Item]) -> dict:
    shown = {str(rules.tables["shop"].key_of(item)): item for item in some}
    return {key: {name: _plain(value) for name, value in item.items()} for key, item in shown.items()}


def _plain(value: dict) -> dict:
    return {"SS": sorted(value["SS"])} if "SS" in value else value


def contents(endpoint_url: str, rules: Rules) -> dict:
    """All items on the engine."""
    pages = aws.dynamodb(endpoint_url).get_paginator("scan")
    name = rules.tables["shop"].physical_name
    return by_key(
        rules, [item for page in pages.paginate(TableName=name, ConsistentRead=True) for item in page["Items"]]
    )


class Killer:
    """Starts backfills in a folder, and kills them."""

    def __init__(self, endpoint_url: str, folder: Path, prefix: str) -> None:
        self.log, self.state = folder / "writes.log", folder / "state.json"
        self.log.touch()
        file = folder / "rules.yaml"
        file.write_text(text_of(prefix))
        options = ["--endpoint-url", endpoint_url, "--rate", "0", "--format", "jsonl"]
        files = ["--state", str(self.state)]
        self.command = [sys.executable, "-m", "tests.scale.child", str(self.log), str(file), *options, *files]

    def start(self, *more: str) -> subprocess.Popen:
        return subprocess.Popen([*self.command, *more], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def writes(self) -> Counter[str]:
        """The number of writes of each item so far, by all processes."""
        return Counter(self.log.read_text().splitlines())

    def kill_after(self, writes: int, *more: str) -> None:
        """Start a process and kill it once all processes together have made a number of writes."""
        process = self.start(*more)
        waiting = Retrying(
            retry=retry_if_result(lambda ready: not ready),
            stop=stop_after_delay(WAIT_MAX_SECONDS),
            wait=wait_fixed(0.005),
        )
        waiting(lambda: process.poll() is not None or self.log.read_bytes().count(b"\n") >= writes)
        process.kill()
        process.communicate()

    def finish(self, *more: str) -> dict:
        """Run one to its end. Gives its summary."""
        process = self.start(*more)
        out, err = process.communicate()
        assert process.returncode == 0, err.decode()
        summary: dict = json.loads(out.splitlines()[-1])["summary"]
        return summary


def play(endpoint_url: str, folder: Path, count: int, *, wrong_each: int, seed: int, kills: int = 3) -> float:
    """Kill a backfill of a number of items a number of times. Returns the share of its writes that were made again, once
    it has ended in the state of a backfill that nobody disturbed.
    """
    prefix = engines.unique_prefix()
    rules = rules_of(prefix)
    some = tuple(items(count, wrong_each))
    expected, planned = undisturbed(rules, some)
    load(endpoint_url, rules, some)
    killer = Killer(endpoint_url, folder, prefix)
    for number, point in enumerate(sorted(Random(seed).sample(range(1, int(planned.total() * 0.95)), kills))):
        killer.kill_after(point, *(["--resume"] if number else []))
    summary = killer.finish("--resume")
    assert (summary["done"], summary["items"]) == (True, 2 * count)
    assert contents(endpoint_url, rules) == expected
    return (killer.writes() - planned).total() / planned.total()
