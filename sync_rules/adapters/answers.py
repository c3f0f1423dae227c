"""Checks the answers of a service before other code reads them: a proxy or another program may answer 200 to anything.

Invariant: an answer of another form, or without a member that code reads by name, raises an error here. So no reader of
answers checks for such a member.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from botocore.parsers import ResponseParserError, ResponseParserFactory

HTTP_OK: Final = 200
JSON: Final = frozenset({"dynamodb", "dynamodbstreams", "sqs", "stepfunctions"})  # services that answer in JSON

# The members that code reads by name, of the answer to each operation: paths of names, separated by blanks. `[]`: of
# each element of the list. `{}`: of each value of the map. `?`: the rest counts only where this one is there. `#`: the
# text of a whole number.
REQUIRED: Final[Mapping[str, Mapping[str, str]]] = {
    "dynamodb": {
        "DescribeTable": (
            "Table.TableName Table.AttributeDefinitions[].AttributeName Table.AttributeDefinitions[].AttributeType"
            " Table.KeySchema[].AttributeName Table.KeySchema[].KeyType"
            " Table.GlobalSecondaryIndexes?[].IndexName"
            " Table.GlobalSecondaryIndexes?[].KeySchema[].AttributeName"
            " Table.GlobalSecondaryIndexes?[].KeySchema[].KeyType"
            " Table.LocalSecondaryIndexes?[].IndexName"
            " Table.LocalSecondaryIndexes?[].KeySchema[].AttributeName"
            " Table.LocalSecondaryIndexes?[].KeySchema[].KeyType"
        ),
        "ListTables": "TableNames",
        "Query": "Items",
        "Scan": "Items",
        "BatchGetItem": "Responses UnprocessedKeys?{}.Keys",
        "BatchExecuteStatement": "Responses",
    },
    "dynamodbstreams": {
        "DescribeStream": "StreamDescription.Shards[].ShardId",
        "GetRecords": "Records[].dynamodb.SequenceNumber",
        "GetShardIterator": "ShardIterator",
        "ListStreams": "Streams",
    },
    "sqs": {
        "SendMessage": "MessageId",
        "GetQueueAttributes": (
            "Attributes.MaximumMessageSize?# Attributes.VisibilityTimeout?# Attributes.ApproximateNumberOfMessages?#"
        ),
        "ReceiveMessage": (
            "Messages?[].MessageId Messages?[].ReceiptHandle Messages?[].Body Messages?[].Attributes?.SentTimestamp?#"
        ),
    },
    "s3": {"ListObjectsV2": "Contents?[].Key Contents?[].Size"},
    "sts": {"GetCallerIdentity": "Account"},
    "cloudformation": {
        "DescribeStacks": (
            "Stacks[].Outputs?[].OutputKey Stacks[].Outputs?[].OutputValue Stacks[].Parameters?[].ParameterKey"
            " Stacks[].StackId Stacks[].StackStatus"
        ),
        "ListStackResources": ("StackResourceSummaries[].LogicalResourceId StackResourceSummaries[].ResourceType"),
    },
    "cloudwatch": {
        "GetMetricStatistics": "Datapoints?[].Timestamp Datapoints?[].Maximum",
        "DescribeAlarms": "MetricAlarms?[].AlarmName",
    },
    "iam": {"SimulatePrincipalPolicy": "EvaluationResults[].EvalActionName EvaluationResults[].EvalDecision"},
    "lambda": {"ListEventSourceMappings": "EventSourceMappings[].UUID EventSourceMappings[].EventSourceArn"},
    "stepfunctions": {
        "StartExecution": "executionArn",
        "DescribeExecution": "status",
        "ListExecutions": "executions[].name",
    },
}


def make_keyless_error() -> ResponseParserError:
    """Make the error for an answer that has an item without its key."""
    return ResponseParserError("the answer has an item without its key")


class Parsers(ResponseParserFactory):
    """A factory of botocore parsers that raise ResponseParserError for an answer of another form. Parsers of botocore
    alone fail in many ways.

    botocore asks for a parser at each request. A parser keeps nothing of an answer, so one for each protocol suffices:
    each new one would be a cycle of 7 objects, which only the garbage collector frees.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parsers: dict[str, Any] = {}

    def set_parser_defaults(self, **defaults: Any) -> None:
        super().set_parser_defaults(**defaults)
        self._parsers.clear()

    def create_parser(self, protocol_name: str) -> Any:
        if protocol_name not in self._parsers:
            self._parsers[protocol_name] = self._make_parser(protocol_name)
        return self._parsers[protocol_name]

    def _make_parser(self, protocol_name: str) -> Any:
        parser = super().create_parser(protocol_name)
        parse = parser.parse

        def parse_or_refuse(response: Any, shape: Any) -> Any:
            try:
                return parse(response, shape)
            except (TypeError, AttributeError, ValueError, LookupError, RecursionError) as error:
                raise ResponseParserError(f"the answer has another form ({type(error).__name__})") from error

        parser.parse = parse_or_refuse  # type: ignore[method-assign]
        return parser


