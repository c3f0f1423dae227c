"""An export as a supply of keys: what is read from it, in what order, and what is refused and how it is named."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from sync_rules.adapters import retries
from sync_rules.jobs.backfill import export
from sync_rules.jobs.backfill.export import ExportFile, list_files, open_export
from sync_rules.jobs.backfill.export_files import Bucket, Folder, TableExport, find_shelf
from sync_rules.jobs.backfill.page import Selection
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.requests import Read, Scan
from sync_rules.rules.ruleset import Rules
from tests.support.builders import entity, order_item, s, shop, table, user_item
from tests.support.worlds import Scene

ARN = "arn:aws:dynamodb:us-east-1:111122223333:table/shop"
ROOT = "AWSDynamoDB/01700000000000-abcdef01"
SUMMARY = {"tableArn": ARN, "outputFormat": "DYNAMODB_JSON", "exportArn": f"{ARN}/export/01700", "itemCount": 1}


def lines(*items: dict) -> bytes:
    return gzip.compress(b"".join(json.dumps({"Item": item}).encode() + b"\n" for item in items))


def written(folder: Path, files: dict[str, list[dict]], summary: dict | None = SUMMARY, **counts: int) -> Path:
    """An export as the service writes it."""
    data = folder / ROOT / "data"
    data.mkdir(parents=True)
    for name, items in files.items():
        (data / name).write_bytes(lines(*items))
    if summary is not None:
        (folder / ROOT / "manifest-summary.json").write_text(json.dumps(summary, indent=2))
        entries = [
            {"itemCount": counts.get(name.partition(".")[0], len(items)), "dataFileS3Key": f"prefix/{ROOT}/data/{name}"}
            for name, items in files.items()
        ]
        (folder / ROOT / "manifest-files.json").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


@pytest.fixture
def scene() -> Scene:
    scene = Scene(shop())
    scene.there("shop", user_item("1", name=s("Ada")), *(order_item("1", f"{i:02}") for i in range(12)))
    return scene


def opened(folder: Path, rules: Rules, arns: dict[str, str] | None = None) -> tuple[TableExport, Table]:
    return open_export(str(folder), Folder(folder), rules, {"shop": ARN} if arns is None else arns)


def bring_all(scene: Scene, supply: ExportFile, cursor: dict | None = None) -> list[int]:
    """A file to its end. Gives how many items each page had."""
    sizes = []
    while True:
        selection = Selection(scene.rules, frozenset(scene.rules.rules))
        result = scene.drive(supply.page(cursor, selection, Bounds()))
        sizes.append(result.items)
        cursor = json.loads(json.dumps(result.cursor))
        if cursor is None:
            return sizes


def copies(scene: Scene) -> int:
    return sum("user_name" in item for item in scene.memory.items("shop"))


def test_export_of_the_service_brings_its_items_in_line(tmp_path, scene, monkeypatch):
    """Each item named in an export is read by key and its copies are made right, without a scan."""
    monkeypatch.setattr(export, "PAGE_MAX_LINES", 4)
    old = [order_item("1", f"{i:02}", user_name=s("old")) for i in range(12)]
    written(tmp_path, {"a.json.gz": [*old[:7], order_item("1", "gone")], "b.json.gz": old[7:]})
    found, at = opened(tmp_path, scene.rules)
    assert (at.name, found.arn) == ("shop", f"{ARN}/export/01700")
    opened_files, inner = [], found.shelf.open
    monkeypatch.setattr(found.shelf, "open", lambda name: opened_files.append(name) or inner(name))
    supplies = list_files(found, at, frozenset(scene.rules.rules), scene.rules)
    assert [bring_all(scene, supply) for supply in supplies] == [[4, 4, 0], [4, 1]]
    assert len(opened_files) == 2  # each once, however many pages
    assert copies(scene) == 12
    assert scene.item(scene.at("shop", "USER#1", "ORDER#00"))["user_name"] == s("Ada")
    assert scene.tap.seen(Scan) == []


def test_export_goes_on_at_a_line(tmp_path, scene, monkeypatch):
    """A cursor into an export is a line: another process continues after it, and the same cursor gives the same page."""
    monkeypatch.setattr(export, "PAGE_MAX_LINES", 5)
    written(tmp_path, {"a.json.gz": [order_item("1", f"{i:02}") for i in range(12)]})
    found, at = opened(tmp_path, scene.rules)
    opened_files, inner = [], found.shelf.open
    monkeypatch.setattr(found.shelf, "open", lambda name: opened_files.append(name) or inner(name))
    (first,) = list_files(found, at, frozenset(scene.rules.rules), scene.rules)
    selection = Selection(scene.rules, frozenset(scene.rules.rules))
    result = scene.drive(first.page(None, selection, Bounds()))
    again = scene.drive(first.page(None, selection, Bounds()))
    assert result.cursor == again.cursor == {"line": {"N": "5"}}
    assert len(opened_files) == 1
    assert copies(scene) == 5
    ahead = first.read_page(5)
    assert [key.values[1][2] for key in first.read_page(0)] == [f"ORDER#{i:02}" for i in range(5)]
    assert first.read_page(5) == ahead
    (other,) = list_files(*opened(tmp_path, scene.rules), frozenset(scene.rules.rules), scene.rules)
    scene.tap.requests.clear()
    assert bring_all(scene, other, result.cursor) == [5, 2]
    wanted = [key.values[1][2] for key in scene.tap.seen(Read)[0].keys]
    assert wanted == [f"ORDER#{i:02}" for i in range(5, 10)]


def test_export_is_read_again_after_the_place_did_not_answer(tmp_path, scene):
    """A file that could not be opened is no empty file: the next try reads all of it."""
    written(tmp_path, {"a.json.gz": [order_item("1", f"{i:02}") for i in range(3)]})
    found, at = opened(tmp_path, scene.rules)
    (supply,) = list_files(found, at, frozenset(scene.rules.rules), scene.rules)
    inner, answers = found.shelf.open, [StoreError("SlowDown")]
    found.shelf.open = lambda name: inner(name) if not answers else (_ for _ in ()).throw(answers.pop())
    with pytest.raises(StoreError):
        bring_all(scene, supply)
    assert bring_all(scene, supply) == [3]


def test_export_without_manifest_is_of_the_table_that_is_said(tmp_path, scene):
    """A folder of data files alone will do where it is clear which table they are of."""
    (tmp_path / "x.json.gz").write_bytes(lines(order_item("1", "01")))
    assert list(opened(tmp_path, scene.rules)[0].files) == ["x.json.gz"]
    with pytest.raises(UserError, match="Name it with --table"):
        opened(tmp_path, scene.rules, {"shop": ARN, "other": ARN + "2"})


def test_export_has_nothing_for_rules_of_other_tables(tmp_path, scene):
    """Rules that keep nothing in its table get no keys of it."""
    written(tmp_path, {"a.json.gz": [order_item("1", "01")]})
    assert list_files(*opened(tmp_path, scene.rules), frozenset(), scene.rules) == ()


def test_export_of_a_table_with_a_binary_key(tmp_path):
    """Binary stands as base64 in the lines, and is bytes in the key."""
    scans = table("scans", {"id": "B"})
    rules = Rules({"scans": scans}, {"scan": entity("scan", scans)}, {})
    (tmp_path / "x.json.gz").write_bytes(lines({"id": {"B": base64.b64encode(b"\x00\xff").decode()}}))
    found, at = open_export(str(tmp_path), Folder(tmp_path), rules, {"scans": ARN})
    (key,) = ExportFile(found, at, "x.json.gz").read_page(0)
    assert key.values == (("id", "B", b"\x00\xff"),)


# ---------------------------------------------------------------- what is refused
def test_export_of_another_table_is_refused(tmp_path, scene):
    """An export of a table with another ARN is refused."""
    other = ARN.replace("us-east-1", "eu-west-1")
    written(tmp_path, {"a.json.gz": []}, {**SUMMARY, "tableArn": other})
    with pytest.raises(UserError, match=f"expected an export of {ARN}, found one of {other}"):
        opened(tmp_path, scene.rules)


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        ({"outputFormat": "ION"}, "expected an export with outputFormat DYNAMODB_JSON, found ION"),
        ({"exportType": "INCREMENTAL_EXPORT"}, "expected an export with exportType FULL_EXPORT, found INCREMENTAL"),
    ],
)
def test_export_of_another_sort_is_refused(tmp_path, scene, summary, words):
    """Another format, and an export of changes only, are named and refused."""
    written(tmp_path, {"a.json.gz": []}, {**SUMMARY, **summary})
    with pytest.raises(UserError, match=words):
        opened(tmp_path, scene.rules)


def test_export_that_is_not_whole_is_refused(tmp_path, scene):
    """An export that is missing, unfinished, incomplete or ambiguous is refused with the reason."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="found neither"):
        opened(tmp_path / "empty", scene.rules)
    started = written(tmp_path / "started", {"a.json.gz": []}, None)
    (started / ROOT / "_started").touch()
    with pytest.raises(UserError, match="it has not ended"):
        opened(started, scene.rules)
    missing = written(tmp_path / "missing", {"a.json.gz": [], "b.json.gz": []})
    (missing / ROOT / "data" / "b.json.gz").unlink()
    with pytest.raises(UserError, match=r"manifest-files.json names .*/data/b\.json\.gz, which does not exist"):
        opened(missing, scene.rules)
    written(tmp_path / "several" / "one", {"a.json.gz": []})
    written(tmp_path / "several" / "two", {"a.json.gz": []})
    with pytest.raises(UserError, match="expected one export, found 2"):
        opened(tmp_path / "several", scene.rules)
    with pytest.raises(UserError, match="expected a folder or s3://"):
        find_shelf(str(tmp_path / "nowhere"))


