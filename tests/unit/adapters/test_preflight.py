"""The account compared with the rules."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from sync_rules import DOCS
from sync_rules.adapters.preflight import (
    list_stream_arns,
    list_table_problems,
    require_answer,
    require_tables,
    survey_tables,
)
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from tests.support import every_kind
from tests.support.builders import index, library, shop, table
from tests.support.created import all_parameters

META = SimpleNamespace(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com", region_name="eu-west-1")


def client_of(describe_table, **more):
    """A client that describes tables by this function of their names."""

    def describe(TableName):  # noqa: N803 -- as DynamoDB names it
        return describe_table(TableName)

    return SimpleNamespace(describe_table=describe, **{"meta": META, **more})


def refuse(code):
    raise ClientError({"Error": {"Code": code}}, "DescribeTable")


def preflight(client, rules, **options):
    """The problems alone."""
    return survey_tables(client, rules, **options).problems


def described(rules, tables=None, **more):
    """A client whose tables are as the rules say, and more."""

    def describe(name):
        (table,) = rules.by_physical_name[name]
        return {
            "Table": make_table_parameters(table, stream=True)
            | {"LatestStreamArn": "arn"}
            | (tables or {}).get(name, {})
        }

    return client_of(describe, **{"describe_time_to_live": lambda **_: pytest.fail("nothing to describe"), **more})


NO_STREAM = {"StreamSpecification": {}}
OF_KEYS = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
NUMBERED = table("shop", {"PK": "S", "SK": "N"})
SAYS, AUTHOR = "and the rules file says", "partition key author_id (S)"
UNSORTED = replace(library().tables["books"], indexes=(index("by_author", {"author_id": "S"}),))


@pytest.mark.parametrize(
    ("rules", "there", "expected"),
    [
        (shop(), {"shop": make_table_parameters(NUMBERED, stream=True)},
         f"its key is partition key PK (S), sort key SK (N), {SAYS} partition key PK (S), sort key SK (S)"),
        (library(), {"books": {"GlobalSecondaryIndexes": []}},
         "it has no index by_author, which rule author-on-books lists by"),
        (library(), {"books": make_table_parameters(UNSORTED, stream=True)},
         f"index by_author has {AUTHOR}, {SAYS} {AUTHOR}, sort key book_id (S)"),
        (shop(), {"shop": NO_STREAM}, "it has no stream, so changes would not be seen"),
        (shop(), {"shop": OF_KEYS}, "its stream shows KEYS_ONLY, and both images are needed"),
    ],
    ids=["key", "no index", "index", "no stream", "stream"],
)  # fmt: skip
def test_preflight_compares_keys_indexes_that_rules_use_and_streams(rules, there, expected):
    """Names and types, as found and as the rules file has them; a stream of a source or a target has both images."""
    (problem,) = preflight(described(rules, there), rules)
    assert problem.found == expected


def test_preflight_require_answer_takes_a_refusal_for_one():
    """`require_answer` accepts a denied DescribeTable, because prune only needs to scan."""
    asked = []
    client = client_of(lambda name: asked.append(name) or refuse("AccessDeniedException"))
    require_answer(client, shop().tables["shop"])
    assert asked == ["shop"]


def test_preflight_without_streams_looks_at_keys_and_indexes_only():
    """Verify reads no stream, so a table without one is as it needs it."""
    rules = shop()
    client = described(rules, {"shop": NO_STREAM})
    assert preflight(client, rules, streams=False) == ()
    assert require_tables(client, rules, streams=False).stream_arns == ()
    with pytest.raises(UserError, match=r"not as the rules need them:\n  table .*it has no stream"):
        require_tables(client, rules)


def test_preflight_knows_no_stream_that_is_switched_off():
    """DynamoDB still names the latest stream of a table whose stream is off."""
    one = [shop().tables["shop"]]
    for stream, arn in (({"StreamSpecification": {"StreamEnabled": True}}, "arn"), ({}, None)):
        client = client_of(lambda _name, stream=stream: {"Table": {"LatestStreamArn": "arn", **stream}})
        assert list_stream_arns(client, one) == {"shop": arn}


EXPIRING = """
tables: {games: {key: {id: S}}}
entities: {game: {table: games}}
rules: {kept: {derive: game.gone, as: 'ttl(ended_at, 60d)'}}
"""


@pytest.mark.parametrize(
    ("answer", "cure"),
    [
        ("AccessDeniedException", None),
        ("UnknownOperationException", None),
        ({"TimeToLiveStatus": "ENABLED", "AttributeName": "gone"}, None),
        ({"TimeToLiveStatus": "ENABLED", "AttributeName": "other"}, "Use other in the rules file, or disable it"),
        ({"TimeToLiveStatus": "DISABLED"}, "Enable it"),
        ({}, "Enable it"),
    ],
    ids=str,
)
def test_preflight_takes_a_time_to_live_that_nobody_tells_for_right(answer, cure):
    """A help and no condition: credentials of before, and emulators, need not know DescribeTimeToLive."""
    rules = parse_rules(EXPIRING)

    def time_to_live(TableName):  # noqa: N803 -- as DynamoDB names it
        assert TableName == "games"
        if isinstance(answer, str):
            refuse(answer)
        return {"TimeToLiveDescription": answer} if answer else {}

    client = described(
        rules,
        meta=SimpleNamespace(region_name="eu-west-1", endpoint_url="http://127.0.0.1:9"),
        describe_time_to_live=time_to_live,
    )
    problems = survey_tables(client, rules, times_to_live=True).problems
    command = (
        "`aws dynamodb update-time-to-live --table-name games --time-to-live-specification "
        """'{"Enabled": true, "AttributeName": "gone"}' --region eu-west-1 --endpoint-url http://127.0.0.1:9`"""
    )
    assert [one.cure.partition(":")[0] for one in problems] == [cure] * bool(cure)
    assert all(one.cure.endswith(command) for one in problems)
    assert survey_tables(client, rules).problems == ()  # recordings and backfills do not depend on it


