"""One unit of a verify in the account: a segment of the tables, or the totals of the ledgers; and its report.

Invariant: a unit ends before its call does. It reads the clock at every page and before every wait, and fails with
OutOfTime instead of being killed. A drift that two calls saw is reported once. The last line of a report holds the
totals, and what is missing from them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import IO, Any, Final, Protocol

from sync_rules.audit.compare import Drift
from sync_rules.audit.drift_report import row
from sync_rules.audit.verifier import GRACE_SECONDS, Verifier
from sync_rules.audit.verify_tally import SAMPLE_SEGMENTS, Tally, drawn
from sync_rules.jobs.account.protocol import TIME_RESERVED_MS, Body
from sync_rules.model import json_bytes
from sync_rules.model.errors import OUT_OF_TIME, StoreError, UserError
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


def head_of(execution: str) -> str:
    """Name of the document that says how far a verify is."""
    return f"verify/{execution}"


def unit_of(execution: str, stage: VerifyPosition, unit: str) -> str:
    """Name of the document of one unit of one stage: a late call finds none of the next stage's."""
    return f"verify/{execution}/{stage.step}-{stage.round}/{unit}"


def units_of(found: Body) -> list[str]:
    """The units of the stage that a verify is in."""
    return [LEDGERS] if found["stage"]["adding_up"] else [str(number) for number in found["share"]["numbers"]]


def noted_share(found: Body) -> Share:
    """The part of the tables that a verify looks at."""
    return Share(found["share"]["segments"], tuple(found["share"]["numbers"]))


def needed_ms(grace_seconds: float) -> int:
    """The time that a call needs for its waits and the work between them."""
    return round(WAITS_MAX * (grace_seconds * 1000 + TIME_RESERVED_MS))


def require_grace(grace_seconds: float, remaining_ms: int) -> None:
    """Raises UserError for a grace period that no call could wait for."""
    if needed_ms(grace_seconds) > remaining_ms:
        most = max(0, (remaining_ms - needed_ms(0)) // (WAITS_MAX * 1000))
        raise UserError(
            f"--grace-seconds {grace_seconds:g}: a call has {remaining_ms // 1000} s, and may wait {WAITS_MAX} times: "
            f"give at most {most}, or raise the function's timeout"
        )


@dataclass(frozen=True)
class UnitVerifier:
    """Verifies units within one call, which has `remaining_ms`."""

    rules: Rules
    world: World
    reports: Reports
    remaining_ms: Callable[[], int]
    sleep: Callable[[float], object]

    def verify(self, unit: str, found: Body, name: str) -> dict[str, Any]:
        """The figures of a unit; its rows are saved as the report `name`. Raises StoreError: OutOfTime for a segment
        too large for one call. For ledgers that are too large, the figures so far, with the reason in `left`.
        """
        stage, asked = VerifyPosition(**found["stage"]), found["asked"]
        names = frozenset(found["steps"][stage.step][0])
        share = noted_share(found)

        def require(wait_seconds: float) -> None:
            if self.remaining_ms() < wait_seconds * 1000 + TIME_RESERVED_MS:
                what = "the ledgers are" if unit == LEDGERS else f"segment {unit} of {share.segments} is"
                raise StoreError(OUT_OF_TIME, f"{what} too much for one call")

        def progress(_tally: Tally, _doing: str) -> None:
            require(0)

        def sleep(seconds: float) -> None:
            require(seconds)
            self.sleep(seconds)

        verifier = Verifier(
            self.rules,
            self.world,
            names,
            repair=asked["repair"],
            rebuild=not share.sampled,
            share=share if unit == LEDGERS else Share(share.segments, (int(unit),)),
            grace_seconds=asked["grace_seconds"],
            on_progress=progress,
            sleep=sleep,
        )
        left = ""

        def rows() -> Iterator[bytes]:
            nonlocal left
            try:
                for one in verifier.add_up(names) if unit == LEDGERS else verifier.look_over(names, found["counted"]):
                    yield as_line(row(one))
            except StoreError as error:
                if unit != LEDGERS or error.reason != OUT_OF_TIME:  # another call would get no further
                    raise
                left = str(error)

        report = write(self.reports, name, rows())
        return {"tally": verifier.tally.body(), "report": report, "left": left}


@dataclass(frozen=True)
class VerifySample:
    """The figures of a sample, and its rules; `cut_short` where time was up before the end."""

    tally: Tally
    names: frozenset[str]
    cut_short: bool


def sample(
    rules: Rules, world: World, percent: float, remaining_ms: Callable[[], int], random: Random, **options: Any
) -> VerifySample:
    """Look at a random share of each table, as far as one call goes. Raises StoreError."""
    names = select_rules(rules, [])
    grace_seconds = options.pop("grace_seconds", GRACE_SECONDS)
    needed = needed_ms(grace_seconds)
    verifier = Verifier(
        rules,
        world,
        names,
        share=Share(SAMPLE_SEGMENTS, drawn(percent, random)),  # whatever is cut off is not always the same
        grace_seconds=grace_seconds,
        enough=lambda: remaining_ms() < needed,
        **options,
    )
    for _ in verifier.look_over(names):
        pass
    return VerifySample(verifier.tally, names, verifier.cut_short)


# ---------------------------------------------------------------- reports
def is_new(row: Body, known: set[int]) -> bool:
    """True if no row before this one reported the same; `known` holds hashes of the parts reported so far."""
    about = hash(json.dumps([row["rule"], row["target"], row["element"]]))
    new = row["element"] is None or about not in known  # what is no part is seen once
    known.add(about)
    return new


class Reports(Protocol):
    """A place for reports. Each call raises StoreError."""

    def write(self, name: str, file: IO[bytes]) -> None:
        """Returns once the report is safe."""

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a report, without their ends."""


def write(reports: Reports, name: str, lines: Iterable[bytes]) -> str:
    """Write lines as a report, if there are any. Returns its name, "" for none. Raises StoreError."""
    with tempfile.TemporaryFile() as file:
        file.writelines(lines)
        if not file.tell():
            return ""
        file.seek(0)
        reports.write(name, file)
    return name


def merge(reports: Reports, parts: Iterable[str], name: str, tally: Tally) -> None:
    """Make one report of several; a row that comes again is taken out of the figures. Raises StoreError."""
    known: set[int] = set()

    def once() -> Iterator[bytes]:
        for line in _lines(reports, parts):
            body = json_bytes.parsed(line)
            if is_new(body, known):
                yield line
            else:
                tally.take_out(body["rule"], Drift(body["drift"]), repaired=body["repaired"])

    write(reports, name, once())


def write_whole(
    reports: Reports, parts: Iterable[str], name: str, head: Mapping[str, Any], end: Mapping[str, Any]
) -> None:
    """Write the report of the whole verify, as `verify --format jsonl` prints it. Raises StoreError."""
    write(reports, name, chain([as_line(head)], _lines(reports, parts), [as_line(end)]))


def _lines(reports: Reports, parts: Iterable[str]) -> Iterator[bytes]:
    return (line + b"\n" for part in parts for line in reports.lines(part))


def as_line(body: Mapping[str, Any]) -> bytes:
    """One line of a report."""
    return json.dumps(body).encode() + b"\n"
