"""The function of the backfill state machine: starts a backfill, processes a segment of a table, ends a round.

CloudFormation calls it too, whenever a stack whose rules keep books is created or updated.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sync_rules.adapters import aws
from sync_rules.functions import runtime
from sync_rules.functions.books_resource import answer_stack, is_stack_request
from sync_rules.jobs.account.account_backfill import BackfillWork
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.backfill.job import make_job
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.ruleset import Rules


def handler(event: dict[str, Any], context: runtime.Context) -> dict[str, Any]:
    """Answer one request of the state machine or of CloudFormation. The state machine retries a request that raises."""
    with runtime.run_invocation(context):
        if is_stack_request(event):
            answer_stack(event, _make_rules_and_world)
            return {}
        jobs = partial(make_job, aws.dynamodb(runtime.read_endpoint()), runtime.read_rules())
        work = BackfillWork(
            runtime.read_rules(),
            runtime.make_store,
            runtime.make_distinct_failures(),
            runtime.open_state(),
            jobs,
            remaining_ms=runtime.deadline.remaining_ms,
        )
        return answer(event, work)


def _make_rules_and_world() -> tuple[Rules, World]:
    return runtime.read_rules(), World(runtime.make_store(), NULL_PORTS, runtime.make_failures())
