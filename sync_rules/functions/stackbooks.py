"""Answers CloudFormation when a stack is created or updated: books over tables that are empty are complete at once.

Invariant: the answer is always SUCCESS, within the time of the call. What cannot be looked at is logged, and the rules
that it concerns wait for a backfill: no deployment fails because of a number.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.request import Request, urlopen

from sync_rules.functions.logs import log_waiting, logger
from sync_rules.rules.families import PartRule

RESPONSE_URL: Final = "ResponseURL"  # only a request of CloudFormation has it
COPIED: Final = ("StackId", "RequestId", "LogicalResourceId")
ANSWER_MAX_SECONDS: Final = 20.0


def asked_by_stack(event: Mapping[str, Any]) -> bool:
    """True for a request of CloudFormation."""
    return RESPONSE_URL in event


def answer_stack(event: Mapping[str, Any], finish: Callable[[], tuple[PartRule, ...]]) -> None:
    """Do what a request asks for, and answer it. `finish` completes the books over empty tables, and returns the rules
    whose books are not complete. Raises OSError when the answer cannot be delivered: Lambda then calls again.
    """
    if event.get("RequestType") != "Delete":
        try:
            for rule in finish():
                log_waiting(rule.title)
        except Exception as error:  # noqa: BLE001 - whatever it is, the stack goes on without it
            logger.error("books were not looked at", error=type(error).__name__, reason=str(error))
    body = {"Status": "SUCCESS", "PhysicalResourceId": "books", **{name: event.get(name) for name in COPIED}}
    _put(event[RESPONSE_URL], json.dumps(body).encode())


def _put(url: str, body: bytes) -> None:
    """Put the answer where CloudFormation waits for it: an address that is signed without a content type."""
    request = Request(url, data=body, headers={"Content-Type": ""}, method="PUT")  # noqa: S310 - CloudFormation's own
    with urlopen(request, timeout=ANSWER_MAX_SECONDS):  # noqa: S310
        pass
