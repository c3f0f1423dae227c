"""The script of docs/restore.md puts archived items back."""

from __future__ import annotations

import re
import time
from pathlib import Path

import boto3
from moto import mock_aws

from sync_rules.model.items import Change
from sync_rules.rules.kinds.archive import ArchiveRule
from tests.support.builders import entity, key, n, s, table

PAGE = (Path(__file__).parent.parent.parent / "docs" / "restore.md").read_text()
GAMES = table("games", {"PK": "S"})
GAME = entity("game", GAMES, PK="GAME#{game_id}")


def test_restore_puts_archived_items_back(monkeypatch):
    """Items come back as they were, with a new Time to Live; the last of several wins, and what is there again stays."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    script: dict = {}
    exec(re.search(r"```python\n(import base64.*?)```", PAGE, re.DOTALL)[1], script)
    rule = ArchiveRule(name="keep", source=GAME, target=GAME, bucket="kept", prefix="games/", when="deleted")
    odd = {"M": {"a": {"L": [{"B": b"\x00"}, {"BS": [b"\xff"]}]}}}
    one, late = {"PK": s("GAME#1"), "score": n(1), "until": n(5)}, {"PK": s("GAME#1"), "score": n(2), "until": n(5)}
    two, there = {"PK": s("GAME#2"), "odd": odd}, {"PK": s("GAME#3"), "score": n(9)}
    with mock_aws():
        s3, dynamodb = boto3.client("s3"), boto3.client("dynamodb")
        s3.create_bucket(Bucket="kept")
        dynamodb.create_table(
            TableName="games",
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        dynamodb.put_item(TableName="games", Item=there)
        for position, item in enumerate([one, late, two, {**there, "score": n(1)}]):
            change = Change(key(GAMES, item["PK"]["S"]), item, None, f"10{position}", 1_700_000_000_000)
            kept = rule.effect(change)
            s3.put_object(Bucket="kept", Key=kept.name, Body=kept.body)
        answer = script["restore"]("kept", "games/2023/11/14/", "games", ["PK"], ttl="until")
        items = {item["PK"]["S"]: item for item in dynamodb.scan(TableName="games")["Items"]}
    assert answer == (2, 2)
    assert int(items["GAME#1"].pop("until")["N"]) > time.time()
    assert items == {"GAME#1": {"PK": s("GAME#1"), "score": n(2)}, "GAME#2": two, "GAME#3": there}
