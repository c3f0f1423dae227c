"""`sync-rules propose` as a user calls it: what it costs, what it writes, what it says when there is nothing to say."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from sync_rules.cli import main, options
from sync_rules.cli.commands.check import format_report
from sync_rules.extras.discover.propose import database
from sync_rules.language.load import check_rules
from tests.extras.discover.accounts import create_table, fill_table, limit_pages
from tests.support.builders import n, s
from tests.support.depth import spread_over_night

USERS, ORDERS = 40, 400
STALE = range(0, ORDERS, 50)
SECRET = "Canary"


def word(number: int, what: str) -> str:
    """A text that does not follow from a number in a way that anybody could tell."""
    return f"{hashlib.sha256(f'{what}{number}'.encode()).hexdigest()[:6]}{SECRET}"


def user(number: int) -> dict:
    age = n(20 + int(word(number, "age")[:2], 16) % 40)
    return {"PK": s(f"USER#{number}"), "SK": s("PROFILE"), "name": s(word(number, "name")), "age": age}


def order(number: int) -> dict:
    of = number * 7 % USERS
    name = word(number, "old") if number in STALE else word(of, "name")
    keys = {"PK": s(f"USER#{of}"), "SK": s(f"ORDER#{number}")}
    return {
        **keys,
        "user_name": s(name),
        "total": n(int(word(number, "total")[:4], 16)),
        "note": s(word(number, "note")),
    }


SHOP = [*map(user, range(USERS)), *map(order, range(ORDERS))]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The folder where the user is."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def client(folder, client):
    """An account in memory with the shop."""
    create_table(client, "shop", {"PK": "S", "SK": "S"})
    fill_table(client, "shop", SHOP)
    return client


def exported(folder: Path, name: str, items: list[dict]) -> str:
    """A bare export."""
    (folder / name).mkdir()
    lines = b"".join(json.dumps({"Item": item}).encode() + b"\n" for item in items)
    (folder / name / "a.json.gz").write_bytes(gzip.compress(lines))
    return name


LIVE = ["propose", "--table", "shop", "--region", "eu-central-1"]


# ---------------------------------------------------------------- live tables
def test_propose_reads_a_live_table_and_writes_a_rules_file(client, folder, capsys, monkeypatch):
    """Cost first; then the file, which passes check, and its figures. A second run reads nothing, one without the folder all."""
    asked = limit_pages(client, monkeypatch, 30)
    weigh(client, monkeypatch, 400_000_000)
    assert main.main([*LIVE, "--yes", "--out", "rules.yaml"]) == 0
    out, err = capsys.readouterr()
    assert "table shop: about 440 items and 400.0 MB" in err
    assert "about 48,828 read units, less than 0.01 USD on demand in eu-central-1 (prices of 2" in err
    assert "at least 33 s at 1,500 read units a second" in err
    text = (folder / "rules.yaml").read_text()
    assert format_report("rules.yaml", *check_rules(text, {})).endswith("OK")
    assert "copy user.name into order.user_name" in text
    assert f"{ORDERS - len(STALE)} of {ORDERS} agree" in text
    assert f"1 rule proposed; {len(STALE)} targets differ" in out
    assert "sync-rules check rules.yaml && sync-rules plan rules.yaml" in err
    read = len(asked)
    assert main.main(LIVE) == 0  # nothing is read, so nothing is asked
    again, err = capsys.readouterr()
    assert again == text
    assert "table shop: read from 2" in err
    assert len(asked) == read
    shutil.rmtree(".sync-rules-propose")
    assert main.main([*LIVE, "--yes"]) == 0
    assert len(asked) == 2 * read


def test_propose_says_that_a_count_needs_its_ledger(client, folder, capsys):
    """The output and the file name the table, what refuses the file without it, and the command that makes it."""
    owners = [word(number, "of")[0] for number in range(ORDERS)]
    create_table(client, "desk", {"PK": "S", "SK": "S"})
    tickets = [{"PK": s(f"TEAM#{of}"), "SK": s(f"TICKET#{number}")} for number, of in enumerate(owners)]
    teams = [{"PK": s(f"TEAM#{of}"), "SK": s("TEAM"), "tickets": n(owners.count(of))} for of in sorted({*owners})]
    fill_table(client, "desk", tickets + teams)
    desk = ["propose", "--table", "desk", "--region", "eu-central-1", "--yes"]
    assert main.main([*desk, "--out", "rules.yaml"]) == 0
    out = capsys.readouterr().out
    refused = "plan, backfill and verify refuse"
    assert f"table to make: ledger for tickets-of-teams; {refused} the file until it exists: sync-rules tables" in out
    assert f"{refused} this file until" in (folder / "rules.yaml").read_text()
    for command in ("plan", "verify"):
        assert main.main([command, "rules.yaml", "--region", "eu-central-1"]) == 2
        assert "ledger" in capsys.readouterr().err
    main.main(["tables", "create", "rules.yaml", "--region", "eu-central-1", "--yes"])
    assert "table ledger created" in capsys.readouterr().out
    assert main.main(["plan", "rules.yaml", "--region", "eu-central-1"]) == 0


def weigh(client, monkeypatch, size_bytes: int) -> None:
    """Let DynamoDB say how large the tables are."""
    inner = client.describe_table

    def describe(**request: object) -> dict:
        answer = inner(**request)
        answer["Table"]["TableSizeBytes"] = size_bytes
        return answer

    monkeypatch.setattr(client, "describe_table", describe)


def test_propose_asks_before_it_pays(client, capsys, monkeypatch):
    """Propose reads nothing if you cannot answer, and names the cure. It makes up no cost. A no is not a mistake."""
    asked = limit_pages(client, monkeypatch, 30)
    assert main.main(LIVE) == 2
    refused = capsys.readouterr().err
    assert "table shop: DynamoDB has not counted it yet, so what a scan costs is not known" in refused
    assert "USD" not in refused
    assert main.main(LIVE) == 2
    assert "no question can be answered: give --yes" in capsys.readouterr().err
    monkeypatch.setattr("sync_rules.extras.discover.propose.item_collection.confirm", lambda question, yes: False)
    assert main.main(LIVE) == 0
    assert "nothing was read" in capsys.readouterr().err
    assert not asked


@pytest.mark.night
def test_propose_goes_on_after_an_interrupt(client, folder, capsys, monkeypatch):
    """Ctrl-C ends with 130 and says how to go on; the same command reads no page twice."""
    asked = limit_pages(client, monkeypatch, 30)
    inner = client.scan

    def interrupted(**request: object) -> dict:
        if len(asked) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return inner(**request)

    monkeypatch.setattr(client, "scan", interrupted)
    monkeypatch.setattr(options, "WORKERS", 1)
    monkeypatch.setattr(options, "SEGMENTS", 3)
    assert main.main([*LIVE, "--yes"]) == 130
    assert "the same command goes on; without the folder of --workspace it reads all again" in capsys.readouterr().err
    assert 0 < len(asked) < 10
    assert main.main([*LIVE, "--yes"]) == 0
    out, err = capsys.readouterr()
    assert "copy user.name into order.user_name" in out
    assert "% of it read before" in err
    places = [json.dumps((one["Segment"], one.get("ExclusiveStartKey"))) for one in asked]
    assert len(places) == len(set(places))


def test_propose_takes_the_key_of_an_export_from_the_account(client, folder, capsys):
    """With --table beside --from-export nothing is scanned, and nothing has to be told."""
    exported(folder, "shop", SHOP)
    assert main.main([*LIVE, "--from-export", "shop"]) == 0
    assert "its key is read off" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "case",
    [
        ("it was made with a filter. Make another", 2, "export of shop lacks items: it was made with a filter"),
        ("these credentials may not ask", 0, "CHECK: its export may have a filter: these credentials may not ask"),
    ],
)
def test_propose_asks_for_the_filter_of_an_export(client, folder, capsys, monkeypatch, case):
    """An export with a filter is refused; where the account does not say it, the file does."""
    doubt, code, said = case
    exported(folder, "shop", SHOP)
    find = "sync_rules.extras.discover.propose.item_collection.find_doubt"
    monkeypatch.setattr(find, lambda _client, arn: doubt if arn == "export-1" else "")
    entry = {"itemCount": len(SHOP), "dataFileS3Key": "x/data/a.json.gz"}
    summary = {"tableArn": "arn:aws:dynamodb:eu-central-1:111122223333:table/shop", "exportArn": "export-1"}
    root = folder / "shop"
    (root / "data").mkdir()
    (root / "a.json.gz").rename(root / "data/a.json.gz")
    (root / "manifest-summary.json").write_text(json.dumps({**summary, "itemCount": len(SHOP)}))
    (root / "manifest-files.json").write_text(json.dumps(entry))
    assert main.main([*LIVE, "--from-export", "shop"]) == code
    answer = capsys.readouterr()
    assert said in " ".join((answer.out + answer.err).replace("#  ", "").split())


# ---------------------------------------------------------------- exports, and forms of output
EXPORT = ["propose", "--from-export", "shop"]


def test_propose_prints_one_document_for_machines(folder, capsys):
    """Tables, entities, rules with evidence, links, the file."""
    exported(folder, "shop", SHOP)
    assert main.main([*EXPORT, "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    (rule,) = made["rules"]
    assert (rule["rule"], rule["held_back"]) == ({"copy": "user.name", "into": "order.user_name"}, None)
    assert (rule["checked"], rule["agree"], rule["differ"]) == (ORDERS, ORDERS - len(STALE), len(STALE))
    assert {one["name"]: one["items"] for one in made["tables"][0]["entities"]} == {"user": USERS, "order": ORDERS}
    assert check_rules(made["file"], {})[0] is not None
    assert all(one.keys() == {"key"} for one in rule["examples"])


def test_propose_says_why(folder, capsys):
    """Accepted candidates come first. Propose refuses an unknown attribute and names those that exist."""
    exported(folder, "shop", SHOP)
    assert main.main([*EXPORT, "--why", "order.user_name"]) == 0
    assert capsys.readouterr().out.startswith("order.user_name · copy of user.name: proposed\n  for: ")
    assert main.main([*EXPORT, "--why", "note"]) == 0
    capsys.readouterr()
    assert main.main([*EXPORT, "--why", "copy user.name into order.user_name"]) == 0
    assert capsys.readouterr().out.startswith("order.user_name · copy of user.name: proposed\n")
    assert main.main([*EXPORT, "--why", "copy user.bio into order.note"]) == 0
    assert "too few values agree by order.user_id: " in capsys.readouterr().out
    assert main.main([*EXPORT, "--why", "sum shop.price into order.note"]) == 0
    assert "no attribute of order or shop names items of the other" in capsys.readouterr().out
    assert main.main([*EXPORT, "--why", "order.user_nam"]) == 2
    assert "Did you mean 'order.user_name'?" in capsys.readouterr().err


def test_propose_shows_a_text_of_items_only_when_asked(folder, capsys):
    """A formula with a text that all items share is a comment without it; a word of a name or a key is no value."""
    items = [
        one | {"code": s(f"Kestrel7-{one['note']['S']}"), "mark": s(f"NOTE#{one['note']['S']}")} for one in SHOP[USERS:]
    ]
    exported(folder, "shop", [*SHOP[:USERS], *items])
    assert main.main(EXPORT) == 0
    shown = capsys.readouterr().out
    assert "Kestrel" not in shown
    assert '# code-of-orders: {derive: "order.code", as: "…-{note}"}' in shown
    assert '  mark-of-orders: {derive: "order.mark", as: "NOTE#{note}"}' in shown
    assert main.main([*EXPORT, "--format", "json"]) == 0
    assert "Kestrel" not in capsys.readouterr().out
    assert main.main([*EXPORT, "--values"]) == 0
    assert '  code-of-orders: {derive: "order.code", as: "Kestrel7-{note}"}' in capsys.readouterr().out


def test_propose_overwrites_nothing(folder, capsys):
    """A rules file that is there may have been edited: the refusal comes before anything is read."""
    (folder / "rules.yaml").write_text("mine")
    assert main.main(["propose", "--from-export", "nowhere", "--out", "rules.yaml"]) == 2
    assert "rules.yaml exists, and is not overwritten" in capsys.readouterr().err
    assert main.main(["propose"]) == 2
    assert "name what to read" in capsys.readouterr().err
    assert (folder / "rules.yaml").read_text() == "mine"


def test_propose_without_duckdb(folder, capsys, monkeypatch):
    """Nothing is read or paid for; the cure is a command."""
    monkeypatch.setattr(database, "find_spec", lambda _name: None)
    assert main.main(["propose", "--from-export", "nowhere"]) == 2
    assert 'install it: pip install "sync-rules[propose]"' in capsys.readouterr().err


def test_propose_says_file_and_line_of_what_is_no_item(folder, capsys):
    """A malformed line is a mistake of the data, with exit code 2."""
    exported(folder, "shop", [*SHOP[:3], {"PK": {"S": 5}}])
    assert main.main(EXPORT) == 2
    assert "shop/a.json.gz:4: expected values of DynamoDB's types" in capsys.readouterr().err


# ---------------------------------------------------------------- data that says nothing
ODD = {
    "one item": [user(1)],
    "no common shape": [{"PK": s(f"{number}"), f"a{number}": n(number)} for number in range(30)],
    "large": [{"PK": s(f"USER#{number}"), "text": s(f"{number}" + "x" * 399_000)} for number in range(4)],
    "many attributes": [
        {"PK": s(f"USER#{number}"), **{f"a{one}": n(one * number) for one in range(10_000)}} for number in range(3)
    ],
    "nested": [{"PK": s(f"U#{number}"), "m": {"M": {"l": {"L": [n(1), {"M": {"x": s("y")}}]}}}} for number in range(5)],
}


@pytest.mark.parametrize("odd", spread_over_night(ODD, share=len(ODD)))
def test_propose_on_items_that_say_nothing(folder, capsys, odd):
    """The last line says that nothing was found and why; the file has the tables and passes check."""
    exported(folder, "odd", ODD[odd])
    assert main.main(["propose", "--from-export", "odd", "--key", "odd=PK", "--out", "rules.yaml"]) == 0
    assert "nothing found, because " in capsys.readouterr().out
    text = (folder / "rules.yaml").read_text()
    assert check_rules(text, {})[0] is not None, text


def test_propose_on_an_empty_table(client, folder, capsys):
    """A table without items is no mistake, and an export without items, whose key is unknown, is not one either."""
    create_table(client, "empty", {"id": "S"})
    assert main.main(["propose", "--table", "empty", "--region", "eu-central-1", "--yes", "--out", "r.yaml"]) == 0
    assert "nothing found, because the tables hold no items" in capsys.readouterr().out
    exported(folder, "none", [])
    assert main.main(["propose", "--from-export", "none", "--out", "n.yaml"]) == 0
    left_out = "table none: left out, for its export has no items"
    assert capsys.readouterr().out == f"{left_out}\nnothing found, because the tables hold no items\n"
    assert not (folder / "n.yaml").exists()
    exported(folder, "some", [{"PK": {"S": "a"}}])
    asked = ["propose", "--from-export", "none", "--from-export", "some", "--key", "some=PK", "--out", "s.yaml"]
    assert main.main(asked) == 0
    assert "table none: left out" in capsys.readouterr().out
    assert "table none is left out" in (folder / "s.yaml").read_text()
