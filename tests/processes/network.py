"""The network between processes and the engine: it cuts, delays, repeats and refuses requests, and lets indexes lag.

Invariant: it does only what DynamoDB and its clients can do. A request that was answered with an error may have been
made or not; one that was given up may arrive later, from `run` and the commands, whose writes are guarded. A row comes
into an index late, and at most `LAG_SECONDS` late.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Any

from tests.support.lying_proxy import Answer, Asked, Engine

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchExecuteStatement"}
READS_OF_STREAMS = {"DescribeStream", "GetShardIterator", "GetRecords"}
LAG_SECONDS = 3.0  # the rules look again after 4
LOOK_SECONDS = 0.25
PREFIX = "com.amazonaws.dynamodb.v20120810#"
CALM: dict[str, float] = {}
ROUGH = {"cut": 0.02, "unanswered": 0.03, "late": 0.08, "twice": 0.03, "throttled": 0.04, "failed": 0.01, "slow": 0.08}
STORM = {"throttled": 0.4, "slow": 0.2}  # of reads; no write passes
AWAY, CLOSED = {"cut": 1.0}, {"throttled": 0.98}
REGIMES = (CALM, CALM, ROUGH, ROUGH, ROUGH, STORM, AWAY, CLOSED)


class CutError(Exception):
    """The connection ends without an answer."""


class Network:
    """The network of one process, as a lie of `lying_proxy`."""

    def __init__(self, seed: str, index: IndexLag | None = None, *, guarded: bool = True) -> None:
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self._make_index, self._guarded = index, guarded
        self.rates = CALM
        self.until = 0.0  # the monotonic time until which these rates hold
        self.requests = 0  # of this life of the process
        self.dies_at = 0  # it is killed at a write after this number of requests; 0: never
        self.kill: Callable[[], None] = lambda: None
        self.counts: Counter[str] = Counter()
        self.in_flight = 0  # requests that were given up and arrive later

    def __call__(self, asked: Asked, engine: Engine) -> Answer:
        with self._lock:
            self.requests += self.rates not in (AWAY, CLOSED)
            dies = 0 < self.dies_at <= self.requests and (asked.operation in WRITES or self._rng.random() < 0.1)
            fault = self._draw(asked.operation)
            wait = self._rng.random()
        if dies:
            self.dies_at = 0
            self.kill()
            fault = self._fits("late", asked.operation)  # its last request arrives all the same
        if fault:
            self.counts[fault] += 1
        acts: dict[str, Callable[[], Answer]] = {
            "cut": _cut,
            "unanswered": lambda: _cut(engine(asked)),
            "late": lambda: self._send_late(asked, engine, 0.1 + 2 * wait),
            "twice": lambda: (engine(asked), engine(asked))[1],
            "throttled": lambda: self._throttle(asked, engine),
            "failed": lambda: _error(500, "InternalServerError"),
            "slow": lambda: (time.sleep(wait * (0.5 if self._guarded else 0.1)), engine(asked))[1],
        }
        answer = acts[fault]() if fault else engine(asked)
        return answer if self._make_index is None else self._make_index.hide_rows(asked, answer)

    def _draw(self, operation: str) -> str:
        if self.rates in (CLOSED, STORM) and operation in READS_OF_STREAMS:
            return ""
        rest = self._rng.random() / (3 if operation in WRITES else 1)
        for fault, rate in self.rates.items():
            rest -= rate
            if rest < 0:
                return self._fits(fault, operation)
        return ""

    def _fits(self, fault: str, operation: str) -> str:
        return "cut" if fault == "late" and not (self._guarded and operation in WRITES) else fault

    def _send_late(self, asked: Asked, engine: Engine, seconds: float) -> Answer:
        def arrive() -> None:
            with suppress(OSError, HTTPException):
                engine(asked)
            with self._lock:
                self.in_flight -= 1

        with self._lock:
            self.in_flight += 1
        timer = threading.Timer(seconds, arrive)
        timer.daemon = True
        timer.start()
        return _cut()

    def _throttle(self, asked: Asked, engine: Engine) -> Answer:
        """Refuse a request, or some statements of a batch; a transaction is refused by a conflict."""
        if asked.operation == "TransactWriteItems":
            reasons = [{"Code": "TransactionConflict"}] + [{"Code": "None"}] * (len(asked.json["TransactItems"]) - 1)
            return _error(400, "TransactionCanceledException", CancellationReasons=reasons)
        if asked.operation != "BatchExecuteStatement" or len(asked.json["Statements"]) == 1:
            return _error(400, "ProvisionedThroughputExceededException")
        statements = asked.json["Statements"]
        passed = [self.rates is ROUGH and self._rng.random() < 0.5 for _ in statements]
        kept = [one for one, passes in zip(statements, passed, strict=True) if passes]
        answer = engine(asked.saying({**asked.json, "Statements": kept})) if kept else Answer(200, b'{"Responses": []}')
        if answer.status != 200:
            return answer
        answers = iter(answer.json["Responses"])
        refused = {"Error": {"Code": "ThrottlingError", "Message": "throttled"}}
        return answer.saying({"Responses": [next(answers) if passes else refused for passes in passed]})


def _cut(_answer: Answer | None = None) -> Answer:
    raise CutError


def _error(status: int, code: str, **more: Any) -> Answer:
    return Answer(status, json.dumps({"__type": PREFIX + code, "message": code, **more}).encode())


class IndexLag:
    """Hides rows from queries of an index that came into it a moment ago. `client` asks the engine itself."""

    def __init__(self, client: Any, keys: dict[tuple[str, str], tuple[str, ...]]) -> None:
        self._client, self._keys = client, keys  # (table, index): the attributes that make a row
        self._since: dict[tuple[str, str], dict[tuple[str, ...], float]] = {place: {} for place in keys}
        self.hidden = 0

    def look(self) -> None:
        """See which rows are there; one that is new is hidden for a while."""
        for (table, index), since in self._since.items():
            pages = self._client.get_paginator("scan").paginate(TableName=table, IndexName=index)
            rows = {self._row(table, index, item) for page in pages for item in page["Items"]}
            now = time.monotonic()
            self._since[table, index] = {row: since.get(row, now) for row in rows}

    def hide_rows(self, asked: Asked, answer: Answer) -> Answer:
        if asked.operation != "Query" or answer.status != 200 or "IndexName" not in asked.json:
            return answer
        place = asked.json["TableName"].rpartition("/")[2], asked.json["IndexName"]
        since, until = self._since[place], time.monotonic() - LAG_SECONDS + LOOK_SECONDS
        [value] = asked.json["ExpressionAttributeValues"].values()
        rows = [{self._keys[place][0]: value, **item} for item in answer.json["Items"]]
        there = [
            item for item, row in zip(answer.json["Items"], rows, strict=True) if self._is_old(place, row, since, until)
        ]
        self.hidden += len(rows) - len(there)
        return answer.saying({**answer.json, "Items": there, "Count": len(there)})

    def _is_old(self, place: tuple[str, str], row: Any, since: dict[tuple[str, ...], float], until: float) -> bool:
        return since.get(self._row(*place, row), time.monotonic()) <= until

    def _row(self, table: str, index: str, item: Any) -> tuple[str, ...]:
        return tuple(item[name]["S"] for name in self._keys[table, index])

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look at the indexes now and then, in a thread."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(LOOK_SECONDS):
                with suppress(Exception):  # the engine may have ended
                    self.look()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
