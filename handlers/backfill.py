"""The function of the backfill machine: begins, brings one segment of a table, ends a round."""

from __future__ import annotations

from functools import partial
from typing import Any

from sync_rules.adapters import aws
from sync_rules.functions import inaccount
from sync_rules.functions.runtime import Context, deadline, emit, endpoint, rules, tables
from sync_rules.jobs.account.backfill import BackfillWork
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.backfill.job import job_of
from sync_rules.pipeline.telemetry import Telemetry


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Answer one question of the state machine. What it raises is tried again."""
    deadline.context = context
    jobs = partial(job_of, aws.dynamodb(endpoint()), rules())
    work = BackfillWork(
        rules(),
        tables,
        inaccount.failures(),
        inaccount.state(),
        jobs,
        remaining_ms=deadline.remaining_ms,
    )
    try:
        return answer(event, work)
    finally:
        emit(Telemetry())  # what was noted: failure records, throttles
