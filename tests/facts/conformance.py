"""`make conformance SUITE=FOLDER`: run a clone of nubo-db/dynamodb-conformance against the engines that we ship and test on.

Its tests passed on real DynamoDB first; none of them is in this repository. The scores go to conformance.json, and from
there into docs/contributing.md. Exit code: 0; 1 if an engine fails a test that shows a fact of assumptions.toml, or the
suite has no such test any more; 2 if it could not run. Run `npm install` in FOLDER before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sync_rules.extras.proof.probe import ASSUMPTIONS
from sync_rules.model.errors import UserError
from tests.support.engines import DYNOXIDE, started

SCORES = Path(__file__).with_name("conformance.json")
VERSIONS = {
    "ministack": lambda: version("ministack"),
    "dynoxide": lambda: subprocess.run([DYNOXIDE, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1],
}  # fmt: skip
RUN_SECONDS = 900


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make conformance", description=__doc__)
    parser.add_argument("suite", type=Path, help="the folder of the suite")
    parser.add_argument("--engine", action="append", choices=VERSIONS, help="only this engine")
    given = parser.parse_args(arguments)
    try:
        found = {name: score(name, run_suite(given.suite, name)) for name in given.engine or VERSIONS}
    except (UserError, OSError, subprocess.SubprocessError, ValueError) as error:
        print(f"the suite did not run: {error}", file=sys.stderr)
        return 2
    if given.engine is None:
        about = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "engines": found}
        SCORES.write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    return report(found)


def run_suite(suite: Path, engine: str) -> dict[str, str]:
    """Run all tests of the suite against an engine. Returns the status of each, by `tierN/FILE: NAME`."""
    runner = (suite / "node_modules/.bin/vitest").resolve()
    if not runner.exists():
        raise UserError(f"{suite}: expected node_modules/.bin/vitest. Run npm install there.")
    with tempfile.TemporaryDirectory() as folder, started(engine) as url:
        output = Path(folder, "results.json")
        command = [runner, "run", "--reporter=json", f"--outputFile={output}"]
        environment = {**os.environ, "DYNAMODB_ENDPOINT": url, "AWS_REGION": "us-east-1"}
        subprocess.run(command, cwd=suite, env=environment, capture_output=True, check=False, timeout=RUN_SECONDS)
        return read_results(json.loads(output.read_text()))


def read_results(results: Mapping[str, Any]) -> dict[str, str]:
    """The status of each test in a report of vitest: passed, failed, or another word for skipped."""
    return {
        f"{file['name'].rpartition('/tests/')[2].removesuffix('.test.ts')}: {test['title']}": test["status"]
        for file in results["testResults"]
        for test in file["assertionResults"]
    }


def score(engine: str, tests: Mapping[str, str]) -> dict[str, Any]:
    """The scores of an engine: tests by tier, passed and all, and the names of those that did not pass."""
    passed: Counter[str] = Counter(name[:5] for name, status in tests.items() if status == "passed")
    everything = Counter(name[:5] for name in tests)
    relied_on = {name for one in ASSUMPTIONS.values() for name in one.asserted}
    return {
        "version": VERSIONS[engine](),
        "tiers": {tier: [passed[tier], everything[tier]] for tier in sorted(everything)},
        "failed": sorted(name for name, status in tests.items() if status != "passed"),
        "unknown": sorted(relied_on - tests.keys()),
    }


def list_broken_facts(found: Mapping[str, Any]) -> list[int]:
    """The facts with a test that the engine fails."""
    failed = {*found["failed"]}
    return [number for number, one in ASSUMPTIONS.items() if failed & {*one.asserted}]


def report(engines: Mapping[str, Any]) -> int:
    """Print the scores. Returns the exit code."""
    worst = 0
    for name, found in engines.items():
        passed, everything = (sum(one[place] for one in found["tiers"].values()) for place in (0, 1))
        print(f"{name} {found['version']}: {passed} of {everything} ({passed / everything:.1%})")
        print(*(f"  failed {one}" for one in found["failed"]), sep="\n")
        for number in list_broken_facts(found):
            print(f"  it lacks fact {number}: {ASSUMPTIONS[number].fact}")
        print(*(f"  not in the suite, see assumptions.toml: {one}" for one in found["unknown"]), sep="\n")
        worst |= bool(list_broken_facts(found) or found["unknown"])
    return worst


if __name__ == "__main__":
    sys.exit(main())
