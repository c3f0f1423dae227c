"""The planted faults, and the table of what found them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes.world import Verdict

FOUND = Path(__file__).with_name("found.json")
PAGE = Path(__file__).resolve().parents[2] / "docs/proof/processes.md"
BEGIN, END = "<!-- generated: faults -->", "<!-- end -->"

NOT_FOUND = "not found until then"

FAULTS = (
    "checkpoint before effect",
    "checkpoint without messages",
    "failed records are done",
    "last record of a batch not delivered",
    "throttled write taken as done",
    "no second look",
    "rest of a relay not sent",
    "no existence guard",
    "no pull on insert",
    "REMOVE ignored",
    "count: totals name no parent",
    "mirror: old key stays",
    "no link guard",
    "collect: sets not looked at again",
    "no pull on a change of the copy",
    "a version of the source as it is now",
    "no push",
)


def write_report(fault: str, seed: int, verdict: Verdict) -> None:
    """Note when a fault was found, and how it showed."""
    found = read_reports()
    showed = verdict.findings[0].splitlines()[0] if verdict.findings else NOT_FOUND
    if fault == "none":
        showed = f"{len(verdict.findings)} wrong or lost in {verdict.rounds} rounds: {verdict.summary}"
    found[fault] = {"seed": seed, "seconds": round(verdict.seconds), "showed": showed}
    FOUND.write_text(
        "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items()) + "\n}\n"
    )


def read_reports() -> dict[str, dict[str, object]]:
    return json.loads(FOUND.read_text()) if FOUND.exists() else {}


def table() -> str:
    found = read_reports()
    clean = found["none"]
    lines = [f"Without a fault, seed {clean['seed']}, {clean['seconds']} s: {clean['showed']}.", ""]
    lines += ["| fault | seed | found after s | how it showed |", "|---|---:|---:|---|"]
    for fault in FAULTS:
        report = found.get(fault, {"seed": "", "seconds": "", "showed": NOT_FOUND})
        lines.append(f"| {fault} | {report['seed']} | {report['seconds']} | {report['showed']} |")
    return "\n".join(lines)


def write_page() -> None:
    """Write the table into the page."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{table()}\n{END}{tail}")
