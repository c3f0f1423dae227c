"""JSON with binary values, in two forms: tagged, which can be read again, and plain base64, as DynamoDB's own JSON."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any, Final

TAG = "$bytes"
# SQS takes no message with U+FFFE or U+FFFF, and half of a surrogate pair is not UTF-8: JSON can escape them.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
NEVER_SENT: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")


def tagged(value: object) -> dict[str, str]:
    """The `default` of json.dumps for documents that are read again with `untagged`."""
    return {TAG: base64_of(value)}


def untagged(body: dict[str, Any]) -> Any:
    """The `object_hook` of json.loads. In a map of a user the name of the tag stands beside a value, not a text."""
    text = body.get(TAG) if len(body) == 1 else None
    return base64.b64decode(text) if isinstance(text, str) else body


def base64_of(value: object) -> str:
    """A binary value as DynamoDB's JSON has it: the `default` of json.dumps for what others read."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(type(value).__name__)


def canonical(value: object) -> str:
    """DynamoDB's own JSON on one line, the same text for the same value."""
    return json.dumps(value, default=base64_of, separators=(",", ":"), sort_keys=True)


def compact(value: object, *, default: Callable[[Any], Any] | None = None, sort_keys: bool = False) -> str:
    """JSON on one line for messages and files, of as few bytes as it can have: a letter such as é is itself."""
    text = json.dumps(value, default=default, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    return NEVER_SENT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
