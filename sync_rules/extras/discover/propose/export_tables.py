"""Exports of tables to S3, in their bucket or in a folder, as gathered tables: whole and full ones, or none.

Invariant: nothing of an export is skipped. A file is as its manifest says, by MD5 sum and number of items, and each
line is an item of the table; what is not is named by file and line. Files of a bucket are fetched once: a later run
finds them.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from sync_rules.adapters.files import open_whole
from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.extras.discover.propose.export_keys import GivenKeys, Names, Shape, choose_key
from sync_rules.extras.discover.propose.table_files import GatheredTable
from sync_rules.jobs.export_files import (
    AGAIN,
    DATA,
    FILES,
    SUMMARY,
    Folder,
    Shelf,
    TableExport,
    list_exports,
    parse_item,
    read_lines,
)
from sync_rules.model import json_bytes
from sync_rules.model.entities import parse_address
from sync_rules.model.errors import UserError
from sync_rules.model.numbers import parse_number
from sync_rules.model.values import Item

REPORTED_EVERY_ITEMS: Final = 10_000
CHUNK_BYTES: Final = 1 << 20
READ_OFF: Final = "its key is read off the items, for an export does not hold it"
NO_INDEXES: Final = (
    "its indexes are not known, for an export does not hold them: add them, or give --key TABLE/INDEX=PK,SK"
)


@dataclass(frozen=True)
class NamedExport:
    """An export, and the name of its table."""

    table: str
    files: TableExport


def name_exports(place: str, shelf: Shelf, called: str) -> list[NamedExport]:
    """Find the exports in a place. `called`: the name of the table where no manifest says it. Raises like
    `list_exports`.
    """
    names = shelf.names()
    for name in names:
        beside = str(PurePosixPath(name).parent / FILES)
        if PurePosixPath(name).name == SUMMARY and beside not in names:
            raise UserError(f"{place}: expected {beside}, found none: the export is not whole. {AGAIN}")
    found = list_exports(place, shelf)
    unnamed = {name for name in names if name.endswith(DATA)}.difference(*(one.files for one in found))
    if unnamed or (not found[0].folder and any("AWSDynamoDB/" in f"{place}/{name}" for name in names)):
        name = min(unnamed or names)
        raise UserError(f"{place}: no manifest names {name}: a part of the manifests is missing. {AGAIN}")
    for one in found:
        _require_sum(one)
    return [NamedExport(parse_address(one.table_arn).name if one.table_arn else called, one) for one in found]


def _require_sum(export: TableExport) -> None:
    """Check that the manifest of files has as many items as the summary says, and each file's number."""
    if not export.folder:
        return
    where = f"{export.place}/{export.folder}"
    with export.shelf.open(f"{export.folder}/{SUMMARY}") as file:
        summary = json_bytes.parse_json(file.read())
    expected = summary.get("itemCount")
    uncounted = [name for name, one in export.files.items() if not isinstance(one.items, int)]
    if not summary.get("tableArn") or uncounted or (not export.files and expected is None):
        raise UserError(f"{where}: expected manifests with a table and the items of each file, found less. {AGAIN}")
    if expected is not None and expected != (export.items or 0):
        found = f"its {FILES} has {export.items or 0:,}"
        raise UserError(f"{where}: {SUMMARY} says {expected:,} items, {found}. {AGAIN}")


