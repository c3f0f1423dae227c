"""Exports of tables to S3, in their bucket or in a folder: their files, their manifests, and the lines with items.

Invariant: nothing of an export is skipped. It is an error if a line holds no item or a file contradicts its manifest.
The error names both. A filtered export looks like a whole export: `find_doubt` asks DynamoDB.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ExportDescription.html
"""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.adapters.s3 import S3Bucket, parse_place
from sync_rules.model import json_bytes
from sync_rules.model.errors import StoreError, UserError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

SUMMARY: Final = "manifest-summary.json"
FILES: Final = "manifest-files.json"
STARTED: Final = "_started"  # in an unfinished export, instead of manifests
DATA: Final = ".json.gz"
AGAIN: Final = "Copy the file again from its bucket, or make another export."
FILTER: Final = "FilterSpecification"  # of an ExportDescription
SCAN: Final = "or scan the table: --table in place of --from-export"


class Shelf(Protocol):
    """The files of an export. Each method raises StoreError if the place does not answer."""

    def names(self) -> Sequence[str]:
        """Return the paths of all files."""

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it from the beginning."""


@dataclass(eq=False)
class Folder:
    """A folder on this machine with the files of an export."""

    _path: Path

    def names(self) -> Sequence[str]:
        return sorted(file.relative_to(self._path).as_posix() for file in self._path.rglob("*") if file.is_file())

    def path(self, name: str) -> Path:
        return self._path / name

    def open(self, name: str) -> BinaryIO:
        try:
            return self.path(name).open("rb")
        except OSError as error:
            raise UserError(f"{self.path(name)}: expected a file to read, found {error.strerror}") from error


class Bucket:
    """A prefix of an S3 bucket with the files of an export. `client` is boto3's S3 client."""

    def __init__(self, client: Any, bucket: str, prefix: str, retrying: Retrying | None = None) -> None:
        self._bucket = S3Bucket(client, bucket, retrying)
        self._prefix = prefix.rstrip("/") + "/" if prefix else ""

    def names(self) -> Sequence[str]:
        return sorted(found["Key"].removeprefix(self._prefix) for found in self._bucket.list(self._prefix))

    def open(self, name: str) -> BinaryIO:
        return self._bucket.open(self._prefix + name, tempfile.TemporaryFile)


def find_shelf(place: str, endpoint_url: str | None = None, region: str | None = None) -> Shelf:
    """Find the files at `place`: s3://bucket/prefix or a folder. Raises UserError when it is neither."""
    if place.startswith("s3://"):
        return Bucket(aws.s3(endpoint_url, region), *parse_place(place))
    if not Path(place).is_dir():
        raise UserError(f"{place}: expected a folder or s3://bucket/prefix with an export, found no such folder")
    return Folder(Path(place))


# ---------------------------------------------------------------- exports
@dataclass(frozen=True)
class DataFile:
    """The number of items in a data file and its MD5 sum in base64; None if no manifest gives them."""

    items: int | None = None
    md5: str | None = None


@dataclass(frozen=True)
class TableExport:
    """A whole export of one table: its data files by path. `folder` holds its manifests, which give the ARN of the
    table and the ARN of the export. Without manifests both ARNs are None.
    """

    place: str
    shelf: Shelf
    files: Mapping[str, DataFile]
    folder: str = ""
    table_arn: str | None = None
    arn: str | None = None

    @property
    def items(self) -> int | None:
        """The number of items; None if no manifest gives it."""
        counts = [one.items for one in self.files.values() if one.items is not None]
        return sum(counts) if counts else None

    def locate(self, name: str) -> str:
        return f"{self.place.rstrip('/')}/{name}"

    def require_items(self, name: str, found: int) -> None:
        """Check the number of items that a file holds. Raises UserError if the manifest gives another number."""
        expected = self.files[name].items
        if expected is not None and found != expected:
            where = self.locate(name)
            raise UserError(f"{where}: expected {expected:,} items, as the manifest says, found {found:,}. {AGAIN}")


def list_exports(place: str, shelf: Shelf) -> list[TableExport]:
    """List the exports in a place. Data files without a manifest are one export.

    Raises:
        UserError: if an export is incremental, incomplete or in another format, or if there is none.
        StoreError: if the place does not answer.
    """
    names = shelf.names()
    summaries = [name for name in names if PurePosixPath(name).name == SUMMARY]
    if summaries:
        return [_read_manifest(place, shelf, names, summary) for summary in summaries]
    if any(PurePosixPath(name).name in (STARTED, FILES) for name in names):
        raise UserError(
            f"{place}: expected a whole export, found one without {SUMMARY}: it has not ended, it failed, or it was"
            " not downloaded completely"
        )
    found = [name for name in names if name.endswith(DATA)]
    if not found:
        raise UserError(f"{place}: expected an export with {SUMMARY}, or files that end in {DATA}; found neither")
    return [TableExport(place, shelf, dict.fromkeys(found, DataFile()))]


