"""The archive on S3.

Law: an object is put only where there is none. Its name and bytes follow from a record, so the one that is there
already is the same; putting it again would be a second version, and a second event, of what happened once.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from tenacity import Retrying

from sync_rules import aws
from sync_rules.errors import StoreError
from sync_rules.model import Keep

THERE_ALREADY: Final = "PreconditionFailed"


class PutsObjects(Protocol):
    """The part of boto3's S3 client that is used."""

    def put_object(self, **parameters: Any) -> Any:
        """Write one object."""
        ...


class S3Archive:
    """An Archive in the buckets that the rules name."""

    def __init__(self, client: PutsObjects, *, retrying: Retrying | None = None) -> None:
        self._client = client
        self._retrying = retrying or aws.retrying()

    def keep(self, keep: Keep) -> None:
        """Returns once S3 has the object. Raises StoreError."""
        try:
            self._retrying(
                self._client.put_object,
                Bucket=keep.bucket,
                Key=keep.name,
                Body=keep.body,
                ContentType="application/gzip",  # no Content-Encoding: readers would get it unpacked under a .gz name
                IfNoneMatch="*",
            )
        except aws.ERRORS as error:
            if aws.code(error) != THERE_ALREADY:
                raise StoreError(aws.reason(error), f"bucket {keep.bucket}") from error
