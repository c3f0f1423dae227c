"""The figures of docs/proof/tests.md: `python -m tests.docs.counts` writes them between the markers of the page.

The counts are of the files as they are. Measured figures stay until an option measures them again; measured.json keeps
them. The table of faults counts the entries of faults.toml.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from sync_rules.extras.proof.probe import ASSUMPTIONS
from tests.deploy.lies import LIES
from tests.models.__main__ import PAGE as MODELS_PAGE
from tests.models.__main__ import instances, models
from tests.mutation.__main__ import every_edit
from tests.simulation.__main__ import play_share
from tests.simulation.worlds import ALL
from tests.test_house import RINGS, ROOT

HERE: Final = Path(__file__).parent
PAGE: Final = ROOT / "docs/proof/tests.md"
MEASURED: Final = HERE / "measured.json"
FIRST_HISTORY: Final = 500_000  # tests and CI play others
YEAR_SECONDS: Final = 365.25 * 24 * 3600
COLLECTED: Final = re.compile(r"^(tests/\S+\.py): (\d+)$", re.MULTILINE)
Tests = Mapping[str, int]
STATES: Final = re.compile(r"^\| `[^`]*` \| ([\d,]+) \|$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.counts", description=__doc__)
    parser.add_argument("--histories", type=int, default=0, help="play this number of histories, and store the rates")
    options = parser.parse_args()
    measured = json.loads(MEASURED.read_text())
    if options.histories:
        measured["histories"] = measure_histories(options.histories)
    MEASURED.write_text(json.dumps(measured, indent=1) + "\n")
    commit = run("git", "log", "-1", "--format=%cs, %h").strip()
    rows = [f"| {label} | {text} |" for label, text in counts(collect_tests(), measured)]
    text = PAGE.read_text()
    for name, lines in (
        ("counts", [f"| method | counted on {commit} |", "|---|---|", *rows]),
        ("faults", fault_lines()),
    ):
        before, begin, rest = text.partition(f"<!-- counted: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        text = "\n".join([before + begin, *lines, "", end + after])
    PAGE.write_text(text)


def run(*command: str) -> str:
    """The output of a command."""
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True).stdout


# ---------------------------------------------------------------- counts
def collect_tests() -> Tests:
    """Have pytest collect all tests. Returns their number by file."""
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", "")
    output = run("env", "DEEP_TESTS=1", *command)
    return {path: int(number) for path, number in COLLECTED.findall(output)}


def below(tests: Tests, *folders: str) -> str:
    """The number of tests in some folders or files, in words."""
    number = sum(count for path, count in tests.items() if path.startswith(folders))
    return f"{number:,} test{'s' * (number != 1)}"


def counts(tests: Tests, measured: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each method with its counts, then measured figures, then the lines of each ring."""
    yield "Unit tests and refused files", below(tests, "tests/unit", "tests/extras", "tests/golden")
    found = [count_properties(path) for path in (ROOT / "tests").rglob("*.py")]
    yield "Properties", f"{sum(found)} properties in {sum(number > 0 for number in found)} files"
    modes = {world.rpartition("/")[0] for world in ALL}
    yield "Random histories", f"random rules files, and {len(ALL)} worlds in {len(modes)} modes"
    yield "Mutants of invariants", count_mutants()
    yield "Models", count_models()
    yield "Random edits", f"{len(every_edit()):,} possible edits of the core"
    commands = below(tests, "tests/integration", "tests/scale")
    deployed = below(tests, "tests/deploy", "tests/processes")
    stores = below(tests, "tests/contract")
    yield (
        "Engines and deployment",
        f"{stores} of the contract of stores; {commands} of commands and handlers; {deployed} of deployment and processes",
    )
    yield (
        "Peers and data of others",
        f"{below(tests, 'tests/peers')} of scenarios; {below(tests, 'tests/strangers')} of mistakes",
    )
    yield "Odd and damaged input", below(tests, "tests/unit/test_odd_documents.py")
    yield "Documentation", below(tests, "tests/docs")
    yield "Other machines", "3 newer versions of Python"
    probes = sum(not one.not_tested for one in ASSUMPTIONS.values())
    yield "Facts about AWS", f"{len(ASSUMPTIONS)} facts, {probes} probes, {len(LIES)} lies"
    yield "all tests", f"{below(tests, 'tests/')} in {len(tests)} files"
    yield from list_measured(**measured)
    rings = {ring: [room.replace(".", "/") for room in rooms] for ring, rooms in RINGS.items()}
    product = {ring: sum(count_lines(f"sync_rules/{room}") for room in rooms) for ring, rooms in rings.items()}
    yield "lines of the product", "; ".join(f"{ring} {number:,}" for ring, number in product.items())
    yield (
        "lines of tests",
        f"{count_lines('tests'):,}, and {count_lines('tests/simulation'):,} of these are the simulator",
    )


