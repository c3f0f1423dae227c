"""The stream function: records of a DynamoDB stream in, directly or through Kinesis; a partial batch response out.

Its event source mapping must have ReportBatchItemFailures: without it, Lambda takes a reported failure for success.
"""

from __future__ import annotations

from typing import Any

from sync_rules.functions.runtime import Context, deadline, make_consumer, run_invocation


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Apply the rules to the changes in a batch of stream records. Return the lowest sequence number that Lambda must
    retry.

    `make_consumer()` makes the pipeline on the first call of a process: rules, tables, queue, failure records. Its
    `handle_event` (pipeline/consumer.py) reads the records, plans their work and does it. Metrics and log lines are
    written when the invocation ends.
    """
    with run_invocation(context):
        return make_consumer().handle_event(event, deadline.remaining_ms)
