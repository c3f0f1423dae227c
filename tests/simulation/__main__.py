"""`python -m tests.simulation --histories N --seed S`: soak; with SIM_SEED and SIM_CONFIG: replay one and tell its story."""

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

from tests.simulation.breaking import Pairs
from tests.simulation.mutants import MUTANTS
from tests.simulation.oracles import ORACLES
from tests.simulation.runs import Failed, as_json, failures, play_seed, shorter, story_of, trace_hash
from tests.support.shares import in_shares

SHARE = 500  # histories that a process plays before it reports


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**9), help="a new one unless given")
    parser.add_argument("--only", help="one oracle, such as O11, or one of its worlds: O1/index")
    parser.add_argument("--hash", action="store_true", help="print a digest of everything that happens instead")
    parser.add_argument("--mutants", action="store_true", help="say at which history each mutant is caught instead")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes; one for each core")
    parser.add_argument("--save", type=Path, help="a folder for the choices of what fails")
    options = parser.parse_args()
    if "SIM_SEED" in os.environ:
        return replay(os.environ.get("SIM_CONFIG", "O1/base"), int(os.environ["SIM_SEED"]))
    if options.mutants:
        return mutants(options.histories, options.seed)
    if options.hash:
        print(trace_hash(options.histories, options.seed))
        return 0
    pairs = worlds_of(options.only) if options.only else None
    print(f"{options.histories} histories from seed {options.seed}", flush=True)
    began, steps, found = time.monotonic(), 0, []
    share = partial(play_share, options.seed, pairs)
    for failed, more in in_shares(share, 0, options.histories, share=SHARE, workers=options.workers, say=say):
        steps += more
        for one in failed:
            found.append(one)
            say(str(one))
            if options.save:
                save(shorter(one), options.save)
    seconds = time.monotonic() - began
    rate = options.histories / seconds * 60
    say(f"{len(found)} of {options.histories} histories failed; {steps} steps, {rate:,.0f} histories a minute")
    return 1 if found else 0


def worlds_of(only: str) -> Pairs:
    """The worlds of one oracle, or one of them."""
    oracle, _, name = only.partition("/")
    return tuple((oracle, one) for one in ORACLES[oracle].configurations if name in ("", one))


def play_share(seed: int, pairs: Pairs | None, first: int, count: int) -> tuple[list[Failed], int]:
    """Some histories, in a process of their own: those that failed, and the number of steps of all."""
    seen = Counter[tuple[str, str]]()
    failed = list(failures(first + count, seed, pairs, seen, first=first))
    return failed, seen["steps", "steps"]


def say(text: str) -> None:
    print(text, flush=True)


def mutants(histories: int, seed: int) -> int:
    """Remove each invariant in turn, and print the history at which an oracle notices."""
    survivors = 0
    for name, mutation in MUTANTS.items():
        with mutation.mutant():
            failed = next(failures(histories, seed, mutation.pairs), None)
        caught = (
            f"{failed.seed - seed + 1:>6}  {failed.oracle}/{failed.configuration}"
            if failed and failed.seed
            else "  survives"
        )
        print(f"{name:34} {caught}", flush=True)
        survivors += failed is None
    return 1 if survivors else 0


def replay(place: str, seed: int) -> int:
    oracle, _, configuration = place.partition("/")
    failed = play_seed(oracle, configuration, seed)
    if failed is None:
        print(f"{place} seed {seed}: nothing is wrong")
        return 0
    short = shorter(failed)
    print(story_of(short))
    print(json.dumps(as_json(short)["choices"]))
    return 1


def save(failed: Failed, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failed.oracle}-{failed.configuration}-{failed.seed}.json"
    path.write_text(json.dumps(as_json(failed)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