FOLLOWED = """
tables:
  shop: {key: {PK: S, SK: S}}
  versions: {key: {id: S, n: N}}
  users: {key: {user_id: S}}
  unused: {key: {id: S}}
entities:
  product: {table: shop, key: {PK: "PRODUCT#{id}", SK: PRODUCT}}
  version: {table: versions}
  user: {table: users}
  order: {table: shop, key: {PK: "ORDER#{order_id}", SK: ORDER}}
rules:
  kept: history product into version
  once: {copy: user.name, into: order.user_name, mode: snapshot, link: {user_id: customer}}
"""


def test_preflight_needs_the_tables_and_streams_that_tables_create_makes():
    """Each table of a rule is looked for, and its stream exactly if `tables create` gives it one."""
    for rules in (parse_rules(FOLLOWED), every_kind.rules_of()):
        made = {one["TableName"]: "StreamSpecification" in one for one in all_parameters(rules)}
        plain = {one.physical_name: make_table_parameters(one, stream=False) for one in rules.tables.values()}
        there: dict[str, dict] = {}

        def describe(name, there=there):
            return {"Table": there[name]} if name in there else refuse("ResourceNotFoundException")

        client = client_of(describe, meta=SimpleNamespace(endpoint_url="http://localhost", region_name="eu-west-1"))
        used = {side.table.physical_name for rule in rules.rules.values() for side in (rule.source, rule.target)}
        assert {one.table for one in preflight(client, rules)} == used
        there |= plain
        assert {one.table for one in preflight(client, rules)} == {name for name, stream in made.items() if stream}


STRONG = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {latest: {partition: {PK: S}, sort: {at: S}, local: true}}, ttl: gone}
  odd:  {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names:   copy user.name into order.user_name
  exact:   {copy: user.rank, into: order.user_rank, strict: true}
  going:   {copy: user.mail, into: order.user_mail, on_delete: delete}
  counted: {count: order, into: user.orders, ledger: odd}
"""


def test_preflight_names_the_rules_that_strong_consistency_between_regions_refuses():
    """Each rule that needs transactions, and the Time to Live and the local index, with cures; the copy alone may run."""
    rules = parse_rules(STRONG)
    no_local = {"MultiRegionConsistency": "STRONG", "LocalSecondaryIndexes": []}
    found = list_table_problems(
        rules, rules.tables["shop"], described(rules, {"shop": no_local}).describe_table("shop")["Table"]
    )
    refuses = "it has strong multi-Region consistency, with which DynamoDB refuses"
    move = f"use a table without it ({DOCS}/limits.md): the mode of a table cannot change"
    assert [(one.found, one.cure) for one in found] == [
        (
            f"{refuses} local indexes: latest, which the rules file declares",
            "Leave out local: true",
        ),
        (
            f"{refuses} transactions: rule exact needs them for strict: user still is as it was read",
            f"Leave out `strict: true`, or {move}",
        ),
        (
            f"{refuses} transactions: rule going needs them for on_delete: user still is gone",
            f"Write another `on_delete`, or {move}",
        ),
        (f"{refuses} Time to Live: the rules file names it on gone", f"Leave it out of the rules file, or {move}"),
    ]
    strong = {"MultiRegionConsistency": "STRONG"}
    (of_ledger,) = survey_tables(described(rules, {"odd": strong}), rules, times_to_live=True).problems
    assert (of_ledger.table, of_ledger.cure) == ("odd", f"Leave out the rule, or {move}")
    assert "rule counted" in of_ledger.found
    eventual = {"MultiRegionConsistency": "EVENTUAL"}
    assert survey_tables(described(rules, {"odd": eventual, "shop": eventual}), rules).problems == ()


def test_preflight_names_the_rule_of_a_time_to_live_that_cannot_be():
    """The problem names the rule, and its cure does not enable what DynamoDB refuses."""
    rules = parse_rules(EXPIRING)
    client = described(rules, {"games": {"MultiRegionConsistency": "STRONG"}})
    (problem,) = survey_tables(client, rules, times_to_live=True).problems
    assert problem.found.endswith("refuses Time to Live: rule kept needs it on gone")
