"""Objects on S3: the on-failure objects that Lambda left in a bucket, and reports of verify.

Invariant: an on-failure object is never rewritten: subscribers of the bucket would see another given-up batch.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, Final

from tenacity import Retrying

from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.failed_entries import FailedEntry

REPORTS: Final = "reports/"
PLACE: Final = re.compile(r"s3://([a-z0-9][a-z0-9.\-]{1,61}[a-z0-9])(?:/(.*))?", re.DOTALL)
OBJECT_MAX_BYTES: Final = 64 * 1024 * 1024  # a payload has at most 6 MB, and a few times that when escaped


class S3Bucket:
    """The objects of one bucket. `client` is boto3's S3 client.

    Each call is retried, and raises StoreError; if the bucket does not exist, UserError with the text `missing`.
    """

    def __init__(self, client: Any, name: str, retrying: Retrying | None = None, missing: str = "") -> None:
        self._client = client
        self.name = name
        self._retrying = retrying or retries.make_retry()
        self._mistakes = {"BucketNotFound": missing}

    def put(self, key: str, body: bytes | IO[bytes], *, where: str = "", **parameters: Any) -> None:
        """Put an object: these bytes, or a file from its beginning. Return once S3 has stored it.

        An error names the bucket, since a key may hold values of an item, or the place `where`.
        """

        def put_object(**place: Any) -> None:
            if not isinstance(body, bytes):
                body.seek(0)
            self._client.put_object(Body=body, **place, **parameters)

        self._ask(put_object, where, Key=key)

    def read(self, key: str) -> bytes:
        with self.open(key, io.BytesIO) as file:
            return file.read()

    def open(self, key: str, make_copy: Callable[[], BinaryIO]) -> BinaryIO:
        """Copy an object, and open the copy: a connection would not last until a large object is processed."""

        def get_object(**place: Any) -> BinaryIO:
            copy = make_copy()
            shutil.copyfileobj(self._client.get_object(**place)["Body"], copy)
            copy.seek(0)
            return copy

        file: BinaryIO = self._ask(get_object, self.locate(key), Key=key)
        return file

    def lines(self, key: str) -> Iterator[bytes]:
        """Read the lines of an object, without line ends."""
        body = self._ask(self._client.get_object, self.locate(key), Key=key)["Body"]
        try:
            yield from body.iter_lines()
        except aws_errors.ERRORS as error:
            raise aws_errors.make_store_error(error, self.locate(key)) from error

    def list(self, prefix: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        """List the objects whose keys begin with `prefix`, page by page."""
        while True:
            page = self._ask(self._client.list_objects_v2, Prefix=prefix, **parameters)
            yield from page.get("Contents", ())
            if not page.get("IsTruncated"):
                return
            if "NextContinuationToken" not in page:
                raise StoreError("ResponseParserError", f"the list of bucket {self.name} breaks off")
            parameters["ContinuationToken"] = page["NextContinuationToken"]

    def delete(self, key: str) -> None:
        self._ask(self._client.delete_object, Key=key)

    def locate(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    def _ask(self, call: Callable[..., Any], where: str = "", **parameters: Any) -> Any:
        place = where or f"bucket {self.name}"
        return retries.ask(self._retrying, place, call, mistakes=self._mistakes, Bucket=self.name, **parameters)


def parse_place(text: str) -> tuple[str, str]:
    """Parse s3://bucket/prefix into the bucket and the prefix. Raises UserError."""
    found = PLACE.fullmatch(text)
    if found is None:
        raise UserError(f"{text!r} is not an S3 address: expected s3://BUCKET or s3://BUCKET/PREFIX")
    return found[1], found[2] or ""


class OnFailureObjects:
    """The objects under a prefix of a bucket as a FailureStore: batches that an event source mapping gave up.

    Lambda names them aws/lambda/<UUID of the mapping>/<shard>/<date>/...; any other name is fine. They are read in the
    order of their names. `mark`: the name of the last object that was returned. An instance with a mark starts after
    it.
    """

    hidden_seconds = 0
    held_count = 0

    def __init__(self, client: Any, bucket: str, prefix: str = "", *, mark: str = "") -> None:
        cure = "Correct its name, the Region or the endpoint."
        missing = f"bucket {bucket} does not exist at {aws.format_place(client)}. {cure}"
        self._bucket = S3Bucket(client, bucket, missing=missing)
        self._prefix = prefix
        self._after = self.mark = mark

    def entries(self) -> Iterator[FailedEntry]:
        """Read each object when the caller asks for it. Raises StoreError, or UserError if the bucket does not
        exist.
        """
        start = {"StartAfter": self._after} if self._after else {}
        for found in self._bucket.list(self._prefix, **start):
            text = self._text(found)
            before, self.mark = self.mark, found["Key"]
            if text is not None:
                yield FailedEntry(text, self._bucket.locate(found["Key"]), (found["Key"], before))

    def remove(self, entry: FailedEntry) -> None:
        self._bucket.delete(entry.handle[0])

    def replace(self, entry: FailedEntry, text: str) -> None:
        """Do nothing: objects are never written."""

    def release(self, entry: FailedEntry) -> None:
        """Set the mark back to the object before this one."""
        self.mark = min(self.mark, entry.handle[1])

    def close(self) -> None:
        """Do nothing: an object that was not removed stays."""

    def _text(self, found: dict[str, Any]) -> bytes | None:
        """The content of an object; None when it was deleted since it was listed."""
        if found["Size"] > OBJECT_MAX_BYTES:
            return b""  # not the record of a batch
        try:
            return self._bucket.read(found["Key"])
        except StoreError as error:
            if error.reason != "NoSuchKey":
                raise
            return None


class BucketReports:
    """Reports of verify by name, as JSON lines in a bucket. `client` is boto3's S3 client. Each call may raise
    StoreError.
    """

    def __init__(self, client: Any, bucket: str) -> None:
        self._bucket = S3Bucket(client, bucket)

    def key(self, name: str) -> str:
        return f"{REPORTS}{name}.jsonl"

    def write(self, name: str, file: IO[bytes]) -> None:
        self._bucket.put(self.key(name), file, where=self._bucket.locate(self.key(name)))

    def lines(self, name: str) -> Iterator[bytes]:
        """Read the lines of a report, without line ends."""
        return self._bucket.lines(self.key(name))
