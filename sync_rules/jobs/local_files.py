"""The files of commands that work on this machine, and the clock that dates their contents."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path


def read_wall_clock_ms() -> int:
    """Return milliseconds since the epoch by the system's clock. Use them to date an event, never to wait."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Files:
    """The paths of a run's files."""

    checkpoint: Path = Path(".sync-rules-checkpoint.json")
    failures: Path = Path(".sync-rules-failures.jsonl")

    @property
    def batches(self) -> Path:
        """The file of batches that were given up, with their records, for redrive."""
        return self.failures.with_suffix(".batches" + self.failures.suffix)

    @property
    def calls(self) -> Path:
        """The folder of calls that were given up, with their changes, for redrive."""
        return self.locate_calls(self.failures)

    @staticmethod
    def locate_calls(failures: Path) -> Path:
        """Return the folder of given-up calls that belongs to a file of failure records."""
        return failures.with_suffix(".calls")
