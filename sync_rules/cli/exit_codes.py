"""Exit codes of all verbs. `Verb` says what a code means for one verb.

Invariant: a code means the same whatever the verb is. An interrupted verb is not done, so it never ends with 0, except
where stopping is how it ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """The codes that a command can end with."""

    WELL = 0
    FOUND = 1
    MISTAKE = 2
    BUG = 3
    INTERRUPTED = 130  # as a shell reports a process that Ctrl-C has ended


MEANINGS: Final[Mapping[ExitCode, str]] = {
    ExitCode.WELL: "success",
    ExitCode.FOUND: "drift, a failed check, or something left to do",
    ExitCode.MISTAKE: "a mistake in your input, a service that does not answer, or output that cannot be written",
    ExitCode.BUG: "a bug in sync-rules",
    ExitCode.INTERRUPTED: "interrupted",
}
