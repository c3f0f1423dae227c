"""Access patterns of other formats: each is a pattern of the made rules file, or a comment that says why it is none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sync_rules.extras.discover.imports.cli_requests import requests_of
from sync_rules.extras.discover.imports.foreign_document import from_yaml
from sync_rules.extras.discover.imports.imported_model import RulesDraft
from sync_rules.extras.discover.imports.importer import rules_from, rules_from_text
from sync_rules.extras.discover.imports.request_expressions import Names, NotReadError, conditions, projected, updated

EXAMPLE = "its filter has the values of the example: each call may give others"
FIXTURES = Path(__file__).parent / "fixtures"


def patterns(found: RulesDraft) -> dict[str, dict]:
    return from_yaml(found.text, "rules.yaml").value["patterns"]


def remarks(found: RulesDraft) -> list[str]:
    """The CHECK comments of the patterns, each on one line."""
    section = found.text[found.text.index("\npatterns:") :]
    return [
        " ".join(text.split()) for text in re.findall(r"CHECK: (.*(?:\n  #   .*)*)", section.replace("\n  #   ", " "))
    ]


# ---------------------------------------------------------------- commands
def test_data_model_s_commands_become_patterns():
    """Each operation of the AWS CLI: keys by the templates of their kind, ranges, filters, projections, batches."""
    assert patterns(rules_from(FIXTURES / "dynamodb_data_model.json")) == {
        "get-a-user": {
            "get": "user",
            "by": ["user_id"],
            "one": True,
            "consistent": True,
            "attributes": ["name", "address", "user_id"],
        },
        "get-the-newest-orders-of-a-user": {"get": "order", "by": ["user_id"], "page": 10, "via": "GSI1"},
        "get-open-orders-of-a-user": {
            "get": "order",
            "by": ["user_id"],
            "where": "status == 'OPEN' && total > `5` && carrier == '7'",
            "via": "GSI1",
        },
        "get-the-lines-of-an-order-in-a-range": {"get": "line", "by": ["order_id"], "between": "line_id"},
        "get-an-order-with-its-lines-order": {"get": "order", "by": ["order_id"]},
        "get-an-order-with-its-lines-line": {"get": "line", "by": ["order_id"]},
        "get-users-at-once": {"get": "user", "by": ["user_id"], "keys": 2},
        "place-an-order": {"put": "order"},
        "rename-a-user": {"update": "user", "sets": ["name", "changes", "nick"]},
        "cancel-an-order": {"delete": "order"},
        "buy-put-order": {"put": "order"},
        "buy-put-line": {"put": "line"},
        "find-orders-of-either-kind": {"get": "user", "by": ["user_id"]},
    }


def test_data_model_s_other_patterns_are_comments_with_their_reasons():
    """A Scan, a pattern of another service, an unknown table, a key of no kind and a broken command; and what is left out."""
    told = remarks(rules_from(FIXTURES / "dynamodb_data_model.json"))
    wanted = [
        "find-users-by-name is not written: it is a Scan",
        "search-the-catalogue is not written: its source says: full-text search is for OpenSearch",
        "find-carts is not written: there is no table 'Carts' here",
        "get-a-refund is not written: no kind of items of Shop has such a key",
        "get-a-cart is not written: the quotes of its command do not match",
        "its filter is left out: 'a = :a OR b = :a' has OR or NOT",
        EXAMPLE,
        "one request also reads line",
        "it is part of a transaction",
        "it asks for the last ones first",
    ]
    assert [text for text in wanted if not any(one.startswith(text) for one in told)] == []


def shop(*commands: str) -> RulesDraft:
    """The import of a model with a log whose sort key has two fields, and these commands."""
    keys = [("PK", "SK"), ("State", "Date")]
    rows = [("u1", "WARN", "2026-01-01"), ("u2", "INFO", "2026-02-01"), ("u2", "WARN", "2026-02-03")]
    items = [
        {"PK": {"S": f"DEVICE#{one}"}, "SK": {"S": f"LOG#{state}#{day}"}, "State": {"S": state}, "Date": {"S": day}}
        for one, state, day in rows
    ]
    table = {
        "TableName": "Logs",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for pair in keys for name in pair],
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by_state",
                "KeySchema": [
                    {"AttributeName": "State", "KeyType": "HASH"},
                    {"AttributeName": "Date", "KeyType": "RANGE"},
                ],
            }
        ],
    }
    model = {
        "tables": [table],
        "items": {"Logs": [{"PutRequest": {"Item": item}} for item in items]},
        "access_patterns": [{"pattern": "1", "description": "it", "implementation": one} for one in commands],
    }
    return rules_from_text(json.dumps(model), "model.json")


def query(condition: str, *more: str, **values: str) -> str:
    given = json.dumps({f":{name}": {"S": value} for name, value in values.items()})
    return " ".join(
        [
            "aws dynamodb query --table-name Logs",
            f"--key-condition-expression '{condition}'",
            f"--expression-attribute-values '{given}'",
            *more,
        ]
    )


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("PK = :p", {}, {}),
        ("PK = :p AND begins_with(SK, :s)", {"s": "LO"}, {}),
        ("PK = :p AND begins_with(SK, :s)", {"s": "LOG#"}, {}),
        ("PK = :p AND begins_with(SK, :s)", {"s": "LOG#WA"}, {"begins_with": "State"}),
        ("PK = :p AND begins_with(SK, :s)", {"s": "LOG#WARN#"}, {"by": ["State"]}),
        ("(PK = :p) and (begins_with(SK, :s))", {"s": "LOG#WARN#2026"}, {"by": ["State"], "begins_with": "Date"}),
        ("PK = :p AND SK BETWEEN :s AND :t", {"s": "LOG#A", "t": "LOG#B"}, {"between": "State"}),
        (
            "PK = :p AND SK BETWEEN :s AND :t",
            {"s": "LOG#WARN#2026-01", "t": "LOG#WARN#2026-02"},
            {"by": ["State"], "between": "Date"},
        ),
        ("PK = :p AND SK >= :s", {"s": "LOG#WARN#2026"}, {"at_least": "State"}),
        ("PK = :p AND SK < :s", {"s": "LOG#X"}, {"at_most": "State"}),
        ("PK = :p AND SK BETWEEN :s AND :t", {"s": "LOG#", "t": "LOG#W"}, {"at_most": "State"}),
        ("PK = :p AND SK BETWEEN :s AND :t", {"s": "A", "t": "LOG#W"}, {"at_most": "State"}),
        ("PK = :p AND SK BETWEEN :s AND :t", {"s": "LOG#W", "t": "LOH"}, {"at_least": "State"}),
        ("PK = :p AND SK BETWEEN :s AND :t", {"s": "LOG#", "t": "LOG$"}, {}),
        (
            "PK = :p AND SK BETWEEN :s AND :t",
            {"s": "LOG#WARN#", "t": "LOG#WARN#2026"},
            {"by": ["State"], "at_most": "Date"},
        ),
        ("PK = :p AND SK >= :s", {"s": "A"}, {}),
        ("PK = :p AND SK >= :s", {"s": "LO"}, {}),
        ("PK = :p AND SK >= :s", {"s": "LOG#"}, {}),
        ("PK = :p AND SK <= :s", {"s": "LOX"}, {}),
        ("PK = :p AND SK = :s", {"s": "LOG#WARN#2026-01-01"}, {"by": ["State", "Date"], "one": True}),
    ],
)
def test_key_condition_s_texts_are_read_by_the_templates(condition, values, expected):
    """A text of a composite sort key gives fields by equality as far as they are whole, and a range of the next one."""
    found = patterns(shop(query(condition, p="DEVICE#u1", **values)))["it"]
    device, *by = found.pop("by")
    assert (device.startswith("device"), by) == (True, expected.get("by", []))
    assert {name: found[name] for name in found if name != "get"} == {n: v for n, v in expected.items() if n != "by"}


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("begins_with(SK, :s)", {"s": "ORDER#"}),
        ("SK <= :s", {"s": "LO"}),
        ("SK <= :s", {"s": "A"}),
        ("SK >= :s", {"s": "LOX"}),
        ("SK BETWEEN :s AND :t", {"s": "A", "t": "LOG"}),
        ("SK BETWEEN :s AND :t", {"s": "LOH", "t": "LOI"}),
    ],
)
def test_key_condition_of_another_kind_is_no_pattern(condition, values):
    """A prefix that no key has, and ranges that end before the first one or begin after the last."""
    told = remarks(shop(query(f"PK = :p AND {condition}", p="DEVICE#u1", **values)))
    assert told == ["it is not written: no kind of items of Logs has such a key"]


@pytest.mark.parametrize(
    ("text", "where", "told"),
    [
        ("State = :a", "State == 'WARN'", [EXAMPLE]),
        ("Count <> :n", "Count != `5`", [EXAMPLE]),
        ("done = :t", "done == `true`", [EXAMPLE]),
        ("a.b BETWEEN :n AND :n", "a.b >= `5` && a.b <= `5`", [EXAMPLE]),
        ("#s IN (:a, :n)", '("x y" == \'WARN\' || "x y" == `5`)', [EXAMPLE]),
        (
            "begins_with(a, :a) AND contains(b, :a)",
            "(a && starts_with(a, 'WARN')) && (b && contains(b, 'WARN'))",
            [EXAMPLE],
        ),
        ("attribute_exists(a) AND attribute_not_exists(b)", "a != `null` && b == `null`", []),
        ("a = :q AND b = :m", "", ["a filter is left out: a =", "a filter is left out: b ="]),
    ],
)
def test_filter_is_a_condition_with_the_example_s_values(text, where, told):
    """Each comparison and function has its form in JMESPath; a value that needs an escape is left out."""
    values = {":p": {"S": "DEVICE#u1"}, ":a": {"S": "WARN"}, ":n": {"N": "5"}, ":t": {"BOOL": True},
              ":q": {"S": "it\\s"}, ":m": {"M": {}}}  # fmt: skip
    command = "aws dynamodb query --table-name Logs --key-condition-expression 'PK = :p'"
    names = json.dumps({"#s": "x y"})
    found = shop(
        f"{command} --filter-expression '{text}' --expression-attribute-names '{names}' "
        f"--expression-attribute-values '{json.dumps(values)}'"
    )
    assert patterns(found)["it"].get("where", "") == where
    assert remarks(found) == told


@pytest.mark.parametrize("names", ["State Date", "State,Date", '\'["State", "Date"]\''])
def test_options_of_old_are_read_or_told(names):
    """Attributes by --attributes-to-get are those returned; a filter by --query-filter leaves a check."""
    found = shop(query("PK = :p", f"--attributes-to-get {names} --consistent-read", p="DEVICE#u1"))
    made = patterns(found)["it"]
    assert (made["attributes"], made["consistent"]) == (["State", "Date"], True)
    old = '--query-filter \'{"State": {"ComparisonOperator": "NULL"}}\''
    assert remarks(shop(query("PK = :p", old, p="DEVICE#u1"))) == [
        "its filter is left out: --query-filter is not read; write it as `where`"
    ]


def test_query_of_an_index_names_it_and_its_order():
    """`via` is the index, and the sort key's field has the order."""
    found = shop(query("#s = :s", "--index-name by_state --no-scan-index-forward --limit 20",
                       "--expression-attribute-names '{\"#s\": \"State\"}'", s="WARN"))  # fmt: skip
    made = patterns(found)["it"]
    assert {name: made[name] for name in made if name != "get"} == {
        "by": ["State"],
        "order": "Date desc",
        "page": 20,
        "via": "by_state",
    }


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("aws s3 ls", "its command is not one of `aws dynamodb`"),
        ("aws dynamodb describe-table --table-name Logs", "`aws dynamodb describe-table` neither reads nor writes"),
        ("aws dynamodb query --table-name Logs", "its command lacks --key-condition-expression"),
        ("aws dynamodb get-item --table-name Logs --key PK=1", "--key is no map of JSON"),
        ("aws dynamodb get-item --table-name Logs --key '{}'", "its command has no key"),
        ('aws dynamodb get-item --table-name Logs --key \'{"PK": "x"}\'', "its command has no key"),
        ("aws dynamodb query --cli-input-json file://q.json", "its command takes its options from elsewhere"),
        ("aws dynamodb query here", "'here' in its command is no option"),
        ("aws dynamodb transact-write-items --transact-items '[{}]'", "its command lacks a list in transact-items"),
        ("aws dynamodb transact-write-items --transact-items '[{\"Put\": 1}]'", "its command has no key"),
        ("aws dynamodb batch-get-item --request-items '{\"Logs\": {}}'", "its command lacks a list in Keys"),
        ('aws dynamodb batch-write-item --request-items \'{"Logs": [{"a": 1}]}\'', "its command lacks a PutRequest"),
        (query("PK = :x"), "its request has no value for ':x'"),
        (query("PK = :p AND #s = :p", p="x"), "its request has no name for '#s'"),
        (query("PK = :p AND SK > :p AND SK < :p", p="x"), "its key condition has two ranges"),
        (query("PK = :p AND size(SK) > :p", p="x"), "'PK = :p AND size(SK) > :p' is not read as a list of conditions"),
        (query("PK == :p", p="x"), "'PK == :p' is not read as a list of conditions"),
        (query("PK ! :p", p="x"), "'PK ! :p' is no expression"),
    ],
)
def test_command_that_is_not_read_says_why(command, reason):
    """The reason names what of the command is not read."""
    (told,) = remarks(shop(command))
    assert told.removeprefix("it is not written: ").startswith(reason)


