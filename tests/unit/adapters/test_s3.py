"""Reports and on-failure objects on S3 (moto, single-threaded): what is put, what is found, what S3 refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from botocore.exceptions import ResponseStreamingError

from sync_rules.adapters import aws, s3
from sync_rules.adapters.s3 import BucketReports, OnFailureObjects, S3Bucket, parse_place
from sync_rules.model.errors import StoreError, UserError
from tests.unit.adapters.test_dynamodb import Client, failed


@pytest.fixture
def client(moto):
    client = moto("s3")
    client.create_bucket(Bucket="kept")
    return client


def test_s3_without_the_bucket_is_a_failure(client):
    """A StoreError that names the bucket and not the object, whose name may hold a key: the record comes again."""
    with pytest.raises(StoreError, match=r"^BucketNotFound: bucket nowhere$"):
        S3Bucket(client, "nowhere").put("calls/1.json", b"body")


def test_report_in_a_bucket_that_breaks_off_is_an_error(client, monkeypatch):
    """A connection that ends in the middle of a report must not pass for its end."""

    def iter_lines():
        yield b"one"
        raise ResponseStreamingError(error="gone")

    monkeypatch.setattr(client, "get_object", lambda **_: {"Body": SimpleNamespace(iter_lines=iter_lines)})
    with pytest.raises(StoreError, match=r"ResponseStreamingError: s3://kept/reports/nightly\.jsonl"):
        list(BucketReports(client, "kept").lines("nightly"))


@pytest.mark.parametrize(("endpoint", "style"), [("http://localhost:1", "path"), (None, "auto")])
def test_s3_of_an_emulator_has_no_host_for_each_bucket(client, endpoint, style):
    """Buckets are in the path where an endpoint is given, as AWS likes it where none is."""
    aws._make_client.cache_clear()
    assert aws.s3(endpoint, "us-east-1").meta.config.s3["addressing_style"] == style
    aws._make_client.cache_clear()


# ---------------------------------------------------------------- on-failure objects
def test_on_failure_objects_are_found_under_their_prefix(client):
    """Each with its text, over as many pages as there are; those beside the prefix are not."""
    for number in range(3):
        client.put_object(Bucket="kept", Key=f"aws/lambda/u/{number}", Body=f"text-{number}".encode())
    client.put_object(Bucket="kept", Key="other", Body=b"{}")

    class Paged:
        def __getattr__(self, name):
            return getattr(client, name)

        def list_objects_v2(self, **parameters):
            return client.list_objects_v2(**parameters, MaxKeys=2)

    entries = [*OnFailureObjects(Paged(), "kept", "aws/").entries()]
    assert [entry.text for entry in entries] == [b"text-0", b"text-1", b"text-2"]
    assert entries[0].where == "s3://kept/aws/lambda/u/0"


def test_on_failure_objects_go_on_behind_the_mark(client):
    """A second reader continues behind the first one's mark, even if that object was removed."""
    for number in range(5):
        client.put_object(Bucket="kept", Key=f"aws/{number}", Body=b"x")
    first = OnFailureObjects(client, "kept", "aws/")
    entries = first.entries()
    given = [next(entries) for _ in range(2)]
    first.remove(given[1])
    assert first.mark == "aws/1"
    second = OnFailureObjects(client, "kept", "aws/", mark=first.mark)
    assert [entry.handle[0] for entry in second.entries()] == ["aws/2", "aws/3", "aws/4"]
    assert [*OnFailureObjects(client, "kept", "aws/", mark=second.mark).entries()] == []


def test_on_failure_objects_that_are_released_come_again(client):
    """The next reader begins with the first object that was released."""
    for number in range(4):
        client.put_object(Bucket="kept", Key=f"aws/{number}", Body=b"x")
    first = OnFailureObjects(client, "kept", "aws/")
    entries = first.entries()
    given = [next(entries) for _ in range(3)]
    for entry in given[1:]:
        first.release(entry)
    second = OnFailureObjects(client, "kept", "aws/", mark=first.mark)
    assert [entry.handle[0] for entry in second.entries()] == ["aws/1", "aws/2", "aws/3"]


def test_on_failure_objects_are_removed_and_never_written(client):
    """One that is done is deleted; one that failed again stays as it is, as a put would look like a new failure."""
    for name in ("done", "again"):
        client.put_object(Bucket="kept", Key=name, Body=name.encode())
    place = OnFailureObjects(client, "kept")
    entries = {entry.handle[0]: entry for entry in place.entries()}
    place.remove(entries["done"])
    place.replace(entries["again"], "never")
    place.close()
    assert [(entry.handle[0], entry.text) for entry in place.entries()] == [("again", b"again")]


def test_on_failure_objects_that_go_or_are_too_large_are_no_error(client, monkeypatch):
    """Listing on-failure objects skips an object removed meanwhile, and does not read one larger than any batch."""
    for name in ("a", "b", "c"):
        client.put_object(Bucket="kept", Key=name, Body=name.encode() * 10)
    client.put_object(Bucket="kept", Key="d", Body=b"x" * 11)
    monkeypatch.setattr(s3, "OBJECT_MAX_BYTES", 10)
    found = []
    for entry in OnFailureObjects(client, "kept").entries():
        client.delete_object(Bucket="kept", Key="b")
        found.append((entry.handle[0], entry.text))
    assert found == [("a", b"a" * 10), ("c", b"c" * 10), ("d", b"")]


def test_on_failure_objects_of_a_missing_bucket_are_the_users_mistake(client):
    """The bucket is named; what S3 refuses for another reason is an error of the store."""
    with pytest.raises(UserError, match="bucket nowhere does not exist"):
        next(OnFailureObjects(client, "nowhere").entries())
    with pytest.raises(StoreError, match="AccessDenied: list_objects_v2 of bucket kept"):
        next(OnFailureObjects(Client(failed("AccessDenied", operation="list_objects_v2")), "kept").entries())


@pytest.mark.parametrize(
    ("text", "place"),
    [("s3://kept", ("kept", "")), ("s3://kept/", ("kept", "")), ("s3://kept/aws/lambda/", ("kept", "aws/lambda/"))],
)
def test_place_in_s3_is_a_bucket_and_a_prefix(text, place):
    """An S3 address is a bucket and a prefix, written as S3's own tools write it."""
    assert parse_place(text) == place


@pytest.mark.parametrize(
    "text", ["kept", "s3:/kept", "s3://", "s3:///aws", "https://kept.s3.amazonaws.com/", "s3://UP/x"]
)
def test_place_in_s3_of_another_form_is_refused(text):
    """With what is expected."""
    with pytest.raises(UserError, match="expected s3://BUCKET"):
        parse_place(text)
