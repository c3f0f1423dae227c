"""The documents and reports of a verify in the account, and the sample that a schedule verifies.

Invariant: drift that two calls saw is reported once. The last line of a report holds the totals, and names what they
lack.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from sync_rules.adapters.s3 import BucketReports
from sync_rules.audit.compare import Drift
from sync_rules.audit.verifier import GRACE_SECONDS, Verifier
from sync_rules.audit.verify_tally import SAMPLE_SEGMENTS, Tally, draw_segments
from sync_rules.jobs.account.protocol import TIME_RESERVED_MS, Body
from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError
from sync_rules.pipeline.requests import World
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share, select_rules

LEDGERS: Final = "ledgers"  # the unit that adds up
WAITS_MAX: Final = 2  # grace periods of what differs: before the second look, and before the third


@dataclass(frozen=True)
class VerifyPosition:
    """The position of a verify: the step of the cascade, its round, and whether ledgers are being added up."""

    step: int = 0
    round: int = 0
    adding_up: bool = False


def name_head(execution: str) -> str:
    """Return the name of the document that holds the progress of a verify."""
    return f"verify/{execution}"


def name_unit(execution: str, stage: VerifyPosition, unit: str) -> str:
    """Return the name of the document of one unit of one stage. Each stage has other names, so a late call cannot
    change a later stage.
    """
    return f"verify/{execution}/{stage.step}-{stage.round}/{unit}"


def list_units(found: Body) -> list[str]:
    """Return the names of the units of the current stage: segment numbers, or the ledgers."""
    return [LEDGERS] if found["stage"]["adding_up"] else [str(number) for number in found["share"]["numbers"]]


def parse_share(found: Body) -> Share:
    """Return the part of the tables that this verify reads."""
    return Share(found["share"]["segments"], tuple(found["share"]["numbers"]))


def compute_needed_ms(grace_seconds: float) -> int:
    """Return the milliseconds that a call needs for its grace periods and the work between them."""
    return round(WAITS_MAX * (grace_seconds * 1000 + TIME_RESERVED_MS))


def require_grace(grace_seconds: float, remaining_ms: int) -> None:
    """Raise UserError if no call has enough time to wait for this grace period."""
    if compute_needed_ms(grace_seconds) > remaining_ms:
        most = max(0, (remaining_ms - compute_needed_ms(0)) // (WAITS_MAX * 1000))
        raise UserError(
            f"--grace-seconds {grace_seconds:g}: a call has {remaining_ms // 1000} s, and may wait {WAITS_MAX} times: "
            f"give at most {most}, or raise the function's timeout"
        )


def sample(
    rules: Rules, world: World, percent: float, remaining_ms: Callable[[], int], random: Random, **options: Any
) -> Verifier:
    """Verify random segments of each table until the call is out of time. Return the Verifier: it holds the figures,
    and whether time ran out first. Raises StoreError.
    """
    grace_seconds = options.pop("grace_seconds", GRACE_SECONDS)
    needed = compute_needed_ms(grace_seconds)
    verifier = Verifier(
        rules,
        world,
        select_rules(rules, []),
        share=Share(SAMPLE_SEGMENTS, draw_segments(percent, random)),  # in random order: no segment is always the last
        grace_seconds=grace_seconds,
        enough=lambda: remaining_ms() < needed,
        **options,
    )
    for _ in verifier.look_over(verifier.only):
        pass
    return verifier


# ---------------------------------------------------------------- reports
def write(reports: BucketReports, name: str, lines: Iterable[bytes]) -> str:
    """Write lines as a report. Return its name, or "" if there are no lines. Raises StoreError."""
    with tempfile.TemporaryFile() as file:
        file.writelines(lines)
        if not file.tell():
            return ""
        file.seek(0)
        reports.write(name, file)
    return name


def merge(reports: BucketReports, parts: Iterable[str], name: str, tally: Tally) -> None:
    """Merge several reports into a new report. Remove repeated rows from the report and from `tally`. Raises
    StoreError.
    """
    known: set[int] = set()  # hashes of the parts so far

    def once() -> Iterator[bytes]:
        for line in read_report_lines(reports, parts):
            body = json_bytes.parse_json(line)
            about = hash(json.dumps([body["rule"], body["target"], body["element"]]))
            if body["element"] is None or about not in known:  # only a part is seen twice
                yield line
            else:
                tally.take_out(body["rule"], Drift(body["drift"]), repaired=body["repaired"])
            known.add(about)

    write(reports, name, once())


def read_report_lines(reports: BucketReports, parts: Iterable[str]) -> Iterator[bytes]:
    """Read the lines of several reports, each with its newline."""
    return (line + b"\n" for part in parts for line in reports.lines(part))


def format_line(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode() + b"\n"
