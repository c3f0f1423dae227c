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
from sync_rules.model.values import visible
from sync_rules.rules.key_json import type_key
from sync_rules.rules.ledger import keeps_books, without_amount

PlainKey = Mapping[str, str]


def failure_record(failure: Failure, at: datetime) -> dict[str, Any]:
    """A failure, ready for JSON. Table and key are null when the stream record was not readable; `at` is ISO 8601 in
    UTC.

    A part is named by its element, null for a target, and by the member that it is made from. `call` is there only for
    a call, and says where its change is kept.
    """
    record = {
        "rule": failure.rule,
        "table": failure.key and failure.key.table,
        "key": failure.key and plain_key(failure.key),
        "reason": failure.reason,
        "position": failure.position,
        "member": failure.member and {"table": failure.member.table, "key": plain_key(failure.member)},
        "element": failure.element,
        "at": time_text(at),
    }
    return record if not failure.call else {**record, "call": failure.call}


def time_text(at: datetime) -> str:
    """A time as failure records have it: 2026-11-21T12:00:00.001+00:00."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds")


def parse_time(text: str) -> datetime:
    """The time that `time_text` wrote; UTC where the text names no offset. Raises ValueError."""
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def printable(key: ItemKey) -> str:
    """A key for people to read, with invisible characters escaped as in JSON, and without the amount in a rank's."""
    return visible(str(without_amount(key)))


def show_key(key: ItemKey) -> dict[str, str]:
    """A key for people and machines that only read it."""
    return plain_key(without_amount(key))


def plain_key(key: ItemKey) -> dict[str, str]:
    """A key for people to copy: {"PK": "USER#1", "SK": "00ff"}."""
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
        """The item that people know: of a rule that keeps books, the one that is not counted, and not its entry."""
        return self.member if self.member is not None and keeps_books(self.rule) else (self.table, self.key)

    def again(self, reason: str, at: datetime) -> dict[str, Any]:
        """The record of the same failure after a failed retry, for JSON: the first time stays, the reason is new."""
        return {**self.body, "reason": reason, "last": time_text(at)}

    def failure(self, tables: Mapping[str, Table]) -> Failure:
        """The failure, with keys typed by the tables of the rules.

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
    rule, reason = _expect(body, "rule", str), _expect(body, "reason", str)
    table, key, member = _expect(body, "table", str, None), _expect(body, "key", dict, None), body.get("member")
    if member is not None and not (isinstance(member, dict) and isinstance(member.get("table"), str)):
        raise _unlike("member")
    first = _time(body, "at")
    return FailureRecord(
        rule,
        table,
        key and _plain(key, "key"),
        reason,
        first,
        _time(body, "last") if body.get("last") else first,
        _expect(body, "position", str, "") or "",
        None if member is None else (member["table"], _plain(member.get("key"), "member")),
        _expect(body, "element", str, None),
        _expect(body, "call", str, "") or "",
        body,
    )


def _expect(body: Mapping[str, Any], name: str, kind: type, *default: object) -> Any:
    value = body.get(name, *default)
    if not isinstance(value, kind) and not (default and value is None):
        raise _unlike(name)
    return value


def _plain(key: object, name: str) -> PlainKey:
    if not isinstance(key, dict) or not all(isinstance(value, str) for value in key.values()):
        raise _unlike(name)
    return key


def _unlike(name: str) -> RecordError:
    return RecordError(f"a failure record whose {name!r} is not what one has")


def _time(body: Mapping[str, Any], name: str) -> datetime:
    try:
        return parse_time(_expect(body, name, str))
    except ValueError as error:
        raise RecordError(f"a failure record whose {name!r} is not a time") from error


def restore_key(table_name: str, plain: PlainKey, tables: Mapping[str, Table]) -> ItemKey:
    """The key that `plain_key` wrote, typed by the key schema of its table.

    Raises:
        RecordError: when there is no such table, or the table has another key. Names no value.
    """
    table = tables.get(table_name)
    if table is None:
        raise RecordError(f"the rules have no table {table_name!r}")
    try:
        if plain.keys() == {attribute.name for attribute in table.key}:
            return type_key(plain, table)
    except UserError:  # the error below names no value
        pass
    expected = ", ".join(f"{attribute.name} ({attribute.type})" for attribute in table.key)
    raise RecordError(f"a key that is not one of table {table_name}: expected {expected}")
