"""The archive on S3 (moto, single-threaded): an object is put once, and what S3 refuses is an error of the store."""

from __future__ import annotations

from dataclasses import replace

import boto3
import pytest
from moto import mock_aws

from sync_rules import aws
from sync_rules.errors import StoreError
from sync_rules.model import Keep
from sync_rules.s3 import S3Archive

KEEP = Keep("keep", "kept", "games/2026/11/21/games-1.json.gz", b"\x1f\x8b body")


@pytest.fixture
def client(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="kept")
        client.put_bucket_versioning(Bucket="kept", VersioningConfiguration={"Status": "Enabled"})
        yield client


class Flaky:
    """An S3 that answers as told."""

    def __init__(self, *codes: tuple[str, int]) -> None:
        self.codes = list(codes)
        self.puts: list[dict] = []

    def put_object(self, **parameters):
        self.puts.append(parameters)
        if self.codes:
            code, status = self.codes.pop(0)
            answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise aws.ClientError(answer, "PutObject")


def test_s3_puts_an_object_once(client):
    """Kept again, it stays the one version that it was, bytes as they were given and packed as they are."""
    for _ in range(3):
        S3Archive(client).keep(KEEP)
    versions = client.list_object_versions(Bucket="kept")["Versions"]
    assert [version["Key"] for version in versions] == [KEEP.name]
    found = client.get_object(Bucket="kept", Key=KEEP.name)
    assert found["Body"].read() == KEEP.body
    assert found["ContentType"] == "application/gzip"
    assert "ContentEncoding" not in found


def test_s3_without_the_bucket_is_a_failure(client):
    """A StoreError that names the bucket and not the object, whose name may hold a key: the record comes again."""
    with pytest.raises(StoreError, match=r"^BucketNotFound: bucket nowhere$"):
        S3Archive(client).keep(replace(KEEP, bucket="nowhere"))


@pytest.mark.parametrize("code", [("SlowDown", 503), ("InternalError", 500), ("ConditionalRequestConflict", 409)])
def test_s3_is_asked_again(code):
    """What may pass by itself is tried again, with the same retries as the store."""
    flaky = Flaky(code, code)
    S3Archive(flaky, retrying=aws.retrying(sleep=lambda _: None)).keep(KEEP)
    assert len(flaky.puts) == 3


def test_s3_that_refuses_is_not_asked_again():
    """What was refused on its merits is told at once."""
    flaky = Flaky(("AccessDenied", 403))
    with pytest.raises(StoreError, match="AccessDenied"):
        S3Archive(flaky, retrying=aws.retrying(sleep=lambda _: None)).keep(KEEP)
    assert len(flaky.puts) == 1


@pytest.mark.parametrize(("endpoint", "style"), [("http://localhost:1", "path"), (None, "auto")])
def test_s3_of_an_emulator_has_no_host_for_each_bucket(client, endpoint, style):
    """Buckets are in the path where an endpoint is given, as AWS likes it where none is."""
    aws._client.cache_clear()
    assert aws.s3(endpoint, "us-east-1").meta.config.s3["addressing_style"] == style
    aws._client.cache_clear()
