"""Policy for every deployed resource, by type, for faults that linters pass: lost records and leaked data.

Invariant: a resource of an unknown type is an offence, and so is a value that the template does not determine. Numbers
without another source are those of CreateEventSourceMapping in the Lambda API reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

DAY_SECONDS: Final = 24 * 3600  # how long a stream keeps a record
SQS_BATCH_WITHOUT_WINDOW: Final = 10  # a larger one needs a window
VISIBILITY_FACTOR: Final = 6  # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
FILTERS_MAX, PATTERN_MAX = 5, 4096  # a service quota, and the length of Filter.Pattern
DATA_SERVICES: Final = frozenset({"dynamodb", "s3", "sqs", "lambda", "kms"})
WITHOUT_RESOURCES: Final = {  # actions that know no resources, by the service authorization reference
    "dynamodb:ListStreams", "logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups", "xray:PutTraceSegments", "xray:PutTelemetryRecords", "cloudwatch:PutMetricData",
    "cloudwatch:GetMetricStatistics",
}  # fmt: skip
CLOSED: Final = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")

Resource = Mapping[str, Any]


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

    def is_text(self, value: Any) -> bool:
        """True for text or a function that gives text; values of a mapping must be text too."""
        match value:
            case {"Fn::FindInMap": [str(name), _, str(column)]}:
                return all(isinstance(row[column], str) for row in self.whole["Mappings"][name].values())
        return isinstance(value, str | dict)

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


# ---------------------------------------------------------------- by type: an offence per false line
Lines = Iterator[tuple[str, bool]]


def stream_mapping(template: Template, it: Resource) -> Lines:
    yield (
        "reads from the beginning: LATEST may miss what is written meanwhile",
        it["StartingPosition"] == "TRIM_HORIZON",
    )
    yield "reports failures one by one", it["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    yield "splits a batch that throws", it.get("BisectBatchOnFunctionError") is True
    yield "tries again, and not for ever", template.within(it.get("MaximumRetryAttempts", -1), 1, 10_000)
    yield (
        "gives up while the stream still has the record",
        template.within(it.get("MaximumRecordAgeInSeconds", -1), 60, DAY_SECONDS - 1),
    )
    destination = it.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    yield "gives up into a bucket, which keeps the records", named(destination) in template.of("AWS::S3::Bucket")
    role = template.properties(template.properties(it["FunctionName"])["Role"])
    wanted = {"s3:PutObject", "s3:ListBucket"}
    on_bucket = {
        action
        for statement in statements(role)
        for action in listed(statement["Action"])
        if any(named(resource) == named(destination) for resource in listed(statement["Resource"]))
    }
    yield "may write into it", wanted <= on_bucket
    yield "has a batch Lambda takes", template.within(it.get("BatchSize", 100), 1, 10_000)
    window = it.get("MaximumBatchingWindowInSeconds", 0)
    yield "has a window Lambda takes", template.within(window, 0, 300)
    yield "has a window with a large batch", min(template.possible(window)) >= 1
    yield "has lanes Lambda takes", template.within(it.get("ParallelizationFactor", 1), 1, 10)
    filters = it.get("FilterCriteria", {}).get("Filters", [])
    yield "has filters that fit the quota", len(filters) <= FILTERS_MAX
    yield "has patterns that fit", all(len(one["Pattern"]) <= PATTERN_MAX for one in filters)
    yield (
        "filters by what DynamoDB can be filtered by",
        all({*json.loads(one["Pattern"])} <= {"dynamodb"} for one in filters),
    )
    yield "shows what it drops", it.get("MetricsConfig") == {"Metrics": ["EventCount"]}


def queue_mapping(template: Template, it: Resource) -> Lines:
    queue, function = template.properties(it["EventSourceArn"]), template.properties(it["FunctionName"])
    yield "reports failures one by one", it["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    concurrency = it.get("ScalingConfig", {}).get("MaximumConcurrency", 0)
    yield "bounds how many run at once", template.within(concurrency, 2, 1000)
    batch, window = it.get("BatchSize", 10), it.get("MaximumBatchingWindowInSeconds", 0)
    yield (
        "has a batch Lambda takes",
        template.within(batch, 1, 10_000 if min(template.possible(window)) >= 1 else SQS_BATCH_WITHOUT_WINDOW),
    )
    yield (
        "hides a message until its batch is certainly over",
        (
            queue.get("VisibilityTimeout", 30)
            >= VISIBILITY_FACTOR * function["Timeout"] + max(template.possible(window))
        ),
    )
    yield "is of a queue with dead letters", "RedrivePolicy" in queue


def mapping(template: Template, it: Resource) -> Lines:
    of_queue = named(it["EventSourceArn"]) in template.of("AWS::SQS::Queue")
    yield from queue_mapping(template, it) if of_queue else stream_mapping(template, it)


def function(template: Template, it: Resource) -> Lines:
    yield "is python3.14 on arm64", (it["Runtime"], it["Architectures"]) == ("python3.14", ["arm64"])
    group = named(it.get("LoggingConfig", {}).get("LogGroup"))
    yield "has a log group of its own", group in template.of("AWS::Logs::LogGroup")
    others = [other for other in template.of("AWS::Lambda::Function").values() if other is not it]
    yield "that no other has", all(named(other.get("LoggingConfig", {}).get("LogGroup")) != group for other in others)
    yield "has a role of its own", named(it["Role"]) in template.of("AWS::IAM::Role")
    yield "which no other has", all(named(other["Role"]) != named(it["Role"]) for other in others)
    yield "ends before Lambda ends it", 1 <= it.get("Timeout", 3) <= 1_800
    variables = it["Environment"]["Variables"]
    yield "has variables that are text", all(template.is_text(value) for value in variables.values())
    yield "has tags", tagged(it)


def function_url(template: Template, it: Resource) -> Lines:
    yield "is of a function of the stack", named(it["TargetFunctionArn"]) in template.of("AWS::Lambda::Function")
    yield "is for signed requests only", it["AuthType"] == "AWS_IAM"


def asynchronous(template: Template, it: Resource) -> Lines:
    destination = it.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    yield "has dead letters", named(destination) in template.of("AWS::SQS::Queue")
    yield "tries again, and not for ever", it.get("MaximumRetryAttempts") in (0, 1, 2)


def schedule(template: Template, it: Resource) -> Lines:
    target = it["Target"]
    retry = target.get("RetryPolicy", {})
    yield "tries again, and not for ever", retry.get("MaximumRetryAttempts", 185) < 185  # which is the default
    yield "gives up in time", template.within(retry.get("MaximumEventAgeInSeconds", 86_400), 60, 86_399)
    yield "has dead letters", named(target.get("DeadLetterConfig", {}).get("Arn")) in template.of("AWS::SQS::Queue")


def queue(template: Template, it: Resource) -> Lines:
    yield "is encrypted", it.get("SqsManagedSseEnabled") is True or "KmsMasterKeyId" in it
    yield (
        "may be asked over TLS only",
        any(
            it is template.properties(one) and only_tls(policy["PolicyDocument"])
            for policy in template.of("AWS::SQS::QueuePolicy").values()
            for one in policy["Queues"]
        ),
    )
    targets = [
        policy["deadLetterTargetArn"] for other in template.of("AWS::SQS::Queue").values()
        if (policy := other.get("RedrivePolicy"))
    ]  # fmt: skip
    is_end = any(it is template.properties(target) for target in targets) or not consumed(template, it)
    yield "has dead letters, or is where things end", "RedrivePolicy" in it or is_end
    if "RedrivePolicy" in it:
        yield "does not give up at the first failure", template.within(it["RedrivePolicy"]["maxReceiveCount"], 5, 1000)
    else:
        yield "keeps what ends there as long as can be", it.get("MessageRetentionPeriod") == 14 * DAY_SECONDS
    yield "has tags", tagged(it)


def consumed(template: Template, it: Resource) -> bool:
    """True if a function consumes the queue."""
    sources = [named(one["EventSourceArn"]) for one in template.of("AWS::Lambda::EventSourceMapping").values()]
    return any(it is template.of("AWS::SQS::Queue").get(source) for source in sources)


def bucket(template: Template, it: Resource) -> Lines:
    rules = it.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
    yield "is encrypted", bool(rules) and all("ServerSideEncryptionByDefault" in rule for rule in rules)
    yield (
        "is closed to the public",
        all(it.get("PublicAccessBlockConfiguration", {}).get(one) is True for one in CLOSED),
    )
    yield "has no access lists", it.get("OwnershipControls") == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    yield (
        "may be asked over TLS only",
        any(
            it is template.properties(policy["Bucket"]) and only_tls(policy["PolicyDocument"])
            for policy in template.of("AWS::S3::BucketPolicy").values()
        ),
    )
    given = it.get("LifecycleConfiguration", {}).get("Rules", [])
    lifecycle = [rule for rule in (one.get("Fn::If", ("", one))[1] for one in given) if rule["Status"] == "Enabled"]
    yield "keeps nothing for ever, unless asked", any("ExpirationInDays" in rule for rule in lifecycle)
    yield "has tags", tagged(it)


def table(_template: Template, it: Resource) -> Lines:
    yield "is encrypted by a key that is seen", it.get("SSESpecification", {}).get("SSEEnabled") is True
    yield "can be restored", it.get("PointInTimeRecoverySpecification") == {"PointInTimeRecoveryEnabled": True}
    if "StreamSpecification" in it:
        yield "streams both images", it["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    yield "has tags", tagged(it)


def log_group(template: Template, it: Resource) -> Lines:
    yield "forgets", "RetentionInDays" in it and min(template.possible(it["RetentionInDays"])) >= 1


def state_machine(template: Template, it: Resource) -> Lines:
    logging = it.get("LoggingConfiguration", {})
    yield "logs its errors", logging.get("Level") in ("ERROR", "ALL")
    yield "logs no values", logging.get("IncludeExecutionData") is False
    groups = [named(one["CloudWatchLogsLogGroup"]["LogGroupArn"]) for one in logging.get("Destinations", [])]
    yield "into a group of ours", bool(groups) and {*groups} <= template.of("AWS::Logs::LogGroup").keys()
    yield "has tags", tagged(it)


def role(_template: Template, it: Resource) -> Lines:
    trusted = [one["Principal"] for one in it["AssumeRolePolicyDocument"]["Statement"]]
    yield "is a service's only", all(principal.keys() == {"Service"} for principal in trusted)
    yield (
        "has no policy of AWS's, which are wide",
        not any("iam::aws:policy" in json.dumps(arn) for arn in it.get("ManagedPolicyArns", [])),
    )
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
        yield (
            f"allows {actions} on no table, queue or function but ours",
            not any(f'{kind}*"' in arn for arn in arns for kind in ("table/", ":function:", ":sqs:", "::")),
        )


def statements(of_role: Resource) -> list[Resource]:
    """The statements of a role's own policies."""
    return [one for policy in of_role.get("Policies", []) for one in policy["PolicyDocument"]["Statement"]]


