"""Scans into files: all items once, at a rate, and after a stop or a kill the rest."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sync_rules.adapters.budget import Rate
from sync_rules.adapters.state import FileState
from sync_rules.extras.discover.propose import table_scans
from sync_rules.extras.discover.propose.table_scans import Scanning, describe_tables
from sync_rules.model.errors import StoreError, UserError
from tests.extras.discover.accounts import create_table, fill_table, limit_pages

ITEMS = 60


@pytest.fixture
def client(client):
    """An account in memory with a table of items of every type."""
    for table in ("shop", "empty"):
        create_table(client, table, {"PK": "S", "SK": "B"})
    fill_table(client, "shop", [*map(item, range(ITEMS))])
    return client


def item(number: int) -> dict:
    values = {
        "name": {"S": "Zoë\u2028"},
        "tags": {"SS": ["a", "b"]},
        "raw": {"L": [{"B": b"\x00\xff"}, {"NULL": True}]},
    }
    return {"PK": {"S": f"USER#{number}"}, "SK": {"B": b"k"}, **values}


def scanning(client, folder: Path, **options) -> Scanning:
    return Scanning(client, folder / "tables", FileState(folder / "progress.json"), **{"segments": 4, **options})


def items(tables) -> list[dict]:
    lines = [line for one in tables for path in one.files for line in gzip.decompress(path.read_bytes()).split(b"\n")]
    return [json.loads(line)["Item"] for line in lines if line]


def keys(tables) -> list[str]:
    return sorted(one["PK"]["S"] for one in items(tables))


ALL = sorted(f"USER#{number}" for number in range(ITEMS))


def test_scan_writes_each_item_as_an_export_has_it(client, tmp_path):
    """All types, in DynamoDB's JSON, and once. An empty table has no items. No other user may read the files."""
    tables = scanning(client, tmp_path, workers=3).run(describe_tables(client, ["shop", "empty"]))
    assert keys(tables) == ALL
    assert [one.items for one in tables] == [ITEMS, 0]
    assert [(one.name, one.type) for one in tables[0].found.key] == [("PK", "S"), ("SK", "B")]
    made = items(tables)
    assert {json.dumps(one["raw"]) for one in made} == {'{"L": [{"B": "AP8="}, {"NULL": true}]}'}
    assert {one["name"]["S"] for one in made} == {"Zoë\u2028"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in tables[0].files)


def test_scan_that_was_killed_goes_on_behind_its_last_file(client, tmp_path, monkeypatch):
    """A kill between a file and its note, and one in the middle of a file, cost pages and no item comes twice."""
    monkeypatch.setattr(table_scans, "FILE_BYTES", 1)
    limit_pages(client, monkeypatch, 3)
    for number in (1, 2, 3, 4, 4):
        dying = scanning(client, tmp_path)
        saves, inner = [0], dying.state.save

        def save(name, body, saves=saves, inner=inner, number=number) -> None:
            saves[0] += 1
            if saves[0] == number:
                raise SystemExit("killed")
            inner(name, body)

        monkeypatch.setattr(dying.state, "save", save)
        with pytest.raises(SystemExit):
            dying.run(describe_tables(client, ["shop"]))
    assert keys(scanning(client, tmp_path).run(describe_tables(client, ["shop"]))) == ALL


def test_scan_without_the_right_names_the_request(client, tmp_path, monkeypatch):
    """The refusal names action, table and cure; what was read before it is kept."""
    limit_pages(client, monkeypatch, 5)
    inner, answers = client.scan, [1, 1]

    def scan(**request: object) -> dict:
        if not answers:
            refused = {"Error": {"Code": "AccessDeniedException", "Message": "USER#7 may not"}}
            raise client.exceptions.ClientError(refused, "Scan")
        answers.pop()
        return inner(**request)

    monkeypatch.setattr(client, "scan", scan)
    with pytest.raises(StoreError, match=r"AccessDeniedException: dynamodb:Scan of shop: .*permission") as refused:
        scanning(client, tmp_path).run(describe_tables(client, ["shop"]))
    assert "USER#7" not in str(refused.value)
    answers += [1] * 100
    told: list = []
    assert keys(scanning(client, tmp_path, on_page=told.append).run(describe_tables(client, ["shop"]))) == ALL
    assert told[0].before == 10


def test_scan_takes_no_more_than_its_rate(client, tmp_path):
    """Each page takes at most what one second allows, and all of them are paid for."""
    taken: list[float] = []

    class Noted(Rate):
        def take(self, units: float, within_seconds: float = 0) -> bool:
            taken.append(units)
            return True

    scanning(client, tmp_path, rate=Noted(1.0), segments=1).run(describe_tables(client, ["shop"]))
    assert taken
    assert max(taken) <= 2
    assert sum(taken) > 0


def test_scan_names_a_file_that_is_gone(client, tmp_path):
    """If somebody deleted a part of the workspace, the error says how to read again."""
    (table,) = scanning(client, tmp_path).run(describe_tables(client, ["shop"]))
    table.files[0].unlink()
    with pytest.raises(UserError, match=r"expected a file of an earlier run, found none. .*--workspace"):
        scanning(client, tmp_path).run(describe_tables(client, ["shop"]))
