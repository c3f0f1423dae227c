"""Vector indexes of tables, as parameters of DynamoDB's API, and their comparison with an existing table.

Invariant: each cure is one UpdateTable that removes the difference. CloudFormation has the same parameters as the API.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sync_rules.adapters.preflight import TableProblem
from sync_rules.model.entities import Index, KeyAttribute, Table, VectorIndex

DISTANCES: Final = {"cosine": "COSINE", "euclidean": "EUCLIDEAN", "dot-product": "DOT_PRODUCT"}


# ---------------------------------------------------------------- parameters
def make_vector_parameters(one: VectorIndex) -> dict[str, Any]:
    """Make a VectorIndex of CreateTable,
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_VectorIndex.html.
    """
    parts = (("HASH", one.index.partition), ("INLINE_FILTER", one.index.sort))
    schema = [{"AttributeName": a.name, "SearchSchemaElementType": role} for role, some in parts for a in some]
    return {
        "IndexName": one.index.name,
        "VectorAttribute": {"AttributeName": one.vector},
        **({"SearchSchema": schema} if schema else {}),
        "Projection": make_projection(one.index),
        "Dimensions": one.dimensions,
        "DistanceFunction": DISTANCES[one.distance],
    }


def make_projection(index: Index) -> dict[str, Any]:
    """Make the Projection of an index; ALL, the console's default, if the rules file does not give it."""
    if isinstance(index.projection, tuple):
        return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    return {"ProjectionType": "KEYS_ONLY" if index.projection == "keys" else "ALL"}


def make_definitions(attributes: Iterable[KeyAttribute]) -> list[dict[str, str]]:
    """Make the AttributeDefinitions of these attributes, each once."""
    types = {one.name: one.type for one in attributes}
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


# ---------------------------------------------------------------- beside a table that exists
def list_vector_problems(
    table: Table, description: Mapping[str, Any], options: Sequence[str] = (), *, emulated: bool = False
) -> Iterator[TableProblem]:
    """List the vector indexes that a table lacks, or has in another form, by its description. `options` of the AWS CLI
    select the table's place. An emulator that does not describe vector indexes has no problem.
    """
    if emulated and "VectorIndexes" not in description:
        return
    for found, update in _list_differences(table, description):
        body = json.dumps({"TableName": table.physical_name, **update})
        command = shlex.join(("aws", "dynamodb", "update-table", "--cli-input-json", body, *options))
        yield TableProblem(table.physical_name, found, f"Correct the rules file, or change the table: `{command}`")


def _list_differences(table: Table, description: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each difference in words, and the UpdateTable against it. DynamoDB only makes and deletes vector indexes."""
    found = {one["IndexName"]: one for one in description.get("VectorIndexes") or ()}
    for one in table.vectors:
        wanted, name = make_vector_parameters(one), one.index.name
        there = found.get(name)
        if there is None:
            known = description.get("AttributeDefinitions") or ()
            more = [a for a in make_definitions(one.index.attributes) if a not in known]
            update = {"VectorIndexUpdates": [{"Create": wanted}]}
            yield f"it has no vector index {name}", {"AttributeDefinitions": [*known, *more], **update}
        elif different := [part for part in wanted if _sort_lists(there.get(part)) != _sort_lists(wanted[part])]:
            text = f"its vector index {name} has another {' and '.join(different)} than the rules file says"
            yield f"{text}, and none can be changed", {"VectorIndexUpdates": [{"Delete": {"IndexName": name}}]}


def _sort_lists(part: Any) -> Any:
    """A part of an index for comparison: lists in any order."""
    if isinstance(part, Mapping):
        return {name: _sort_lists(value) for name, value in part.items()}
    return sorted(part, key=str) if isinstance(part, list) else part
