"""The report of a verify in the account, made of the rows of its calls.

Invariant: a drift that two calls saw is reported once. The last line holds the totals, and what is missing from them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, Protocol

from sync_rules.audit.compare import Drift
from sync_rules.audit.drift_report import row
from sync_rules.audit.findings import Finding, Tally
from sync_rules.jobs.account.protocol import Body


def is_new(row: Body, known: set[int]) -> bool:
    """True if no row before this one reported the same; `known` holds hashes of the parts reported so far."""
    about = hash(json.dumps([row["rule"], row["target"], row["element"], row["source"]]))
    new = row["element"] is None or about not in known  # what is no part is seen once
    known.add(about)
    return new


class Reports(Protocol):
    """A place for reports. Each call raises StoreError."""

    def write(self, name: str, file: IO[bytes]) -> None:
        """Returns once the report is safe."""
        ...

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a report, without their ends."""
        ...


class Rows:
    """A file to which findings are added."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._any = False

    def add(self, finding: Finding) -> None:
        self._file.write(_line(row(finding)))
        self._any = True

    def write(self, reports: Reports, name: str) -> str:
        """Write them as a report, if there are any. Returns its name, "" for none. Raises StoreError."""
        if not self._any:
            return ""
        self._file.seek(0)
        reports.write(name, self._file)
        return name


def merge(reports: Reports, parts: Iterable[str], name: str, tally: Tally) -> None:
    """Make one report of several; a row that comes again is taken out of the figures. Raises StoreError."""
    known: set[int] = set()
    with tempfile.TemporaryFile() as file:
        for line in _rows(reports, parts):
            body = json.loads(line)
            if is_new(body, known):
                file.write(line + b"\n")
            else:
                tally.take_out(body["rule"], Drift(body["drift"]), repaired=body["repaired"])
        file.seek(0)
        reports.write(name, file)


def write_whole(
    reports: Reports, parts: Iterable[str], name: str, head: Mapping[str, Any], end: Mapping[str, Any]
) -> None:
    """Write the report of the whole verify, as `verify --json` prints it. Raises StoreError."""
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
