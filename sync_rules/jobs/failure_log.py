"""Failure records and given-up batches as JSON lines in files, for runs without queues and buckets. A failure record
names rule, table, key and reason, and never a value. The file of batches keeps whole records, as S3 would, so that
they can be redriven: only its owner may read it.

Invariant: a line is on disk before the call returns, or no part of it is. A line that a power cut tore does not spoil
the next line. A file is replaced as a whole and under its lock, so a run that appends to it loses nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sync_rules.adapters.files import open_for_owner, replace_file
from sync_rules.model import json_bytes
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Failure
from sync_rules.model.json_bytes import format_compact_json
from sync_rules.pipeline.failed_entries import FailedEntry
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.messages import Message, format_message


def require_writable(path: Path) -> None:
    """Raise UserError if this process cannot append to a file, before it has anything to append."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"{path}: sync-rules cannot write this file. Choose another place for it.")


@contextmanager
def open_locked_file(path: Path, flags: int) -> Iterator[int]:
    """Open and lock the file at this path. If another process replaced the file, open it again. Raises OSError."""
    while True:
        file = open_for_owner(path, flags)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # released when it is closed
            if _is_at(path, file):
                yield file
                return
        finally:
            os.close(file)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


class JsonLines:
    """A file of JSON objects, one per line. Several threads and processes may append to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        self._lock = threading.Lock()

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a record. Return after the line is on disk. Raises StoreError if it cannot be written."""
        line = format_compact_json(record).encode() + b"\n"
        with self._lock:
            try:
                with open_locked_file(self.path, os.O_RDWR | os.O_APPEND) as file:
                    _append(file, line)
            except OSError as error:
                raise StoreError("FileNotWritten", f"{self.path}: {error.strerror}") from error
            self.written += 1


class FailureLog:
    """The Failures of a pipeline in one process: one line per failure in a file."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self._lines = JsonLines(path)
        self._now_ms = now_ms

    @property
    def parked_count(self) -> int:
        return self._lines.written

    def park(self, failure: Failure) -> None:
        self._lines.append(make_failure_record(failure, datetime.fromtimestamp(self._now_ms() / 1000, UTC)))

    def keep(self, message: Message) -> None:
        """Append a message whose rule does not exist here, for redrive. Raises StoreError if it cannot be written."""
        self._lines.append(json_bytes.parse_json(format_message(message)))


class FailedLines:
    """The lines of a failure file, as a FailureStore. `close` removes and replaces all of them at once. If the process
    dies before that, all lines are redriven again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._removed: Counter[bytes] = Counter()
        self._replaced: dict[bytes, list[bytes]] = {}

    def entries(self) -> Iterator[FailedEntry]:
        """List each line that is in the file at the start. Raises UserError if the file cannot be read."""
        try:
            with self.path.open("rb") as file:
                with open_locked_file(self.path, os.O_RDONLY):  # no process is in the middle of a line
                    end = os.fstat(file.fileno()).st_size
                for number, line in enumerate(iter(file.readline, b""), start=1):
                    if file.tell() > end:
                        return
                    if line.strip():
                        yield FailedEntry(line, f"{self.path}:{number}", _compute_digest(line))
        except OSError as error:
            raise UserError(f"{self.path}: expected a file of failures to read, found {error.strerror}") from error

    def remove(self, entry: FailedEntry) -> None:
        self._removed[entry.handle] += 1

    def replace(self, entry: FailedEntry, text: str) -> None:
        self._replaced.setdefault(entry.handle, []).append(text.encode() + b"\n")

    def release(self, entry: FailedEntry) -> None:
        """Do nothing: a line that was not removed stays."""

    def close(self) -> None:
        if not (self._removed or self._replaced):
            return
        try:
            with open_locked_file(self.path, os.O_RDONLY) as file, os.fdopen(os.dup(file), "rb") as lines:
                self._rewrite(lines, os.fstat(file))
        except OSError as error:
            raise StoreError("FileNotWritten", f"{self.path}: {error.strerror}") from error
        self._removed.clear()
        self._replaced.clear()

    def _rewrite(self, lines: Iterator[bytes], before: os.stat_result) -> None:
        """Write the current file, lines appended meanwhile included, without what is done. The owner stays."""
        with replace_file(self.path) as new:
            new.writelines(self._rewrite_line(line) for line in lines)
            _keep_owner(new.fileno(), before)

    def _rewrite_line(self, line: bytes) -> bytes:
        digest = _compute_digest(line)
        if self._removed[digest] > 0:
            self._removed[digest] -= 1
            return b""
        instead = self._replaced.get(digest)
        return instead.pop(0) if instead else line


def _compute_digest(line: bytes) -> bytes:
    """The digest of a line: batches are too large to be kept in memory."""
    return hashlib.sha256(line).digest()


def _append(file: int, line: bytes) -> None:
    """Append a whole line to a locked file, or nothing. Raises OSError."""
    end = os.fstat(file).st_size
    try:
        _write(file, line if not end or os.pread(file, 1, end - 1) == b"\n" else b"\n" + line)
        os.fsync(file)
    except OSError:
        with suppress(OSError):  # the line is torn then, and the next append starts a new one
            os.ftruncate(file, end)
        raise


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]


def _keep_owner(file: int, before: os.stat_result) -> None:
    """Give a replacement the owner and group of the file before, or else its group, as far as permitted."""
    try:
        os.fchown(file, before.st_uid, before.st_gid)
    except PermissionError:
        with suppress(PermissionError):
            os.fchown(file, -1, before.st_gid)
    if os.fstat(file).st_gid == before.st_gid:  # else another group would get these permissions
        os.fchmod(file, stat.S_IMODE(before.st_mode))
