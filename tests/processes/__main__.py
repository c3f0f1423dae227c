"""python -m tests.processes --minutes 10 --seed 1: play rounds. With --faults, plant each fault and tell when it is found."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.processes.report import FAULTS, NOT_FOUND, read_reports, write_page, write_report
from tests.processes.world import Plan, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.processes", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="default: a new one")
    parser.add_argument("--engine", default="dynoxide", help="dynoxide or ministack")
    parser.add_argument("--fault", default="none", help="a planted fault, by its name")
    parser.add_argument("--faults", action="store_true", help="all planted faults, one after another")
    parser.add_argument("--record", action="store_true", help="keep the result of a run without a fault, for the page")
    parser.add_argument("--page", action="store_true", help="write the table of docs/proof/processes.md")
    given = parser.parse_args()
    code = 0
    if given.faults:
        code = play_faults(given)
    elif not given.page:
        return play_plan(given)
    if given.page:
        write_page()
    return code


def play_plan(given: argparse.Namespace) -> int:
    folder = Path(tempfile.gettempdir()) / f"sync-rules-processes-{given.seed}-{given.fault.replace(' ', '-')}"
    print(f"seed {given.seed}, logs in {folder}", flush=True)
    plan = Plan(given.seed, given.minutes, given.fault, given.engine)
    verdict = play(plan, folder, lambda text: print(text, flush=True))
    print(*verdict.findings[:20], sep="\n")
    print(f"{len(verdict.findings)} findings in {verdict.rounds} rounds, {verdict.seconds:.0f} s: {verdict.summary}")
    if given.fault != "none" or given.record:
        write_report(given.fault, given.seed, verdict)
    return 1 if verdict.findings else 0


def play_faults(given: argparse.Namespace) -> int:
    """Each fault in a process of its own. Returns 1 if one is not found."""
    for fault in FAULTS:
        options = ["--minutes", str(given.minutes), "--seed", str(given.seed), "--engine", given.engine]
        command = [sys.executable, "-m", "tests.processes", *options, "--fault", fault]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        print(f"{fault}: {read_reports().get(fault)}", flush=True)
    return 0 if all(read_reports()[fault]["showed"] != NOT_FOUND for fault in FAULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
