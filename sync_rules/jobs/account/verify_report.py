"""The report of a verify in the account, made of the rows of its calls.

Law: what two calls saw is told once. A report has its totals in the last line, and there, too, what is not in them.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, Final, Protocol

from sync_rules.audit.compare import Drift
from sync_rules.audit.drift_report import row
from sync_rules.audit.findings import Finding, Tally
from sync_rules.jobs.account.protocol import Body

COUNTERS: Final = ("right", "kept", "orphaned", "lag", "drift", "repaired")
PAIRED: Final = ("unmended", "hopeless")


def tally_body(tally: Tally) -> dict[str, Any]:
    """As JSON."""
    single = {name: dict(getattr(tally, name)) for name in COUNTERS}
    paired = {
        name: [[rule, drift.value, count] for (rule, drift), count in getattr(tally, name).items()] for name in PAIRED
    }
    return {"items": tally.items, **single, **paired}


def tally_of(body: Body) -> Tally:
    """From JSON."""
    tally = Tally(items=body["items"])
    for name in COUNTERS:
        setattr(tally, name, Counter(body[name]))
    for name in PAIRED:
        setattr(tally, name, Counter({(rule, Drift(drift)): count for rule, drift, count in body[name]}))
    return tally


def add(tally: Tally, other: Tally) -> None:
    """Take in what another call found elsewhere."""
    for name in (*COUNTERS, *PAIRED):
        getattr(tally, name).update(getattr(other, name))
    tally.items += other.items


def take_out(tally: Tally, rule: str, drift: Drift, *, repaired: bool) -> None:
    """Take out what was counted twice."""
    tally.drift[rule] -= 1
    tally.repaired[rule] -= repaired
    tally.unmended[rule, drift] -= not repaired
    if drift is Drift.STUCK and not repaired:  # of parts, nothing else is hopeless
        tally.hopeless[rule, drift] -= 1


def is_new(row: Body, known: set[int]) -> bool:
    """Whether a row is of something that no row before it told; `known` is what is remembered of those."""
    about = hash(json.dumps([row["rule"], row["target"], row["element"], row["source"]]))
    new = row["element"] is None or about not in known  # who is no part is seen once
    known.add(about)
    return new


class Reports(Protocol):
    """Where reports lie. Each call raises StoreError."""

    def write(self, name: str, file: IO[bytes]) -> None:
        """Returns once it is safe."""
        ...

    def lines(self, name: str) -> Iterator[bytes]:
        """A report's lines, without their ends."""
        ...


class Rows:
    """A file of findings, while they are being found."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._any = False

    def add(self, finding: Finding) -> None:
        """One more."""
        self._file.write(_line(row(finding)))
        self._any = True

    def write(self, reports: Reports, name: str) -> str:
        """Put them where reports lie, if there are any. Gives their name there, "" for none. Raises StoreError."""
        if not self._any:
            return ""
        self._file.seek(0)
        reports.write(name, self._file)
        return name


def merge(reports: Reports, parts: Iterable[str], name: str, tally: Tally) -> None:
    """The rows of several as one; what one of them tells again is taken out of the figures. Raises StoreError."""
    known: set[int] = set()
    with tempfile.TemporaryFile() as file:
        for line in _rows(reports, parts):
            body = json.loads(line)
            if is_new(body, known):
                file.write(line + b"\n")
            else:
                take_out(tally, body["rule"], Drift(body["drift"]), repaired=body["repaired"])
        file.seek(0)
        reports.write(name, file)


def write_whole(
    reports: Reports, parts: Iterable[str], name: str, head: Mapping[str, Any], end: Mapping[str, Any]
) -> None:
    """The report of everything, as `verify --json` prints it. Raises StoreError."""
    with tempfile.TemporaryFile() as file:
        file.write(_line(head))
        for line in _rows(reports, parts):
            file.write(line + b"\n")
        file.write(_line(end))
        file.seek(0)
        reports.write(name, file)


def _rows(reports: Reports, parts: Iterable[str]) -> Iterator[bytes]:
    for name in parts:
        yield from reports.lines(name)


def _line(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode() + b"\n"
