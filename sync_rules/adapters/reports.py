"""Reports of verify in the bucket of a deployed stack, under reports/.

Law: an object is written as a whole; what is told of it is told afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from tenacity import Retrying

from sync_rules.adapters import aws
from sync_rules.model.errors import StoreError

PREFIX = "reports/"


class BucketReports:
    """Reports by name, as JSON lines. `client` is boto3's S3 client."""

    def __init__(self, client: Any, bucket: str, *, retrying: Retrying | None = None) -> None:
        self._client = client
        self._bucket = bucket
        self._retrying = retrying or aws.retrying()

    def key(self, name: str) -> str:
        """Of its object."""
        return f"{PREFIX}{name}.jsonl"

    def write(self, name: str, file: IO[bytes]) -> None:
        """Returns once S3 has it. Raises StoreError."""

        def put() -> None:
            file.seek(0)
            self._client.put_object(Bucket=self._bucket, Key=self.key(name), Body=file)

        self._ask(put, name)

    def lines(self, name: str) -> Iterator[bytes]:
        """A report's lines, without their ends. Raises StoreError."""
        body = self._ask(lambda: self._client.get_object(Bucket=self._bucket, Key=self.key(name)), name)["Body"]
        try:
            yield from body.iter_lines()
        except aws.ERRORS as error:
            raise StoreError(aws.reason(error), self._place(name)) from error

    def _place(self, name: str) -> str:
        return f"s3://{self._bucket}/{self.key(name)}"

    def _ask(self, call: Any, name: str) -> Any:
        try:
            return self._retrying(call)
        except aws.ERRORS as error:
            raise StoreError(aws.reason(error), self._place(name)) from error
