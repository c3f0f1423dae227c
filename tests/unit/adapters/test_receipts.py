"""A message that failed comes again before its visibility timeout is over."""

from __future__ import annotations

import pytest

from sync_rules.adapters import retries
from sync_rules.adapters.sqs import AGAIN_FIRST_SECONDS, Receipts
from sync_rules.model.limits import DELAY_MAX_SECONDS
from tests.unit.adapters.test_dynamodb import OK, Client, failed


@pytest.mark.parametrize(
    ("received", "seconds"),
    [(1, AGAIN_FIRST_SECONDS), (2, 60), (3, 120), (6, DELAY_MAX_SECONDS), (40, DELAY_MAX_SECONDS)],
)
def test_receipts_wait_twice_as_long_each_time(received, seconds):
    """Half a minute first: the timeout of the queue is for workers that died, and much longer."""
    client = Client(OK)
    Receipts(client, "https://sqs/q").shorten_timeout("receipt", received)
    ((operation, asked),) = client.calls
    assert operation == "change_message_visibility"
    assert asked == {"QueueUrl": "https://sqs/q", "ReceiptHandle": "receipt", "VisibilityTimeout": seconds}


def test_receipts_that_sqs_does_not_take_are_no_error():
    """The message comes again all the same, only later; a refusal is not repeated."""
    client = Client(failed("AccessDeniedException"), OK)
    Receipts(client, "https://sqs/q", retrying=retries.make_retry(sleep=lambda _: None)).shorten_timeout("receipt", 1)
    assert len(client.calls) == 1
