"""The cost of a piece of work in this process: instructions where the kernel can count them, else CPU time alone.

Invariant: every figure names its counter. Instructions repeat to about 1 % under any load; CPU time does not, so goals
in CPU time have an allowance.
https://man7.org/linux/man-pages/man2/perf_event_open.2.html
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

NUMBER: Final = {"x86_64": 298, "aarch64": 241}  # of the system call
HARDWARE, INSTRUCTIONS = 0, 1
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HV = 1 << 1, 1 << 5, 1 << 6
ATTRIBUTE_BYTES: Final = 128
WHOSE: Final = {INHERIT: "instructions", INHERIT | EXCLUDE_KERNEL | EXCLUDE_HV: "instructions outside the kernel"}
CPU_TIME: Final = "CPU time"


@dataclass(frozen=True)
class Cost:
    """`instructions` is 0 where they cannot be counted."""

    instructions: float
    cpu_seconds: float
    seconds: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.instructions - other.instructions,
            self.cpu_seconds - other.cpu_seconds,
            self.seconds - other.seconds,
        )

    def per(self, count: int) -> Cost:
        """The cost of one of `count` equal pieces."""
        return Cost(self.instructions / count, self.cpu_seconds / count, self.seconds / count)

    @property
    def work(self) -> float:
        """The figure by which two costs are compared: instructions, or CPU time where they cannot be counted."""
        return self.instructions or self.cpu_seconds


class Counters:
    """Counts from when it is made: this process, threads and child processes that begin later included."""

    def __init__(self) -> None:
        self._file, self.kind = -1, CPU_TIME
        for flags, kind in WHOSE.items():
            self._file = _open(flags)
            if self._file >= 0:
                self.kind = kind
                return

    def now(self) -> Cost:
        """The cost of everything so far. Children count when they are waited for."""
        count = 0 if self._file < 0 else struct.unpack("Q", os.read(self._file, 8))[0]
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return Cost(count, time.process_time() + ended.ru_utime + ended.ru_stime, time.perf_counter())

    def cost(self, work: Callable[[], object]) -> Cost:
        """The cost of a piece of work."""
        before = self.now()
        work()
        return self.now() - before

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _open(flags: int) -> int:
    """A file that counts, -1 where there is none."""
    number = NUMBER.get(os.uname().machine)
    if number is None or os.uname().sysname != "Linux":
        return -1
    attributes = struct.pack("IIQQQQQ", HARDWARE, ATTRIBUTE_BYTES, INSTRUCTIONS, 0, 0, 0, flags)
    found: int = ctypes.CDLL(None, use_errno=True).syscall(
        number, attributes.ljust(ATTRIBUTE_BYTES, b"\0"), 0, -1, -1, 0
    )
    return found
