"""Tables whose items lie in files: the one form of scans and exports that the search for rules reads.

Invariant: each file is gzip, with a line of `{"Item": ...}` in DynamoDB's JSON for each item, as in an export to S3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.jobs.export_files import Folder, parse_item, read_lines


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


def read_items(files: Sequence[Path], every: int = 1) -> Iterator[dict[str, Any]]:
    """Read the items in files, or each item whose number is a multiple of `every`.

    Raises:
        UserError: when a line holds no item, or a file is broken; the message names file and line.
    """
    number = 0
    for file in files:
        for place, line in read_lines(partial(Folder(file.parent).open, file.name), file.name):
            number += 1
            if every == 1 or not number % every:
                yield parse_item(line, place)