NO_ITEM = 'expected an item, {"Item": ...}, found something else. Give a full export of the table in DynamoDB JSON.'
NO_KEY = 'expected {"Item": ...} with the key PK (S), SK (S)'


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", NO_ITEM),
        ("[]", NO_ITEM),
        ('{"Item": 5}', NO_ITEM),
        ('{"Keys": {}}', NO_ITEM),
        ("", NO_ITEM),
        ('{"Item": {"PK": {"S": "SECRET"}}}', NO_KEY),
        ('{"Item": {"PK": {"N": "1"}, "SK": {"S": "SECRET"}}}', NO_KEY),
    ],
)
def test_export_names_the_line_that_cannot_be_read(tmp_path, scene, line, words):
    """File and line are named, and no value; nothing is skipped."""
    good = json.dumps({"Item": order_item("1", "01")})
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(f"{good}\n{good}\n{line}\n{good}\n".encode()))
    (supply,) = list_files(*opened(tmp_path, scene.rules), frozenset(scene.rules.rules), scene.rules)
    with pytest.raises(UserError) as caught:
        bring_all(scene, supply)
    assert str(caught.value) == f"{tmp_path}/x.json.gz:3: {words}"


def test_export_that_is_cut_short_is_refused(tmp_path, scene):
    """A file with fewer items than its manifest says, and one that ends in the middle, are named."""
    written(tmp_path / "few", {"a.json.gz": [order_item("1", "01")]}, a=2)
    (supply,) = list_files(*opened(tmp_path / "few", scene.rules), frozenset(scene.rules.rules), scene.rules)
    with pytest.raises(UserError, match="expected 2 items, as the manifest says, found 1"):
        bring_all(scene, supply)
    whole = lines(*(order_item("1", f"{i:02}", text=s(str(i) * 99)) for i in range(12)))
    for name, body in {
        "cut": whole[:-20],
        "plain": b'{"Item": {}}\n',
        "broken": whole[:40] + b"\0" * 9 + whole[49:],
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.json.gz").write_bytes(body)
        (supply,) = list_files(*opened(tmp_path / name, scene.rules), frozenset(scene.rules.rules), scene.rules)
        with pytest.raises(UserError, match=r"x\.json\.gz:\d+: expected"):
            bring_all(scene, supply)


# ---------------------------------------------------------------- in a bucket
@pytest.fixture
def bucket(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="exports")
        yield client


def test_export_in_a_bucket_is_read_like_a_folder(bucket, tmp_path, scene):
    """An export under a bucket's prefix is processed like one in a folder."""
    written(tmp_path, {"a.json.gz": [order_item("1", f"{i:02}") for i in range(12)]})
    for file in tmp_path.rglob("*.*"):
        if file.is_file():
            bucket.upload_file(str(file), "exports", f"nightly/{file.relative_to(tmp_path).as_posix()}")
    bucket.put_object(Bucket="exports", Key="nightly-other/manifest-summary.json", Body=b"{}")
    shelf = Bucket(bucket, "exports", "nightly/")
    found, at = open_export("s3://exports/nightly/", shelf, scene.rules, {"shop": ARN})
    (supply,) = list_files(found, at, frozenset(scene.rules.rules), scene.rules)
    assert supply.name == f"export/{ROOT}/data/a.json.gz"
    assert bring_all(scene, supply) == [12]
    assert copies(scene) == 12


def test_export_in_a_bucket_that_is_not_there_is_named(bucket):
    """A bucket that does not answer is an error of the world's, with its name."""
    retrying = retries.make_retry(attempts_max=1)
    with pytest.raises(StoreError, match="BucketNotFound: bucket nobody"):
        Bucket(bucket, "nobody", "", retrying).names()
    with pytest.raises(StoreError, match="s3://exports/x/y"):
        Bucket(bucket, "exports", "x", retrying).open("y")
