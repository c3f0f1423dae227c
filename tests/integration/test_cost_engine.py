"""`sync-rules cost --sample` on an engine: sizes and numbers are those of the items there."""

from __future__ import annotations

import json

import pytest

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.language.load import parse_rules
from tests.support import engines
from tests.support.builders import s

RULES = """
tables: {{shop: {{name: {prefix}shop, key: {{PK: S, SK: S}}, indexes: {{by_kind: {{kind: S}}}}}}}}
entities:
  user: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules: {{names: copy user.name into order.user_name}}
patterns:
  of-user: {{get: order, by: [user_id], attributes: [user_name], rate: 10/s, page: 10}}
  place: {{put: order, rate: 1/s}}
  rename: {{update: user, sets: [name], rate: 1/min}}
"""


def test_cost_engine_measures_what_is_there(engine, tmp_path, capsys):
    """Thirty orders of two users, of 3 KB each, a third of them in the index: nothing is left to state."""
    text = RULES.format(prefix=engines.unique_prefix())
    (tmp_path / "rules.yaml").write_text(text)
    rules = parse_rules(text, environ={})
    engines.create(engine, rules.tables)
    client = aws.dynamodb(engine)
    name = rules.tables["shop"].physical_name
    for user in "12":
        client.put_item(TableName=name, Item={"PK": s(f"USER#{user}"), "SK": s("PROFILE"), "name": s("SECRET")})
        for number in range(15):
            item = {"PK": s(f"USER#{user}"), "SK": s(f"ORDER#{number}"), "text": s("x" * 3_000)}
            client.put_item(TableName=name, Item=item | ({"kind": s("a")} if number % 3 == 0 else {}))
    arguments = [
        "cost",
        str(tmp_path / "rules.yaml"),
        "--endpoint-url",
        engine,
        "--region",
        "us-east-1",
        "--sample",
        "100",
    ]
    code = main.main([*arguments, "--format", "json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert "SECRET" not in out + err
    body = json.loads(out)
    assert body["not_stated"] == []
    rule = body["rules"]["names"]
    in_table = (1 + 15 / 60) * 3  # an order that comes, and fifteen of a user that is renamed, each of 3 KB
    assert rule["write_units_second"] - rule["index_write_units_second"] == pytest.approx(in_table)
    assert rule["index_write_units_second"] > 0
