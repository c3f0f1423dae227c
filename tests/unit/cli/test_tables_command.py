"""`sync-rules tables create`: what it creates, what it leaves alone, what it says, and when it creates nothing."""

from __future__ import annotations

import json

import pytest

from sync_rules.adapters import aws
from sync_rules.cli import main
from tests.support.engines import unique_prefix

RULES = """
tables:
  shop:   {{name: {prefix}shop, key: {{PK: S, SK: S}}, indexes: {{by_status: {{status: S, total: N}}}}}}
  users:  {{name: {prefix}users, key: {{user_id: S}}}}
  ledger: {{name: {prefix}ledger, key: {{PK: S, SK: S}}}}
  notes:  {{name: {prefix}notes, key: {{id: N}}}}
entities:
  user:  {{table: users}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  orders: {{count: order, into: user.orders}}
"""


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """The prefix of the tables of a rules file, in the folder where the user is."""
    made = unique_prefix()
    (tmp_path / "rules.yaml").write_text(RULES.format(prefix=made))
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def client(engine):
    return aws.dynamodb(engine)


@pytest.fixture
def create(prefix, engine, capsys):
    """Runs the command; gives its code, its rows by table, and what it said on stderr."""

    def create(*arguments):
        code = main.main(["tables", "create", "--endpoint-url", engine, "--format", "jsonl", *arguments])
        said = capsys.readouterr()
        return code, {row["table"]: row for row in map(json.loads, said.out.splitlines())}, said.err

    return create


def names(client, prefix):
    pages = client.get_paginator("list_tables").paginate()
    return {name.removeprefix(prefix) for page in pages for name in page["TableNames"] if name.startswith(prefix)}


def test_tables_create_makes_what_the_rules_need_and_only_once(create, client, prefix):
    """Keys, indexes and types; streams where rules look; the ledger. A second time all exist and fit."""
    code, made, _ = create()
    assert (code, {row["state"] for row in made.values()}) == (0, {"created"})
    assert names(client, prefix) == {"shop", "users", "ledger", "notes"}
    shop = client.describe_table(TableName=f"{prefix}shop")["Table"]
    assert shop["GlobalSecondaryIndexes"][0]["KeySchema"] == [
        {"AttributeName": "status", "KeyType": "HASH"}, {"AttributeName": "total", "KeyType": "RANGE"},
    ]  # fmt: skip
    assert {"AttributeName": "total", "AttributeType": "N"} in shop["AttributeDefinitions"]
    for name in ("shop", "users", "ledger"):
        stream = client.describe_table(TableName=f"{prefix}{name}")["Table"]["StreamSpecification"]
        assert stream == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert "LatestStreamArn" not in client.describe_table(TableName=f"{prefix}notes")["Table"]
    code, again, _ = create()
    assert (code, {row["state"] for row in again.values()}) == (0, {"exists"})