def require_answers(client: Any, service: str) -> None:
    """Make a client raise ResponseParserError for a wrong answer: not a JSON object where the service answers in JSON,
    of another form, or without a member of `REQUIRED`. Otherwise it would mean that there is no item.
    """

    def require_json(response_dict: dict[str, Any], **_: Any) -> None:
        body = response_dict["body"].strip()
        if response_dict["status_code"] == HTTP_OK and body and not body.startswith((b"{", b"<?xml")):
            raise ResponseParserError("the answer is not a JSON object")

    def require_members(http_response: Any, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        if http_response.status_code != HTTP_OK or model.output_shape is None:
            return
        if not _has_form(parsed, model.output_shape):
            raise ResponseParserError(f"the answer to {model.name} has another form")
        for path in list_missing_paths(service, model.name, parsed):
            raise ResponseParserError(f"the answer to {model.name} has no {path}")

    if service in JSON:
        client.meta.events.register_first(f"before-parse.{service}", require_json)
    client.meta.events.register_last(f"after-call.{service}", require_members)


def list_missing_paths(service: str, operation: str, answer: Any) -> Iterator[str]:
    """List the paths of `REQUIRED` that this answer does not have."""
    for path in REQUIRED.get(service, {}).get(operation, "").split():
        if not _has(answer, path.split(".")):
            yield path


def _has(found: Any, steps: list[str]) -> bool:
    if not steps:
        return True
    name = steps[0].rstrip("[]{}#?")
    marks = steps[0][len(name) :]
    value = found.get(name) if isinstance(found, dict) else None
    if value is None:
        return "?" in marks
    if "#" in marks:
        return isinstance(value, str) and value.isdecimal()
    if "[]" in marks:
        return isinstance(value, list) and all(_has(one, steps[1:]) for one in value)
    if "{}" in marks:
        return isinstance(value, dict) and all(_has(one, steps[1:]) for one in value.values())
    return _has(value, steps[1:])


FORMS: Final[Mapping[str, tuple[type[Any], ...]]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (datetime,),
}
ITEM: Final = "AttributeMap"  # an item, whose values are not looked into: there are too many


def _has_form(value: Any, shape: Any) -> bool:
    """True if a part of an answer has the form that the service's model gives it."""
    kind = shape.type_name
    form = FORMS.get(kind)
    if form is not None and (not isinstance(value, form) or (isinstance(value, bool) and bool not in form)):
        return False
    if kind == "string":  # as most are
        return True
    match kind:
        case "structure":
            members = shape.members
            for name, one in value.items():  # a loop, as each answer to a statement comes by here
                if one is not None and name in members and not _has_form(one, members[name]):
                    return False  # null is as good as missing
            return True
        case "list":
            return all(_has_form(one, shape.member) for one in value)
        case "map" if shape.name == ITEM:
            values = value.values()
            return {*map(type, values)} <= {dict} and {*map(len, values)} <= {1}
        case "map":
            return all(_has_form(one, shape.value) for one in value.values())
    return True
