"""The planted faults, and the table of what found them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes.world import MEMBERS, Verdict

FOUND = Path(__file__).with_name("found.json")
PAGE = Path(__file__).resolve().parents[2] / "docs/proof/processes.md"
BEGIN, END = "<!-- generated: faults -->", "<!-- end -->"

NOT_FOUND = "not found until then"

# The planted faults, each with the members of a team in its world: only a large fan-out is relayed.
FAULTS = {
    "checkpoint before effect": 30,
    "checkpoint without messages": 30,
    "message taken is done": 30,
    "failed records are done": 30,
    "last record of a batch not delivered": 30,
    "throttled write taken as done": 30,
    "no second look": 30,
    "rest of a relay not sent": MEMBERS,
    "no existence guard": 30,
    "no pull on insert": 30,
    "REMOVE ignored": 30,
    "count: totals name no parent": 30,
    "mirror: old key stays": 30,
    "no link guard": 30,
    "collect: sets not looked at again": 30,
    "no pull on a change of the copy": 30,
    "a version of the source as it is now": 30,
    "no push": 30,
}


def write_report(fault: str, seed: int, verdict: Verdict) -> None:
    """Note when a fault was found, and how it showed."""
    found = read_reports()
    showed = verdict.findings[0].splitlines()[0] if verdict.findings else NOT_FOUND
    found[fault] = {"seed": seed, "seconds": round(verdict.seconds), "showed": showed}
    FOUND.write_text(json.dumps(found, indent=1) + "\n")


def read_reports() -> dict[str, dict[str, object]]:
    return json.loads(FOUND.read_text()) if FOUND.exists() else {}


def table() -> str:
    found = read_reports()
    lines = ["| fault | found after s | how it showed |", "|---|---:|---|"]
    for fault in FAULTS:
        report = found.get(fault, {"seconds": "", "showed": "no complete run yet"})
        lines.append(f"| {fault} | {report['seconds']} | {report['showed']} |")
    return "\n".join(lines)


def write_page() -> None:
    """Write the table into the page."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{table()}\n{END}{tail}")
