"""The parts of the template that follow from tables and variables: parameters, conditions, tables, and one event
source mapping for each stream.

The stack creates a table only if no stream of an existing one is given. A mapping starts at the oldest record; batches
that it gives up go to the bucket, the only destination that keeps the records themselves.
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules import __version__
from sync_rules.deploy import files
from sync_rules.deploy.deployment import Deployment, logical_id
from sync_rules.deploy.filters import filter_criteria
from sync_rules.deploy.tables import table_parameters, time_to_live
from sync_rules.model.entities import Table
from sync_rules.pipeline.books import books_of, identities

RULES_DIGEST: Final = "SYNC_RULES_RULES"  # of the rules that were deployed; `sync-rules doctor` reads both
VERSION: Final = "SYNC_RULES_VERSION"  # of sync-rules, which wrote the template
BOOKS: Final = "Books"
AUTHORISED: Final = "AWS_IAM"
WRITE_TIMEOUT_SECONDS: Final = 30
WRITE_URL: Final = "WriteFunctionUrl"  # as SAM names it
BOOKS_TIMEOUT_SECONDS: Final = 300  # a look at two tables takes seconds; the answer may have to be tried again


def is_elsewhere(table: Table) -> bool:
    """Tell whether the rules name a table by its ARN: then it exists already."""
    return table.physical_name.startswith("arn:")


def list_created_tables(deployment: Deployment) -> tuple[Table, ...]:
    """The tables that the stack may create."""
    return tuple(table for table in deployment.rules.streamed_tables if not is_elsewhere(table))


def parameters(deployment: Deployment) -> dict[str, Any]:
    """The variables of the rules file, and the stream of each table, which may exist already."""
    made: dict[str, Any] = {}
    for variable in deployment.variables:
        made[variable.parameter] = {
            "Type": "String",
            **({"Default": variable.default} if variable.default else {"MinLength": 1}),
            "Description": f"The variable {variable.name} of the rules file.",
        }
    for table in deployment.rules.streamed_tables:
        arn, text = _stream_pattern(deployment, table), f"The stream of table {table.name}."
        more = {"AllowedPattern": f"^{arn}$", "Description": text}
        if not is_elsewhere(table):
            text = f"{text} Empty - the table is created."
            more = {"Default": "", "AllowedPattern": f"^({arn})?$", "Description": text}
        made[stream_parameter(table)] = {"Type": "String", **more}
    return made


def _stream_pattern(deployment: Deployment, table: Table) -> str:
    """A pattern for the ARN of a table's stream, with the table's name if that contains no variable."""
    name = deployment.text(table.physical_name)
    if not isinstance(name, str):
        return "arn:[^:]+:dynamodb:.+/stream/.+"
    name = name.replace(".", "[.]")
    return f"{name}/stream/.+" if is_elsewhere(table) else f"arn:[^:]+:dynamodb:[^:]+:[0-9]+:table/{name}/stream/.+"


def conditions(deployment: Deployment) -> dict[str, Any]:
    """The conditions under which tables are created."""
    return {
        condition_id(table): {"Fn::Equals": [{"Ref": stream_parameter(table)}, ""]}
        for table in list_created_tables(deployment)
    }


def environment(deployment: Deployment) -> dict[str, Any]:
    """For the functions: the rules and the version that they are deployed with, and the variables of the rules file."""
    deployed = {RULES_DIGEST: deployment.rules.fingerprint, VERSION: __version__}
    return {**deployed, **{variable.name: {"Ref": variable.parameter} for variable in deployment.variables}}


def tables(deployment: Deployment) -> dict[str, Any]:
    """The tables of the rules; they stay when the stack is deleted."""
    return {
        table_id(table): {
            "Type": "AWS::DynamoDB::Table",
            "Condition": condition_id(table),
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": _table(deployment, table),
        }
        for table in list_created_tables(deployment)
    }


def books(deployment: Deployment) -> dict[str, Any]:
    """The resources that ask about books whenever the rules that keep some change; `functions.books_resource` answers.
    Both name the streams of their tables, so that the tables are there first. `Books` comes before the stream function
    has the new rules, so that an update that fails on its way, and is rolled back, has asked before it did any harm.
    `EmptyBooks` comes after: the old rules would not book what comes next.
    """
    kept = identities(deployment.rules)
    if not kept:
        return {}
    names = {entity.table.name for rule in kept.values() for entity in (rule.source, rule.target)}
    concerned = [table for table in deployment.rules.streamed_tables if table.name in names]
    properties = {
        "ServiceToken": {"Fn::GetAtt": ["BackfillFunction", "Arn"]},
        "ServiceTimeout": BOOKS_TIMEOUT_SECONDS,
        "Kept": [deployment.text(identity) for identity in sorted(kept)],
        "Streams": [stream_arn(table) for table in concerned],
    }
    return {
        BOOKS: {"Type": "Custom::SyncRulesBooks", "Properties": properties},
        "EmptyBooks": {
            "Type": "Custom::SyncRulesEmptyBooks",
            "DependsOn": ["StreamFunction"],
            "Properties": properties,
        },
    }


def write_function(deployment: Deployment) -> dict[str, Any]:
    """The write function and its log group, where the rules file asks for it, by `deploy: {write: true}` or `url`. IAM
    authorises every caller; no resource policy lets anybody in.
    """
    made: dict[str, Any] = files.read_part("write") if deployment.write else {}
    if deployment.write:
        made["WriteFunction"]["Properties"]["Timeout"] = WRITE_TIMEOUT_SECONDS
    if deployment.write == "url":
        made["WriteFunction"]["Properties"]["FunctionUrlConfig"] = {"AuthType": AUTHORISED}
    return made


def outputs(deployment: Deployment) -> dict[str, Any]:
    """The name of the write function, and the address of its Function URL."""
    found: dict[str, Any] = files.read_part("write-outputs") if deployment.write else {}
    return {name: one for name, one in found.items() if name != "WriteUrl" or deployment.write == "url"}


def before_streams(deployment: Deployment) -> dict[str, Any]:
    """The resources that come before the stream function has new rules: workers know a rule before messages name it."""
    return {"DependsOn": [*([BOOKS] if books_of(deployment.rules) else []), "FanoutFunction"]}


def streams(deployment: Deployment) -> dict[str, Any]:
    """The events of the stream function, by logical id."""
    return {logical_id(table.name): _mapping(deployment, table) for table in deployment.rules.streamed_tables}


def table_id(table: Table) -> str:
    """The logical id of a table's resource."""
    return f"{logical_id(table.name)}Table"


