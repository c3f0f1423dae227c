"""Requests of many values written, and answers read, by json alone, where botocore would walk every value by its model:
a tenth of the work.

Law: what goes out and what comes in is what botocore makes of it, or botocore makes it. Its events are asked to set an
answer aside before it is parsed and to put it into the result after; where an event is missing, nothing is set aside.
The first request of an operation is written in both ways; only if they agree are the next written by json alone.
Answers with binary values, which have to be decoded, and errors are left to botocore.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any, Final

from sync_rules.model.json_bytes import base64_of

# The requests that may have many values in them, and the answers; in these there are no other shapes than attribute
# values, numbers, text and booleans.
WRITTEN: Final = ("BatchGetItem", "BatchExecuteStatement")
READ: Final = ("Query", "Scan", "GetItem", "BatchGetItem", "BatchExecuteStatement")
BINARY: Final = (b'"B"', b'"BS"')  # as types; as names of attributes too, which then are read the slow way
BODY: Final = "sync_rules_body"

_aside = threading.local()  # a call is made and answered in one thread


def use_json(client: Any) -> None:
    """Have the requests of a DynamoDB client written so, and its answers read."""
    events = client.meta.events
    for operation in WRITTEN:
        requests = _Requests()
        events.register(f"provide-client-params.dynamodb.{operation}", requests.set_aside)
        events.register(f"before-call.dynamodb.{operation}", requests.put_back)
    for operation in READ:
        events.register(f"before-parse.dynamodb.{operation}", _set_aside)
        events.register(f"after-call.dynamodb.{operation}", _put_back)


class _Requests:
    """Those of one operation. `proven`: botocore was seen to write one as json does."""

    def __init__(self) -> None:
        self.proven = False

    def set_aside(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> dict[str, Any] | None:
        """The parameters botocore is left to write: those given, for None, or their shapes, with nothing in them."""
        context[BODY] = json.dumps(params, separators=(",", ":"), default=base64_of).encode()
        return {name: type(value)() for name, value in params.items()} if self.proven else None

    def put_back(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """`params` is the request by now, with its body."""
        if self.proven:
            params["body"] = context[BODY]
        else:
            self.proven = json.loads(params["body"]) == json.loads(context.get(BODY, b"{}"))


def _set_aside(response_dict: dict[str, Any], **_: Any) -> None:
    body: bytes = response_dict["body"]
    _aside.answer = None
    if response_dict["status_code"] == 200 and not any(kind in body for kind in BINARY):  # noqa: PLR2004 -- OK
        with suppress(ValueError):  # which botocore tells
            _aside.answer = json.loads(body)
            response_dict["body"] = b"{}"


def _put_back(parsed: dict[str, Any], **_: Any) -> None:
    answer = getattr(_aside, "answer", None)
    _aside.answer = None
    if answer:
        parsed.update(answer)
