"""Writes recordings, which are stream records as JSON lines, and reads them from any file that contains such records.

Events that a function logged and objects of its on-failure destination are recordings too. An unreadable line is
refused, with file and line number, before anything is done.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sync_rules.adapters.files import open_for_owner
from sync_rules.model import json_bytes
from sync_rules.model.errors import RecordError, StoreError, UserError
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.pipeline.records import STREAM_ARN, read_event
from sync_rules.rules.ruleset import Rules

MARK: Final = "recording"
MAKER: Final = "sync-rules"
VERSION: Final = 1
EXPECTED: Final = "expected a stream record, a Lambda event with its Records, or an on-failure object with its payload"

Body = Mapping[str, Any]
Write = Callable[[Iterable[Body]], None]
Found = tuple[Change, Body, str]


@dataclass(frozen=True)
class Header:
    """The first line of a recording. `tables`: names in the rules and in DynamoDB. `at`: ISO 8601. `ordered`: the
    records are in the order for their replay.
    """

    tables: Mapping[str, str] = field(default_factory=dict)
    redacted: bool = False
    at: str = ""
    ordered: bool = False

    def body(self) -> Body:
        """Return the header as JSON."""
        body = {MARK: MAKER, "version": VERSION, "redacted": self.redacted, "tables": dict(self.tables), "at": self.at}
        return {**body, "ordered": True} if self.ordered else body


@dataclass(frozen=True)
class Recorded:
    """A record of a recording: its change, and its body in the file. `number` counts from 1 in the order of time.
    `identity` is the same in every recording.
    """

    number: int
    change: Change
    body: Body
    identity: str


@dataclass(frozen=True)
class Recording:
    """The records of some files. `others` counts the records of tables without rules, `repeated` exact repetitions."""

    records: tuple[Recorded, ...]
    header: Header = field(default_factory=Header)
    others: Mapping[str, int] = field(default_factory=dict)
    repeated: int = 0

    def __iter__(self) -> Iterator[Recorded]:
        return iter(self.records)


# ---------------------------------------------------------------- reading
def read_recording(path: Path, rules: Rules) -> Recording:
    """Read a recording, for these rules. Raises like `read_recordings`."""
    return read_recordings([path], rules)


def read_recordings(paths: Sequence[Path], rules: Rules) -> Recording:
    """Read several recordings into one, in the order of time.

    Raises:
        UserError: when a file cannot be read: file, line and reason.
    """
    reading = _Reading(rules)
    for path in paths:
        try:
            for line, value in _read_documents(path):
                try:
                    reading.take(value)
                except RecordError as error:
                    raise UserError(f"{path}:{line}\n  {error}. Nothing was done.") from error
        except OSError as error:
            raise UserError(f"{path}: expected a recording to read, found {error.strerror}") from error
    return reading.make_recording()


class _Reading:
    """Collects the records of documents."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._named = rules  # with the table names of the latest header
        self._header: Header | None = None
        self._found: list[Found] = []
        self._known: set[str] = set()
        self._others: Counter[str] = Counter()
        self._repeated = 0

    def take(self, value: Any) -> None:
        """Add a document: a header, or something that contains records. Raises RecordError."""
        if isinstance(value, Mapping) and MARK in value:
            self._begin(parse_header(value))
            return
        for body in _list_bodies(value):
            identity = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
            if identity in self._known:  # a batch that Lambda gave up twice, two recordings that overlap
                self._repeated += 1
                continue
            self._known.add(identity)
            (change,) = tuple(read_event({"Records": [body]}, self._named)) or (None,)
            if isinstance(change, Failure):
                raise RecordError(change.reason)
            if change is None:
                self._others[_find_table_name(body)] += 1
            else:
                self._found.append((change, body, identity))

    def make_recording(self) -> Recording:
        header = self._header or Header()
        found = self._found if header.ordered else _sort_by_time(self._found)
        records = tuple(Recorded(number, *one) for number, one in enumerate(found, 1))
        return Recording(records, header, dict(self._others), self._repeated)

    def _begin(self, header: Header) -> None:
        """Use the table names of a header for the records that follow."""
        named = {
            name: replace(table, physical_name=header.tables.get(name, table.physical_name))
            for name, table in self._rules.tables.items()
        }
        self._named = replace(self._rules, tables=named)
        before = self._header
        if before is not None:
            header = replace(
                header,
                tables={**before.tables, **header.tables},
                redacted=before.redacted or header.redacted,
                at=before.at,
                ordered=before.ordered and header.ordered,
            )
        self._header = header


