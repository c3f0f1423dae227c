"""Fast JSON for large requests and answers: json alone, where botocore would walk every value by its model. A tenth of
the work.

Invariant: requests and answers are as botocore makes them, or botocore makes them. Its events set an answer aside
before it is parsed and put it into the result afterwards; where an event is missing, nothing is set aside. The first
request of an operation is written both ways, and only if they agree, json alone writes the next ones. Answers with
binary values, which must be decoded, and errors are left to botocore.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any, Final

from sync_rules.model.json_bytes import base64_of

# Requests and answers that may have many values. They have no other shapes than attribute values, numbers, text and
# booleans.
WRITTEN: Final = ("BatchGetItem", "BatchExecuteStatement")
READ: Final = ("Query", "Scan", "GetItem", "BatchGetItem", "BatchExecuteStatement")
BINARY: Final = (b'"B"', b'"BS"')  # types; an attribute of that name is read the slow way too
BODY: Final = "sync_rules_body"

_aside = threading.local()  # one thread makes a call and gets its answer


def use_json(client: Any) -> None:
    """Use json for the requests and answers of a DynamoDB client."""
    events = client.meta.events
    for operation in WRITTEN:
        requests = _Requests()
        events.register(f"provide-client-params.dynamodb.{operation}", requests.set_aside)
        events.register(f"before-call.dynamodb.{operation}", requests.put_back)
    for operation in READ:
        events.register(f"before-parse.dynamodb.{operation}", _set_aside)
        events.register(f"after-call.dynamodb.{operation}", _put_back)


class _Requests:
    """The requests of one operation. `proven`: botocore wrote one as json does."""

    def __init__(self) -> None:
        self.proven = False

    def set_aside(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> dict[str, Any] | None:
        """Write the body. Returns the parameters for botocore: None for those given, or empty ones of their shapes."""
        context[BODY] = json.dumps(params, separators=(",", ":"), default=base64_of).encode()
        return {name: type(value)() for name, value in params.items()} if self.proven else None

    def put_back(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Put the body into the request, which `params` is at this event."""
        if self.proven:
            params["body"] = context[BODY]
        else:
            self.proven = json.loads(params["body"]) == json.loads(context.get(BODY, b"{}"))


def _set_aside(response_dict: dict[str, Any], **_: Any) -> None:
    body: bytes = response_dict["body"]
    _aside.answer = None
    if response_dict["status_code"] == 200 and not any(kind in body for kind in BINARY):  # noqa: PLR2004 -- OK
        with suppress(ValueError, RecursionError):  # botocore reports it
            answer = json.loads(body)
            if isinstance(answer, dict):
                _aside.answer, response_dict["body"] = answer, b"{}"


def _put_back(parsed: dict[str, Any], **_: Any) -> None:
    answer = getattr(_aside, "answer", None)
    _aside.answer = None
    if answer:
        parsed.update(answer)
