"""Messages for later, as JSON: the next page of a push, a second look through an index, another pull of a target.

Law: a message names keys and rules, never a value. Whoever receives it reads everything afresh, so it may come late,
twice, or not in order.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sync_rules.attributes import Item
from sync_rules.errors import RecordError
from sync_rules.model import ItemKey


@dataclass(frozen=True, slots=True)
class PushMessage:
    """Bring the targets of a source in line with it, from `cursor` on.

    `removed`: a REMOVE record of the source started this, so `on_delete: delete` applies. `delay_seconds` is 0 for the
    first pass; a second look carries the delay it waited, and `found` says whether an earlier page of it had to write.
    """

    rules: tuple[str, ...]
    source: ItemKey
    removed: bool = False
    cursor: Item | None = None
    delay_seconds: int = 0
    found: bool = False


@dataclass(frozen=True, slots=True)
class PullMessage:
    """Pull one target again: all of its rules, with a fresh image. `attempt` counts how often it was parked."""

    target: ItemKey
    attempt: int = 0


Message = PushMessage | PullMessage


def encode(message: Message) -> str:
    """The message as JSON text, the same for the same message."""
    kind = "push" if isinstance(message, PushMessage) else "pull"
    return json.dumps({"kind": kind, **asdict(message)}, default=_encode_bytes, separators=(",", ":"), sort_keys=True)


def decode(text: str) -> Message:
    """The message that `encode` wrote.

    Raises:
        RecordError: when the text is not such a message.
    """
    try:
        body = json.loads(text, object_hook=_decode_bytes)
        kind = body.pop("kind")
        if kind == "push":
            message: Message = PushMessage(**{**body, "rules": tuple(body["rules"]), "source": _key(body["source"])})
        else:
            message = PullMessage(**{**body, "target": _key(body["target"])})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"not a message of sync-rules: {type(error).__name__}") from error
    if kind not in ("push", "pull") or not _well_formed(message):
        raise RecordError("not a message of sync-rules: expected a push or a pull")
    return message


def _well_formed(message: Message) -> bool:
    if isinstance(message, PullMessage):
        return type(message.attempt) is int and message.attempt >= 0
    names = all(isinstance(name, str) for name in message.rules)
    cursor = message.cursor is None or (
        isinstance(message.cursor, dict) and all(isinstance(value, dict) for value in message.cursor.values())
    )
    return names and cursor and type(message.delay_seconds) is int and message.delay_seconds >= 0


def _key(body: Mapping[str, Any]) -> ItemKey:
    values = tuple((name, kind, value) for name, kind, value in body["values"])
    if not isinstance(body["table"], str) or not all(map(_is_key_value, values)):
        raise TypeError
    return ItemKey(body["table"], values)


def _is_key_value(entry: tuple[object, object, object]) -> bool:
    name, kind, value = entry
    return isinstance(name, str) and isinstance(value, bytes if kind == "B" else str) and kind in ("S", "N", "B")


def _encode_bytes(value: object) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def _decode_bytes(body: dict[str, Any]) -> Any:
    return base64.b64decode(body["$bytes"]) if body.keys() == {"$bytes"} else body
