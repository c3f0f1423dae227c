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
from typing import Any

from sync_rules.errors import StoreError
from sync_rules.model import Failure
from sync_rules.streams import as_json

OWNER_ONLY = 0o600


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
                file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, OWNER_ONLY)
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
        self._lines.append(
            {
                "at": datetime.fromtimestamp(self._now_ms() / 1000, UTC).isoformat(timespec="milliseconds"),
                "rule": failure.rule,
                "table": failure.key.table if failure.key else None,
                "key": as_json(failure.key.attributes()) if failure.key else None,
                "reason": failure.reason,
                "position": failure.position,
            }
        )


def _write(file: int, line: bytes) -> None:
    while line:
        line = line[os.write(file, line) :]
