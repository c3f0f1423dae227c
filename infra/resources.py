"""What the template needs of the rules: parameters, conditions, tables, and one event source mapping for each stream.

Law: computed from the deployment alone. A table is created only where the template is not told the stream of one that
is there; a stream is read from its oldest record on, and what a mapping gives up goes to the bucket, which alone keeps
the records themselves.
"""

from __future__ import annotations

from typing import Any, Final

from infra.deployment import Deployment, logical
from infra.filters import filter_criteria
from infra.tables import table_parameters
from sync_rules.entities import Table

TAGS: Final = [{"Key": "application", "Value": "sync-rules"}]
STREAM_ARN: Final = r"^(arn:[^:]+:dynamodb:.+/stream/.+)?$"
EXISTING_STREAM_ARN: Final = r"^arn:[^:]+:dynamodb:.+/stream/.+$"


def is_elsewhere(table: Table) -> bool:
    """Whether a table is named by its ARN: then it is there already."""
    return table.physical_name.startswith("arn:")


def parameters(deployment: Deployment) -> dict[str, Any]:
    """The variables of the rules file, and the stream of each table that may be there already."""
    made: dict[str, Any] = {}
    for variable in deployment.variables:
        made[variable.parameter] = {
            "Type": "String",
            **({"Default": variable.default} if variable.default else {"MinLength": 1}),
            "Description": f"The variable {variable.name} of the rules file.",
        }
    for table in deployment.rules.streamed_tables:
        if is_elsewhere(table):
            told = {"AllowedPattern": EXISTING_STREAM_ARN, "Description": f"The stream of table {table.name}."}
        else:
            cure = "Empty - the table is created"
            told = {
                "Default": "",
                "AllowedPattern": STREAM_ARN,
                "Description": f"The stream of table {table.name}. {cure}.",
            }
        made[stream_parameter(table)] = {"Type": "String", **told}
    return made


def conditions(deployment: Deployment) -> dict[str, Any]:
    """Which tables are created."""
    return {
        _condition(table): {"Fn::Equals": [{"Ref": stream_parameter(table)}, ""]}
        for table in deployment.rules.streamed_tables
        if not is_elsewhere(table)
    }


def environment(deployment: Deployment) -> dict[str, Any]:
    """The variables of the rules file, as the functions see them."""
    return {variable.name: {"Ref": variable.parameter} for variable in deployment.variables}


def tables(deployment: Deployment) -> dict[str, Any]:
    """The tables of the rules, kept when the stack goes."""
    return {
        table_id(table): {
            "Type": "AWS::DynamoDB::Table",
            "Condition": _condition(table),
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": _table(deployment, table),
        }
        for table in deployment.rules.streamed_tables
        if not is_elsewhere(table)
    }


def streams(deployment: Deployment) -> dict[str, Any]:
    """The events of the stream function, by logical id."""
    return {logical(table.name): _mapping(deployment, table) for table in deployment.rules.streamed_tables}


def table_id(table: Table) -> str:
    """The logical id of a table's resource."""
    return f"{logical(table.name)}Table"


def stream_arn(table: Table) -> Any:
    """The stream of a table, created or not."""
    told = {"Ref": stream_parameter(table)}
    if is_elsewhere(table):
        return told
    return {"Fn::If": [_condition(table), {"Fn::GetAtt": [table_id(table), "StreamArn"]}, told]}


def _table(deployment: Deployment, table: Table) -> dict[str, Any]:
    properties = table_parameters(table, stream=True)
    properties["TableName"] = deployment.text(table.physical_name)
    properties["StreamSpecification"] = {"StreamViewType": properties["StreamSpecification"]["StreamViewType"]}
    return {
        **properties,
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        "SSESpecification": {"SSEEnabled": True},
        "DeletionProtectionEnabled": True,
        "Tags": TAGS,
    }


def _mapping(deployment: Deployment, table: Table) -> dict[str, Any]:
    criteria = filter_criteria(deployment.rules, table)
    return {
        "Type": "DynamoDB",
        "Properties": {
            "Stream": stream_arn(table),
            "StartingPosition": "TRIM_HORIZON",  # LATEST can miss changes while the mapping starts
            "BatchSize": 500,
            "MaximumBatchingWindowInSeconds": 1,
            "ParallelizationFactor": {"Ref": "ParallelizationFactor"},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "BisectBatchOnFunctionError": True,
            "MaximumRetryAttempts": 100,
            "MaximumRecordAgeInSeconds": 82_800,  # an hour before the stream forgets
            "DestinationConfig": {"OnFailure": {"Type": "S3", "Destination": {"Fn::GetAtt": ["Bucket", "Arn"]}}},
            **({} if criteria is None else {"FilterCriteria": criteria}),
            "MetricsConfig": {"Metrics": ["EventCount"]},
        },
    }


def stream_parameter(table: Table) -> str:
    """The parameter that says the stream of a table that is there already."""
    return f"{logical(table.name)}StreamArn"


def _condition(table: Table) -> str:
    return f"Creates{logical(table.name)}"
