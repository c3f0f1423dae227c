"""An export of a table to S3, as a supply of keys for a backfill.

Invariant: only keys are taken from an export, which is old: each item is read, strongly consistent, before it is
processed. A line that cannot be read ends the run: nothing of an export is skipped.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Final

from sync_rules.jobs.backfill.export_files import SUMMARY, Shelf, TableExport, find_exports, parse_item, read_lines
from sync_rules.jobs.backfill.page import PageResult, Selection, Supply, process_keys
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Work
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import list_swept_tables

PAGE_MAX_LINES: Final = 500
LINE: Final = "line"


def open_export(place: str, shelf: Shelf, rules: Rules, arns: Mapping[str, str]) -> tuple[TableExport, Table]:
    """Find the one export in a place, and its table. `arns` of the tables that it may be of, by their names in the
    rules file: exactly one if the export has no manifest.

    Raises:
        UserError: when it is not a whole export, or one of another table.
        StoreError: when the place does not answer.
    """
    exports = find_exports(place, shelf)
    if len(exports) > 1:
        folders = ", ".join(one.folder for one in exports)
        raise UserError(f"{place}: expected one export, found {len(exports)}: {folders}. Name one of them.")
    (export,) = exports
    if export.table_arn is None:
        if len(arns) != 1:
            raise UserError(f"{place}: there is no {SUMMARY} that names the exported table. Name it with --table.")
        return export, rules.tables[next(iter(arns))]
    name = next((name for name, arn in arns.items() if arn == export.table_arn), None)
    if name is None:
        known = ", ".join(sorted(arns.values()))
        raise UserError(f"{place}: expected an export of {known}, found one of {export.table_arn}")
    return export, rules.tables[name]


def list_files(export: TableExport, table: Table, names: frozenset[str], rules: Rules) -> Sequence[Supply]:
    """The files of an export, if these rules keep something in its table."""
    return (
        [ExportFile(export, table, name) for name in export.files] if table in list_swept_tables(rules, names) else ()
    )


@dataclass
class ExportFile:
    """One data file, page by page. The next page goes on from the last one; any other is read from the beginning."""

    export: TableExport
    table: Table
    file: str
    _page: tuple[int, list[ItemKey]] = (0, [])
    _keys: Iterator[ItemKey] | None = field(default=None, repr=False)
    _at: int = 0

    @property
    def name(self) -> str:
        return f"export/{self.file}"

    def page(self, cursor: Item | None, selection: Selection, bounds: Bounds) -> Work[PageResult]:
        """Raises UserError when a line is not an item of the table, or the manifest contradicts the file."""
        start = int(cursor[LINE]["N"]) if cursor else 0
        keys = self.read_page(start)
        result = yield from process_keys(keys, selection, bounds)
        if len(keys) < PAGE_MAX_LINES:
            self._keys = None
            return result
        return replace(result, cursor={LINE: {"N": str(start + len(keys))}})

    def read_page(self, start: int) -> list[ItemKey]:
        """Read the keys of a page that begins after `start` lines."""
        if self._page[0] == start and self._page[1]:
            return self._page[1]  # the page is retried
        keys, at = (self._keys, self._at) if self._at == start else (None, 0)
        self._keys = None  # until it is known that these lines could be read
        if keys is None:
            lines = read_lines(partial(self.export.shelf.open, self.file), self.export.locate(self.file))
            keys = (self._parse_key(line, place) for place, line in lines)
            at = sum(1 for _ in islice(keys, start))
        page = list(islice(keys, PAGE_MAX_LINES))
        self._keys, self._at = keys, at + len(page)
        if len(page) < PAGE_MAX_LINES:
            self.export.require_items(self.file, self._at)
        self._page = start, page
        return page

    def _parse_key(self, line: bytes, place: str) -> ItemKey:
        item = parse_item(line, place)
        try:
            key = self.table.key_of({a.name: _decode(item[a.name]) for a in self.table.key})
        except (ValueError, KeyError, TypeError):
            key = None
        if key is None:
            names = ", ".join(f"{a.name} ({a.type})" for a in self.table.key)
            raise UserError(f'{place}: expected {{"Item": ...}} with the key {names}')
        return key


def _decode(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value of a key attribute as the service returns it: binary as bytes."""
    return {"B": base64.b64decode(value["B"], validate=True)} if "B" in value else value
