"""Failure records as JSON, in one form whoever keeps them: rule, table, key, reason, position, member, at.

Law: a failure record names an item and never holds a value of it. A key is written as `sync-rules verify --key` takes
it: plain values that the table's key schema types, numbers as text, binary as hexadecimal digits.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sync_rules.model import Failure, ItemKey


def failure_record(failure: Failure, at: datetime) -> dict[str, Any]:
    """A failure, ready for JSON. Table and key are null when the record was not understood; `at` is ISO 8601 in UTC."""
    return {
        "rule": failure.rule,
        "table": failure.key and failure.key.table,
        "key": failure.key and plain_key(failure.key),
        "reason": failure.reason,
        "position": failure.position,
        "member": failure.member and {"table": failure.member.table, "key": plain_key(failure.member)},
        "at": at.astimezone(UTC).isoformat(timespec="milliseconds"),
    }


def printable(key: ItemKey) -> str:
    """A key as people read it, with what cannot be seen in the form that JSON takes."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in str(key))


def plain_key(key: ItemKey) -> dict[str, str]:
    """A key as people copy it: {"PK": "USER#1", "SK": "00ff"}."""
    return {name: value.hex() if isinstance(value, bytes) else value for name, _, value in key.values}
