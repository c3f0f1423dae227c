"""`python -m tests.peers DIR`: the table of all scenarios of a directory. Exit 0 when none failed, 1 when any did, 2 when
there is nothing to run. What is not translated is said, and is no failure.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from sync_rules.model.errors import UserError
from tests.peers.cases import entries
from tests.peers.report import rows_of, show
from tests.peers.scenarios import load

USAGE = "usage: python -m tests.peers DIR"
HELP = f"""{USAGE}

Plays the scenarios in DIR (*.yaml, as FORMAT.md beside the peers' scenarios says) in memory, under every variant of
delivery, and prints one line for each: passed, failed with the first difference, or not translated with the reason.
Exit code 0: none failed; 1: some did; 2: nothing to run.
"""


def main(arguments: list[str]) -> int:
    """Run the scenarios of the directory given; returns the exit code."""
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(HELP)
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    try:
        found = entries(load(Path(arguments[0])))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    wide = None if sys.stdout.isatty() else 200  # in a file or a log, lines need not fit a screen
    return 0 if show(rows_of(found), Console(width=wide)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
