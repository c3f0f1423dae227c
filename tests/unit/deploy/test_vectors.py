"""Vector indexes of the rules file, as botocore's service model has them, and beside a table that exists."""

from __future__ import annotations

import copy
import json
import shlex

import boto3
import pytest
from botocore.validate import ParamValidator

from sync_rules.deploy.tables import make_table_parameters
from sync_rules.deploy.vectors import list_vector_problems
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError

TEXT = """
tables:
  shop:
    key: {PK: S, SK: S}
    vectors:
      by_meaning: {vector: embedding, dimensions: 3, partition: {tenant: S}, filters: {brand: S, PK: S}, projection: [title]}
entities: {product: {table: shop}}
rules: {}
"""
MODEL = boto3.client("dynamodb", region_name="eu-west-1").meta.service_model


def made(text=TEXT):
    table = parse_rules(text).tables["shop"]
    return table, make_table_parameters(table, stream=False)


def require_valid(operation, parameters):
    report = ParamValidator().validate(parameters, MODEL.operation_model(operation).input_shape)
    assert not report.has_errors(), report.generate_report()


def changed(path, value):
    """The description of the table with another value in its vector index."""
    description = copy.deepcopy(made()[1])
    (index,) = description["VectorIndexes"]
    index[path] = value
    return description


def test_vector_index_is_made_with_its_table():
    """The parameters are those of the service model; each attribute of the search schema is defined once."""
    _, parameters = made()
    require_valid("CreateTable", parameters)
    assert sorted(one["AttributeName"] for one in parameters["AttributeDefinitions"]) == ["PK", "SK", "brand", "tenant"]
    (index,) = parameters["VectorIndexes"]
    roles = {one["AttributeName"]: one["SearchSchemaElementType"] for one in index["SearchSchema"]}
    assert roles == {"tenant": "HASH", "brand": "INLINE_FILTER", "PK": "INLINE_FILTER"}
    plain = made(TEXT.replace(", partition: {tenant: S}, filters: {brand: S, PK: S}, projection: [title]", ""))[1]
    require_valid("CreateTable", plain)
    assert "SearchSchema" not in plain["VectorIndexes"][0]


@pytest.mark.parametrize(
    ("description", "found", "action"),
    [
        (made()[1], None, None),
        (changed("SearchSchema", made()[1]["VectorIndexes"][0]["SearchSchema"][::-1]), None, None),
        ({**made()[1], "VectorIndexes": []}, "it has no vector index by_meaning", "Create"),
        (changed("Dimensions", 4), "its vector index by_meaning has another Dimensions", "Delete"),
        (changed("DistanceFunction", "EUCLIDEAN"), "another DistanceFunction", "Delete"),
        (
            changed("SearchSchema", []),
            "another SearchSchema than the rules file says, and none can be changed",
            "Delete",
        ),
    ],
)
def test_vector_index_is_compared_with_that_of_the_table(description, found, action):
    """The cure is one UpdateTable, which the service model takes."""
    table, _ = made()
    found_there = [*list_vector_problems(table, description)]
    assert len(found_there) == (found is not None)
    for problem in found_there:
        assert found in problem.found
        *_, body = shlex.split(problem.cure.partition("`")[2].rstrip("`"))
        update = json.loads(body)
        require_valid("UpdateTable", update)
        defined = [one["AttributeName"] for one in update.get("AttributeDefinitions", ())]
        assert len(defined) == len(set(defined))
        assert [*update["VectorIndexUpdates"][0]] == [action]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("PK: S}, projection", "PK: N}, projection", "PK is N here, and S in another key of the table"),
        ("    vectors:", "    indexes: {by_meaning: {brand: S}}\n    vectors:", "has another index 'by_meaning'"),
    ],
)
def test_vector_index_that_cannot_be_is_refused(old, new, words):
    """A file is refused where DynamoDB would refuse the table."""
    with pytest.raises(UserError, match="SR134") as raised:
        parse_rules(TEXT.replace(old, new, 1))
    assert words in str(raised.value)