def count_properties(path: Path) -> int:
    """The number of functions in a file that Hypothesis draws examples for."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return sum(any(ast.unparse(one).startswith("given(") for one in node.decorator_list) for node in functions)


def count_mutants() -> str:
    """The mutants, how many of them a history shows, and how early it does."""
    caught = json.loads((ROOT / "tests/simulation/caught.json").read_text())
    shown = [number for number in caught.values() if number is not None]
    early = f"half of them by history {median(shown):g}, the last by history {max(shown):,}"
    return f"{len(caught)} mutants: {len(shown)} caught, {early}; {len(caught) - len(shown)} **not shown**"


def count_models() -> str:
    """The models, their instances, and the states that `make proofs` visits."""
    hold = [one for one in instances() if not one.line]
    removed = sum(1 for one in instances() if one.line)
    states = sum(int(number.replace(",", "")) for number in STATES.findall(MODELS_PAGE.read_text()))
    night = sum(one.night for one in hold)
    of_all = (
        f"{len(models())} models; {len(hold) - night} instances with {states:,} states, {night} larger ones at night"
    )
    return f"{of_all}; {removed} models with one line removed, each refuted by Spin"


def count_lines(folder: str) -> int:
    """The number of lines below a folder that are not blank."""
    return sum(bool(line.strip()) for path in (ROOT / folder).rglob("*.py") for line in path.read_text().splitlines())


# ---------------------------------------------------------------- measured figures
def describe_run() -> dict[str, str]:
    """The day, and the kind of machine."""
    info = Path("/proc/cpuinfo")
    kinds = re.findall(r"^model name\s*: (.*)$", info.read_text(), re.MULTILINE) if info.exists() else []
    kind = kinds[0] if kinds else platform.machine()
    day, python = datetime.now(UTC).date().isoformat(), platform.python_version()
    return {"run": f"{day}, {os.cpu_count()} cores, {kind}, Python {python}"}


def measure_histories(count: int) -> dict[str, Any]:
    """Play histories in this process. Returns their number, CPU time, simulated time and faults."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    failed, seen = play_share(None, FIRST_HISTORY, count)
    after = resource.getrusage(resource.RUSAGE_SELF)
    numbers = {word: sum(number for (what, _), number in seen.items() if what == word) for word in ("fault", "refused")}
    cpu = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)
    table_years = round(seen["clock", "table-seconds"] / YEAR_SECONDS, 4)
    return {
        **describe_run(),
        "histories": count,
        "failed": len(failed),
        "cpu_seconds": cpu,
        "table_years": table_years,
        **numbers,
    }


def list_measured(histories: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The measured figures, with their day and machine."""
    hours = histories["cpu_seconds"] / 3600
    rate, refused = (f"{histories[name] / hours:,.0f}" for name in ("histories", "refused"))
    failed = f"{histories['failed']} of {histories['histories']:,} failed"
    yield "measured: histories", f"{rate} per CPU hour ({failed}; {histories['run']})"
    years = f"{histories['table_years'] / hours:.2g} table-years"
    faults = f"{histories['fault'] / hours:,.0f} injected faults"
    yield "measured: their content", f"{years}, {faults} and {refused} refused conditions per CPU hour"


# ---------------------------------------------------------------- faults
def read_faults() -> dict[str, Any]:
    """Read faults.toml."""
    return tomllib.loads((HERE / "faults.toml").read_text())


def fault_lines() -> list[str]:
    """The table of faults: a row for each class, a column for each method."""
    file = read_faults()
    classes, methods = list(file["classes"]), list(file["methods"])
    found = Counter((kind, by) for _, kind, by, _, _ in file["faults"])

    def row(label: str, kinds: Sequence[str]) -> str:
        numbers = [sum(found[kind, by] for kind in kinds) for by in methods]
        return f"| {label} | {' | '.join(str(number or '') for number in numbers)} | {sum(numbers)} |"

    head = [f"| class | {' | '.join(methods)} | all |", f"|---|{'---:|' * (len(methods) + 1)}"]
    return [*head, *(row(kind, [kind]) for kind in classes), row("**all**", classes)]


if __name__ == "__main__":
    main()
