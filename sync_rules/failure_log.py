"""Failure records and given-up batches as JSON lines in files, for runs without queues and buckets.

Law: a line is on disk before the call returns. A failure record names rule, table, key and reason and never a value.
The file of batches is the exception made for redrive: as S3 would, it keeps whole records, so only its owner may read.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sync_rules.errors import StoreError, UserError
from sync_rules.failures import failure_record
from sync_rules.model import Failure

OWNER_ONLY: Final = 0o600


def open_for_owner(path: Path | str, flags: int) -> int:
    """A file descriptor; a file that is made is its owner's only, as it names keys. Fits `open(..., opener=...)`."""
    return os.open(path, flags | os.O_CREAT, OWNER_ONLY)


def require_writable(path: Path) -> None:
    """See that a file can be appended to, before there is something to append.

    Raises:
        UserError: when it cannot.
    """
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UserError(f"{path}: expected a file that can be written; it cannot. Choose another place for it.")


class JsonLines:
    """A file that JSON objects are appended to, one per line. May be used from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        self._lock = threading.Lock()

    def append(self, record: Mapping[str, Any]) -> None:
        """Returns once the line is on disk.

        Raises:
            StoreError: when it cannot be written; whoever asked tries again later.
        """
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            try:
                file = open_for_owner(self.path, os.O_WRONLY | os.O_APPEND)
                try:
                    _write(file, line)
                    os.fsync(file)
                finally:
                    os.close(file)
            except OSError as error:
                raise StoreError("FileNotWritten", f"{self.path}: {error.strerror}") from error
            self.written += 1


class FailureLog:
    """The Failures of a pipeline that runs in one process: one line per failure in a file."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self._lines = JsonLines(path)
        self._now_ms = now_ms

    @property
    def parked(self) -> int:
        """How many failures were written since the start."""
        return self._lines.written

    def park(self, failure: Failure) -> None:
        """Append the failure. Raises StoreError when it cannot be written."""
        self._lines.append(failure_record(failure, datetime.fromtimestamp(self._now_ms() / 1000, UTC)))


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]
