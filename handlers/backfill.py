"""The function of the backfill state machine: starts a backfill, processes a segment of a table, ends a round."""

from __future__ import annotations

from functools import partial
from typing import Any

from sync_rules.adapters import aws
from sync_rules.functions import inaccount
from sync_rules.functions.runtime import Context, deadline, endpoint, invocation, rules, tables
from sync_rules.jobs.account.backfill import BackfillWork
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.backfill.job import job_of


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Answer one request of the state machine, which retries it when this raises."""
    with invocation(context):
        jobs = partial(job_of, aws.dynamodb(endpoint()), rules())
        failures, state = inaccount.failures(), inaccount.state()
        return answer(event, BackfillWork(rules(), tables, failures, state, jobs, remaining_ms=deadline.remaining_ms))