def parse_header(value: Body) -> Header:
    """Parse a header.

    Raises:
        RecordError: if another program or a newer version wrote it.
    """
    tables = value.get("tables")
    if value.get(MARK) != MAKER or value.get("version") != VERSION:
        raise RecordError(
            f"expected a recording of {MAKER}, version {VERSION}; found another program's or a newer version's"
        )
    if not isinstance(tables, Mapping) or not all(isinstance(name, str) for name in tables.values()):
        raise RecordError('expected "tables" to be a map from the names of tables to their names in DynamoDB')
    named = {str(name): text for name, text in tables.items()}
    return Header(named, bool(value.get("redacted")), str(value.get("at", "")), bool(value.get("ordered")))


def _read_documents(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON documents of a file and their first lines: one document a line, or a single one over many lines.

    Raises:
        UserError: when the file is not JSON.
    """
    number, first = 0, True
    with path.open(encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json_bytes.parse_json(line)
                except json.JSONDecodeError:
                    if not first:
                        raise
                    yield number, json_bytes.parse_json("\n" * (number - 1) + line + file.read())
                    return
                first = False
                yield number, value
        except json.JSONDecodeError as error:
            at = error.lineno if first else number
            raise UserError(f"{path}:{at}\n  expected JSON, found something else. Nothing was done.") from error
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: expected JSON in UTF-8, found something else. Nothing was done.") from error
        except ValueError as error:
            raise UserError(f"{path}:{number}\n  expected JSON within bounds: {error}. Nothing was done.") from error


def _list_bodies(value: Any) -> Iterator[Body]:
    """The records in a document of any known form. Raises RecordError."""
    match value:
        case {"dynamodb": _} | {"kinesis": _}:
            yield value
        case {"Records": [*records]}:
            yield from records
        case {"payload": str(text)}:
            try:
                yield from _list_bodies(json_bytes.parse_json(text))
            except ValueError as error:
                raise RecordError("the payload of an on-failure object is not JSON") from error
        case {"payload": Mapping() as payload}:
            yield from _list_bodies(payload)
        case {"DDBStreamBatchInfo": _}:
            raise RecordError("an on-failure message without the records: only an S3 destination keeps them")
        case [*values]:
            for one in values:
                yield from _list_bodies(one)
        case _:
            raise RecordError(EXPECTED)


def _find_table_name(body: Body) -> str:
    arn = STREAM_ARN.match(str(body.get("eventSourceARN", "")))
    return arn[1] if arn else "unknown"


def _sort_by_time(found: Sequence[Found]) -> list[Found]:
    """Sort records by time, which mixes tables. Records of one item keep their order; a record without a time follows
    the one before it.
    """
    latest: dict[ItemKey, int] = {}
    times: list[int] = []
    now = 0
    for change, _, _ in found:
        now = now if change.created_ms is None else change.created_ms
        latest[change.key] = max(now, latest.get(change.key, 0))
        times.append(latest[change.key])
    pairs = sorted(zip(times, found, strict=True), key=lambda pair: pair[0])
    return [one for _, one in pairs]


# ---------------------------------------------------------------- writing
@contextmanager
def open_recording(path: Path, header: Header, *, append: bool = False) -> Iterator[Write]:
    """Yield a function that appends records to a file that only its owner can read. When the function returns, they are
    written.

    Raises:
        UserError: if the file exists and `append` is false, or if it is not a recording of the same sort.
        StoreError: if it cannot be written.
    """
    if append and path.exists():
        _require_same_sort(path, header)
    flags = os.O_WRONLY | os.O_APPEND | (0 if append else os.O_EXCL)
    try:
        file = open_for_owner(path, flags)
    except FileExistsError as error:
        raise UserError(f"{path}: the file exists, and no recording is overwritten. Choose another name.") from error
    except OSError as error:
        raise UserError(f"{path}: expected a file that can be written, found {error.strerror}") from error

    def write(bodies: Iterable[Body]) -> None:
        try:
            for body in bodies:
                line = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
                while line:
                    line = line[os.write(file, line) :]
        except OSError as error:
            raise StoreError("FileNotWritten", f"{path}: {error.strerror}") from error

    try:
        write([header.body()])
        yield write
        os.fsync(file)
    finally:
        os.close(file)


def _require_same_sort(path: Path, header: Header) -> None:
    """Require a recording with a complete last line, redacted if and only if the new records are."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: expected a recording to append to, found {error.strerror}") from error
    try:
        found = parse_header(json_bytes.parse_json(text.partition(b"\n")[0]))
    except (ValueError, AttributeError, RecordError) as error:
        raise UserError(
            f"{path}: expected a recording to append to, found something else. Choose another file."
        ) from error
    if not text.endswith(b"\n"):
        raise UserError(f"{path}: its last line is incomplete. Remove that line, or choose another file.")
    if found.redacted != header.redacted:
        cure = "without" if header.redacted else "with"
        raise UserError(f"{path}: a recording is redacted as a whole or not at all. Run it {cure} --redact.")
