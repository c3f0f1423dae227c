"""`python -m tests.extras.discover.datasets`: propose rules for each data set, and print how right they are."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.extras.discover.datasets.measure import total
from tests.extras.discover.datasets.scoring import ALL, AT_LEAST, SHARES, scores


def seeds(text: str) -> range:
    """The seeds from one to before another."""
    first, _, last = text.partition(":")
    return range(int(first), int(last))


def main() -> int:
    """Returns 1 where precision or recall of all is below what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.extras.discover.datasets", description=__doc__)
    parser.add_argument("--only", action="append", choices=ALL, help="a data set, instead of all")
    parser.add_argument("--share", action="append", type=float, help="of drift; default: 0, 0.01 and 0.1")
    parser.add_argument("--drawn", default=range(0), type=seeds, metavar="FROM:TO", help="seeds of drawn data sets")
    parser.add_argument("--bare", default=range(0), type=seeds, metavar="FROM:TO", help="the same, without any copy")
    parser.add_argument("--no-named", action="store_true", help="drawn data sets alone")
    parser.add_argument("--kept", type=Path, help="folder for the rules files")
    asked = parser.parse_args()
    names = [] if asked.no_named else asked.only or list(ALL)
    found, began = [], time.monotonic()
    for score in scores(names, asked.share or list(SHARES), asked.drawn, asked.bare, asked.kept):
        print(f"{score}   {time.monotonic() - began:.1f} s", flush=True)
        found.append(score)
        began = time.monotonic()
    summed = total(found)
    print(str(summed).split("\n", maxsplit=1)[0])
    return 0 if min(summed.precision, summed.recall) >= AT_LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