def _read_manifest(place: str, shelf: Shelf, names: Sequence[str], summary_name: str) -> TableExport:
    with shelf.open(summary_name) as file:
        summary = _parse_object(file.read(), f"{place}/{summary_name}")
    for key, expected in {"outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT"}.items():
        if summary.get(key, expected) != expected:
            found = f"{place}: expected an export with {key} {expected}, found {summary[key]}"
            raise UserError(f"{found}. Make a full export in DynamoDB JSON.")
    folder = PurePosixPath(summary_name).parent
    files: dict[str, DataFile] = {}
    with shelf.open(str(folder / FILES)) as lines:
        for number, line in enumerate(lines, 1):
            entry = _parse_object(line, f"{place}/{folder / FILES}:{number}")
            name = str(folder / "data" / PurePosixPath(str(entry.get("dataFileS3Key"))).name)
            files[name] = DataFile(entry.get("itemCount"), entry.get("md5Checksum"))
    missing = sorted(files.keys() - set(names))
    if missing:
        raise UserError(f"{place}: its {FILES} names {missing[0]}, which does not exist. Download the whole export.")
    arns = str(summary.get("tableArn")), summary.get("exportArn")
    return TableExport(place, shelf, files, str(folder), *arns)


def _parse_object(text: bytes, where: str) -> dict[str, Any]:
    try:
        found = json_bytes.parse_json(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UserError(f"{where}: expected a JSON object, found something else")
    return found


# ---------------------------------------------------------------- lines
def read_lines(open_file: Callable[[], BinaryIO], where: str) -> Iterator[tuple[str, bytes]]:
    """Read the lines of a gzip file, each with its place, such as shop/a.json.gz:3.

    Raises:
        UserError: if the file is broken.
        StoreError: if it cannot be fetched.
    """
    number = 0
    with open_file() as raw:
        try:
            with gzip.open(raw) as lines:
                for number, line in enumerate(lines, 1):
                    yield f"{where}:{number}", line
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{where}:{number + 1}: expected gzip, found it broken. {AGAIN}") from error


def parse_item(line: bytes, place: str) -> dict[str, Any]:
    """Parse the item in a line; binary values stay base64. Raises UserError if the line holds no item."""
    try:
        item = json_bytes.parse_json(line)["Item"]
    except (ValueError, KeyError, TypeError):
        item = None
    if not isinstance(item, dict) or not all(isinstance(value, dict) and len(value) == 1 for value in item.values()):
        cure = "Give a full export of the table in DynamoDB JSON."
        raise UserError(f'{place}: expected an item, {{"Item": ...}}, found something else. {cure}')
    return item


# ---------------------------------------------------------------- filters
def find_doubt(client: DynamoDBClient, arn: str | None) -> str:
    """Ask DynamoDB whether an export has a filter. Return why the export may lack items of its table, and a cure; "" if
    it holds all items.
    """
    if arn is None:
        return f"no manifest names it, so its filter cannot be looked up. Give the export with its manifest, {SCAN}"
    shape = client.meta.service_model.shape_for("ExportDescription")
    if FILTER not in getattr(shape, "members", ()):  # botocore drops what its model lacks
        return f"botocore {version('botocore')} cannot read the filter of an export. Upgrade boto3, {SCAN}"
    where = f"export {arn}"
    try:
        answer = retries.ask(retries.make_retry(first=True), where, client.describe_export, ExportArn=arn)
    except StoreError as error:
        if error.reason in aws_errors.NOT_ALLOWED:
            denied = "these credentials may not ask DynamoDB for its filter"
            return f"{denied}. Allow dynamodb:DescribeExport on {arn}, {SCAN}"
        return f"DynamoDB does not describe it ({error.reason}), so its filter is unknown. Make another export, {SCAN}"
    description = answer.get("ExportDescription", {})
    if description.get("ExportArn") != arn:
        return f"DynamoDB does not describe it, so its filter is unknown. Make another export, {SCAN}"
    if description.get(FILTER):
        return f"it was made with a filter. Make an export without a filter, {SCAN}"
    return ""
