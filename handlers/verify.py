"""The function of the verify state machine: starts a run, verifies a segment, ends a stage. A schedule has it verify a
random sample.
"""

from __future__ import annotations

from random import SystemRandom
from typing import Any

from sync_rules.adapters import aws, retries
from sync_rules.adapters.meter import limit_store
from sync_rules.adapters.preflight import describe_table, require_tables
from sync_rules.adapters.s3 import BucketReports
from sync_rules.functions import runtime
from sync_rules.functions.logs import logger
from sync_rules.functions.metrics import emit_drift
from sync_rules.jobs.account.account_verify import VerifyWork
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.account.verify_unit import sample
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.selection import list_swept_tables


def handler(event: dict[str, Any], context: runtime.Context) -> dict[str, Any]:
    """Answer one request of the state machine, or of the schedule: {"do": "sample", "percent": 1}."""
    with runtime.run_invocation(context):
        store = limit_store(
            runtime.make_store(),
            runtime.read_rules().tables,
            runtime.make_budget(event.get("run", {}).get("workers", 1)),
        )
        world = World(store, NULL_PORTS, runtime.make_distinct_failures())
        if event["do"] == "sample":
            return _sample(world, float(event["percent"]))
        reports = BucketReports(aws.s3(runtime.read_endpoint()), runtime.require_setting(runtime.BUCKET))
        state = runtime.open_state(runtime.KEPT_SECONDS)
        work = VerifyWork(
            runtime.read_rules(),
            world,
            state,
            reports,
            _count_items,
            remaining_ms=runtime.deadline.remaining_ms,
            on_end=emit_drift,
        )
        return answer(event, work)


def _sample(world: World, percent: float) -> dict[str, Any]:
    """Verify a random sample, and write metrics and a log line."""
    found = sample(runtime.read_rules(), world, percent, runtime.deadline.remaining_ms, SystemRandom())
    tally = found.tally
    emit_drift(tally, found.only, whole=False)
    figures: dict[str, Any] = {
        "items": tally.items,
        "drift": tally.drift.total(),
        "lag": tally.lag.total(),
        "cut_short": found.cut_short,
    }
    log = logger.warning if found.cut_short else logger.info
    log("sampled", percent=percent, **figures)
    return figures


def _count_items(names: frozenset[str]) -> dict[str, int]:
    """The item counts of the tables to verify, as DynamoDB reports them. Raises UserError, StoreError."""
    client = aws.dynamodb(runtime.read_endpoint())
    require_tables(client, runtime.read_rules().only(sorted(names)), streams=False)
    swept = list_swept_tables(runtime.read_rules(), names)
    return {
        table.name: int((describe_table(client, table, retries.make_retry()) or {}).get("ItemCount", 0))
        for table in swept
    }
