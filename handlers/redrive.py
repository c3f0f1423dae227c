"""The function of the redrive machine: puts through again what lies in the queues and the bucket of the stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sync_rules.adapters import aws
from sync_rules.adapters.s3 import OnFailureObjects
from sync_rules.adapters.sqs import FailedMessages, SqsQueue
from sync_rules.adapters.streams import DynamoDBStreams
from sync_rules.functions import inaccount
from sync_rules.functions.runtime import (
    FAILURES_URL,
    QUEUE_URL,
    Context,
    consumer,
    deadline,
    emit,
    endpoint,
    logger,
    notes,
    rules,
)
from sync_rules.jobs.account.protocol import answer
from sync_rules.jobs.account.redrive import MarkedPlace, RedriveWork
from sync_rules.jobs.redrive.redriver import Left, Redriver
from sync_rules.pipeline.telemetry import Telemetry

BATCHES = "aws/lambda/"  # what Lambda begins the names of its on-failure objects with
HIDDEN_SECONDS = 960  # as long as a call lasts at most, and a minute: then what a call that died had is there again


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Answer one question of the state machine. What it raises is tried again."""
    deadline.context = context
    places: dict[str, Callable[[str], MarkedPlace]] = {
        "batches": lambda mark: OnFailureObjects(
            aws.s3(endpoint()), inaccount.setting(inaccount.BUCKET), BATCHES, mark=mark
        ),
        "dead letters": lambda mark: _queue(inaccount.DEAD_LETTERS_URL, mark),
        "failures": lambda mark: _queue(FAILURES_URL, mark),
    }
    work = RedriveWork(
        rules(),
        _redriver,
        places,
        inaccount.state(inaccount.KEPT_SECONDS),
        remaining_ms=deadline.remaining_ms,
    )
    try:
        return answer(event, work)
    finally:
        emit(Telemetry())  # what was noted: failure records, throttles, messages


def _queue(url: str, mark: str) -> FailedMessages:
    client = aws.sqs(endpoint())
    return FailedMessages(client, inaccount.setting(url), hidden_seconds=HIDDEN_SECONDS, mark=mark)


def _redriver(only: frozenset[str] | None, remaining_ms: Callable[[], int]) -> Redriver:
    """Puts through what the handlers would, with second looks, and the rest of large fan-outs, left to the fan-out."""
    pipeline = consumer()
    reader = DynamoDBStreams(aws.dynamodbstreams(endpoint()))
    queue = SqsQueue(aws.sqs(endpoint()), inaccount.setting(QUEUE_URL))
    return Redriver(
        pipeline.rules,
        pipeline.world,
        reader=reader,
        queue=queue,
        only=only,
        on_left=_left,
        remaining_ms=remaining_ms,
    )


def _left(left: Left) -> None:
    """Why something stays is read in the log, as far as an invocation may log."""
    if notes.may_log():
        logger.warning("stays", place=left.where, reason=left.reason)
