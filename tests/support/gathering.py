"""Tables written as files of items, for the search for rules: plain Python values in, gathered tables out."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.extras.discover.propose.table_files import Gathered, GatheredTable
from sync_rules.model.entities import Index, KeyAttribute
from tests.support.builders import attribute_value


class PlainTable(NamedTuple):
    """A table: its name, its key by types, its items as Python values, and its indexes as pairs of partition and sort."""

    name: str
    key: Mapping[str, str]
    items: Sequence[Mapping[str, Any]]
    indexes: Mapping[str, Mapping[str, str]] = {}


def gathered(directory: Path, *tables: PlainTable, files: int = 1) -> Gathered:
    """The tables, each in this number of files of an export's form."""
    directory.mkdir(parents=True, exist_ok=True)
    return Gathered(tuple(_table(directory, one, files) for one in tables))


def _table(directory: Path, table: PlainTable, files: int) -> GatheredTable:
    paths = tuple(directory / f"{table.name}-{number}.json.gz" for number in range(files))
    for number, path in enumerate(paths):
        _write(path, table.items[number::files])
    found = FoundTable(table.name, table.name, _attributes(table.key))
    for name, attributes in table.indexes.items():
        first, *others = _attributes(attributes)
        found.indexes.append(Index(name, (first,), tuple(others)))
    return GatheredTable(found, paths, len(table.items), sum(path.stat().st_size for path in paths))


def _attributes(types: Mapping[str, str]) -> tuple[KeyAttribute, ...]:
    return tuple(KeyAttribute(name, kind) for name, kind in types.items())


def _write(path: Path, items: Iterable[Mapping[str, Any]]) -> None:
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        for item in items:
            plain = {name: attribute_value(value) for name, value in item.items()}
            file.write(json.dumps({"Item": plain}, default=lambda binary: base64.b64encode(binary).decode()) + "\n")
