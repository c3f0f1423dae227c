"""Tables whose items lie in files: the one form in which scans and exports reach the search for rules.

Invariant: each file is gzip, with a line of `{"Item": ...}` in DynamoDB's JSON for each item, as in an export to S3.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sync_rules.extras.discover.imports.imported_model import FoundTable


@dataclass(frozen=True)
class GatheredTable:
    """A table with its key and its indexes, and the files that hold its items. `bytes` are those of the files."""

    found: FoundTable
    files: tuple[Path, ...]
    items: int
    bytes: int


@dataclass(frozen=True)
class Gathered:
    """All tables among which rules are looked for, and the names of those whose exports have no items and no key."""

    tables: tuple[GatheredTable, ...]
    without_items: tuple[str, ...] = ()
