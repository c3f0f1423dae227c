"""Writes failure records as JSON and reads them: rule, table, key, reason, position, member, element, at, `call` for a
call that was given up, and `last` once a retry failed.

Invariant: a failure record names an item and never holds a value of it. A key is written as `sync-rules verify --key`
takes it: plain values that the table's key schema types, numbers as text, binary as hexadecimal digits. Records of
older versions are read, without the fields that they lack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sync_rules.model.entities import Table
from sync_rules.model.errors import RecordError, UserError
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.values import escape_invisible
from sync_rules.rules.key_json import type_key
from sync_rules.rules.ledger import hide_amount, keeps_books

PlainKey = Mapping[str, str]


def make_failure_record(failure: Failure, at: datetime) -> dict[str, Any]:
    """Make the record of a failure, for JSON. Table and key are null if the stream record was unreadable; `at` is ISO
    8601 in UTC.

    A part is named by its element, null for a target, and by `member`, the item that it is made from. `call` is only in
    the record of a call, and says where its change is kept.
    """
    record = {
        "rule": failure.rule,
        "table": failure.key and failure.key.table,
        "key": failure.key and make_plain_key(failure.key),
        "reason": failure.reason,
        "position": failure.position,
        "member": failure.member and {"table": failure.member.table, "key": make_plain_key(failure.member)},
        "element": failure.element,
        "at": format_time(at),
    }
    return record if not failure.call else {**record, "call": failure.call}


def format_time(at: datetime) -> str:
    """Format a time as failure records have it: 2026-11-21T12:00:00.001+00:00."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def parse_time(text: str) -> datetime:
    """Parse the text that `format_time` wrote. A text without an offset is in UTC. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def format_key(key: ItemKey) -> str:
    """Format a key for people to read: invisible characters are escaped as in JSON, and a rank's amount is left out."""
    return escape_invisible(str(hide_amount(key)))


def show_key(key: ItemKey) -> dict[str, str]:
    """Make a map of a key for reports, without a rank's amount: readers cannot build the key from it."""
    return make_plain_key(hide_amount(key))


def make_plain_key(key: ItemKey) -> dict[str, str]:
    """Make a map of a key that people can copy into a command: {"PK": "USER#1", "SK": "00ff"}."""
    return {name: value.hex() if isinstance(value, bytes) else value for name, _, value in key.values}


# ---------------------------------------------------------------- read again
@dataclass(frozen=True)
class FailureRecord:
    """A failure record as it was read: keys are plain, because only the rules know their types.

    `first` and `last` are the times of the first and the last failure. `body` is the whole record.
    """

    rule: str
    table: str | None
    key: PlainKey | None
    reason: str
    first: datetime
    last: datetime
    position: str = ""
    member: tuple[str, PlainKey] | None = None
    element: str | None = None
    call: str = ""
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def about(self) -> tuple[str | None, PlainKey | None]:
        """The table and key to show people: for a rule that keeps books, the child that is not counted, not its ledger
        entry.
        """
        return self.member if self.member is not None and keeps_books(self.rule) else (self.table, self.key)

    def again(self, reason: str, at: datetime) -> dict[str, Any]:
        """Return the record of this failure for JSON after a failed retry: the reason and the last time are new, the
        first time stays.
        """
        return {**self.body, "reason": reason, "last": format_time(at)}

    def failure(self, tables: Mapping[str, Table]) -> Failure:
        """Restore the failure, with keys typed by the tables of the rules.

        Raises:
            RecordError: when the rules have no such table, or the table has another key.
        """
        key = None if self.key is None or self.table is None else restore_key(self.table, self.key, tables)
        member = None if self.member is None else restore_key(*self.member, tables)
        return Failure(self.rule, key, self.reason, self.position, member, element=self.element, call=self.call)


def read_failure_record(body: Mapping[str, Any]) -> FailureRecord:
    """Read a failure record out of JSON.

    Raises:
        RecordError: when it is not a failure record. Names the field, and never its value.
    """
    rule, reason = _require_field(body, "rule", str), _require_field(body, "reason", str)
    table, key, member = (
        _require_field(body, "table", str, None),
        _require_field(body, "key", dict, None),
        body.get("member"),
    )
    if member is not None and not (isinstance(member, dict) and isinstance(member.get("table"), str)):
        raise _make_field_error("member")
    first = _read_time(body, "at")
    return FailureRecord(
        rule,
        table,
        key and _require_plain_key(key, "key"),
        reason,
        first,
        _read_time(body, "last") if body.get("last") else first,
        _require_field(body, "position", str, "") or "",
        None if member is None else (member["table"], _require_plain_key(member.get("key"), "member")),
        _require_field(body, "element", str, None),
        _require_field(body, "call", str, "") or "",
        body,
    )


def _require_field(body: Mapping[str, Any], name: str, kind: type, *default: object) -> Any:
    value = body.get(name, *default)
    if not isinstance(value, kind) and not (default and value is None):
        raise _make_field_error(name)
    return value


def _require_plain_key(key: object, name: str) -> PlainKey:
    if not isinstance(key, dict) or not all(isinstance(value, str) for value in key.values()):
        raise _make_field_error(name)
    return key


def _make_field_error(name: str) -> RecordError:
    return RecordError(f"a failure record has a wrong {name!r}: restore what sync-rules wrote, or remove it")


def _read_time(body: Mapping[str, Any], name: str) -> datetime:
    try:
        return parse_time(_require_field(body, name, str))
    except ValueError as error:
        raise RecordError(f"a failure record whose {name!r} is not a time") from error


def restore_key(table_name: str, plain: PlainKey, tables: Mapping[str, Table]) -> ItemKey:
    """Restore the key that `make_plain_key` wrote, typed by the key schema of its table.

    Raises:
        RecordError: when there is no such table, or the table has another key. Names no value.
    """
    table = tables.get(table_name)
    if table is None:
        raise RecordError(f"the rules have no table {table_name!r}: use the rules that wrote the record, or remove it")
    try:
        if plain.keys() == {attribute.name for attribute in table.key}:
            return type_key(plain, table)
    except UserError:  # the error below names no value
        pass
    expected = ", ".join(f"{attribute.name} ({attribute.type})" for attribute in table.key)
    raise RecordError(f"the record has a key that table {table_name} does not have: expected {expected}")
