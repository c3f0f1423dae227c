"""The report of a verify in the account, made of the rows of its calls.

Invariant: a drift that two calls saw is reported once. The last line holds the totals, and what is missing from them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import IO, Any, Protocol

from sync_rules.audit.compare import Drift
from sync_rules.audit.findings import Tally
from sync_rules.jobs.account.protocol import Body
from sync_rules.model import json_bytes


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
