"""`make proofs`: check each model of the protocol, then each model without one of its lines, which must fail.

Spin translates a model into a C program, which visits every state. An instance is a model with budgets: how often the
application, the stream and AWS may do something. Exit code: 0; 1 if an instance fails, or if a weakened one holds.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs/proof/models.md"
MARK = "<!-- generated: models "  # and their digest
STATES = re.compile(r"(\d+) states, stored")
ERRORS = re.compile(r"errors: (\d+)")
MEMORY_MAX_MB = 3_000
DEPTH_MAX_STEPS = 1_000_000


@dataclass(frozen=True)
class Instance:
    """A model with its budgets; `line` is the macro that removes an invariant, "" for the model as it is."""

    model: str
    settings: str
    line: str = ""
    row: str = ""
    night: bool = False

    @property
    def name(self) -> str:
        """The instance as a table shows it."""
        return " ".join(filter(None, (self.model, self.line, self.settings)))


@dataclass(frozen=True)
class Answer:
    """The answer of Spin: the number of states, and the steps of a counterexample, if there is one."""

    states: int
    steps: tuple[str, ...] | None
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="make proofs", description=__doc__)
    parser.add_argument("--night", action="store_true", help="the large instances too: minutes to hours")
    parser.add_argument("--only", default="", help="a model, or the name of a line")
    parser.add_argument("--steps", action="store_true", help="print the counterexample of each line that is removed")
    parser.add_argument(
        "--page", action="store_true", help="write the tables and counterexamples of docs/proof/models.md"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.page and options.only:
        parser.error("--page needs all models: leave out --only")
    chosen = [one for one in instances() if options.only in one.name and (options.night or not one.night)]
    failed = states = 0
    answers: list[tuple[Instance, Answer]] = []
    with ThreadPoolExecutor(options.workers) as pool:
        for one, answer in zip(chosen, pool.map(check, chosen), strict=True):
            answers.append((one, answer))
            states += answer.states
            found = answer.steps is not None
            wrong = found != bool(one.line)
            failed += wrong
            word = "refuted" if found else "holds"
            print(
                f"{'WRONG ' if wrong else ''}{word:8} {answer.states:>10} states {answer.seconds:6.1f} s  {one.name}",
                flush=True,
            )
            if answer.steps is not None and (wrong or options.steps):
                print(*(f"    {step}" for step in answer.steps), sep="\n")
    print(f"{len(chosen)} instances, {states} states, {failed} not as expected")
    if options.page and not failed:
        head = PAGE.read_text().partition(MARK)[0]
        PAGE.write_text(f"{head}{MARK}{compute_digest()} -->\n" + "\n".join(sections(answers)))
    return int(failed > 0)


def sections(answers: Sequence[tuple[Instance, Answer]]) -> Iterator[str]:
    """The generated part of the page: each model, its instances, and a counterexample for each line that is removed."""
    for model, entry in models().items():
        of_model = [(one, answer) for one, answer in answers if one.model == model]
        yield f"\n## {entry['promise']}\n\n`tests/models/{model}.pml`\n"
        yield "| instance | states |\n|---|---:|"
        yield from (
            f"| `{one.settings or 'as it is'}` | {answer.states:,} |" for one, answer in of_model if not one.line
        )
        for one, answer in of_model:
            if one.line:
                yield f"\n**Without `{one.line}`** ({one.row}), with `{one.settings or 'nothing else'}`:\n\n```text"
                yield from answer.steps or ()
                yield "```"


def compute_digest() -> str:
    """A digest of the models and their instances, except those of the night. The page has that of its models."""
    texts = [file.read_bytes() for file in sorted(HERE.glob("*.pml"))]
    texts += [repr(one).encode() for one in instances() if not one.night]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


def models() -> dict[str, Any]:
    """Read models.toml."""
    return tomllib.loads((HERE / "models.toml").read_text())


def instances() -> Iterator[Instance]:
    """Every instance in models.toml."""
    for model, entry in models().items():
        for one in entry["holds"]:
            yield Instance(model, one["with"], night=one.get("night", False))
        for one in entry["without"]:
            yield Instance(model, one["with"], one["line"], one["row"])


def check(one: Instance) -> Answer:
    """Check an instance. Raises RuntimeError when Spin does not visit all states."""
    since = time.monotonic()
    defines = [f"-D{setting}" for setting in filter(None, (*one.settings.split(), one.line))]
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        for file in (*HERE.glob("*.pml"), *HERE.glob("*.h")):
            (Path(folder) / file.name).write_text(file.read_text())
        run(folder, "spin", "-a", *defines, f"{one.model}.pml")
        run(
            folder,
            "gcc",
            "-O1",
            "-w",
            "-DSAFETY",
            "-DCOLLAPSE",
            f"-DMEMLIM={MEMORY_MAX_MB}",
            "-DVECTORSZ=4096",
            "-o",
            "pan",
            "pan.c",
        )
        output = run(folder, "./pan", f"-m{DEPTH_MAX_STEPS}", "-n")
        states, errors = STATES.search(output), ERRORS.search(output)
        if states is None or errors is None or "max search depth too small" in output or "out of memory" in output:
            raise RuntimeError(f"{one.name}: not all states were visited:\n{output}")
        steps = None
        if errors[1] != "0":
            steps = tuple(read_steps(run(folder, "spin", "-t", *defines, f"{one.model}.pml")))
        return Answer(int(states[1]), steps, time.monotonic() - since)


def run(folder: str, *command: str) -> str:
    """Run a command in a folder. Returns what it prints; raises RuntimeError when it cannot run."""
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    if done.returncode and command[0] != "./pan":
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def read_steps(output: str) -> Iterator[str]:
    """The steps of a counterexample, as the model prints them."""
    for line in output.splitlines():
        if line.startswith(("spin: trail ends", "#processes")):
            return
        if line.startswith("spin:"):
            continue
        yield line.strip()


if __name__ == "__main__":
    sys.exit(main())
