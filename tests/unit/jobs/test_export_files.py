"""The files of an export: what is refused and how it is named, and what DynamoDB says of a filter."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path

import boto3
import botocore.session
import pytest
from botocore.model import ServiceModel
from botocore.stub import Stubber
from moto import mock_aws

from sync_rules.adapters import retries
from sync_rules.jobs.export_files import Bucket, Folder, find_doubt, find_shelf, list_exports, read_lines
from sync_rules.model.errors import StoreError, UserError

ARN = "arn:aws:dynamodb:us-east-1:111122223333:table/shop/export/01700"
SUMMARY = {"tableArn": ARN.partition("/export")[0], "outputFormat": "DYNAMODB_JSON", "exportArn": ARN}


def written(folder: Path, *names: str, summary: dict | None = SUMMARY) -> Path:
    """An export as the service writes it, with an item in each of its data files."""
    data = folder / "data"
    data.mkdir(parents=True)
    for name in names:
        (data / name).write_bytes(gzip.compress(b'{"Item": {"PK": {"S": "1"}}}\n'))
    if summary is not None:
        (folder / "manifest-summary.json").write_text(json.dumps(summary, indent=2))
        entries = [{"itemCount": 1, "dataFileS3Key": f"prefix/data/{name}"} for name in names]
        (folder / "manifest-files.json").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


def find(folder: Path) -> object:
    return list_exports(str(folder), Folder(folder))


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        ({"outputFormat": "ION"}, "expected an export with outputFormat DYNAMODB_JSON, found ION"),
        ({"exportType": "INCREMENTAL_EXPORT"}, "expected an export with exportType FULL_EXPORT, found INCREMENTAL"),
    ],
)
def test_export_of_another_sort_is_refused(tmp_path, summary, words):
    """Another format, and an export of changes only, are named and refused."""
    with pytest.raises(UserError, match=words):
        find(written(tmp_path, "a.json.gz", summary={**SUMMARY, **summary}))


def test_export_that_is_not_whole_is_refused(tmp_path):
    """An export that is missing, unfinished or incomplete is refused with the reason."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="found neither"):
        find(tmp_path / "empty")
    started = written(tmp_path / "started", "a.json.gz", summary=None)
    (started / "_started").touch()
    with pytest.raises(UserError, match="it has not ended"):
        find(started)
    part = written(tmp_path / "part", "a.json.gz")
    (part / "manifest-summary.json").unlink()
    with pytest.raises(UserError, match="not downloaded completely"):
        find(part)
    missing = written(tmp_path / "missing", "a.json.gz", "b.json.gz")
    (missing / "data" / "b.json.gz").unlink()
    with pytest.raises(UserError, match=r"manifest-files.json names .*data/b\.json\.gz, which does not exist"):
        find(missing)
    with pytest.raises(UserError, match="expected a folder or s3://"):
        find_shelf(str(tmp_path / "nowhere"))


def test_export_file_that_is_broken_is_named(tmp_path):
    """A file that ends in the middle, is not gzip, or has other bytes in it is named with the line."""
    whole = gzip.compress(b"".join(b'{"Item": {"PK": {"S": "%d"}}}\n' % number for number in range(999)))
    for body in (whole[:-20], b'{"Item": {}}\n', whole[:40] + b"\0" * 9 + whole[49:]):
        (tmp_path / "x.json.gz").write_bytes(body)
        with pytest.raises(UserError, match=r"x\.json\.gz:\d+: expected gzip"):
            list(read_lines(lambda: (tmp_path / "x.json.gz").open("rb"), "x.json.gz"))


def test_export_in_a_bucket_that_is_not_there_is_named(monkeypatch):
    """A bucket that does not answer is an error of the world's, with its name."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    retrying = retries.make_retry(attempts_max=1)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="exports")
        with pytest.raises(StoreError, match="BucketNotFound: bucket missing"):
            Bucket(client, "missing", "", retrying).names()
        with pytest.raises(StoreError, match="s3://exports/x/y"):
            Bucket(client, "exports", "x", retrying).open("y")


def described_by(client: object, answer: dict | None) -> str:
    """The doubt about an export when DescribeExport answers so; without an answer no request may be made."""
    with Stubber(client) as stub:
        if answer is not None:
            stub.add_response("describe_export", {"ExportDescription": answer}, {"ExportArn": ARN})
        return find_doubt(client, ARN)


def test_export_is_whole_only_if_its_description_says_so():
    """No filter in the description of this very export is the proof; a filter, or no manifest, is a doubt."""
    client = botocore.session.Session().create_client("dynamodb", region_name="us-east-1")
    one = {"ExportArn": ARN, "ExportType": "FULL_EXPORT"}
    assert described_by(client, one) == ""
    filters = {"FilterExpression": "a = :a", "ProjectionExpression": "a", "KeyConditionExpression": "a = :a"}
    for name, words in filters.items():
        assert "made with a filter" in described_by(client, {**one, "FilterSpecification": {name: words}})
    assert "no manifest names it" in find_doubt(client, None)
    assert "does not describe it" in described_by(client, {})


def test_export_is_in_doubt_where_botocore_drops_the_filter():
    """An older botocore drops the field, so its answer proves nothing; no request is made, and the cure is an upgrade."""
    session = botocore.session.Session()
    client = session.create_client("dynamodb", region_name="us-east-1")
    older = copy.deepcopy(client.meta.service_model._service_description)
    del older["shapes"]["ExportDescription"]["members"]["FilterSpecification"]
    client.meta._service_model = ServiceModel(older, "dynamodb")
    doubt = described_by(client, None)
    assert f"botocore {botocore.__version__} cannot read the filter" in doubt
    assert "Upgrade boto3, or scan the table" in doubt