def test_tables_create_changes_no_table_that_differs(create, client, prefix, capsys, engine):
    """Another key, a missing index, no stream, a stream of one image: each is named with its cure; the rest is made."""
    key, definition = {"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "id", "AttributeType": "S"}
    odd = {"KeySchema": [key], "AttributeDefinitions": [definition], "BillingMode": "PAY_PER_REQUEST"}
    client.create_table(TableName=f"{prefix}shop", **odd)
    client.create_table(
        TableName=f"{prefix}ledger", **odd, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    )
    before = [client.describe_table(TableName=f"{prefix}{name}")["Table"] for name in ("shop", "ledger")]
    code, rows, _ = create()
    assert code == 1
    assert {name: row["state"] for name, row in rows.items()} == {
        "shop": "differs", "users": "created", "ledger": "differs", "notes": "created",
    }  # fmt: skip
    assert before == [client.describe_table(TableName=f"{prefix}{name}")["Table"] for name in ("shop", "ledger")]
    assert {name: len(row.get("problems", ())) for name, row in rows.items() if row["state"] == "differs"} == {
        "shop": 3, "ledger": 2,
    }  # fmt: skip
    assert main.main(["tables", "create", "--endpoint-url", engine, "--dry-run"]) == 1
    text = capsys.readouterr().out
    assert f"table {prefix}shop differs: it has no stream, so changes would not be seen. Enable a stream" in text


def test_tables_create_makes_the_table_of_calls_with_time_to_live(create, client, prefix):
    """A table of the rules is refused, and one without Time to Live differs."""
    code, rows, _ = create("--calls-table", f"{prefix}calls")
    assert (code, rows["calls"]["state"]) == (0, "created")
    ttl = client.describe_time_to_live(TableName=f"{prefix}calls")["TimeToLiveDescription"]
    assert (ttl["AttributeName"], ttl["TimeToLiveStatus"]) == ("expiration", "ENABLED")
    assert create("--calls-table", f"{prefix}calls")[1]["calls"]["state"] == "exists"
    code, _, said = create("--calls-table", f"{prefix}notes")
    assert code == 2
    assert "is a table of the rules" in said
    specification = {"Enabled": False, "AttributeName": "expiration"}
    client.update_time_to_live(TableName=f"{prefix}calls", TimeToLiveSpecification=specification)
    code, rows, _ = create("--calls-table", f"{prefix}calls")
    assert code == 1
    assert "Time to Live on expiration is not on, so remembered calls stay for ever" in rows["calls"]["problems"][0]


def test_tables_create_makes_tables_with_time_to_live(engine, client, prefix, capsys, tmp_path):
    """The attribute that rules name; a table with another one, or none, differs."""
    file = tmp_path / "games.yaml"
    file.write_text(
        f"tables: {{games: {{name: {prefix}games, key: {{game_id: S}}}}}}\nentities: {{game: {{table: games}}}}\n"
        "rules: {expiry: {derive: game.expires_at, as: 'ttl(ended_at, 60d)'}}\n"
    )

    def create() -> tuple[int, str]:
        return main.main(["tables", "create", str(file), "--endpoint-url", engine]), capsys.readouterr().out

    def turn(name: str, *, on: bool) -> None:
        wanted = {"Enabled": on, "AttributeName": name}
        client.update_time_to_live(TableName=f"{prefix}games", TimeToLiveSpecification=wanted)

    code, said = create()
    assert (code, "; Time to Live on expires_at" in said) == (0, True)
    assert create()[0] == 0
    turn("expires_at", on=False)
    code, said = create()
    assert (code, "Time to Live on expires_at is not on, so expired items stay. Enable it: `aws" in said) == (1, True)


def test_tables_create_on_aws_needs_a_region_and_a_yes(create, client, prefix, monkeypatch):
    """Without --region nothing is asked; without --yes all is shown, and nothing created."""
    monkeypatch.setattr(aws, "is_aws", lambda _: True)
    monkeypatch.setattr(aws, "find_account", lambda _: "123456789012")
    code, rows, said = create()
    assert (code, rows) == (2, {})
    assert "name the Region with --region" in said
    code, rows, said = create("--region", "us-east-1")
    assert (code, {row["state"] for row in rows.values()}) == (2, {"missing"})
    assert "account 123456789012" in said
    assert "Give --yes" in said
    assert create("--region", "us-east-1", "--dry-run")[0] == 0
    assert names(client, prefix) == set()
    assert create("--region", "us-east-1", "--yes")[0] == 0
    assert create("--region", "us-east-1")[0] == 0, "nothing is left to confirm"
    assert names(client, prefix) == {"shop", "users", "ledger", "notes"}


def test_tables_create_makes_no_table_named_by_its_arn(create, tmp_path, prefix):
    """Such a table may be of another account: its owner creates it."""
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/notes-of-others"
    (tmp_path / "rules.yaml").write_text(RULES.format(prefix=prefix).replace(f"{prefix}notes", f"'{arn}'"))
    code, rows, _ = create("--dry-run")
    assert code == 1
    assert "named by its ARN" in rows["notes"]["problems"][0]
