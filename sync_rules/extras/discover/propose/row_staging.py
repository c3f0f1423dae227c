"""Items as rows: a table of DuckDB for each entity, with a column for each field and each attribute.

Invariant: a value is staged as its typed text. A late attribute is a column that earlier rows lack. Contents of lists,
sets and maps by id are rows of their own, the entries.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

from sync_rules.extras.discover.imports.normalization import SettledEntity
from sync_rules.extras.discover.propose.table_files import read_items
from sync_rules.extras.discover.propose.value_texts import keep_text, write_value
from sync_rules.model.templates import Template, parse_template
from sync_rules.model.values import Path as Road

COLUMNS_MAX: Final = 300  # of an entity: an item of 10,000 attributes is a map by id, or no table
DEPTH_MAX: Final = 5
ENTRIES_MAX: Final = 2_000  # of an item's map or list
OWN_NAMES: Final = 0.5  # maps of maps: at most this share of the maps has each name, where names are ids
OWN_SCALARS: Final = 0.2
MOSTLY: Final = 0.8
ENTRY_COLUMNS: Final = {
    "rid": "BIGINT", "road": "BIGINT", "place": "BIGINT", "name": "VARCHAR", "field": "VARCHAR", "v": "VARCHAR",
}  # fmt: skip
STRANGERS_MAX: Final = 2_000
RIDS_OF_A_FILE: Final = 1 << 40


@dataclass(frozen=True)
class Layout:
    """An entity as it is staged. `opened` are maps by id, which have no columns of their own.

    `fields` come first among the columns: those of the table's key, then those of index keys.
    """

    name: str
    templates: tuple[tuple[str, str, Template], ...]  # of each key attribute: its name, its type
    fields: tuple[str, ...]
    identity: int  # the number of fields that name one item
    indexed: tuple[tuple[str, Template], ...] = ()
    opened: frozenset[Road] = frozenset()

    def read_fields(self, item: Mapping[str, Mapping[str, Any]]) -> list[str | None] | None:
        """The fields of an item, as typed texts; None for an item of another entity."""
        found: dict[str, str] = {}
        for name, kind, template in self.templates:
            value = item.get(name)
            if value is None or kind not in value:
                return None
            parsed = template.parse(value)
            if parsed is None:
                return None
            for each, content in parsed.items():
                told = write_value(content)
                if found.setdefault(each, told) != told:
                    return None
        for name, template in self.indexed:
            for each, content in (template.parse(item.get(name)) or {}).items():
                found.setdefault(each, write_value(content))
        return [found.get(name) for name in self.fields]


def make_layout(entity: SettledEntity, opened: frozenset[Road] = frozenset()) -> Layout:
    types = {one.name: one.type for one in entity.table.found.key}
    templates = tuple((name, types[name], template) for name, template in entity.templates.items())
    indexed = tuple(
        (name, parse_template(text, pads=True)) for name, text in entity.key.items() if name not in entity.templates
    )
    fields = dict.fromkeys(entity.identity)
    fields |= dict.fromkeys(one for _, template in indexed for one in template.fields)
    return Layout(entity.name, templates, tuple(fields), len(entity.identity), indexed, opened)


# ---------------------------------------------------------------- reading
def find_opened_maps(items: Sequence[Mapping[str, Any]]) -> frozenset[Road]:
    """Return the maps of some items whose names are ids: each name is in few of the maps."""
    maps: Counter[Road] = Counter()
    names: dict[Road, Counter[str]] = defaultdict(Counter)
    of_maps: Counter[Road] = Counter()

    def look(road: Road, content: Mapping[str, Any]) -> None:
        maps[road] += 1
        names[road].update(content.keys())
        of_maps[road] += all("M" in value for value in content.values())
        for name, value in content.items():
            if "M" in value and len(road) < DEPTH_MAX and len(names[(*road, name)]) <= COLUMNS_MAX:
                look((*road, name), value["M"])

    for item in items:
        for name, value in item.items():
            if "M" in value:
                look((name,), value["M"])
    return frozenset(
        road
        for road, seen in names.items()
        if seen
        and sum(seen.values())
        <= len(seen) * maps[road] * (OWN_NAMES if of_maps[road] >= MOSTLY * maps[road] else OWN_SCALARS)
    )


# ---------------------------------------------------------------- writing
@dataclass
class StagedRows:
    """The rows of one entity that come from some files, and their entries: two files, with columns in their order."""

    rows: Path
    entries: Path
    columns: dict[Road, int] = field(default_factory=dict)
    roads: dict[Road, int] = field(default_factory=dict)  # of the entries
    count: int = 0
    left_out: int = 0  # attributes beyond the columns


class Spool:
    """A writer of the rows of one entity, as texts between tabs."""

    def __init__(self, layout: Layout, directory: Path, part: int) -> None:
        self.layout = layout
        name = f"{layout.name}.{part}"
        self.staged = StagedRows(directory / f"{name}.rows", directory / f"{name}.entries")
        self._rows, self._entries_file = _open(self.staged.rows), _open(self.staged.entries)

    def close(self) -> None:
        self._rows.close()
        self._entries_file.close()

    def add(self, rid: int, fields: list[str | None], item: Mapping[str, Mapping[str, Any]]) -> None:
        """Write an item."""
        self.staged.count += 1
        row: dict[int, str] = {}
        for name, value in item.items():
            self._stage_value(rid, row, (name,), value)
        texts = [str(rid), *(text or "" for text in fields)]
        if row:
            end = max(row) + 1
            texts += [row.get(place, "") for place in range(end)]
        self._rows.write("\t".join(texts) + "\n")

    def _stage_value(self, rid: int, row: dict[int, str], road: Road, value: Mapping[str, Any]) -> None:
        columns = self.staged.columns
        place = columns.get(road)
        if place is None:
            if len(columns) >= COLUMNS_MAX or '"' in road[-1] or not road[-1]:
                self.staged.left_out += 1
                return
            place = columns[road] = len(columns)
        row[place] = write_value(value)
        ((kind, content),) = value.items()
        if kind == "M":
            if road in self.layout.opened:
                self._write_entries(rid, road, content.items())
            elif len(road) < DEPTH_MAX:
                for name, inner in content.items():
                    self._stage_value(rid, row, (*road, name), inner)
                if content and ({*map(_find_kind, content.values())} in ({"M"}, {"N"})):
                    self._write_entries(rid, road, content.items())
        elif kind == "L":
            self._write_entries(rid, road, (("", inner) for inner in content))
        elif kind in ("SS", "NS"):
            self._write_entries(rid, road, (("", {kind[0]: one}) for one in content))

    def _write_entries(self, rid: int, road: Road, entries: Any) -> None:
        code = self.staged.roads.setdefault(road, compute_road_code(road))
        write = self._entries_file.write
        for place, (name, value) in enumerate(entries):
            if place >= ENTRIES_MAX:
                break
            start = f"{rid}\t{code}\t{place}\ts{keep_text(name)}\t"
            write(f"{start}\t{write_value(value)}\n")
            if "M" in value:
                for each, inner in value["M"].items():
                    write(f"{start}{keep_text(each)}\t{write_value(inner)}\n")


def _find_kind(value: Mapping[str, Any]) -> str:
    return next(iter(value), "")


def compute_road_code(road: Road) -> int:
    """Return a number for a road, the same in each process."""
    return zlib.crc32("\0".join(road).encode("utf-8", "surrogatepass"))


def _open(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", errors="surrogatepass")


@dataclass
class StagedBatch:
    """The rows of one batch of files by entity, some items of no entity, and the number of these."""

    entities: dict[str, StagedRows]
    strangers: list[dict[str, Any]] = field(default_factory=list)
    unknown: int = 0


def stage(files: Sequence[Path], layouts: Sequence[Layout], directory: Path, part: int) -> StagedBatch:
    """Write the items in files as rows of their entities. `part` tells these files from others of the table."""
    directory.mkdir(parents=True, exist_ok=True)
    spools = [Spool(one, directory, part) for one in layouts]
    batch = StagedBatch({one.layout.name: one.staged for one in spools})
    rid = part * RIDS_OF_A_FILE
    try:
        for item in read_items(files):
            rid += 1
            for spool in spools:
                fields = spool.layout.read_fields(item)
                if fields is not None:
                    spool.add(rid, fields, item)
                    break
            else:
                batch.unknown += 1
                if len(batch.strangers) < STRANGERS_MAX:
                    batch.strangers.append(item)
    finally:
        for spool in spools:
            spool.close()
    return batch
