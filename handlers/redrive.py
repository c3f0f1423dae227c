"""The function of the redrive state machine: reprocesses what failed, from the queues and the bucket of the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sync_rules.adapters import aws
from sync_rules.adapters.s3 import OnFailureObjects
from sync_rules.adapters.sqs import FailedMessages, SqsQueue
from sync_rules.functions import runtime
from sync_rules.functions.logs import logger, notes
from sync_rules.jobs.account.account_redrive import MarkedStore, RedriveWork
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.redrive.entries import LeftEntry
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.jobs.streams import DynamoDBStreams

BATCHES = "aws/lambda/"  # the names of Lambda's on-failure objects begin so
SPARE_SECONDS = 60  # hides messages for longer than the call can take: those of a call that died come back after it


def handler(event: dict[str, Any], context: runtime.Context) -> dict[str, Any]:
    """Answer one request of the state machine, which retries a request that raises."""
    with runtime.run_invocation(context):
        stores: dict[str, Callable[[str], MarkedStore]] = {
            "batches": _make_bucket_store,
            "dead letters": lambda mark: _make_queue_store(runtime.DEAD_LETTERS_URL, mark),
            "failures": lambda mark: _make_queue_store(runtime.FAILURES_URL, mark),
        }
        state = runtime.open_state(runtime.KEPT_SECONDS)
        return answer(
            event,
            RedriveWork(
                runtime.read_rules(), _make_redriver, stores, state, remaining_ms=runtime.deadline.remaining_ms
            ),
        )


def _make_bucket_store(mark: str) -> OnFailureObjects:
    return OnFailureObjects(
        aws.s3(runtime.read_endpoint()), runtime.require_setting(runtime.BUCKET), BATCHES, mark=mark
    )


def _make_queue_store(url: str, mark: str) -> FailedMessages:
    hidden_seconds = int(runtime.deadline.remaining_seconds()) + SPARE_SECONDS
    return FailedMessages(
        aws.sqs(runtime.read_endpoint()), runtime.require_setting(url), hidden_seconds=hidden_seconds, mark=mark
    )


def _make_redriver(only: frozenset[str] | None, remaining_ms: Callable[[], int]) -> Redriver:
    """Reprocess as the other functions would; the fan-out function does second looks and the rest of large fan-outs."""
    return Redriver(
        runtime.make_consumer().rules,
        runtime.make_consumer().world,
        reader=DynamoDBStreams(aws.dynamodbstreams(runtime.read_endpoint())),
        queue=SqsQueue(aws.sqs(runtime.read_endpoint()), runtime.require_setting(runtime.QUEUE_URL)),
        only=only,
        on_left=_log_leftover,
        remaining_ms=remaining_ms,
        unaccepted=runtime.make_consumer().unaccepted,
    )


def _log_leftover(left: LeftEntry) -> None:
    if notes.may_log():
        logger.warning("entry stays", place=left.where, reason=left.reason)