def test_command_may_hold_several_and_python_s_words():
    """Joined commands are each read; True and False stand in values as the modelling guide writes them."""
    text = 'aws dynamodb delete-item --table-name A --key \'{"a": {"S": "1"}}\' && '
    text += 'aws dynamodb put-item --table-name A --item \'{"a": {"S": "1"}, "b": {"BOOL": True}}\';'
    assert [one.operation for one in requests_of(text)] == ["delete", "put"]
    batch = '{"A": [{"PutRequest": {"Item": {"a": {"S": "1"}}}}, {"DeleteRequest": {"Key": {"a": {"S": "2"}}}}]}'
    assert [one.operation for one in requests_of(f"aws dynamodb batch-write-item --request-items '{batch}'")] == [
        "put",
        "delete",
    ]


def test_expressions_are_read_whole_or_not_at_all():
    """Conditions with functions and lists, paths behind names, updates with nested calls."""
    known = Names({"#s": "State#Date", "#n": "x.y"}, {":a": {"S": "a"}, ":b": {"S": "b"}})
    found = conditions("#s IN (:a, :b) AND contains(a.b[0], :a) AND attribute_exists(#n)", known)
    assert [(one.path, one.operator, len(one.values)) for one in found] == [
        (("State#Date",), "in", 2),
        (("a", "b"), "contains", 1),
        (("x.y",), "attribute_exists", 0),
    ]
    assert projected("#s, a.b, a.c", known) == ["State#Date", "a"]
    assert updated("SET a.b = list_append(if_not_exists(c, :a), :b), d = d + :a DELETE e :b ADD f :a", known) == [
        "a",
        "d",
        "e",
        "f",
    ]
    with pytest.raises(NotReadError):
        updated("x = :a", known)


