"""The files of commands that work on this machine, and the clock that dates what is in them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path


def wall_clock_ms() -> int:
    """Milliseconds since the epoch by the system's clock, to note when something happened; never to wait for."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Files:
    """The files of a run."""

    checkpoint: Path = Path(".sync-rules-checkpoint.json")
    failures: Path = Path(".sync-rules-failures.jsonl")

    @property
    def batches(self) -> Path:
        """Batches that were given up, with their records, for redrive."""
        return self.failures.with_suffix(".batches" + self.failures.suffix)

    @property
    def calls(self) -> Path:
        """The folder of calls that were given up, with their changes, for redrive."""
        return self.calls_of(self.failures)

    @staticmethod
    def calls_of(failures: Path) -> Path:
        """The folder that belongs to a file of failure records."""
        return failures.with_suffix(".calls")
