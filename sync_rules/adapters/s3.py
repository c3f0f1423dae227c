"""Objects on S3: the archive, the on-failure objects that Lambda left in a bucket, and reports of verify.

Invariant: the archive puts an object only where there is none. Its name and bytes follow from a record, so an object of
that name is the same; putting it again would be a second version, and a second event, of one change. An on-failure
object is never written: it would be another given-up batch to those who listen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Keep
from sync_rules.pipeline.failed_entries import FailedEntry

THERE_ALREADY: Final = "PreconditionFailed"
REPORTS: Final = "reports/"
PLACE: Final = re.compile(r"s3://([a-z0-9][a-z0-9.\-]{1,61}[a-z0-9])(?:/(.*))?", re.DOTALL)
OBJECT_MAX_BYTES: Final = 64 * 1024 * 1024  # a payload has at most 6 MB, and a few times that when escaped


class PutsObjects(Protocol):
    """The part of boto3's S3 client that is used."""

    def put_object(self, **parameters: Any) -> Any:
        """Write one object."""


class S3Archive:
    """An Archive in the buckets that the rules name."""

    def __init__(self, client: PutsObjects, *, retrying: Retrying | None = None) -> None:
        self._client = client
        self._retrying = retrying or retries.retrying()

    def keep(self, keep: Keep) -> None:
        """Returns once S3 has the object. Raises StoreError."""
        try:
            retries.ask(
                self._retrying,
                f"bucket {keep.bucket}",
                self._client.put_object,
                Bucket=keep.bucket,
                Key=keep.name,
                Body=keep.body,
                ContentType="application/gzip",  # no Content-Encoding: readers would get it unpacked under a .gz name
                IfNoneMatch="*",
            )
        except StoreError as error:
            if error.reason != THERE_ALREADY:
                raise


def parse_place(text: str) -> tuple[str, str]:
    """The bucket and the prefix in s3://bucket/prefix. Raises UserError."""
    found = PLACE.fullmatch(text)
    if found is None:
        raise UserError(f"{text!r} is not an S3 address: expected s3://BUCKET or s3://BUCKET/PREFIX")
    return found[1], found[2] or ""


def objects(ask: Callable[..., Any], client: Any, **place: str) -> Iterator[dict[str, Any]]:
    """List the objects of a place, page by page. Raises StoreError, and what `ask` raises."""
    while True:
        page = ask(client.list_objects_v2, **place)
        yield from page.get("Contents", ())
        if not page.get("IsTruncated"):
            return
        if "NextContinuationToken" not in page:
            raise StoreError("ResponseParserError", f"the list of bucket {place['Bucket']} breaks off")
        place["ContinuationToken"] = page["NextContinuationToken"]


class OnFailureObjects:
    """The objects under a prefix of a bucket as a FailureStore: batches that an event source mapping gave up.

    Lambda names them aws/lambda/<UUID of the mapping>/<shard>/<date>/...; any other name is fine. They are read in the
    order of their names. `mark` is the name of the last one that was given; an instance with a mark starts after it.
    """

    hidden_seconds = 0
    held = 0

    def __init__(
        self, client: Any, bucket: str, prefix: str = "", *, mark: str = "", retrying: Retrying | None = None
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix
        self._after = self.mark = mark
        self._retrying = retrying or retries.retrying()

    def entries(self) -> Iterator[FailedEntry]:
        """Each object, read when its turn comes. Raises StoreError, and UserError when the bucket does not exist."""
        place = {"Bucket": self._bucket, "Prefix": self._prefix}
        if self._after:
            place["StartAfter"] = self._after
        for found in objects(self._ask, self._client, **place):
            text = self._text(found)
            self.mark = found["Key"]
            if text is not None:
                yield FailedEntry(text, f"s3://{self._bucket}/{found['Key']}", found["Key"])

    def remove(self, entry: FailedEntry) -> None:
        self._ask(self._client.delete_object, Bucket=self._bucket, Key=entry.handle)

    def replace(self, entry: FailedEntry, text: str) -> None:
        """Do nothing: objects are never written."""

    def close(self) -> None:
        """Do nothing: an object that was not removed stays."""

    def _text(self, found: dict[str, Any]) -> bytes | None:
        """The content of an object; None when it was deleted since it was listed."""
        if found["Size"] > OBJECT_MAX_BYTES:
            return b""  # not the record of a batch
        try:
            text: bytes = self._ask(self._read, Bucket=self._bucket, Key=found["Key"])
        except StoreError as error:
            if error.reason != "NoSuchKey":
                raise
            return None
        return text

    def _read(self, **parameters: Any) -> bytes:
        text: bytes = self._client.get_object(**parameters)["Body"].read()
        return text

    def _ask(self, call: Callable[..., Any], **parameters: Any) -> Any:
        try:
            return retries.ask(self._retrying, f"bucket {self._bucket}", call, **parameters)
        except StoreError as error:
            if error.reason != "BucketNotFound":
                raise
            where = aws.place(self._client)
            message = f"bucket {self._bucket} does not exist at {where}. Correct its name, the Region or the endpoint."
            raise UserError(message) from error


class BucketReports:
    """Reports of verify by name, as JSON lines. `client` is boto3's S3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket
        self._retrying = retries.retrying()

    def key(self, name: str) -> str:
        """The key of a report's object."""
        return f"{REPORTS}{name}.jsonl"

    def write(self, name: str, file: IO[bytes]) -> None:
        """Returns once S3 has it. Raises StoreError."""

        def put() -> None:
            file.seek(0)
            self._client.put_object(Bucket=self._bucket, Key=self.key(name), Body=file)

        retries.ask(self._retrying, self._place(name), put)

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a report, without line ends. Raises StoreError."""
        get, where = self._client.get_object, self._place(name)
        body = retries.ask(self._retrying, where, get, Bucket=self._bucket, Key=self.key(name))["Body"]
        try:
            yield from body.iter_lines()
        except aws_errors.ERRORS as error:
            raise aws_errors.store_error(error, where) from error

    def _place(self, name: str) -> str:
        return f"s3://{self._bucket}/{self.key(name)}"