# ---------------------------------------------------------------- schema of the modelling server
def schema(*ones: dict, across: list[dict] | None = None) -> RulesDraft:
    table = {
        "table_config": {"table_name": "Orders", "partition_key": "pk", "sort_key": "sk"},
        "gsi_list": [{"name": "by_status", "partition_key": ["status", "region"], "sort_key": ["placed", "total"]}],
        "entities": {
            "Order": {
                "entity_type": "ORDER",
                "pk_template": "USER#{user_id}",
                "sk_template": "ORDER#{placed}#{order_id}",
                "gsi_mappings": [
                    {"name": "by_status", "pk_template": ["{status}", "{region}"], "sk_template": ["{placed}", "{total}"]}
                ],
                "fields": [
                    {"name": name, "type": "string", "required": True}
                    for name in ("user_id", "order_id", "placed", "status", "region", "total", "note")
                ],
                "access_patterns": [{"pattern_id": 1, "name": "it", "description": "It", **one} for one in ones],
            },
            "User": {"entity_type": "USER", "pk_template": "USER#{user_id}", "sk_template": "PROFILE",
                     "fields": [{"name": "user_id", "type": "string", "required": True}], "access_patterns": []},
        },
    }  # fmt: skip
    return rules_from_text(json.dumps({"tables": [table], "cross_table_access_patterns": across or []}), "schema.json")


