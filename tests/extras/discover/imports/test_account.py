"""Live tables: described, sampled, and never quoted."""

from __future__ import annotations

from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.extras.discover.imports.imported_model import FoundTable, ImportedModel, make_whole_table_entity
from sync_rules.extras.discover.imports.key_kinds import Sample
from sync_rules.extras.discover.imports.key_schemas import make_key
from sync_rules.extras.discover.imports.live_tables import rules_from_account
from sync_rules.extras.discover.imports.rules_writer import draft_rules
from sync_rules.extras.discover.imports.sample_entities import list_entities
from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Index
from sync_rules.model.errors import StoreError, UserError
from tests.extras.discover.accounts import create_table
from tests.extras.discover.imports.test_formats import keys
from tests.support.depth import deep

SECRETS = ("margaret", "hopper", "4111-2222", "secretword", "Ring Road")


PIECES = st.one_of(
    st.sampled_from(["USER", "order", "#", "v", "2026-01-01"]),
    st.just("SECRET"),
    st.just("secret"),
    st.just("Secret_x-1"),
)
KEYS = st.tuples(st.sampled_from("#|:/~_-"), st.lists(PIECES, min_size=1, max_size=4))
ITEMS = st.lists(st.tuples(KEYS, KEYS, KEYS, st.sampled_from(["", "type", "name", "GSI1PK"])), min_size=1, max_size=8)


@settings(max_examples=deep(200))
@given(ITEMS)
def test_account_values_of_one_item_are_never_written(drawn):
    """A text that only one item has, wherever it stands in its keys and attributes, is in no line and no note."""
    unique = (f"{letter}{number}{letter}" for number, letter in zip(range(10_000, 20_000), cycle("qwxz"), strict=False))

    def text(key: tuple[str, list[str]]) -> str:
        joint, pieces = key
        return joint.join(secret(piece) if "secret" in piece.lower() else piece for piece in pieces)

    def secret(like: str) -> str:
        made = "".join(chr(ord("a") + int(char)) if char.isdigit() else char for char in next(unique))
        said.append(made.upper() if like.isupper() else made)
        return said[-1] + like.lower().removeprefix("secret")

    said: list[str] = []
    table = FoundTable("app", "app", make_key({"PK": "S", "SK": "S"}), [Index("GSI1", make_key({"GSI1PK": "S"}))])
    samples = [
        Sample({"PK": {"S": text(pk)}, "SK": {"S": text(sk)}, **({name: {"S": text(value)}} if name else {})})
        for pk, sk, value, name in drawn
    ]
    found = draft_rules(
        ImportedModel("live", [table], list_entities(table, samples, live=True) or [make_whole_table_entity(table)]),
        "x",
    )
    shown = (found.text + "".join(found.notes)).lower()
    assert parse_rules(found.text, environ={})
    assert not [one for one in said if one.lower() in shown], found.text


def put(client, table: str, **item: object) -> None:
    made = {
        k: {"N": str(v)} if isinstance(v, int) else {"B": v} if isinstance(v, bytes) else {"S": v}
        for k, v in item.items()
    }
    client.put_item(TableName=table, Item=made)


def test_account_tables_have_keys_indexes_entities_and_streams(client):
    """A single table with an overloaded index, and a table of number keys without a stream."""
    create_table(client, "shop-prod", {"PK": "S", "SK": "S"}, {"GSI1PK": "S", "GSI1SK": "S"}, view="NEW_AND_OLD_IMAGES")
    create_table(client, "readings", {"device": "N", "at": "B"})
    for n in ("margaret", "hopper"):
        put(client, "shop-prod", PK=f"USER#{n}", SK="PROFILE", name="x", card="4111-2222")
        put(
            client,
            "shop-prod",
            PK=f"ORDER#{n}1",
            SK="ORDER",
            GSI1PK=f"USER#{n}",
            GSI1SK="2026-01-01",
            street="Ring Road",
        )
        put(client, "readings", device=len(n), at=n.encode(), note="secretword")
    found = rules_from_account(client, ["shop-prod", "readings", "shop-prod"], 50)
    rules = parse_rules(found.text, environ={})
    assert keys(rules) == {
        "user": {"PK": "USER#{user_id}", "SK": "PROFILE"},
        "order": {"PK": "ORDER#{order_id}", "SK": "ORDER", "GSI1PK": "USER#{user_id}"},
        "reading": {"device": "{device}", "at": "{at}"},
    }
    assert [note for note in found.notes if "stream" in note] == [
        "table readings: it has no stream: rules see no changes until it has one with NEW_AND_OLD_IMAGES"
    ]
    assert not [secret for secret in SECRETS if secret in found.text + "".join(found.notes)]


def test_account_samples_are_few(client):
    """No more items are read than were asked for, from several places; with none the key alone is known."""
    create_table(client, "shop", {"PK": "S", "SK": "S"})
    for n in range(60):
        put(client, "shop", PK=f"USER#{n}", SK="PROFILE")
    limits = []
    client.meta.events.register(
        "before-parameter-build.dynamodb.Scan", lambda params, **_: limits.append(params["Limit"])
    )
    assert keys(parse_rules(rules_from_account(client, ["shop"], 10).text, environ={})) == {
        "user": {"PK": "USER#{user_id}", "SK": "PROFILE"}
    }
    assert sum(limits) >= 10
    assert max(limits) <= 3
    limits.clear()
    found = rules_from_account(client, ["shop"], 0)
    assert not limits
    assert "nothing is known of the items" in found.text


def test_account_problems_name_the_table_and_the_request(client, monkeypatch):
    """No such table, a name that is none, no table at all, and a right that is missing."""
    with pytest.raises(UserError, match=r"table nothing does not exist at https://dynamodb\.eu-central-1"):
        rules_from_account(client, ["nothing"], 5)
    with pytest.raises(UserError, match="'a b' is not a name of a DynamoDB table"):
        rules_from_account(client, ["a b"], 5)
    with pytest.raises(UserError, match="no table is named"):
        rules_from_account(client, [], 5)
    create_table(client, "shop", {"PK": "S"})
    denied = client.exceptions.ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Scan")

    def scan(**_: object) -> None:
        raise denied

    monkeypatch.setattr(client, "scan", scan)
    with pytest.raises(StoreError, match="AccessDeniedException: dynamodb:Scan of shop"):
        rules_from_account(client, ["shop"], 5)
