"""The parts of the template that follow from tables and variables: parameters, conditions, tables, and one event source
mapping for each stream. The stack creates a table only if its stream parameter is empty. A mapping starts at the
oldest record. Batches that it gives up go to the bucket, the only destination that keeps the records themselves.
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules import __version__
from sync_rules.deploy import files
from sync_rules.deploy.deployment import Deployment, format_logical_id
from sync_rules.deploy.filters import make_filter_criteria
from sync_rules.deploy.tables import make_table_parameters, make_time_to_live
from sync_rules.model.entities import Table
from sync_rules.pipeline.books import list_books, list_rules_by_identity

RULES_DIGEST: Final = "SYNC_RULES_RULES"  # of the rules that were deployed; `sync-rules doctor` reads both
VERSION: Final = "SYNC_RULES_VERSION"  # of sync-rules, which wrote the template
BOOKS: Final = "Books"
AUTHORISED: Final = "AWS_IAM"
WRITE_TIMEOUT_SECONDS: Final = 30
WRITE_URL: Final = "WriteFunctionUrl"  # as SAM names it
BOOKS_TIMEOUT_SECONDS: Final = 300  # a look at two tables takes seconds; the answer may have to be tried again


def is_elsewhere(table: Table) -> bool:
    """Return True if the rules name a table by its ARN: such a table already exists."""
    return table.physical_name.startswith("arn:")


def list_created_tables(deployment: Deployment) -> tuple[Table, ...]:
    """List the tables that the stack may create."""
    return tuple(table for table in deployment.rules.streamed_tables if not is_elsewhere(table))


def make_parameters(deployment: Deployment) -> dict[str, Any]:
    """Make the parameters: the variables of the rules file, and the stream of each table, which may already exist."""
    made: dict[str, Any] = {}
    for variable in deployment.variables:
        made[variable.parameter] = {
            "Type": "String",
            **({"Default": variable.default} if variable.default else {"MinLength": 1}),
            "Description": f"The variable {variable.name} of the rules file.",
        }
    for table in deployment.rules.streamed_tables:
        arn, text = _make_stream_pattern(deployment, table), f"The stream of table {table.name}."
        more = {"AllowedPattern": f"^{arn}$", "Description": text}
        if not is_elsewhere(table):
            text = f"{text} Empty - the table is created."
            more = {"Default": "", "AllowedPattern": f"^({arn})?$", "Description": text}
        made[format_stream_parameter(table)] = {"Type": "String", **more}
    return made


def _make_stream_pattern(deployment: Deployment, table: Table) -> str:
    """A pattern for the ARN of a table's stream, with the table's name if that contains no variable."""
    name = deployment.text(table.physical_name)
    if not isinstance(name, str):
        return "arn:[^:]+:dynamodb:.+/stream/.+"
    name = name.replace(".", "[.]")
    return f"{name}/stream/.+" if is_elsewhere(table) else f"arn:[^:]+:dynamodb:[^:]+:[0-9]+:table/{name}/stream/.+"


def make_conditions(deployment: Deployment) -> dict[str, Any]:
    """Make the conditions under which the stack creates tables."""
    return {
        format_condition_id(table): {"Fn::Equals": [{"Ref": format_stream_parameter(table)}, ""]}
        for table in list_created_tables(deployment)
    }


def make_environment(deployment: Deployment) -> dict[str, Any]:
    """Make the functions' environment: fingerprint of the rules, version of sync-rules, variables of the rules file."""
    deployed = {RULES_DIGEST: deployment.rules.fingerprint, VERSION: __version__}
    return {**deployed, **{variable.name: {"Ref": variable.parameter} for variable in deployment.variables}}


def make_tables(deployment: Deployment) -> dict[str, Any]:
    """Make the tables of the rules. They stay when the stack is deleted."""
    return {
        format_table_id(table): {
            "Type": "AWS::DynamoDB::Table",
            "Condition": format_condition_id(table),
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": _make_table_properties(deployment, table),
        }
        for table in list_created_tables(deployment)
    }


