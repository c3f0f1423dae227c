"""`python -m benchmarks.endurance --copies 1000000`: one change, and all its copies, by the functions of the template.

The stream handler gets the event, and processes with the queue handler take its messages, against the engine that
answers without storing. The queue is a file, and the engine keeps a byte for each target: nothing here grows with the
copies but these. Exit 1 when a copy was not made, or a worker's memory grew.

Invariant: nothing is timed but the whole, and no item is looked at but by the handlers.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest import mock

from benchmarks.answering import KEYS
from benchmarks.fresh import deployed
from benchmarks.ours import renamed
from benchmarks.running import ENVIRONMENT, answering
from sync_rules.adapters.sqs import SqsQueue
from sync_rules.extras.design.costs.pipeline_costs import CHUNK_COPIES, PAGE_COPIES

TIMEOUT_SECONDS: Final = 180  # of the queue function
EMPTY_SECONDS: Final = 0.02
WARM_SHARE: Final = 0.2  # of a worker's messages, after which its memory is looked at for the first time
GROWTH_MAX_MB: Final = 5
CREATE: Final = """CREATE TABLE messages
    (id INTEGER PRIMARY KEY, body TEXT, taken INTEGER DEFAULT 0, receives INTEGER DEFAULT 0, later INTEGER)"""
TAKE: Final = """UPDATE messages SET taken = 1, receives = receives + 1 WHERE id =
    (SELECT id FROM messages WHERE taken = 0 AND later = 0 ORDER BY id LIMIT 1) RETURNING id, body, receives"""


class FileQueue(SqsQueue):
    """A queue in a file. What is sent with a delay, such as a second look, is kept and not delivered."""

    def __init__(self, file: Path) -> None:
        nobody: Any = None
        super().__init__(nobody, "file:///queue")
        self._base = sqlite3.connect(file, timeout=60, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = OFF")

    def create(self) -> None:
        self._base.execute(CREATE)

    def _send(self, body: str, delay_seconds: int = 0) -> None:
        self._base.execute("INSERT INTO messages (body, later) VALUES (?, ?)", (body, delay_seconds > 0))

    def take(self) -> tuple[int, str, int] | None:
        row: tuple[int, str, int] | None = self._base.execute(TAKE).fetchone()
        return row

    def delete(self, number: int) -> None:
        self._base.execute("DELETE FROM messages WHERE id = ?", (number,))

    def release(self, number: int) -> None:
        self._base.execute("UPDATE messages SET taken = 0 WHERE id = ?", (number,))

    def empty(self) -> bool:
        """True if nothing waits, and nothing is at work."""
        return self._base.execute("SELECT 1 FROM messages WHERE later = 0 LIMIT 1").fetchone() is None

    def close(self) -> None:
        self._base.close()


class Context:
    """Lambda's context object."""

    aws_request_id = "endurance"

    def __init__(self) -> None:
        self._ends = time.monotonic() + TIMEOUT_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        return int((self._ends - time.monotonic()) * 1000)


@contextmanager
def function(settings: Mapping[str, str], queue: FileQueue) -> Iterator[None]:
    """This process as one of the template's functions: its environment, its queue, its log, which goes nowhere."""
    os.environ.update(settings)
    from sync_rules.adapters import aws  # noqa: PLC0415 -- with the environment
    from sync_rules.functions import runtime  # noqa: PLC0415

    with (
        mock.patch.object(runtime, "_make_queue", return_value=queue),
        mock.patch.object(aws, "LOOPBACK", frozenset()),
        Path(os.devnull).open("w") as nowhere,
    ):
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        yield


