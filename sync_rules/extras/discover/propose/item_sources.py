"""Tables of an account, or exports of tables, in the form that the search for rules reads.

Invariant: the search does not depend on the items' origin. Each table occurs once. An export with an unknown key is
refused with the cure.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sync_rules.adapters.files import convert_os_errors, lock_file
from sync_rules.adapters.state import FileState
from sync_rules.extras.discover.imports.table_variables import pad_name
from sync_rules.extras.discover.propose.export_keys import KeyNotToldError, explain_untold, parse_keys
from sync_rules.extras.discover.propose.export_tables import NamedExport, Reading, name_exports
from sync_rules.extras.discover.propose.table_files import Gathered, GatheredTable
from sync_rules.extras.discover.propose.table_scans import LiveTable
from sync_rules.jobs.export_files import Shelf
from sync_rules.model.entities import parse_address
from sync_rules.model.errors import UserError

OWNER_ONLY: Final = 0o700
OTHERS: Final = 0o077  # what others may do
IGNORED: Final = "# Made by sync-rules propose: items of your tables. Delete the folder when you are done.\n*\n"


# ---------------------------------------------------------------- the workspace
@dataclass(frozen=True)
class Workspace:
    """A folder of this machine for items that were read. Only its owner may read it, and git ignores it."""

    path: Path
    state: FileState

    @property
    def scans(self) -> Path:
        return self.path / "tables"

    @property
    def exports(self) -> Path:
        return self.path / "exports"

    @property
    def stage(self) -> Path:
        return self.path / "stage"


@contextmanager
def open_workspace(path: Path) -> Iterator[Workspace]:
    """Open a workspace for this process alone, create it if missing, and remove what a killed run left.

    Raises:
        UserError: if it cannot be private: it belongs to another user, or has files of others and is open to them.
    """
    ignored = path / ".gitignore"
    with convert_os_errors(path):
        path.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        about = path.stat()
        is_own = ignored.exists() and ignored.read_text() == IGNORED
        if about.st_uid != os.getuid() or (about.st_mode & OTHERS and not is_own and any(path.iterdir())):
            raise UserError(f"{path}: other users can read this folder. Name a new one with --workspace.")
        path.chmod(OWNER_ONLY)
        if not ignored.exists():
            ignored.write_text(IGNORED)
    progress = path / "progress.json"
    with lock_file(progress, "propose", "--workspace"):
        workspace = Workspace(path, FileState(progress))
        shutil.rmtree(workspace.stage, ignore_errors=True)
        for left in path.rglob("*.new"):
            left.unlink(missing_ok=True)
        yield workspace


# ---------------------------------------------------------------- exports
@dataclass(frozen=True)
class Given:
    """The tables among exported ones that the account describes, and keys of others and of their indexes, as texts."""

    described: Sequence[LiveTable] = ()
    keys: Sequence[str] = ()


def collect_exports(places: Mapping[str, Shelf], given: Given) -> tuple[NamedExport, ...]:
    """Return the exports in some places, one of each table.

    Raises:
        UserError: if an export is not whole and full, a table has two, or a described table has none.
        StoreError: if a place does not answer.
    """
    found: list[NamedExport] = []
    for place, shelf in places.items():
        found += name_exports(place, shelf, _choose_name(place, places, given))
    by_table: dict[str, NamedExport] = {}
    for one in found:
        if one.table in by_table:
            two = dict.fromkeys((by_table[one.table].files.place, one.files.place))
            raise UserError(
                f"{' and '.join(two)}: found two exports of table {one.table}. Name the place of one of them."
            )
        by_table[one.table] = one
    for table in given.described:
        if _find_bare_name(table) not in by_table:
            known = ", ".join(sorted(by_table))
            raise UserError(
                f"table {table.name} has no export among those given, which are of {known}. Name its export with "
                "--from-export, or leave out --table"
            )
    return tuple(found)


def gather_exports(exports: Sequence[NamedExport], given: Given, reading: Reading) -> Gathered:
    """Return the tables of some exports. Raises like `Reading.gather_table`."""
    described = {_find_bare_name(table): table.found for table in given.described}
    keys = parse_keys(given.keys, [one.table for one in exports])
    for table in (*keys.keys, *keys.indexes):
        if table in described:
            raise UserError(f"table {table}: the account says its key and indexes: leave out --key or --table")
    tables: list[GatheredTable | None] = []
    not_told: list[KeyNotToldError] = []
    for one in exports:
        try:
            tables.append(reading.gather_table(one, described.get(one.table), keys))
        except KeyNotToldError as error:
            not_told.append(error)
    if not_told:
        raise explain_untold(not_told)
    empty = tuple(one.table for one, table in zip(exports, tables, strict=True) if table is None)
    return Gathered(tuple(table for table in tables if table is not None), empty)


def _find_bare_name(table: LiveTable) -> str:
    return parse_address(table.name).name


def _choose_name(place: str, places: Mapping[str, Shelf], given: Given) -> str:
    """The name of a table whose export says none: as it is given, or that of the folder."""
    named = [_find_bare_name(table) for table in given.described] or list(
        dict.fromkeys(re.split("[/=]", text)[0] for text in given.keys)
    )
    if len(places) == 1 and len(named) == 1:
        return named[0]
    last = place.rstrip("/").rpartition("/")[2]
    return pad_name(re.sub(r"[^A-Za-z0-9_.-]", "-", last)[:255])
