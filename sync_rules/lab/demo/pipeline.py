"""Runs the pipeline of `sync-rules run` in this process, on the demo's engine.

Only the waits are shorter than those of `run`, because the embedded engine's indexes do not lag.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.failure_log import FailureLog
from sync_rules.adapters.host import THIS_PROCESS, steady_clock
from sync_rules.adapters.preflight import require
from sync_rules.adapters.streams import StreamReader
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.run import WAIT_SECONDS, Files, LocalRun, wall_clock_ms
from sync_rules.model import json_bytes
from sync_rules.model.items import Outcome
from sync_rules.model.limits import Limits
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import NULL_PORTS, Archive, Caller, World
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

BATCH_SIZE: Final = 500
POLL_IDLE_MS: Final = 20
OLD_RECORDS_MAX: Final = 100  # per stream
STEP_MAX_MS: Final = 60_000
SOON_MS: Final = 1_500  # second looks are due sooner; retries of parked work are later, and not waited for
LIMITS: Final = Limits(parked_first_delay_seconds=1)


class LocalPipeline:
    """Reads the streams of existing tables, and keeps its files in a directory."""

    def __init__(
        self,
        rules: Rules,
        client: DynamoDBClient,
        reader: StreamReader,
        directory: Path,
        *,
        archive: Archive = NULL_PORTS,
        caller: Caller = NULL_PORTS,
    ) -> None:
        self._reader = reader
        self._arns = list(require(client, rules).stream_arns)
        self._now_ms = steady_clock()
        self._files = Files(directory / "checkpoint.json", directory / "failures.jsonl")
        self.store = DynamoStore(client, rules.tables)
        self._local = LocalRun(
            stream_arns=self._arns,
            rules_fingerprint=rules.fingerprint,
            reader=reader,
            store=self.store,
            make_consumer=lambda world: Consumer(rules, world, THIS_PROCESS, limits=LIMITS),
            files=self._files,
            settings=MappingSettings(batch_size=BATCH_SIZE, poll_idle_ms=POLL_IDLE_MS),
            archive=archive,
            caller=caller,
            now_ms=self._now_ms,
        )
        self._local.begin()
        failures = FailureLog(directory / "verify.jsonl", wall_clock_ms)
        self.world = World(self.store, self._local.pump.queue, failures, archive, caller)
        self._again = Consumer(rules, self.world, THIS_PROCESS)

    def drain(self, max_ms: int) -> bool:
        """Process the streams to their end. False when that took too long."""
        return self._local.pump.drain(max_ms)

    def settle(self, max_ms: int) -> bool:
        """Process the streams until no second look is pending. False when that took too long."""
        deadline_ms = self._now_ms() + max_ms
        while self._local.pump.drain(deadline_ms - self._now_ms()) and self._waits():
            time.sleep(WAIT_SECONDS)
        return self._local.pump.idle

    def _waits(self) -> bool:
        soon_ms = self._now_ms() + SOON_MS
        return any(pending.due_ms <= soon_ms for pending in self._local.pump.queue.pending)

    def redeliver(self) -> None:
        """Deliver the oldest records of every stream, twice."""
        for arn in self._arns:
            for shard in self._reader.shards(arn):
                iterator = self._reader.iterator(arn, shard.shard_id, None)
                event = {"Records": list(self._reader.records(arn, iterator, OLD_RECORDS_MAX).records)}
                for _ in range(2):
                    self._again.handle_event(event, lambda: 60_000)

    def figures(self) -> Counter[tuple[str, Outcome]]:
        """The number of outcomes by rule and outcome, since the start."""
        return self._local.consumer.telemetry.outcomes + self._again.telemetry.outcomes

    def reports(self) -> Sequence[tuple[str, str]]:
        """Rule and reason of each failure record so far."""
        if not self._files.failures.exists():
            return []
        records = map(json_bytes.parsed, self._files.failures.read_text().splitlines())
        return [(record["rule"], record["reason"]) for record in records]


def hastened(rules: Rules, settle_seconds: int) -> Rules:
    """The same rules with another delay of their second looks."""
    return replace(rules, rules={n: replace(r, settle_seconds=settle_seconds) for n, r in rules.rules.items()})
