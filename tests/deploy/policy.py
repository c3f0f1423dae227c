"""Policy for every deployed resource, by type, for faults that linters pass: lost records and leaked data.

Invariant: a resource of an unknown type is an offence, and so is a value that the template does not determine. cfn-lint
has the ranges of numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

DAY_SECONDS: Final = 24 * 3600  # how long a stream keeps a record
VISIBILITY_FACTOR: Final = 6  # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
DATA_SERVICES: Final = frozenset({"dynamodb", "s3", "sqs", "lambda", "kms"})
WITHOUT_RESOURCES: Final = {  # actions that know no resources, by the service authorization reference
    "dynamodb:ListStreams", "logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups", "xray:PutTraceSegments", "xray:PutTelemetryRecords", "cloudwatch:PutMetricData",
    "cloudwatch:GetMetricStatistics",
}  # fmt: skip

Resource = Mapping[str, Any]
Lines = Iterator[tuple[str, bool]]

# The values of properties by type: a place in the properties, and what is there.
VALUES: Final[Mapping[str, Mapping[str, Any]]] = {
    "AWS::CloudWatch::Dashboard": {},
    "AWS::DynamoDB::Table": {
        "SSESpecification/SSEEnabled": True,
        "PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled": True,
    },
    "AWS::Lambda::Function": {"Runtime": "python3.14", "Architectures": ["arm64"]},
    "AWS::Lambda::Url": {"AuthType": "AWS_IAM"},
    "AWS::S3::Bucket": {
        "OwnershipControls/Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}],
        "PublicAccessBlockConfiguration/BlockPublicAcls": True,
        "PublicAccessBlockConfiguration/BlockPublicPolicy": True,
        "PublicAccessBlockConfiguration/IgnorePublicAcls": True,
        "PublicAccessBlockConfiguration/RestrictPublicBuckets": True,
    },
    "AWS::SQS::Queue": {"SqsManagedSseEnabled": True},
    "AWS::StepFunctions::StateMachine": {
        "LoggingConfiguration/Level": "ERROR",
        "LoggingConfiguration/IncludeExecutionData": False,
    },
}
TAGGED: Final = VALUES.keys() - {"AWS::CloudWatch::Dashboard", "AWS::Lambda::Url"}


@dataclass(frozen=True)
class Template:
    """A transformed template."""

    whole: Mapping[str, Any]

    def of(self, kind: str) -> dict[str, Resource]:
        """The properties of the resources of a type, by logical id."""
        found = self.whole["Resources"].items()
        return {name: resource.get("Properties", {}) for name, resource in found if resource["Type"] == kind}

    def properties(self, value: Any) -> Resource:
        """The properties of the resource that a Ref or GetAtt names."""
        found: Resource = self.whole["Resources"][named(value)].get("Properties", {})
        return found

    def names(self, value: Any, kind: str) -> bool:
        """True if a Ref or GetAtt names a resource of a type."""
        return named(value) in self.of(kind)

    def possible(self, value: Any) -> list[float]:
        """Every number that a value may be when it is deployed; of a parameter, its ends and its default."""
        match value:
            case {"Ref": str(name)}:
                parameter = self.whole["Parameters"][name]
                ends = [parameter[end] for end in ("MinValue", "MaxValue", "Default") if end in parameter]
                return [float(number) for number in (*ends, *parameter.get("AllowedValues", ()))]
            case {"Fn::FindInMap": [str(name), _, str(column)]}:
                return [float(row[column]) for row in self.whole["Mappings"][name].values()]
        return [float(value)]

    def within(self, value: Any, low: float, high: float) -> bool:
        """True if every possible value of a number is in the range."""
        return all(low <= number <= high for number in self.possible(value))


def named(value: Any) -> str:
    """The logical id that a Ref or GetAtt names; "" for anything else."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            return name
        case {"Fn::Sub": str(text)} if text.startswith("${"):
            return text[2:].partition("}")[0].partition(".")[0]
    return ""


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def at(it: Any, *path: str) -> Any:
    """The value at a place in properties; None where there is no such place."""
    for name in path:
        it = it.get(name) if isinstance(it, Mapping) else None
    return it


# ---------------------------------------------------------------- by type: an offence per false line
def stream_mapping(template: Template, it: Resource) -> Lines:
    yield "reads from the beginning: LATEST may miss writes meanwhile", it["StartingPosition"] == "TRIM_HORIZON"
    yield "splits a batch that throws", it.get("BisectBatchOnFunctionError") is True
    yield "tries again, and not for ever", template.within(it.get("MaximumRetryAttempts", -1), 1, 10_000)
    age = it.get("MaximumRecordAgeInSeconds", -1)
    yield "gives up while the stream still has the record", template.within(age, 60, DAY_SECONDS - 1)
    destination = at(it, "DestinationConfig", "OnFailure", "Destination")
    yield "gives up into a bucket, which keeps the records", template.names(destination, "AWS::S3::Bucket")
    role = template.properties(template.properties(it["FunctionName"])["Role"])
    on_bucket = {
        action
        for statement in statements(role)
        for action in listed(statement["Action"])
        if any(named(resource) == named(destination) for resource in listed(statement["Resource"]))
    }
    yield "may write into it", on_bucket >= {"s3:PutObject", "s3:ListBucket"}
    yield "has a window, for a large batch", min(template.possible(it.get("MaximumBatchingWindowInSeconds", 0))) >= 1
    yield "shows what it drops", it.get("MetricsConfig") == {"Metrics": ["EventCount"]}