def stream_arn(table: Table) -> Any:
    """The stream of a table, created or not."""
    given = {"Ref": stream_parameter(table)}
    if is_elsewhere(table):
        return given
    return {"Fn::If": [condition_id(table), {"Fn::GetAtt": [table_id(table), "StreamArn"]}, given]}


def _table(deployment: Deployment, table: Table) -> dict[str, Any]:
    properties = table_parameters(table, stream=True)
    properties["TableName"] = deployment.text(table.physical_name)
    properties["StreamSpecification"] = {"StreamViewType": properties["StreamSpecification"]["StreamViewType"]}
    expires = deployment.rules.times_to_live.get(table.name)
    return {
        **properties,
        **({} if expires is None else {"TimeToLiveSpecification": time_to_live(expires)}),
        **files.read_part("table"),
    }


def _mapping(deployment: Deployment, table: Table) -> dict[str, Any]:
    criteria = filter_criteria(deployment.rules, table)
    properties = {**files.read_part("mapping"), "Stream": stream_arn(table), "FilterCriteria": criteria}
    return {"Type": "DynamoDB", "Properties": {name: one for name, one in properties.items() if one is not None}}


def mapping_id(table: Table) -> str:
    """The logical id of a stream's event source mapping: SAM joins the function and the event."""
    return f"StreamFunction{logical_id(table.name)}"


def stream_parameter(table: Table) -> str:
    return f"{logical_id(table.name)}StreamArn"


def condition_id(table: Table) -> str:
    """The name of the condition under which a table is created."""
    return f"Creates{logical_id(table.name)}"
