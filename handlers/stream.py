"""The stream handler: records of a DynamoDB stream, straight or wrapped in Kinesis, in; a partial batch response out.

Its event source mapping must have ReportBatchItemFailures, or a failure that is reported here would be forgotten.
"""

from __future__ import annotations

from typing import Any

from sync_rules.functions.runtime import Context, consumer, deadline, emit


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Reconcile what a batch of stream records points at. Names the lowest sequence number that must come again."""
    deadline.context = context
    pipeline = consumer()
    try:
        return pipeline.handle_event(event, deadline.remaining_ms)
    finally:
        emit(pipeline.telemetry)
