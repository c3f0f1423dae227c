"""Rules proposed from tables of an engine: read in segments, written as a file that plan then takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.language.load import parse_rules
from tests.support.builders import s
from tests.support.engines import unique_prefix

TABLES = "tables: {shop: {name: NAMEshop, key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S}}}}\nentities: {}\nrules: {}"
USERS, ORDERS = 30, 240
STALE = (17, 80, 200)


def items() -> list[dict]:
    users = [{"PK": s(f"USER#{u}"), "SK": s("PROFILE"), "name": s(f"Name {u * 7919 % 997}")} for u in range(USERS)]
    orders = [
        {
            "PK": s(f"ORDER#{o}"),
            "SK": s("ORDER"),
            "GSI1PK": s(f"USER#{o * o % USERS}"),
            "user_name": s("Old") if o in STALE else users[o * o % USERS]["name"],
            "raw": {"B": bytes([o])},
        }
        for o in range(ORDERS)
    ]
    return [*users, *orders]


@pytest.mark.parametrize("endpoint", ["ministack", "dynoxide"])
def test_propose_from_an_engine_s_table(endpoint, endpoints, tmp_path, monkeypatch, capsys):
    """A copy through an index, found with its drift; nothing is asked of an emulator; plan takes the file."""
    monkeypatch.chdir(tmp_path)
    url = endpoints.of(endpoint)
    client = aws.dynamodb(url)
    (table,) = parse_rules(TABLES.replace("NAME", unique_prefix()), environ={}).tables.values()
    client.create_table(**make_table_parameters(table, stream=True))
    try:
        for item in items():
            client.put_item(TableName=table.physical_name, Item=item)
        command = ["propose", "--table", table.physical_name, "--endpoint-url", url]
        assert main.main([*command, "--out", "rules.yaml"]) == 0
        said = capsys.readouterr()
        assert f"1 rule proposed; {len(STALE)} targets differ" in said.out, Path("rules.yaml").read_text()
        assert f"table {table.physical_name}: " in said.err
        assert "USD" not in said.err
        assert main.main(["plan", "rules.yaml", "--endpoint-url", url, "--format", "json"]) == 0
    finally:
        client.delete_table(TableName=table.physical_name)
    (figures,) = json.loads(capsys.readouterr().out)["rules"].values()
    assert (figures["to_write"], figures["right"]) == (len(STALE), ORDERS - len(STALE))
