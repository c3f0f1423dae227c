"""`python -m tests.simulation --histories N --seed S`: soak of random rules and of the worlds; `--replay` tells one."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

from tests.simulation.runs import (
    HISTORIES_PER_FILE,
    Failed,
    Seen,
    failures,
    failures_in,
    play_in,
    play_number,
    shorter,
    story_of,
    trace_hash,
)
from tests.simulation.worlds import ALL
from tests.support.shares import in_shares

TOLD_MAX = 20  # failures that are printed
SHARE = 25 * HISTORIES_PER_FILE  # histories that a process plays before it reports
WORLDS_SHARE = 4  # every fourth history is played in a world, the others with random rules


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9), help="the first number; new unless given")
    parser.add_argument("--only", metavar="MODE/WORLD", help="play in this world alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes; one for each core")
    parser.add_argument("--replay", type=int, metavar="NUMBER", help="tell the story of one history, shortened")
    parser.add_argument("--hash", action="store_true", help="print a digest of everything that happens instead")
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="say at which history each mutant is caught")
    parser.add_argument("--seen", action="store_true", help="print what occurred, and how often")
    parser.add_argument("--save", type=Path, help="a folder for the choices of what fails, shortened")
    options = parser.parse_args()
    if options.replay is not None:
        return replay(options.replay, options.only)
    if options.hash:
        print(trace_hash(options.seed, options.histories))
        return 0
    if options.mutants is not None:
        from tests.simulation.mutants import MUTANTS, report  # noqa: PLC0415 - it patches the product

        if unknown := set(options.mutants) - MUTANTS.keys():
            parser.error(f"--mutants: expected some of {', '.join(MUTANTS)}; found {', '.join(sorted(unknown))}")
        return report(options.seed, options.histories, options.mutants, options.workers)
    first = options.seed - options.seed % HISTORIES_PER_FILE
    print(f"{options.histories} histories from number {first}", flush=True)
    began, seen, found = time.monotonic(), Counter[tuple[str, str]](), 0
    share = partial(play_share, options.only)
    for failed, more in in_shares(share, first, options.histories, share=SHARE, workers=options.workers, say=say):
        seen.update(more)
        for one in failed:
            found += 1
            if found <= TOLD_MAX:
                say(str(one))
            if options.save:
                save(shorter(one), options.save)
    for (what, how), number in sorted(seen.items()) if options.seen else ():
        print(f"{what:12} {how:40} {number:>10,}")
    refused = sum(number for (what, _), number in seen.items() if what == "refused")
    rate = options.histories / (time.monotonic() - began)
    print(
        f"{found} of {options.histories} histories failed; {refused:,} conditions refused, {rate:.0f} histories a second"
    )
    return 1 if found else 0


def play_share(only: str | None, first: int, count: int) -> tuple[list[Failed], Seen]:
    """Some histories, in a process of their own: with random rules, and then in worlds, or in one world alone."""
    seen: Seen = Counter()
    if only is not None:
        return list(failures_in((only,), first, count, seen)), seen
    in_worlds = count // WORLDS_SHARE
    found = list(failures(first, count - in_worlds, seen))
    return found + list(failures_in(ALL, first, in_worlds, seen)), seen


def say(text: str) -> None:
    print(text, flush=True)


def replay(number: int, world: str | None) -> int:
    failed = play_number(number) if world is None else play_in(world, number)
    if failed is None:
        print(f"history {number}: nothing is wrong")
        return 0
    short = shorter(failed)
    print(story_of(short))
    print(json.dumps(short.body(), ensure_ascii=False))
    return 1


def save(failed: Failed, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(failed.body(), ensure_ascii=False, indent=1)
    (folder / f"history-{failed.world.replace('/', '-')}{failed.number}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
