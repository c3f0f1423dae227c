"""Exit codes of all verbs. verbs.toml says what a code means for one verb.

Invariant: a code means the same for every verb. An interrupted verb is not done, so it never ends with 0, unless the
verb runs until it is stopped.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The codes that a command can end with."""

    WELL = 0
    FOUND = 1
    MISTAKE = 2
    BUG = 3
    INTERRUPTED = 130  # as a shell reports a process that Ctrl-C has ended