# ---------------------------------------------------------------- gathered
@dataclass(frozen=True, eq=False)
class Reading:
    """A reading of exports. It fetches files of a bucket into `folder`, `workers` at a time, and reports the items that
    it read to `on_items`. It calls `stopping` between files and items.
    """

    folder: Path
    workers: int = 1
    on_items: Callable[[int], None] = lambda _items: None
    stopping: Callable[[], bool] = lambda: False

    def gather_table(self, export: NamedExport, found: FoundTable | None, given: GivenKeys) -> GatheredTable | None:
        """The table of an export. `found`: its description, if it was looked at. None for one without an item whose key
        nothing says.

        Raises:
            UserError: when a file is not what it should be, or the key cannot be told.
            StoreError: when a file cannot be fetched.
        """
        paths = self._fetch_files(export.files)
        indexes = {} if found else given.indexes.get(export.table, {})
        key = tuple(one.name for one in found.key) if found else given.keys.get(export.table)
        shape = Shape({name for names in indexes.values() for name in names})
        size = 0
        for name, path in paths.items():
            size += path.stat().st_size
            self._look(export.files, name, path, shape)
        if found is not None:
            _require_key(export.files, found, shape)
            return GatheredTable(found, tuple(paths.values()), shape.items, size)
        if not shape.items:
            return None
        unique = partial(self._list_unique_keys, export.files, paths)
        checks = [*([] if key else [READ_OFF]), *([] if indexes else [NO_INDEXES])]
        made = FoundTable(export.table, export.table, choose_key(export.table, shape, key, unique), checks=checks)
        made.indexes = [shape.index(index, names) for index, names in indexes.items()]
        return GatheredTable(made, tuple(paths.values()), shape.items, size)

    # ------------------------------------------------------------ files
    def _fetch_files(self, export: TableExport) -> dict[str, Path]:
        """The files on this machine, whole as far as sums tell."""
        with ThreadPoolExecutor(self.workers) as pool:
            paths = list(pool.map(partial(self._fetch_file, export), export.files))
        return dict(zip(export.files, paths, strict=True))

    def _fetch_file(self, export: TableExport, name: str) -> Path:
        self._go_on()
        if isinstance(export.shelf, Folder):
            path = export.shelf.path(name)
        else:
            digest = hashlib.sha256(f"{export.place}/{name}".encode()).hexdigest()[:32]
            path = self.folder / f"{digest}.json.gz"
            if not path.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                with export.shelf.open(name) as source, open_whole(path) as target:
                    shutil.copyfileobj(source, target, CHUNK_BYTES)
        expected = export.files[name].md5
        if expected is not None and _compute_md5(path) != expected:
            if not isinstance(export.shelf, Folder):
                path.unlink()  # the next run fetches it again
            raise UserError(
                f"{export.locate(name)}: expected the MD5 sum that the manifest says, found another: the file is cut "
                f"short or was changed. {AGAIN}"
            )
        return path

    # ------------------------------------------------------------ items
    def _look(self, export: TableExport, name: str, path: Path, shape: Shape) -> None:
        before = shape.items
        for item in self._read_items(export, name, path, reporting=True):
            shape.add(item)
        export.require_items(name, shape.items - before)

    def _read_items(self, export: TableExport, name: str, path: Path, *, reporting: bool = False) -> Iterator[Item]:
        number = 0
        for number, (place, line) in enumerate(
            read_lines(partial(Folder(path.parent).open, path.name), export.locate(name)), 1
        ):
            if not number % REPORTED_EVERY_ITEMS:
                self._go_on(REPORTED_EVERY_ITEMS if reporting else 0)
            yield _require_item(line, place)
        self._go_on(number % REPORTED_EVERY_ITEMS if reporting else 0)

    def _list_unique_keys(self, export: TableExport, paths: Mapping[str, Path], keys: Sequence[Names]) -> list[Names]:
        """The keys among these whose values no two items share."""
        seen: dict[Names, set[int]] = {names: set() for names in keys}
        for name, path in paths.items():
            for item in self._read_items(export, name, path):
                for names in list(seen):
                    value = hash(tuple(repr(item[one]) for one in names))
                    if value in seen[names]:
                        del seen[names]
                    else:
                        seen[names].add(value)
                if not seen:
                    return []
        return list(seen)

    def _go_on(self, items: int = 0) -> None:
        """Tell of items that were looked at. Raises KeyboardInterrupt when it is time to stop."""
        if self.stopping():
            raise KeyboardInterrupt
        if items:
            self.on_items(items)


def _require_item(line: bytes, place: str) -> Item:
    """The item in a line, each value of a type that DynamoDB has. Raises UserError with the place."""
    try:
        item = parse_item(line, place)
        is_whole = all(map(_is_value, item.values()))
    except (RecursionError, UnicodeError):
        is_whole = False
    if not is_whole:
        raise UserError(f"{place}: expected values of DynamoDB's types, found another. {AGAIN}")
    return item


def _is_value(value: object) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((kind, content),) = value.items()
    match content:
        case bool():
            return kind == "BOOL" or (kind == "NULL" and content)
        case str():
            return (kind in ("S", "B") and content.encode() is not None) or (
                kind == "N" and parse_number(content) is not None
            )
        case dict():
            return kind == "M" and all(map(_is_value, content.values()))
        case list() if kind == "L":
            return all(map(_is_value, content))
        case list():
            return kind in ("SS", "NS", "BS") and all(_is_value({kind[0]: one}) for one in content)
    return False


def _require_key(export: TableExport, found: FoundTable, shape: Shape) -> None:
    for one in found.key:
        if shape.items and shape.types.get(one.name) != one.type:
            raise UserError(
                f"{export.place}: expected items of table {found.called}, each with {one.name} ({one.type}), found "
                "some without it. Name the table of the export with --table, and its place with --from-export."
            )


def _compute_md5(path: Path) -> str:
    """The sum in base64, as a manifest has it."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False))
    return base64.b64encode(found.digest()).decode()
