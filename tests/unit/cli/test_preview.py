"""preview: the requests of a write, with the reason of each action; nothing is written."""

from __future__ import annotations

import json
from random import Random

import pytest

from sync_rules.cli import main
from sync_rules.write.document import read_document
from sync_rules.write.explanation import explain_write
from tests.unit.write.test_document import as_document
from tests.unit.write.test_every_kind import RULES, actions_of, begun

ADA = {"user_id": "7", "name": "Ada"}
PUT = {"put": {"entity": "order", "item": {"user_id": "7", "order_id": "9", "total": 12}}}
FILE = """
tables:
  shop:   {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.user_name
  tags: {collect: order, into: user.orders, as: "{order_id}"}
  counted: count order into user.counted
"""
TITLES = {rule.title for rule in RULES.rules.values()}


@pytest.fixture
def rules_file(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text(FILE)
    return str(file)


@pytest.fixture
def preview(rules_file, tmp_path, capsys):
    """Previews a write: exit code, lines on standard output, lines on standard error."""

    def run(body, *options):
        file = tmp_path / "write.json"
        file.write_text(body if isinstance(body, str) else json.dumps(body))
        code = main.main(["preview", str(file), rules_file, *options])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_preview_shows_reads_reasons_and_the_request(preview):
    """The order with its copy, the user with its set and number; the request is JSON as an SDK takes it."""
    code, out, _ = preview({"actions": [PUT], "items": [{"entity": "user", "item": ADA}]}, "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    requests = {row["request"]: row["parameters"] for row in rows if "request" in row}
    keys = requests["BatchGetItem"]["RequestItems"]["shop"]["Keys"]
    assert {"PK": {"S": "USER#7"}, "SK": {"S": "PROFILE"}} in keys
    actions = requests["TransactWriteItems"]["TransactItems"]
    assert actions[0]["Put"]["Item"]["user_name"] == {"S": "Ada"}
    steps = [row for row in rows if "action" in row]
    assert steps[0]["yours"] == "put"
    assert {"rules": ["names"], "paths": ["user_name"]} in steps[0]["writes"]
    (owner,) = [step for step in steps if step["item"]["key"] == {"PK": "USER#7", "SK": "PROFILE"}]
    assert {"rules": ["names"], "paths": ["name"]} in owner["compares"]
    assert [next(iter(action)) for action in actions] == [step["does"] for step in steps]


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        ("{", (), "not JSON"),
        ({"actions": []}, (), "expected at least one action"),
        ({"actions": [PUT], "items": [{"entity": "user", "item": ADA}]}, ("--endpoint-url", "http://127.0.0.1:9"), "has items"),
    ],
)  # fmt: skip
def test_preview_refuses_what_is_no_write(preview, body, options, said):
    """A mistake in the file exits with 2 and says what to do."""
    code, out, err = preview(body, *options)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize("seed", range(30))
def test_preview_shows_what_transact_sends(seed):
    """For every kind of rule: with the same items, the same actions, and each but a plain one for some rule."""
    random = Random(seed)
    shop = begun(random)
    actions = actions_of(random)
    entities = {entity.name: entity for entity in RULES.entities.values()}
    items = [
        {"entity": name, "item": item}
        for name, entity in entities.items()
        for item in shop.scene.memory.items(entity.table.name)
        if RULES.entity_of(entity.table.key_of(item)) is entity
    ]
    document = read_document(as_document(actions, items=items), items=True)
    found = explain_write(document, RULES)
    with shop.transact() as tx:
        document.add_to(tx)
    assert [*found.actions] == shop.client.requests[-1]
    assert found.left == tx.result.left
    for step in found.steps:
        rules = {title for titles in (*step.writes, *step.compares) for title in titles}
        assert rules <= TITLES
        assert rules or step.own
        assert all((*step.writes, *step.compares))