def given(*names: str) -> list[dict]:
    return [{"name": name, "type": "string"} for name in names]


@pytest.mark.parametrize(
    ("pattern", "expected", "told"),
    [
        ({"operation": "Query", "parameters": given("user_id")}, {"get": "order", "by": ["user_id"]}, []),
        (
            {"operation": "GetItem", "parameters": given("user", "placed", "order_id"), "consistent_read": True},
            {"get": "order", "by": ["user_id", "placed", "order_id"], "one": True, "consistent": True},
            ["the parameter user is taken for user_id"],
        ),
        (
            {"operation": "Query", "parameters": given("user_id", "since"), "range_condition": ">"},
            {"get": "order", "by": ["user_id"], "at_least": "placed"},
            ["its range leaves out the value itself, and this one does not"],
        ),
        (
            {
                "operation": "Query",
                "index_name": "by_status",
                "parameters": given("status", "region", "from", "to"),
                "range_condition": "between",
            },
            {"get": "order", "by": ["status", "region"], "between": "placed", "via": "by_status"},
            [],
        ),
        (
            {"operation": "Query", "parameters": given("user_id", "start_date", "end_date")},
            {"get": "order", "by": ["user_id"], "between": "placed"},
            ["the parameters start_date and end_date are taken for a range of placed"],
        ),
        (
            {"operation": "Query", "parameters": given("user_id", "colour"), "return_type": "mixed_data"},
            {"get": "order", "by": ["user_id"]},
            [
                "no key says what the parameter colour is for: it is left out",
                "it may read items of other kinds too: the source says that it returns mixed data",
            ],
        ),
        (
            {
                "operation": "Query",
                "parameters": given("user_id", "s", "low"),
                "filter_expression": {
                    "conditions": [
                        {"field": "status", "operator": "=", "param": "s"},
                        {"field": "total", "operator": ">=", "param": "low"},
                        {"field": "note", "function": "attribute_exists"},
                    ]
                },
            },
            {"get": "order", "by": ["user_id"], "where": "note != `null`"},
            [
                "a filter is left out, whose value each call gives: status =",
                "a filter is left out, whose value each call gives: total >=",
            ],
        ),
        (
            {"operation": "BatchGetItem", "parameters": given("user_id", "placed", "order_id")},
            {"get": "order", "by": ["user_id", "placed", "order_id"], "keys": 25},
            ["how many keys one call asks for is not said: 25 here"],
        ),
        (
            {"operation": "UpdateItem", "parameters": given("user_id", "placed", "order_id", "status")},
            {"update": "order", "sets": ["status"]},
            [],
        ),
        ({"operation": "DeleteItem", "parameters": given("user_id")}, {"delete": "order"}, []),
        (
            {"operation": "BatchWriteItem", "parameters": [{"name": "o", "type": "entity", "entity_type": "Order"}]},
            {"put": "order"},
            ["one request does this for several items"],
        ),
        (
            {"operation": "PutItem", "parameters": [{"name": "u", "type": "entity", "entity_type": "User"}]},
            {"put": "order"},
            ["the source says that it needs User too"],
        ),
    ],
)
def test_schema_s_patterns_tell_parameters_by_names_and_places(pattern, expected, told):
    """Parameters are fields of the key or the index, the ends of a range, or values of a filter."""
    found = schema(pattern)
    assert patterns(found) == {"it": expected}
    assert remarks(found) == told


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ({"operation": "Scan"}, "it is a Scan"),
        ({"operation": "Guess"}, "'Guess' neither reads nor writes items by key"),
        ({"operation": "Query", "index_name": "other"}, "the table has no index 'other'"),
        ({"operation": "Query", "range_condition": "near"}, "its range condition 'near' is not known"),
        ({"operation": "Query", "range_condition": ">="}, "no field of the key is left for its range '>='"),
    ],
)
def test_schema_s_other_patterns_are_comments(pattern, reason):
    """Each that cannot be said has its reason."""
    (told,) = remarks(schema(pattern))
    assert told.startswith(f"it is not written: {reason}")