def queue_mapping(template: Template, it: Resource) -> Lines:
    queue, function = template.properties(it["EventSourceArn"]), template.properties(it["FunctionName"])
    yield "bounds how many run at once", template.within(at(it, "ScalingConfig", "MaximumConcurrency") or 0, 2, 1000)
    busy = VISIBILITY_FACTOR * function["Timeout"] + max(template.possible(it.get("MaximumBatchingWindowInSeconds", 0)))
    yield "hides a message until its batch is certainly over", queue.get("VisibilityTimeout", 30) >= busy
    yield "is of a queue with dead letters", "RedrivePolicy" in queue


def mapping(template: Template, it: Resource) -> Lines:
    yield "reports failures one by one", it["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    of_queue = template.names(it["EventSourceArn"], "AWS::SQS::Queue")
    yield from queue_mapping(template, it) if of_queue else stream_mapping(template, it)


def function(template: Template, it: Resource) -> Lines:
    group = at(it, "LoggingConfig", "LogGroup")
    yield "has a log group of the stack", template.names(group, "AWS::Logs::LogGroup")
    yield "has a role of the stack", template.names(it["Role"], "AWS::IAM::Role")
    others = [other for other in template.of("AWS::Lambda::Function").values() if other is not it]
    yield "shares its log group with no other", all(at(one, "LoggingConfig", "LogGroup") != group for one in others)
    yield "shares its role with no other", all(one["Role"] != it["Role"] for one in others)


def function_url(template: Template, it: Resource) -> Lines:
    yield "is of a function of the stack", template.names(it["TargetFunctionArn"], "AWS::Lambda::Function")


def asynchronous(template: Template, it: Resource) -> Lines:
    destination = at(it, "DestinationConfig", "OnFailure", "Destination")
    yield "has dead letters", template.names(destination, "AWS::SQS::Queue")
    yield "tries again, and not for ever", it.get("MaximumRetryAttempts") in (0, 1, 2)


def schedule(template: Template, it: Resource) -> Lines:
    retries = at(it, "Target", "RetryPolicy", "MaximumRetryAttempts")
    yield "tries again, and not for ever", retries is not None and retries < 185  # which is the default
    yield "has dead letters", template.names(at(it, "Target", "DeadLetterConfig", "Arn"), "AWS::SQS::Queue")


def queue(template: Template, it: Resource) -> Lines:
    policies = template.of("AWS::SQS::QueuePolicy").values()
    of_it = [one for one in policies if any(it is template.properties(queue) for queue in one["Queues"])]
    yield "may be asked over TLS only", any(only_tls(one["PolicyDocument"]) for one in of_it)
    if "RedrivePolicy" in it:
        yield "does not give up at the first failure", template.within(it["RedrivePolicy"]["maxReceiveCount"], 5, 1000)
        return
    sources = [one["EventSourceArn"] for one in template.of("AWS::Lambda::EventSourceMapping").values()]
    consumed = any(it is template.of("AWS::SQS::Queue").get(named(source)) for source in sources)
    yield "has dead letters, or is where things end", not consumed
    yield "keeps what ends there as long as can be", it.get("MessageRetentionPeriod") == 14 * DAY_SECONDS


def bucket(template: Template, it: Resource) -> Lines:
    rules = at(it, "BucketEncryption", "ServerSideEncryptionConfiguration") or []
    yield "is encrypted", bool(rules) and all("ServerSideEncryptionByDefault" in rule for rule in rules)
    policies = template.of("AWS::S3::BucketPolicy").values()
    of_it = [one for one in policies if it is template.properties(one["Bucket"])]
    yield "may be asked over TLS only", any(only_tls(one["PolicyDocument"]) for one in of_it)
    given = [one.get("Fn::If", ("", one))[1] for one in at(it, "LifecycleConfiguration", "Rules") or []]
    expiring = [one for one in given if one["Status"] == "Enabled" and "ExpirationInDays" in one]
    yield "keeps nothing for ever, unless asked", bool(expiring)


def table(_template: Template, it: Resource) -> Lines:
    stream = it.get("StreamSpecification", {"StreamViewType": "NEW_AND_OLD_IMAGES"})
    yield "streams both images", stream == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def log_group(template: Template, it: Resource) -> Lines:
    yield "forgets", "RetentionInDays" in it and min(template.possible(it["RetentionInDays"])) >= 1


def state_machine(template: Template, it: Resource) -> Lines:
    groups = [at(one, "CloudWatchLogsLogGroup", "LogGroupArn") for one in it["LoggingConfiguration"]["Destinations"]]
    yield "logs into a group of ours", all(template.names(one, "AWS::Logs::LogGroup") for one in groups)


def role(_template: Template, it: Resource) -> Lines:
    trusted = [one["Principal"] for one in it["AssumeRolePolicyDocument"]["Statement"]]
    yield "is a service's only", all(principal.keys() == {"Service"} for principal in trusted)
    wide = [arn for arn in it.get("ManagedPolicyArns", []) if "iam::aws:policy" in json.dumps(arn)]
    yield "has no policy of AWS's, which are wide", not wide
    for statement in statements(it):
        yield from _allowed(statement)


def managed_policy(_template: Template, it: Resource) -> Lines:
    for statement in it["PolicyDocument"]["Statement"]:
        yield from _allowed(statement)


def _allowed(statement: Resource) -> Lines:
    actions, resources = listed(statement["Action"]), listed(statement["Resource"])
    yield f"allows {actions}, each by its name", not any("*" in action for action in actions)
    yield f"says what is allowed, not what is not: {[*statement]}", not {"NotAction", "NotResource"} & statement.keys()
    whole = {"*"} & {one for one in resources if isinstance(one, str)}
    yield f"allows {actions} where they know resources on these only", not whole or {*actions} <= WITHOUT_RESOURCES
    if any(action.partition(":")[0] in DATA_SERVICES for action in actions):
        arns = [json.dumps(resource) for resource in resources]
        wide = [arn for arn in arns if any(f'{kind}*"' in arn for kind in ("table/", ":function:", ":sqs:", "::"))]
        yield f"allows {actions} on no table, queue or function but ours", not wide


def statements(of_role: Resource) -> list[Resource]:
    """The statements of a role's own policies."""
    return [one for policy in of_role.get("Policies", []) for one in policy["PolicyDocument"]["Statement"]]


def only_tls(document: Resource) -> bool:
    """True if a policy denies all access without TLS."""
    return any(
        (statement["Effect"], statement["Principal"]) == ("Deny", "*")
        and listed(statement["Action"])[0] in ("s3:*", "sqs:*")
        and str(at(statement, "Condition", "Bool", "aws:SecureTransport")).lower() == "false"
        for statement in document["Statement"]
    )


def no_grant(_template: Template, it: Resource) -> Lines:
    yield "grants nobody anything", all(one["Effect"] == "Deny" for one in it["PolicyDocument"]["Statement"])


def alarm(_template: Template, it: Resource) -> Lines:
    yield "says what to do", bool(it.get("AlarmDescription"))
    yield "says what no data means", it.get("TreatMissingData") in ("notBreaching", "breaching", "ignore")


def books(template: Template, it: Resource) -> Lines:
    yield "is answered by a function of the stack", template.names(it["ServiceToken"], "AWS::Lambda::Function")
    yield "holds up no deployment for long", template.within(it.get("ServiceTimeout", 3_600), 60, 600)


POLICY: Final[Mapping[str, Callable[[Template, Resource], Lines]]] = {
    "AWS::CloudWatch::Alarm": alarm,
    "Custom::SyncRulesBooks": books,
    "Custom::SyncRulesEmptyBooks": books,
    "AWS::DynamoDB::Table": table,
    "AWS::IAM::ManagedPolicy": managed_policy,
    "AWS::IAM::Role": role,
    "AWS::Lambda::EventInvokeConfig": asynchronous,
    "AWS::Lambda::EventSourceMapping": mapping,
    "AWS::Lambda::Function": function,
    "AWS::Lambda::Url": function_url,
    "AWS::Logs::LogGroup": log_group,
    "AWS::S3::Bucket": bucket,
    "AWS::S3::BucketPolicy": no_grant,
    "AWS::SQS::Queue": queue,
    "AWS::SQS::QueuePolicy": no_grant,
    "AWS::Scheduler::Schedule": schedule,
    "AWS::StepFunctions::StateMachine": state_machine,
}


def offences(whole: Mapping[str, Any]) -> list[str]:
    """Faults of a transformed template, one line each; none if the template may be deployed."""
    template = Template(whole)
    found = []
    for name, resource in whole["Resources"].items():
        kind, it = resource["Type"], resource.get("Properties", {})
        if kind not in POLICY.keys() | VALUES.keys():
            found.append(f"{name}: this module has no checks for {kind}")
        for place, value in VALUES.get(kind, {}).items():
            if (there := at(it, *place.split("/"))) != value:
                found.append(f"{name}: {place} is {there}, not {value}")
        if kind in TAGGED and not any(tag["Key"] == "application" for tag in it.get("Tags", [])):
            found.append(f"{name}: has no tag")
        if kind in POLICY:
            found += [f"{name}: {line}" for line, holds in POLICY[kind](template, it) if not holds]
    return found
