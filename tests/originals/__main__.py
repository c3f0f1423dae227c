"""`python -m tests.originals cart=FOLDER ...`: original handlers beside our rules, on the same histories, as a table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from sync_rules.language.load import load_rules
from tests.originals.applications import APPLICATIONS, Application
from tests.originals.original import count_code_lines, open_original
from tests.originals.study import DELIVERIES, Study, Tally, make_original, make_ours

HEAD = f"| application | kept by | lines | {' | '.join(DELIVERIES)} | write units | read units | USD for a million changes |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.originals", description=__doc__)
    parser.add_argument("folders", nargs="+", metavar="NAME=FOLDER", help=f"NAME: {', '.join(APPLICATIONS)}")
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    print(HEAD + "\n" + "|---|---|" + "---:|" * (HEAD.count("|") - 3))
    right = True
    for name, _, folder in (one.partition("=") for one in asked.folders):
        for row, ours_right in compare(APPLICATIONS[name], Path(folder), asked.histories, asked.seed):
            print(row, flush=True)
            right = right and ours_right
    return 0 if right else 1


def compare(application: Application, folder: Path, histories: int, seed: int) -> Iterator[tuple[str, bool]]:
    """The rows of an application, each with whether rules kept all its histories right."""
    rules = load_rules(application.rules)
    with open_original(folder, application.module, application.environment, application.modules) as (handle, resource):
        theirs = Study(application, rules, make_original(handle, resource, application)).run(histories, seed)
    lines = sum(count_code_lines((folder / file).read_text()) for file in application.files)
    yield show_row(application.name, "its handler", lines, theirs), True
    ours = Study(application, rules, make_ours).run(histories, seed)
    lines = sum(bool(line.strip()) for line in application.rules.read_text().splitlines())
    yield show_row(application.name, "rules", lines, ours), not ours.wrong.total()


def show_row(name: str, side: str, lines: int, tally: Tally) -> str:
    wrong = " | ".join(f"{tally.wrong[delivery]:,} of {tally.histories:,}" for delivery in DELIVERIES)
    units = (f"{amount / tally.changes:.1f}" for amount in (tally.write_units, tally.read_units))
    return f"| {name} | {side} | {lines} | {wrong} | {' | '.join(units)} | {tally.price:.2f} |"


if __name__ == "__main__":
    raise SystemExit(main())