def resident_mb() -> float:
    """The resident memory of this process. Linux only: 0 elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else ()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


@dataclass
class Worked:
    """A worker at its end: its messages, those that failed, and its memory after the first of them and at most."""

    messages: int = 0
    failed: int = 0
    warm_mb: float = 0.0
    most_mb: float = 0.0


def work(settings: Mapping[str, str], file: Path, share: int) -> Worked:
    """Take messages until there are no more. `share` is the number of messages of a worker, about."""
    queue, worked = FileQueue(file), Worked()
    with closing(queue), function(settings, queue):
        from handlers.fanout import handler  # noqa: PLC0415 -- with the environment

        while not queue.empty():
            taken = queue.take()
            if taken is None:
                time.sleep(EMPTY_SECONDS)
                continue
            number, body, receives = taken
            attributes = {"ApproximateReceiveCount": str(receives)}
            record = {"messageId": str(number), "body": body, "attributes": attributes}
            failed = handler({"Records": [record]}, Context())["batchItemFailures"]
            (queue.release if failed else queue.delete)(number)
            worked.messages += 1
            worked.failed += bool(failed)
            if worked.messages <= max(1, share * WARM_SHARE):
                worked.warm_mb = max(worked.warm_mb, resident_mb())
            worked.most_mb = max(worked.most_mb, resident_mb())
    return worked


@dataclass(frozen=True)
class Run:
    """A run to its end."""

    copies: int
    seconds: float
    counts: Mapping[str, int]
    workers: tuple[Worked, ...]

    @property
    def lost(self) -> int:
        return self.copies - self.counts["distinct"]

    @property
    def growth_mb(self) -> float:
        return max(one.most_mb - one.warm_mb for one in self.workers)

    def lines(self) -> Iterator[str]:
        rate, more = self.copies / self.seconds, self.counts["written"] - self.counts["distinct"]
        yield f"copies {self.copies:,}, lost {self.lost:,}, written again {more:,}"
        yield f"{self.seconds:,.0f} s, {rate:,.0f} copies per second with {len(self.workers)} workers and the engine"
        yield f"requests per copy {self.counts['requests'] / self.copies:.4f}"
        for one in self.workers:
            grown = f"{one.warm_mb:.0f} MB at first, {one.most_mb:.0f} MB at most"
            yield f"worker: {one.messages:,} messages, {one.failed} came again, {grown}"


def run(copies: int, workers: int, table: str = "together") -> Run:
    """Change a source, and let its copies be made."""
    with answering() as engine, deployed() as rules_file, TemporaryDirectory() as folder:
        engine.set(targets=copies)
        file = Path(folder) / "queue"
        settings = {
            **ENVIRONMENT,
            "SYNC_RULES_FILE": str(rules_file),
            "SYNC_RULES_ENDPOINT_URL": engine.url,
            "SYNC_RULES_WRITES": "batch",
        }
        context = get_context("spawn")
        began = time.monotonic()
        with context.Pool(1) as one:
            one.apply(change, (settings, file, table))
        with context.Pool(workers) as pool:
            share = copies // (PAGE_COPIES if table == "together" else CHUNK_COPIES) // workers
            found = [pool.apply_async(work, (settings, file, share)) for _ in range(workers)]
            worked = tuple(each.get() for each in found)
        return Run(copies, time.monotonic() - began, engine.counts(), worked)


def change(settings: Mapping[str, str], file: Path, table: str) -> None:
    """Handle the event of the source's change."""
    queue = FileQueue(file)
    with closing(queue), function(settings, queue):
        from handlers.stream import handler  # noqa: PLC0415 -- with the environment

        queue.create()
        answer: Any = handler(json.loads(json.dumps(renamed(table))), Context())
        assert answer == {"batchItemFailures": []}, answer


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.endurance", description=__doc__)
    parser.add_argument("--copies", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", choices=tuple(KEYS), default="together")
    asked = parser.parse_args()
    ran = run(asked.copies, asked.workers, asked.table)
    print("\n".join(ran.lines()))
    return int(ran.lost > 0 or ran.growth_mb > GROWTH_MAX_MB)


if __name__ == "__main__":
    sys.exit(main())