def test_schema_s_transactions_are_a_pattern_for_each_item():
    """A condition check writes nothing; what is not known is said."""
    parts = [("Order", "Put"), ("User", "Update"), ("User", "ConditionCheck"), ("Cart", "Put")]
    one = {"pattern_id": 9, "name": "buy", "description": "Buy", "operation": "TransactWrite",
           "entities_involved": [{"table": "Orders", "entity": name, "action": action} for name, action in parts]}  # fmt: skip
    read = {"pattern_id": 10, "name": "see", "operation": "TransactGet",
            "entities_involved": [{"table": "Orders", "entity": "User", "action": "Get"}]}  # fmt: skip
    found = schema(across=[one, read, {"name": "none", "operation": "TransactGet"}])
    assert patterns(found) == {
        "buy-put-order": {"put": "order"},
        "buy-update-user": {"update": "user"},
        "see": {"get": "user", "by": ["user_id"], "one": True, "consistent": True},
    }
    told = remarks(found)
    assert "buy-put-cart is not written: 'Put' of 'Cart' is not known" in told
    assert "none is not written: it names no entity" in told


# ---------------------------------------------------------------- facets
def test_facets_are_asked_by_the_keys_of_table_and_indexes():
    """A facet whose key is one field finds one item; one whose items are all in an index is asked by that too."""
    assert patterns(rules_from(FIXTURES / "workbench.json")) == {
        "accounts": {"get": "accounts", "by": ["AccountId"], "one": True, "attributes": ["AccountId", "Email"]},
        "transactions": {"get": "transactions", "by": ["AccountId"]},
        "transactions-by-merchant-id": {"get": "transactions", "by": ["merchant_id"], "via": "GSI1"},
        "cards": {"get": "cards", "by": ["account_id"], "attributes": ["Email"]},
    }


