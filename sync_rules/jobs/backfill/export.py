"""An export of a table to S3, as a supply of keys: in its bucket, or as a folder on this machine.

Invariant: only keys are taken from an export, which is old: each item is read, strongly consistent, before it is
processed. A line that cannot be read is named by file and number, and ends the run: nothing of an export is skipped.
An export made with a filter looks like a whole one: only DynamoDB knows the filter (adapters/table_exports.py).
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
"""

from __future__ import annotations

import base64
import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import aws, retries
from sync_rules.adapters.s3 import objects, parse_place
from sync_rules.jobs.backfill.page import PageResult, Selection, Supply, process_keys
from sync_rules.model import json_bytes
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Work
from sync_rules.rules.order import swept_tables
from sync_rules.rules.ruleset import Rules

PAGE_MAX_LINES: Final = 500
SUMMARY: Final = "manifest-summary.json"
FILES: Final = "manifest-files.json"
STARTED: Final = "_started"  # in an unfinished export, instead of manifests
DATA: Final = ".json.gz"
LINE: Final = "line"


class Shelf(Protocol):
    """The files of an export. Each call raises StoreError when the place does not answer."""

    def names(self) -> Sequence[str]:
        """The paths of all files."""

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it from the beginning."""


@dataclass(eq=False)
class Folder:
    """A folder on this machine."""

    _path: Path

    def names(self) -> Sequence[str]:
        return sorted(file.relative_to(self._path).as_posix() for file in self._path.rglob("*") if file.is_file())

    def path(self, name: str) -> Path:
        """The path of a file on this machine."""
        return self._path / name

    def open(self, name: str) -> BinaryIO:
        try:
            return self.path(name).open("rb")
        except OSError as error:
            raise UserError(f"{self.path(name)}: expected a file to read, found {error.strerror}") from error


class Bucket:
    """A prefix of a bucket. `client` is boto3's S3 client."""

    def __init__(self, client: Any, bucket: str, prefix: str, retrying: Retrying | None = None) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix.rstrip("/") + "/" if prefix else ""
        self._retrying = retrying or retries.retrying()

    def names(self) -> Sequence[str]:
        ask = partial(retries.ask, self._retrying, f"bucket {self._bucket}")
        found = objects(ask, self._client, Bucket=self._bucket, Prefix=self._prefix)
        return sorted(entry["Key"].removeprefix(self._prefix) for entry in found)

    def open(self, name: str) -> BinaryIO:
        """Fetch the file to this machine: a connection would not last until all its items are processed."""

        def fetch() -> BinaryIO:
            copy = tempfile.TemporaryFile()  # noqa: SIM115 -- its reader closes it
            shutil.copyfileobj(self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"], copy)
            copy.seek(0)
            return copy

        file: BinaryIO = retries.ask(self._retrying, f"s3://{self._bucket}/{self._prefix}{name}", fetch)
        return file


def shelf_of(place: str, endpoint_url: str | None = None, region: str | None = None) -> Shelf:
    """The shelf at `place`: s3://bucket/prefix or a folder. Raises UserError when it is neither."""
    if place.startswith("s3://"):
        return Bucket(aws.s3(endpoint_url, region), *parse_place(place))
    if not Path(place).is_dir():
        raise UserError(f"{place}: expected a folder or s3://bucket/prefix with an export, found no such folder")
    return Folder(Path(place))


# ---------------------------------------------------------------- its files
@dataclass(frozen=True)
class Export:
    """An export of one table: its data files, each with its number of items, if that is known. `arn` of the export, and
    `at`: the moment whose items it holds, None if no manifest says it.
    """

    place: str
    shelf: Shelf
    table: Table
    files: Mapping[str, int | None]
    arn: str | None = None
    at: datetime | None = None

    def supplies(self, names: frozenset[str], rules: Rules) -> Sequence[Supply]:
        """The files, if these rules keep something in the table."""
        if self.table not in swept_tables(rules, names):
            return ()
        return [ExportFile(self, name) for name in self.files]


@dataclass(frozen=True)
class DataFile:
    """The number of items in a data file and its MD5 sum, in base64; None where no manifest says them."""

    items: int | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Manifest:
    """The manifests of a whole export: the ARN of its table and its own, its moment, its data files by path."""

    table_arn: str
    arn: str | None
    at: datetime | None
    files: Mapping[str, DataFile]


def open_export(place: str, shelf: Shelf, rules: Rules, arns: Mapping[str, str]) -> Export:
    """The export in a place. `arns` of the tables that it may be of, by their names in the rules file: exactly one if
    the export has no manifest.

    Raises:
        UserError: when it is no whole export, or one of another table.
        StoreError: when the place does not answer.
    """
    names = shelf.names()
    summaries = summaries_in(names)
    if len(summaries) > 1:
        folders = ", ".join(str(PurePosixPath(name).parent) for name in summaries)
        raise UserError(f"{place}: expected one export, found {len(summaries)}: {folders}. Name one of them.")
    if summaries:
        return _described(place, shelf, rules, arns, read_manifest(place, shelf, names, summaries[0]))
    files = dict.fromkeys(bare_files(place, names))
    if len(arns) != 1:
        raise UserError(f"{place}: there is no {SUMMARY} that names the exported table. Name it with --table.")
    return Export(place, shelf, rules.tables[next(iter(arns))], files)


def summaries_in(names: Sequence[str]) -> list[str]:
    """The summaries of exports among the files of a place, one for each export."""
    return [name for name in names if PurePosixPath(name).name == SUMMARY]


def bare_files(place: str, names: Sequence[str]) -> list[str]:
    """The data files of a place without a summary. Raises UserError when it is a part of an export, or has none."""
    if any(PurePosixPath(name).name in (STARTED, FILES) for name in names):
        raise UserError(
            f"{place}: expected a whole export, found one without {SUMMARY}: it has not ended, it failed, or it was"
            " not downloaded completely"
        )
    found = [name for name in names if name.endswith(DATA)]
    if not found:
        raise UserError(f"{place}: expected an export with {SUMMARY}, or files that end in {DATA}; found neither")
    return found


def read_manifest(place: str, shelf: Shelf, names: Sequence[str], summary_name: str) -> Manifest:
    """The manifests of an export, of which all files are there.

    Raises:
        UserError: when it is incremental, in another format, or not whole.
        StoreError: when the place does not answer.
    """
    with shelf.open(summary_name) as file:
        summary = _object(file.read(), f"{place}/{summary_name}")
    for key, expected in {"outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT"}.items():
        if summary.get(key, expected) != expected:
            found = f"{place}: expected an export with {key} {expected}, found {summary[key]}"
            raise UserError(f"{found}. Make a full export in DynamoDB JSON.")
    folder = PurePosixPath(summary_name).parent
    files: dict[str, DataFile] = {}
    with shelf.open(str(folder / FILES)) as lines:
        for number, line in enumerate(lines, 1):
            entry = _object(line, f"{place}/{folder / FILES}:{number}")
            name = str(folder / "data" / PurePosixPath(str(entry.get("dataFileS3Key"))).name)
            files[name] = DataFile(entry.get("itemCount"), entry.get("md5Checksum"))
    missing = sorted(files.keys() - set(names))
    if missing:
        raise UserError(f"{place}: its {FILES} names {missing[0]}, which does not exist. Download the whole export.")
    return Manifest(str(summary.get("tableArn")), summary.get("exportArn"), _time(summary), files)


def _described(place: str, shelf: Shelf, rules: Rules, arns: Mapping[str, str], manifest: Manifest) -> Export:
    name = next((name for name, arn in arns.items() if arn == manifest.table_arn), None)
    if name is None:
        known = ", ".join(sorted(arns.values()))
        raise UserError(f"{place}: expected an export of {known}, found one of {manifest.table_arn}")
    files = {file: one.items for file, one in manifest.files.items()}
    return Export(place, shelf, rules.tables[name], files, manifest.arn, manifest.at)


def moment(text: str) -> datetime:
    """A time as ISO 8601, in UTC unless it says otherwise. Raises ValueError."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _time(summary: Mapping[str, Any]) -> datetime | None:
    try:
        return moment(summary["exportTime"])
    except (KeyError, TypeError, ValueError):
        return None


def _object(text: bytes, where: str) -> dict[str, Any]:
    try:
        found = json_bytes.parsed(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{where}: expected a JSON object, found something else")
    return found


# ---------------------------------------------------------------- its items
@dataclass
class ExportFile:
    """One data file, page by page. The next page goes on from the last one; any other is read from the beginning."""

    export: Export
    file: str
    _page: tuple[int, list[ItemKey]] = (0, [])
    _lines: Iterator[ItemKey] | None = field(default=None, repr=False)
    _at: int = 0

    @property
    def name(self) -> str:
        return f"export/{self.file}"

    def page(self, cursor: Item | None, selection: Selection, bounds: Bounds) -> Work[PageResult]:
        """Raises UserError when a line is no item of the table, or the file is not what the manifest says."""
        start = int(cursor[LINE]["N"]) if cursor else 0
        keys = self._keys(start)
        result = yield from process_keys(keys, selection, bounds)
        if len(keys) < PAGE_MAX_LINES:
            self._lines = None
            return result
        return replace(result, cursor={LINE: {"N": str(start + len(keys))}})

    def _keys(self, start: int) -> list[ItemKey]:
        if self._page[0] == start and self._page[1]:
            return self._page[1]  # the page is retried
        lines, at = (self._lines, self._at) if self._at == start else (None, 0)
        self._lines = None  # until it is known that these lines could be read
        if lines is None:
            lines = self._read()
            at = sum(1 for _ in islice(lines, start))
        keys = list(islice(lines, PAGE_MAX_LINES))
        self._lines, self._at = lines, at + len(keys)
        expected = self.export.files[self.file]
        if len(keys) < PAGE_MAX_LINES and expected is not None and self._at != expected:
            raise UserError(f"{self._where}: expected {expected} items, as the manifest says, found {self._at}")
        self._page = start, keys
        return keys

    @property
    def _where(self) -> str:
        return f"{self.export.place.rstrip('/')}/{self.file}"

    def _read(self) -> Iterator[ItemKey]:
        number = 0
        with self.export.shelf.open(self.file) as raw:
            try:
                with gzip.open(raw) as lines:
                    for number, line in enumerate(lines, 1):
                        yield self._key(line, number)
            except (OSError, EOFError, zlib.error) as error:
                raise UserError(f"{self._where}:{number + 1}: expected gzip, found it broken") from error

    def _key(self, line: bytes, number: int) -> ItemKey:
        table = self.export.table
        try:
            item = json_bytes.parsed(line)["Item"]
            key = table.key_of({a.name: _value(item[a.name]) for a in table.key})
        except (ValueError, KeyError, TypeError, AttributeError):
            key = None
        if key is None:
            names = ", ".join(f"{a.name} ({a.type})" for a in table.key)
            raise UserError(f'{self._where}:{number}: expected {{"Item": ...}} with the key {names}')
        return key


def _value(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value of a key attribute as the service returns it: binary as bytes."""
    return {"B": base64.b64decode(value["B"], validate=True)} if "B" in value else value
