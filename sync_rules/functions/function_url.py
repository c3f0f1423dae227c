"""Requests and answers of a Function URL: the payload of version 2.0 around a JSON document.

https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError

METHOD: Final = "POST"
METHOD_NOT_ALLOWED: Final = 405


def is_request(event: object) -> bool:
    """Tell an event of a Function URL from the document of a direct call."""
    return isinstance(event, Mapping) and isinstance(event.get("requestContext"), Mapping)


def method_of(event: Mapping[str, Any]) -> str:
    """The method of a request; empty if the event names none."""
    http = event["requestContext"].get("http")
    return str(http.get("method", "")) if isinstance(http, Mapping) else ""


def document_of(event: Mapping[str, Any]) -> Any:
    """The JSON document in the body of a request; its numbers are exact.

    Raises:
        UserError: when the body is no JSON.
    """
    body = event.get("body") or ""
    try:
        given = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body
        return json_bytes.parsed(given, parse_float=Decimal)
    except (ValueError, TypeError, binascii.Error) as error:
        raise UserError("the body is not JSON", "send the document as JSON in UTF-8") from error


def response(status: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request."""
    headers = {"content-type": "application/json"}
    return {"statusCode": status, "headers": headers, "body": json_bytes.compact(document), "isBase64Encoded": False}
