"""Exit codes of all commands: the one table, which `docs/cli.md` shows.

Invariant: a code means the same whatever the verb is. What was interrupted is not done, so it never ends with 0, except
where stopping is how a command ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class VerbCodes:
    """The meaning of 0 and 1 for one verb; "" where it never ends with that. `mistake` adds what is particular about 2,
    `stopped` is the code after Ctrl-C, and what is particular about it.
    """

    well: str
    found: str = ""
    mistake: str = ""
    stopped: ExitCode = ExitCode.INTERRUPTED
    interrupted: str = ""

    def sentence(self) -> str:
        """The codes of the verb in one sentence."""
        parts = [f"0: {self.well}", f"1: {self.found}" if self.found else "", f"2: {self.mistake or 'a mistake'}"]
        if self.stopped is ExitCode.INTERRUPTED:
            parts.append(f"130: interrupted{self.interrupted and ', '}{self.interrupted}")
        return f"Exit code {'; '.join(filter(None, parts))}."


VERB_CODES: Final[Mapping[str, VerbCodes]] = {
    "init": VerbCodes("it was written", mistake="files of these names exist, and nothing was written"),
    "propose": VerbCodes(
        "it was written; or nothing was found, with the reason",
        mistake="a table that may not be read, an export that is not whole or full, or DuckDB is not installed",
        interrupted="and the same command goes on",
    ),
    "check": VerbCodes("no errors; warnings do not count", "errors, or warnings with --strict-warnings"),
    "patterns": VerbCodes(
        "every pattern is served",
        "one is not; with --strict-warnings, a copy is unread, an index idle or a key hot; with --prove, an answer is "
        "wrong",
    ),
    "graph": VerbCodes(
        "it was written", mistake="errors in the rules file, or Graphviz, which draws the SVG, is missing"
    ),
    "schema": VerbCodes("it was written"),
    "demo": VerbCodes("every copy is right at the end, and every expectation held", "one is not, or did not hold"),
    "test": VerbCodes("every expectation holds", "one does not", "a file is invalid, and nothing was played"),
    "plan": VerbCodes(
        "the plan is complete",
        "a sample says that a link or an attribute hits nothing; with --detailed-exitcode, there is something to "
        "write, or a rule was deleted",
    ),
    "cost": VerbCodes("all that is asked for was priced", "something is not stated, and was left out"),
    "backfill": VerbCodes(
        "everything is done",
        "a part was left, failed or was parked",
        "a mistake, or a sample says that a link or an attribute hits nothing, and nothing was written",
        interrupted="and --resume continues",
    ),
    "verify": VerbCodes("no drift, or none left after --repair", "there is drift"),
    "explain": VerbCodes("it was explained"),
    "prune": VerbCodes(
        "nothing is left",
        "something is, because --apply was not given or an item changed meanwhile",
        interrupted="and the last line says how many leftovers were removed",
    ),
    "emulator": VerbCodes(
        "stopped by Ctrl-C or SIGTERM",
        mistake="the port is taken, or the engine is not installed or did not start",
        stopped=ExitCode.WELL,
    ),
    "tables": VerbCodes(
        "each table is as the rules need it, or was created, or would be with --dry-run",
        "a table that exists differs from the rules",
        mistake="a table may not be described or created, or AWS was meant and not confirmed",
    ),
    "run": VerbCodes(
        "stopped by Ctrl-C or SIGTERM, or everything was read with --once",
        mistake="a table, index, stream or bucket is missing, the checkpoint is of other tables or in use, or a sample "
        "says that a link or an attribute hits nothing",
        stopped=ExitCode.WELL,
    ),
    "failures": VerbCodes("there are none, or they were dropped", "there are some"),
    "redrive": VerbCodes("nothing failed again", "something failed again, or could not be retried"),
    "record": VerbCodes(
        "stopped by Ctrl-C or SIGTERM, or finished",
        mistake="a table or stream is missing, or the file cannot be written",
        stopped=ExitCode.WELL,
    ),
    "replay": VerbCodes(
        "every replay ends right",
        "one does not, also when Ctrl-C ended the reduction",
        "a file is invalid, and nothing was replayed",
    ),
    "infra": VerbCodes(
        "it was written, or nothing differs",
        "--check found a difference, or an upgrade left lines that you had changed",
    ),
    "doctor": VerbCodes(
        "everything is well",
        "something is not, or could not be looked at",
        "a mistake, no such stack, or it may not be looked at",
    ),
    "selftest": VerbCodes(
        "every tested fact holds, or --clean left nothing",
        "a fact does not hold, or could not be tested",
        "a mistake, a missing right or a quota; nothing is left behind",
        interrupted="after everything is removed",
    ),
}


def in_words() -> str:
    """All codes in one sentence."""
    return f"Exit codes: {'; '.join(f'{code:d} {meaning}' for code, meaning in MEANINGS.items())}."
