"""`python -m benchmarks`: run the measures, print each figure as it comes; `--check` fails on a gated goal. A full run
writes benchmarks/results.json, any run what `--results` names.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from benchmarks.bench import Bench
from benchmarks.counters import Counters
from benchmarks.figures import TABLE_HEAD, Figure
from benchmarks.measures import MEASURES
from benchmarks.running import ENVIRONMENT, answering

RESULTS: Final = Path(__file__).parent / "results.json"
INTERRUPTED: Final = 130  # as shells have it
PACKAGES: Final = ("boto3", "botocore", "urllib3", "aws-lambda-powertools", "pydantic", "ruamel.yaml", "tenacity")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 1 when a gated goal is missed and `--check` was asked for, 2 when the results cannot be
    written, 130 when it was interrupted.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", choices=MEASURES, help=", ".join(MEASURES))
    parser.add_argument("--quick", action="store_true", help="fewer rounds and targets: rough figures in a minute")
    parser.add_argument("--smoke", action="store_true", help="run every measure as small as possible: does each run?")
    parser.add_argument("--check", action="store_true", help="exit 1 when a count or a ratio misses its goal")
    parser.add_argument("--results", metavar="FILE", type=Path, help="file to write the figures to")
    asked = parser.parse_args(arguments)
    results = asked.results or (None if asked.only or asked.quick or asked.smoke else RESULTS)
    if results is not None and (why := _unwritable(results)):
        print(f"{results} cannot be written: {why}", file=sys.stderr)
        return 2
    try:
        figures, kind = measure(asked.only or tuple(MEASURES), quick=asked.quick, smoke=asked.smoke)
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return INTERRUPTED
    made = made_with(kind)
    print("\n" + "\n".join(f"{name}: {value}" for name, value in made.items()))
    if results is not None:
        body = {"made_with": made, "quick": asked.quick, "figures": [figure.body() for figure in figures]}
        results.write_text(json.dumps(body, indent=1) + "\n")
    missed = [figure for figure in figures if not figure.passes and not asked.smoke]
    for figure in missed:
        print(figure.missed, file=sys.stderr)
    return 1 if missed and asked.check else 0


def _unwritable(file: Path) -> str:
    """The reason why a file cannot be written, "" when it can. Checked before the measures; its content is kept."""
    try:
        there = file.exists()
        file.open("a").close()
        if not there:
            file.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def measure(names: Sequence[str], *, quick: bool, smoke: bool = False) -> tuple[list[Figure], str]:
    """Run these measures, and print each figure. Returns the figures and their unit of work."""
    os.environ.update(ENVIRONMENT)
    figures: list[Figure] = []
    print(TABLE_HEAD, flush=True)
    with answering() as engine:
        counters = Counters()  # after the engine: its work is none of ours
        for name in names:
            began = time.monotonic()
            for figure in MEASURES[name](Bench(engine, counters, quick, smoke)):
                print(figure.row(), flush=True)
                figures.append(figure)
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        counters.close()
    return figures, counters.kind


def made_with(kind: str) -> Mapping[str, Any]:
    """The environment that the figures depend on."""
    flags = sysconfig.get_config_var("CONFIG_ARGS") or ""
    optimised = "--enable-optimizations" in flags
    return {
        "work counted by": kind,
        "Python": f"{platform.python_version()}, {'with' if optimised else 'without'} profile-guided optimisation",
        "build flags": flags,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "awscrt": "installed: every import of boto3 is slower"
        if importlib.util.find_spec("awscrt")
        else "not installed",
    }


if __name__ == "__main__":
    code = main()
    if code == INTERRUPTED:
        os._exit(code)  # a contender's threads may still ask for an engine that is gone, and nobody waits for them
    sys.exit(code)
