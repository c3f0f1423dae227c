"""Access patterns of other formats: each is a pattern of the made rules file, or a comment that says why it is none."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.discover.imports.foreign_document import parse_yaml_document
from sync_rules.extras.discover.imports.imported_model import RulesDraft
from sync_rules.extras.discover.imports.importer import rules_from, rules_from_text
from sync_rules.language.load import parse_rules

FIXTURES = Path(__file__).parent / "fixtures"


def patterns(found: RulesDraft) -> dict[str, dict]:
    return parse_yaml_document(found.text, "rules.yaml").value["patterns"]


def remarks(found: RulesDraft) -> list[str]:
    """The CHECK comments of the patterns, each on one line."""
    section = found.text[found.text.index("\npatterns:") :]
    return [
        " ".join(text.split()) for text in re.findall(r"CHECK: (.*(?:\n  #   .*)*)", section.replace("\n  #   ", " "))
    ]


# ---------------------------------------------------------------- commands
def test_data_model_s_patterns_are_comments():
    """A command of the AWS CLI is not read; a pattern of another service has the source's own reason."""
    model = json.loads((FIXTURES / "dynamodb_data_model.json").read_text())
    found = rules_from_text(json.dumps(model), "model.json")
    assert patterns(found) == {}
    told = remarks(found)
    assert len(told) == len(model["access_patterns"])
    assert any(one.startswith("place-an-order is not written: commands of the AWS CLI are not read") for one in told)
    reason = "search-the-catalogue is not written: its source says: full-text search is for OpenSearch"
    assert reason in told


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


def test_schema_s_transactions_are_comments():
    """A comment says which actions the transaction has."""
    parts = [
        {"table": "Orders", "entity": name, "action": action} for name, action in [("Order", "Put"), ("User", "Get")]
    ]
    found = schema(across=[{"pattern_id": 9, "name": "buy", "entities_involved": parts}])
    assert patterns(found) == {}
    (told,) = remarks(found)
    assert told.endswith("cost twice as many units: Put Order, Get User")


# ---------------------------------------------------------------- collections
def test_collection_is_a_page_of_its_entities():
    """One Query finds them; a collection of one entity, or of different partition keys, is no page."""
    found = rules_from(FIXTURES / "electrodb.json")
    fields = ["authorLastName", "authorFirstName"]
    assert patterns(found) == {"works": {"get": ["author", "book"], "by": fields, "via": "gsi2pk-gsi2sk-index"}}
    (answer,) = prove(parse_rules(found.text, environ={})).answers.values()
    assert answer.is_served
    assert "begins_with(gsi2sk, $works#)" in answer.steps[0].condition
    apart = (FIXTURES / "electrodb.json").read_text()
    apart = apart.replace('"composite": ["authorLastName", "authorFirstName"]', '"composite": ["authorLastName"]', 1)
    assert "works:" not in rules_from_text(apart, "x.json").text


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