def make_books(deployment: Deployment) -> dict[str, Any]:
    """Make the custom resources that check books when the rules that keep books change; `functions.books_resource`
    answers. Both name the streams of their tables, so that the tables exist first. `Books` comes before the stream
    function gets the new rules: an update that fails and is rolled back has checked before any harm. `EmptyBooks`
    comes after it, because the old rules would not book later changes.
    """
    kept = list_rules_by_identity(deployment.rules)
    if not kept:
        return {}
    names = {entity.table.name for rule in kept.values() for entity in (rule.source, rule.target)}
    concerned = [table for table in deployment.rules.streamed_tables if table.name in names]
    properties = {
        "ServiceToken": {"Fn::GetAtt": ["BackfillFunction", "Arn"]},
        "ServiceTimeout": BOOKS_TIMEOUT_SECONDS,
        "Kept": [deployment.text(identity) for identity in sorted(kept)],
        "Streams": [make_stream_arn(table) for table in concerned],
    }
    return {
        BOOKS: {"Type": "Custom::SyncRulesBooks", "Properties": properties},
        "EmptyBooks": {
            "Type": "Custom::SyncRulesEmptyBooks",
            "DependsOn": ["StreamFunction"],
            "Properties": properties,
        },
    }


def make_write_function(deployment: Deployment) -> dict[str, Any]:
    """Make the write function and its log group, if the rules file has `deploy: {write: true}` or `url`. IAM authorises
    every caller; no resource policy lets anybody in.
    """
    made: dict[str, Any] = files.read_part("write") if deployment.write else {}
    if deployment.write:
        made["WriteFunction"]["Properties"]["Timeout"] = WRITE_TIMEOUT_SECONDS
    if deployment.write == "url":
        made["WriteFunction"]["Properties"]["FunctionUrlConfig"] = {"AuthType": AUTHORISED}
    return made


def make_outputs(deployment: Deployment) -> dict[str, Any]:
    """Make the outputs: the name of the write function, and the address of its Function URL."""
    found: dict[str, Any] = files.read_part("write-outputs") if deployment.write else {}
    return {name: one for name, one in found.items() if name != "WriteUrl" or deployment.write == "url"}


def make_before_streams(deployment: Deployment) -> dict[str, Any]:
    """Make the dependencies of the stream function: they get new rules first, so workers know a rule before messages
    name it.
    """
    return {"DependsOn": [*([BOOKS] if list_books(deployment.rules) else []), "FanoutFunction"]}


def make_streams(deployment: Deployment) -> dict[str, Any]:
    """Make the events of the stream function, by logical id."""
    return {
        format_logical_id(table.name): _make_mapping(deployment, table) for table in deployment.rules.streamed_tables
    }


def format_table_id(table: Table) -> str:
    """Return the logical id of a table's resource."""
    return f"{format_logical_id(table.name)}Table"


def make_stream_arn(table: Table) -> Any:
    """Return the stream of a table as a CloudFormation value, created by the stack or not."""
    given = {"Ref": format_stream_parameter(table)}
    if is_elsewhere(table):
        return given
    return {"Fn::If": [format_condition_id(table), {"Fn::GetAtt": [format_table_id(table), "StreamArn"]}, given]}


def _make_table_properties(deployment: Deployment, table: Table) -> dict[str, Any]:
    properties = make_table_parameters(table, stream=True)
    properties["TableName"] = deployment.text(table.physical_name)
    properties["StreamSpecification"] = {"StreamViewType": properties["StreamSpecification"]["StreamViewType"]}
    expires = deployment.rules.times_to_live.get(table.name)
    return {
        **properties,
        **({} if expires is None else {"TimeToLiveSpecification": make_time_to_live(expires)}),
        **files.read_part("table"),
    }


def _make_mapping(deployment: Deployment, table: Table) -> dict[str, Any]:
    criteria = make_filter_criteria(deployment.rules, table)
    properties = {**files.read_part("mapping"), "Stream": make_stream_arn(table), "FilterCriteria": criteria}
    return {"Type": "DynamoDB", "Properties": {name: one for name, one in properties.items() if one is not None}}


def format_mapping_id(table: Table) -> str:
    """Return the logical id of a stream's event source mapping: SAM joins the function and the event."""
    return f"StreamFunction{format_logical_id(table.name)}"


def format_stream_parameter(table: Table) -> str:
    return f"{format_logical_id(table.name)}StreamArn"


def format_condition_id(table: Table) -> str:
    """Return the name of the condition under which the stack creates a table."""
    return f"Creates{format_logical_id(table.name)}"