def test_facet_that_says_nothing_and_workbench_s_own_patterns_are_comments():
    """A facet without items, whose aliases are the attributes themselves, does not say what its key is made of."""
    key = {
        "PartitionKey": {"AttributeName": "PK", "AttributeType": "S"},
        "SortKey": {"AttributeName": "SK", "AttributeType": "S"},
    }
    facets = [
        {"FacetName": "Bare", "KeyAttributeAlias": {"PartitionKeyAlias": "PK", "SortKeyAlias": "SK"}},
        {"FacetName": "Broken", "TableData": [{"PK": {"N": "1"}}]},
    ]
    table = {
        "TableName": "Things",
        "KeyAttributes": key,
        "TableFacets": facets,
        "AccessPatterns": [{"Name": "Find it"}, 7],
    }
    found = rules_from_text(json.dumps({"DataModel": [table], "AccessPatterns": "none"}), "model.json")
    assert patterns(found) == {}
    undocumented = "the form of Workbench's own access patterns is not documented: write it as a pattern"
    assert remarks(found) == [
        "bare is not written: neither the aliases of the facet nor its sample data say what its key is made of",
        "broken is not written: its sample data has no item with the table's key",
        f"find-it is not written: {undocumented}",
        f"access-pattern-2 is not written: {undocumented}",
    ]
    assert any(note.startswith("pattern bare is written as a comment") for note in found.notes)
