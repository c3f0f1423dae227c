"""Answers of DynamoDB read by json alone, where botocore would walk every value by its model: a tenth of the work.

Law: what comes out is what botocore gives, or botocore gives it. Its events are asked to set an answer aside before it
is parsed and to put it into the result after; where an event is missing, nothing is set aside. Binary values, which
have to be decoded, and errors are left to botocore.
"""

from __future__ import annotations

import json
import threading
from typing import Any, Final

# The answers that have many values in them, and no other shapes than attribute values, numbers, text and booleans.
OPERATIONS: Final = ("Query", "Scan", "GetItem", "BatchGetItem", "BatchExecuteStatement")
BINARY: Final = (b'"B"', b'"BS"')  # as types; as names of attributes too, which then are read the slow way

_aside = threading.local()  # a call is made and answered in one thread


def read_by_json(client: Any) -> None:
    """Have the answers of a DynamoDB client read so."""
    for operation in OPERATIONS:
        client.meta.events.register(f"before-parse.dynamodb.{operation}", _set_aside)
        client.meta.events.register(f"after-call.dynamodb.{operation}", _put_back)


def _set_aside(response_dict: dict[str, Any], **_: Any) -> None:
    body: bytes = response_dict["body"]
    _aside.answer = None
    if response_dict["status_code"] == 200 and not any(kind in body for kind in BINARY):  # noqa: PLR2004 -- OK
        _aside.answer = json.loads(body)
        response_dict["body"] = b"{}"


def _put_back(parsed: dict[str, Any], **_: Any) -> None:
    answer = getattr(_aside, "answer", None)
    _aside.answer = None
    if answer:
        parsed.update(answer)
