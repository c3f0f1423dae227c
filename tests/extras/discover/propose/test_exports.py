"""Exports as gathered tables: whole and full, or refused with the file, the line and a cure; keys told or asked for."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from contextlib import suppress
from pathlib import Path

import boto3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.extras.discover.imports.key_schemas import make_key
from sync_rules.extras.discover.propose.export_keys import parse_keys
from sync_rules.extras.discover.propose.export_tables import Reading
from sync_rules.extras.discover.propose.item_sources import Given, collect_exports, gather_exports, open_workspace
from sync_rules.extras.discover.propose.table_scans import LiveTable
from sync_rules.jobs.export_files import Bucket, Folder
from sync_rules.model.errors import UserError
from tests.support.builders import n, s

ACCOUNT = "arn:aws:dynamodb:us-east-1:111122223333:table/"
ORDERS = [{"PK": s(f"USER#{i % 3}"), "SK": s(f"ORDER#{i}"), "total": n(i)} for i in range(7)]


NOTHING = Given()


def written(folder: Path, table: str, items: list[dict], files: int = 2, **summary: object) -> Path:
    """An export as the service writes it."""
    root = folder / "AWSDynamoDB" / f"01700-{table}"
    (root / "data").mkdir(parents=True)
    entries = []
    for number in range(files):
        some = items[number::files]
        body = gzip.compress(b"".join(json.dumps({"Item": item}).encode() + b"\n" for item in some))
        (root / "data" / f"{number}.json.gz").write_bytes(body)
        md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
        key = f"prefix/AWSDynamoDB/01700-{table}/data/{number}.json.gz"
        entries.append({"itemCount": len(some), "md5Checksum": md5, "etag": "e", "dataFileS3Key": key})
    says = {
        "tableArn": f"{ACCOUNT}{table}",
        "itemCount": len(items),
        "outputFormat": "DYNAMODB_JSON",
        "exportType": "FULL_EXPORT",
        **summary,
    }
    (root / "manifest-summary.json").write_text(json.dumps(says))
    (root / "manifest-files.json").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return root


def gathered(folder: Path, given: Given = NOTHING, reading: Reading | None = None):
    exports = collect_exports({str(folder): Folder(folder)}, given)
    return gather_exports(exports, given, reading or Reading(folder / "work")).tables


def described(table: str, key: dict[str, str]) -> Given:
    return Given((LiveTable(table, FoundTable(table, table, make_key(key)), table, 0, 0),))


def items_of(table) -> list[dict]:
    return [json.loads(line)["Item"] for path in table.files for line in gzip.open(path)]


def test_exports_of_several_tables_in_one_folder(tmp_path):
    """Each is a table by the name in its manifest, with its files as they are, and what they hold."""
    written(tmp_path, "shop", ORDERS)
    written(tmp_path, "users", [{"user_id": n(i), "email": s(f"{i}@x")} for i in range(3)])
    shop, users = sorted(gathered(tmp_path), key=lambda one: one.found.called)
    assert [(one.name, one.type) for one in shop.found.key] == [("PK", "S"), ("SK", "S")]
    assert [(one.name, one.type) for one in users.found.key] == [("user_id", "N")]
    assert (shop.items, users.items) == (7, 3)
    assert sorted(items_of(shop), key=str) == sorted(ORDERS, key=str)
    assert "its key is read off the items" in shop.found.checks[0]


def test_exports_take_key_and_indexes_that_are_given(tmp_path):
    """Types are those of the items: of an index also where few items are in it. A bare folder is called by --key."""
    items = [{"id": n(i), "at": n(i), **({"GSI1PK": n(i)} if i == 3 else {})} for i in range(5)]
    (tmp_path / "a.json.gz").write_bytes(
        gzip.compress(b"".join(json.dumps({"Item": i}).encode() + b"\n" for i in items))
    )
    given = Given(keys=["my.shop=id,at", "my.shop/by_x=GSI1PK,missing"])
    (shop,) = gathered(tmp_path, given)
    assert (shop.found.called, shop.found.key) == ("my.shop", make_key({"id": "N", "at": "N"}))
    (index,) = shop.found.indexes
    assert (index.name, index.attributes) == ("by_x", make_key({"GSI1PK": "N", "missing": "S"}))
    assert shop.found.checks == []


@pytest.mark.parametrize(
    ("items", "key"),
    [
        ([{"pk": s("a"), "sk": n(i), "id": s(str(i))} for i in range(3)], ["pk", "sk"]),
        ([{"email": s(f"{i}@x"), "shopId": n(i), "at": n(i)} for i in range(3)], ["shopId"]),
        ([{"name": s("x"), "code": s(str(i)), "list": {"L": []}} for i in range(3)], ["code"]),
        ([{"day": s(str(i % 3)), "city": s(str(i // 3)), "t": n(1)} for i in range(9)], ["day", "city"]),
        ([{"PK": s("one")}], ["PK"]),
        ([{"PK": s(str(i)), "x": n(1)} for i in range(3)], ["PK"]),
    ],
    ids=["names", "id", "alone", "pair", "one item", "partition"],
)
def test_exports_key_is_told_by_the_items(tmp_path, items, key):
    """Usual names first, then the id of the table, then the one attribute or pair that names each item once."""
    written(tmp_path, "shop", items)
    (shop,) = gathered(tmp_path)
    assert [one.name for one in shop.found.key] == key


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([{"email": s(f"{i}@x"), "phone": n(i)} for i in range(3)], "could be email or phone"),
        ([{"city": s("x")} for _ in range(3)], "no attribute or pair"),
        ([{"a": s(str(i))} if i else {"b": n(1)} for i in range(3)], "no attribute or pair"),
        ([{"name": s("one"), "age": n(3)}], "could be name or age"),
    ],
    ids=["two", "none", "no common shape", "one item"],
)
def test_exports_key_that_cannot_be_told_is_asked_for(tmp_path, items, found):
    """The refusal names those that it could be, and the option; no value."""
    written(tmp_path, "shop", items)
    with pytest.raises(UserError, match=rf"table shop: .*{found}.*--key shop=") as refused:
        gathered(tmp_path)
    assert "@x" not in str(refused.value)


def test_exports_keys_that_cannot_be_told_are_asked_for_at_once(tmp_path):
    """One refusal has the options of all tables: one more command is enough."""
    for table in ("one", "two"):
        written(tmp_path, table, [{"email": s(f"{i}@x"), "phone": n(i)} for i in range(3)])
    with pytest.raises(UserError) as error:
        gathered(tmp_path)
    assert "--key one=email --key two=email" in str(error.value)


def changed_file(body) -> object:
    """Change a data file; its manifest then says no sum."""

    def change(root: Path) -> None:
        file = root / "data/0.json.gz"
        file.write_bytes(body(file.read_bytes()))
        manifest = root / "manifest-files.json"
        manifest.write_text(manifest.read_text().replace("md5Checksum", "unknown"))

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda root: (root / "data/1.json.gz").write_bytes(b"x"), "1.json.gz: expected the MD5 sum .* Copy the file again"),
        (changed_file(lambda body: body[:-12]), "0.json.gz:[0-9]+: expected gzip, found it broken. Copy the file again"),
        (changed_file(lambda _: gzip.compress(b"")), "0.json.gz: expected 4 items, as the manifest says, found 0"),
    ],
    ids=["md5", "gzip", "count"],
)  # fmt: skip
def test_exports_that_are_not_whole_are_refused(tmp_path, change, said):
    """By file and line, with a cure."""
    change(written(tmp_path, "shop", ORDERS))
    with pytest.raises(UserError, match=said):
        gathered(tmp_path)


def cut_manifest(lines: int) -> object:
    """Keep some lines of the manifest of files."""

    def cut(root: Path) -> None:
        manifest = root / "manifest-files.json"
        manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:lines]))

    return cut


def say(**summary: object) -> object:
    """Change the summary; None removes what it says."""

    def change(root: Path) -> None:
        path = root / "manifest-summary.json"
        says = {**json.loads(path.read_text()), **summary}
        path.write_text(json.dumps({name: value for name, value in says.items() if value is not None}))

    return change


def lose(*names: str) -> object:
    return lambda root: [(root / name).unlink() for name in names]


def lose_counts(root: Path) -> None:
    manifest = root / "manifest-files.json"
    manifest.write_text(manifest.read_text().replace("itemCount", "unknown"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut_manifest(1), "no manifest names .*data/1.json.gz"),
        (cut_manifest(0), "no manifest names .*data/0.json.gz"),
        (say(itemCount=9), "says 9 items, its manifest-files.json has 7"),
        (say(tableArn=None), "expected manifests with a table"),
        (say(exportType="INCREMENTAL_EXPORT"), "found INCREMENTAL_EXPORT"),
        (lose("manifest-files.json"), "expected AWSDynamoDB/01700-shop/manifest-files.json, found none"),
        (lose("manifest-summary.json"), "found one without manifest-summary.json"),
        (lose("manifest-summary.json", "manifest-files.json"), "a part of the manifests is missing"),
        (lose("data/0.json.gz"), "names .*data/0.json.gz, which does not exist"),
        (lose_counts, "the items of each file"),
    ],
    ids=["cut", "emptied", "sum", "no table", "incremental", "no files", "no summary", "neither", "lost", "no counts"],
)  # fmt: skip
def test_exports_whose_manifests_lack_something_are_refused(tmp_path, change, said):
    """A part of the data would make wrong rules, and a manifest that lacks a part hides it."""
    change(written(tmp_path, "shop", ORDERS))
    with pytest.raises(UserError, match=said):
        gathered(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        '{"Item": {"PK": {"S": 5}}}', '{"Item": {"PK": {"Q": "x"}}}', '{"Item": {"PK": {"N": "ten"}}}', "", "[1]",
        '{"Item": {"PK": {"SS": "a"}}}', '{"Item": {"PK": {"M": {"a": "b"}}}}', '{"Item": {"PK": {"L": [1]}}}',
        '{"Item": {"PK": {"BOOL": "yes"}}}', '{"Item": {"PK": {"S": "a", "N": "1"}}}', '{"Item": {"PK": null}}',
        '{"Item": {"PK": {"S": "\\ud800"}}}', '{"Item": ' * 500, '{"Keys": {"PK": {"S": "a"}}, "NewImage": {}}',
        '{"Item": {"PK": ' + '{"L": [' * 200 + "]}" * 200 + "}}", '{"Item": {"PK": {"NS": ["a"]}}}',
    ],
)  # fmt: skip
def test_exports_with_a_malformed_line_name_it(tmp_path, line):
    """The message has the file and the line, whatever is in the line."""
    good = json.dumps({"Item": ORDERS[0]})
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(f"{good}\n{line}\n".encode()))
    with pytest.raises(UserError, match=r"a\.json\.gz:2: expected"):
        gathered(tmp_path)


def test_exports_and_tables_that_do_not_match_are_refused(tmp_path):
    """A table without an export, two exports of a table, keys of unknown tables, a key that is described too."""
    written(tmp_path / "one", "shop", ORDERS)
    written(tmp_path / "two", "shop", ORDERS)
    with pytest.raises(UserError, match=r"two exports of table shop. Name the place of one"):
        gathered(tmp_path)
    one = tmp_path / "one"
    with pytest.raises(UserError, match="table users has no export among those given, which are of shop"):
        gathered(one, described("users", {"id": "S"}))
    with pytest.raises(UserError, match=r"--key shops=PK: no table 'shops'. Known: shop. Did you mean 'shop'\?"):
        gathered(one, Given(keys=["shops=PK"]))
    with pytest.raises(UserError, match="leave out --key or --table"):
        gathered(one, Given(described("shop", {"PK": "S", "SK": "S"}).described, keys=["shop=PK,SK"]))
    with pytest.raises(UserError, match=r"each with PK \(N\), found some without it"):
        gathered(one, described("shop", {"PK": "N"}))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("shop=PK", "two items have the same PK. Correct --key"),
        ("shop=PK,sk", "attribute sk in each item .*attributes that each item has: PK, SK, total"),
        ("shop", "expected TABLE=PARTITION or TABLE=PARTITION,SORT"),
        ("shop=a,b,c", "expected TABLE=PARTITION"),
        ("shop=PK,", "expected TABLE=PARTITION"),
    ],
)
def test_exports_refuse_a_key_that_is_none(tmp_path, key, said):
    """Before anything is computed of it."""
    written(tmp_path, "shop", ORDERS)
    with pytest.raises(UserError, match=said):
        gathered(tmp_path, Given(keys=[key]))


def test_exports_without_an_item(tmp_path):
    """An empty export is left out; with its key from the account it is a table without items."""
    written(tmp_path / "empty", "users", [], files=1)
    assert gathered(tmp_path / "empty") == ()
    (users,) = gathered(tmp_path / "empty", described("users", {"id": "S"}))
    assert users.items == 0
    written(tmp_path / "full", "shop", ORDERS)
    assert [one.found.called for one in gathered(tmp_path)] == ["shop"]


def test_exports_in_a_bucket_are_fetched_once(tmp_path, monkeypatch):
    """Files lie in the workspace; a run after that fetches none; one that is not as the manifest says is fetched again."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    root = written(tmp_path / "there", "shop", ORDERS)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="exports")
        for path in (path for path in root.rglob("*") if path.is_file()):
            client.upload_file(str(path), "exports", f"a/{path.relative_to(tmp_path / 'there')}")
        asked: list[str] = []
        client.meta.events.register(
            "before-parameter-build.s3.GetObject", lambda params, **_: asked.append(params["Key"])
        )

        def get() -> list[dict]:
            given = Given()
            exports = collect_exports({"s3://exports/a": Bucket(client, "exports", "a")}, given)
            (shop,) = gather_exports(exports, given, Reading(tmp_path / "work", workers=2)).tables
            return sorted(items_of(shop), key=str)

        assert get() == sorted(ORDERS, key=str)
        assert sum(key.endswith(".gz") for key in asked) == 2
        asked.clear()
        assert get() == sorted(ORDERS, key=str)
        assert sum(key.endswith(".gz") for key in asked) == 0
        next((tmp_path / "work").iterdir()).write_bytes(b"cut short")
        with pytest.raises(UserError, match=r"s3://exports/a/.*expected the MD5 sum"):
            get()
        assert get() == sorted(ORDERS, key=str)