def only_tls(document: Resource) -> bool:
    """True if a policy denies all access without TLS."""
    return any(
        (statement["Effect"], statement["Principal"]) == ("Deny", "*")
        and listed(statement["Action"])[0] in ("s3:*", "sqs:*")
        and str(statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport")).lower() == "false"
        for statement in document["Statement"]
    )


def no_grant(_template: Template, it: Resource) -> Lines:
    yield "grants nobody anything", all(one["Effect"] == "Deny" for one in it["PolicyDocument"]["Statement"])


def alarm(template: Template, it: Resource) -> Lines:
    yield "says what to do", bool(it.get("AlarmDescription"))
    yield (
        "is no alarm while nothing happens, or says why",
        it.get("TreatMissingData") in ("notBreaching", "breaching", "ignore"),
    )


def books(template: Template, it: Resource) -> Lines:
    yield "is answered by a function of the stack", named(it["ServiceToken"]) in template.of("AWS::Lambda::Function")
    yield "holds up no deployment for long", template.within(it.get("ServiceTimeout", 3_600), 60, 600)


def nothing(_template: Template, _it: Resource) -> Lines:
    yield from ()


def tagged(it: Resource) -> bool:
    return any(tag["Key"] == "application" for tag in it.get("Tags", []))


POLICY: Final[Mapping[str, Callable[[Template, Resource], Lines]]] = {
    "AWS::CloudWatch::Alarm": alarm,
    "AWS::CloudWatch::Dashboard": nothing,
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
        check = POLICY.get(resource["Type"])
        if check is None:
            found.append(f"{name}: nobody has said what a {resource['Type']} must be like")
            continue
        found += [f"{name}: {line}" for line, holds in check(template, resource.get("Properties", {})) if not holds]
    return found
