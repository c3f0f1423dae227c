"""`python -m tests.scale --items N`: flat memory and linear time; with --engine, kill -9 and going on."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.scale.killed import play
from tests.scale.memory import GROWTH_MAX_MB, SLOWER_MAX, measure
from tests.support import engines

SMALLER = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--engine", default="memory", help="memory, ministack, dynoxide, or the URL of another one")
    parser.add_argument("--seed", type=int, default=1, help="of the points at which it is killed")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--wrong-each", type=int, default=1, help="one order in so many is wrong, on an engine")
    parser.add_argument("--alone", action="store_true", help="measure this size in memory, and no other")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sync-rules-scale-") as folder:
        if options.alone:
            found = measure(options.items, Path(folder) / "state.json")
            print(found, found.item_us, found.growth_mb, sep="\t")
            return 0
        if options.engine != "memory":
            with engines.started(options.engine) as url:
                how = {"wrong_each": options.wrong_each, "seed": options.seed, "kills": options.kills}
                outcome = play(url, Path(folder), options.items, **how)
            print(outcome)
            return 0 if outcome.well else 1
    return flat_and_linear(options.items)


def flat_and_linear(count: int) -> int:
    """Both sizes, each in a process of its own: what one leaves behind is no room for the other."""
    (small, _), (large, growth) = alone(count // SMALLER), alone(count)
    slower = large / small
    print(f"an item takes {slower:.2f} times what it takes at a tenth of the size; at most {SLOWER_MAX}")
    print(f"the process grew by {growth:.1f} MB; at most {GROWTH_MAX_MB:.0f} MB")
    return 0 if growth < GROWTH_MAX_MB and slower < SLOWER_MAX else 1


def alone(count: int) -> tuple[float, float]:
    """Microseconds for an item, and by how many MB the process grew."""
    command = [sys.executable, "-m", "tests.scale", "--alone", "--items", str(count)]
    line = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    shown, item_us, growth_mb = line.rstrip("\n").split("\t")
    print(shown, flush=True)
    return float(item_us), float(growth_mb)


if __name__ == "__main__":
    sys.exit(main())