TEXTS = st.text(max_size=20) | st.from_regex(r"shop(\.x)*(/x)?=[ab,]*", fullmatch=True)


@settings(max_examples=100)
@given(TEXTS, TEXTS)
def test_keys_of_any_text_are_read_or_refused(key, other):
    """No text is a bug."""
    with suppress(UserError):
        parse_keys([key, other], ["shop", "shop.x"])


def test_workspace_is_the_owner_s_and_of_one_process(tmp_path):
    """Nobody else reads it, git ignores it, and two runs do not share it."""
    folder = tmp_path / "new/work"
    with open_workspace(folder) as workspace:
        assert folder.stat().st_mode & 0o077 == 0
        assert (folder / ".gitignore").read_text().splitlines()[-1] == "*"
        workspace.state.save("x", {"a": 1})
        with pytest.raises(UserError, match="another `sync-rules propose` uses this"), open_workspace(folder):
            pass
    with open_workspace(folder) as again:
        assert again.state.load("x") == {"a": 1}


def test_workspace_of_an_earlier_run_is_made_private_and_tidied(tmp_path):
    """The files of a killed run are gone; a folder of the user that others can read is refused, and stays as it is."""
    folder = tmp_path / "work"
    with open_workspace(folder) as workspace:
        left = [workspace.stage / "spool/x.rows", workspace.exports / "a.json.gz.new", workspace.exports / "b.json.gz"]
        for one in left:
            one.parent.mkdir(parents=True, exist_ok=True)
            one.write_text("x")
    folder.chmod(0o755)
    with open_workspace(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert [one.exists() for one in left] == [False, False, True]
    other = tmp_path / "mine"
    other.mkdir(mode=0o755)
    other.chmod(0o755)
    (other / "notes").write_text("x")
    with pytest.raises(UserError, match="other users can read this folder"), open_workspace(other):
        pass
    assert [one.name for one in other.iterdir()] == ["notes"]
    assert other.stat().st_mode & 0o777 == 0o755
