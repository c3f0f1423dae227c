"""JSON: read within bounds, and written with binary values in two forms: tagged, which can be read again, and plain
base64, as DynamoDB's own JSON.

Invariant: JSON of any origin is read here, by `parse_json`. What is deeper than anything that DynamoDB or this package
writes, or is not Unicode, is no JSON for any reader, so that none of them fails on it further on.
"""

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

# An item has at most 32 levels of maps and lists, and each is two in DynamoDB's JSON; events put some around it.
JSON_MAX_LEVELS: Final = 100


def parse_json(
    text: str | bytes,
    *,
    object_hook: Callable[[dict[str, Any]], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: when it is not JSON (a JSONDecodeError), nests too deeply, or has half of a surrogate pair, NaN,
            Infinity or a number of thousands of digits.
    """
    try:
        value = json.loads(text, object_hook=object_hook, parse_float=parse_float, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(f"nests more than {JSON_MAX_LEVELS} levels") from None
    if _may_be_odd(text):
        _require_bounds(value)
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _may_be_odd(text: str | bytes) -> bool:
    """True unless a text is plainly well: a look at all values costs as much as reading them."""
    if isinstance(text, str):
        return text.count("{") + text.count("[") > JSON_MAX_LEVELS or "\\u" in text or not text.isascii()
    return text.count(b"{") + text.count(b"[") > JSON_MAX_LEVELS or b"\\u" in text


def _require_bounds(value: Any) -> None:
    row, depth = [value], 0
    while row:
        depth += 1
        if depth > JSON_MAX_LEVELS:
            raise ValueError(f"nests more than {JSON_MAX_LEVELS} levels")
        below: list[Any] = []
        for one in row:
            if isinstance(one, dict):
                below += one.values()
                require_unicode(*one)
            elif isinstance(one, list):
                below += one
            elif isinstance(one, str):
                require_unicode(one)
        row = below


def require_unicode(*texts: str) -> None:
    """Raise ValueError if a text has half of a surrogate pair, which UTF-8 cannot encode."""
    if not all(map(is_encodable, texts)):
        raise ValueError("UTF-8 cannot encode half of a surrogate pair")


def is_encodable(text: str) -> bool:
    """True if UTF-8 can encode a text. It cannot encode half of a surrogate pair, which remains of a cut emoji."""
    try:
        return text.isascii() or text.encode() != b""
    except UnicodeEncodeError:
        return False


def tag_binary(value: object) -> dict[str, str]:
    """Convert a binary value for JSON that `untag_binary` reads again: the `default` of json.dumps."""
    return {TAG: encode_base64(value)}


def untag_binary(body: dict[str, Any]) -> Any:
    """Convert what `tag_binary` wrote back to binary: the `object_hook` of json.loads. In a user's map the tag's name
    has a map for its value, not a text.
    """
    text = body.get(TAG) if len(body) == 1 else None
    return base64.b64decode(text) if isinstance(text, str) else body


def encode_base64(value: object) -> str:
    """Encode a binary value as DynamoDB's JSON has it: the `default` of json.dumps for other readers than this
    package.
    """
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(type(value).__name__)


def format_canonical_json(value: object) -> str:
    """Format a value as DynamoDB's own JSON on one line. Equal values have the same text."""
    return json.dumps(value, default=encode_base64, separators=(",", ":"), sort_keys=True)


def format_compact_json(value: object, *, default: Callable[[Any], Any] | None = None, sort_keys: bool = False) -> str:
    """Format a value as JSON on one line, in as few bytes as possible: é is written as it is, not escaped."""
    text = json.dumps(value, default=default, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    return NEVER_SENT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
