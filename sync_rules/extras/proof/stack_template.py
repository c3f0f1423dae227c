"""The template of the self-test's stack: tables, queues, a bucket, functions, mappings, a state machine, their roles.

Invariant: everything that a self-test makes is in this one stack, under its name and its tag, so that to delete the
stack is to remove everything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

CODE: Final = Path(__file__).with_name("deployed.txt").read_text(encoding="utf-8")
TAG: Final = "sync-rules-selftest"
DEAD_AFTER_RECEIVES: Final = 2
FUNCTION_SECONDS: Final = 10  # and as long is a message of its queue invisible
RETRIES: Final = 2  # of a batch that always fails
FILTERS: Final = (
    {"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "in#"}]}}}},
    {"dynamodb": {"Keys": {"pk": {"S": ["exactly"]}, "sk": {"S": [{"prefix": "in#"}, "whole"]}}}},
    *({"dynamodb": {"Keys": {"sk": {"S": [f"unused-{n}"]}}}} for n in range(3)),  # five are accepted
)
Resource = dict[str, Any]
# The tables with the stream that each has. `small` is provisioned, so that it throttles.
TABLES: Final = ("items", "numbers", "switched", "small", "mapped", "early", "poisoned", "log")
STREAMED: Final = frozenset({"items", "switched", "mapped", "early", "poisoned"})


def template(name: str) -> str:
    """The template's JSON; `name` is the stack's, and the beginning of every name in it."""
    resources: dict[str, Resource] = {f"{table.title()}Table": _table(name, table) for table in TABLES}
    resources |= _queues(name) | _functions(name) | _mappings() | _machine(name)
    resources["Bucket"] = _resource("S3::Bucket", BucketName=name)
    outputs = {
        "WorkQueue": {"Ref": "WorkQueue"},
        "DeadQueue": {"Ref": "DeadQueue"},
        "MappedQueue": {"Ref": "MappedQueue"},
        "EarlyMapping": {"Ref": "EarlyMapping"},
        "Machine": {"Ref": "Machine"},
        "ItemsArn": {"Fn::GetAtt": ["ItemsTable", "Arn"]},
        "State": {"Fn::GetAtt": ["Answered", "State"]},
    }
    return json.dumps(
        {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Description": "Made by sync-rules selftest, and removed by it: sync-rules selftest --clean.",
            "Resources": resources,
            "Outputs": {output: {"Value": value} for output, value in outputs.items()},
        }
    )


def _resource(kind: str, **properties: Any) -> Resource:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def _table(name: str, table: str) -> Resource:
    key = [("pk", "HASH")] if table == "numbers" else [("pk", "HASH"), ("sk", "RANGE")]
    types = {"pk": "N" if table == "numbers" else "S", "sk": "S", "link": "S"}
    used = [attribute for attribute, _ in key] + (["link"] if table == "items" else [])
    properties: dict[str, Any] = {
        "TableName": f"{name}-{table}",
        "KeySchema": _keys(key),
        "AttributeDefinitions": [{"AttributeName": one, "AttributeType": types[one]} for one in used],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if table == "small":
        properties |= {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        }
    if table in STREAMED:
        properties["StreamSpecification"] = {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    if table == "items":
        index = _keys([("link", "HASH"), ("sk", "RANGE")])
        projection = {"ProjectionType": "KEYS_ONLY"}
        properties["GlobalSecondaryIndexes"] = [{"IndexName": "by_link", "KeySchema": index, "Projection": projection}]
        properties["TimeToLiveSpecification"] = {"AttributeName": "expires", "Enabled": True}
        properties["PointInTimeRecoverySpecification"] = {"PointInTimeRecoveryEnabled": True}  # an export needs it
    return _resource("DynamoDB::Table", **properties)


def _keys(key: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"AttributeName": attribute, "KeyType": kind} for attribute, kind in key]


def _arn(resource: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [resource, "Arn"]}


def _stream(table: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [f"{table.title()}Table", "StreamArn"]}


def _queues(name: str) -> dict[str, Resource]:
    redrive = {"deadLetterTargetArn": _arn("DeadQueue"), "maxReceiveCount": DEAD_AFTER_RECEIVES}
    return {
        "DeadQueue": _resource("SQS::Queue", QueueName=f"{name}-dead"),
        "WorkQueue": _resource("SQS::Queue", QueueName=f"{name}-work", VisibilityTimeout=60, RedrivePolicy=redrive),
        "MappedQueue": _resource("SQS::Queue", QueueName=f"{name}-mapped", VisibilityTimeout=FUNCTION_SECONDS),
    }


# ---------------------------------------------------------------- functions
def _functions(name: str) -> dict[str, Resource]:
    streams = [_stream(table) for table in ("mapped", "early", "poisoned")]
    group = {
        "Fn::Sub": f"arn:${{AWS::Partition}}:logs:${{AWS::Region}}:${{AWS::AccountId}}:log-group:/aws/lambda/{name}*"
    }
    deliver = [
        _allow(["dynamodb:DescribeTable", "dynamodb:PutItem", "dynamodb:UpdateItem"], [_arn("LogTable")]),
        _allow(["dynamodb:PutItem"], [_arn("MappedTable")]),
        _allow(["dynamodb:PartiQLUpdate"], [_arn("ItemsTable")]),
        _allow(["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], streams),
        _allow(["dynamodb:ListStreams"], ["*"]),
        _allow(["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"], [_arn("MappedQueue")]),
        _allow(["s3:PutObject"], [{"Fn::Sub": "${Bucket.Arn}/*"}]),
        _allow(["s3:ListBucket"], [_arn("Bucket")]),
        _allow(["logs:CreateLogStream", "logs:PutLogEvents"], [group]),
    ]
    limited = [_allow(["dynamodb:PartiQLUpdate"], [_arn("ItemsTable")])]
    return {
        "DeliverRole": _role(f"{name}-deliver", "lambda", deliver),
        "LimitedRole": _role(f"{name}-limited", "lambda", limited),
        "DeliverLog": _resource("Logs::LogGroup", LogGroupName=f"/aws/lambda/{name}-deliver", RetentionInDays=1),
        "Deliver": _function(name, "deliver", "DeliverRole"),
        "Limited": _function(name, "limited", "LimitedRole"),
        "Answer": _function(name, "answer", "DeliverRole"),
        "Answered": {
            **_resource("CloudFormation::CustomResource", ServiceToken=_arn("Answer"), ServiceTimeout="120"),
            "DependsOn": ["LogTable"],
        },
    }


def _allow(actions: list[str], resources: list[Any]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


def _role(name: str, service: str, statements: list[dict[str, Any]]) -> Resource:
    trust = {**_allow(["sts:AssumeRole"], []), "Principal": {"Service": f"{service}.amazonaws.com"}}
    del trust["Resource"]
    policy = {"PolicyName": "own", "PolicyDocument": {"Version": "2012-10-17", "Statement": statements}}
    document = {"Version": "2012-10-17", "Statement": [trust]}
    return _resource("IAM::Role", RoleName=name, AssumeRolePolicyDocument=document, Policies=[policy])


def _function(name: str, handler: str, role: str) -> Resource:
    environment = {"LOG": f"{name}-log", "ITEMS": f"{name}-items", "MAPPED": f"{name}-mapped"}
    return _resource(
        "Lambda::Function",
        FunctionName=f"{name}-{handler}",
        Runtime="python3.13",
        Handler=f"index.{handler}",
        Role=_arn(role),
        Timeout=FUNCTION_SECONDS,
        MemorySize=512,
        Code={"ZipFile": CODE},
        Environment={"Variables": environment},
    )


# ---------------------------------------------------------------- mappings
def _mappings() -> dict[str, Resource]:
    patterns = [{"Pattern": json.dumps(pattern)} for pattern in FILTERS]
    given_up = {"OnFailure": {"Destination": _arn("Bucket")}}
    return {
        "Mapping": _mapping("mapped", ParallelizationFactor=4, FilterCriteria={"Filters": patterns}),
        "EarlyMapping": _mapping("early", Enabled=False),
        "PoisonedMapping": _mapping("poisoned", MaximumRetryAttempts=RETRIES, DestinationConfig=given_up),
        "QueueMapping": _resource(
            "Lambda::EventSourceMapping",
            FunctionName={"Ref": "Deliver"},
            EventSourceArn=_arn("MappedQueue"),
            FunctionResponseTypes=["ReportBatchItemFailures"],
        ),
    }


def _mapping(table: str, **more: Any) -> Resource:
    return _resource(
        "Lambda::EventSourceMapping",
        FunctionName={"Ref": "Deliver"},
        EventSourceArn=_stream(table),
        StartingPosition="TRIM_HORIZON",
        BatchSize=100,
        MaximumBatchingWindowInSeconds=1,
        BisectBatchOnFunctionError=True,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        **more,
    )


# ---------------------------------------------------------------- the state machine
def _machine(name: str) -> dict[str, Resource]:
    """A distributed map whose units may fail, under a role with the rights of the product's own."""
    states = "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}"
    itself = {"Fn::Sub": f"{states}:stateMachine:{name}"}
    children = {"Fn::Sub": f"{states}:execution:{name}/*"}
    rights = [
        _allow(["states:StartExecution"], [itself]),
        _allow(["states:DescribeExecution", "states:StopExecution"], [children]),
    ]
    unit = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Look",
        "States": {
            "Look": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.fail", "BooleanEquals": True, "Next": "Failed"}],
                "Default": "Done",
            },
            "Failed": {"Type": "Fail", "Error": "AsTold"},
            "Done": {"Type": "Succeed"},
        },
    }
    each = {
        "Type": "Map",
        "Label": "units",
        "ItemsPath": "$.units",
        "MaxConcurrency": 2,
        "ToleratedFailurePercentage": 100,
        "ItemProcessor": unit,
        "ResultPath": None,
        "End": True,
    }
    definition = json.dumps({"StartAt": "Each", "TimeoutSeconds": 300, "States": {"Each": each}})
    return {
        "MachineRole": _role(f"{name}-machine", "states", rights),
        "Machine": _resource(
            "StepFunctions::StateMachine",
            StateMachineName=name,
            DefinitionString=definition,
            RoleArn=_arn("MachineRole"),
        ),
    }
