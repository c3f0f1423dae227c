"""`sync-rules doctor`: a sound stack has no finding; each damage has its own finding, with its cure, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from sync_rules import __version__
from sync_rules.cli import main
from sync_rules.cli.commands import doctor as command
from sync_rules.deploy import measures as alarms_of
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.doctor import QUEUES
from sync_rules.deploy.examination import WORD
from sync_rules.deploy.filters import make_filter_criteria
from sync_rules.deploy.permissions import FUNCTIONS, WRITE
from sync_rules.deploy.resources import RULES_DIGEST, VERSION, format_table_id
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.language.load import parse_rules

RULES = """
tables:
  shop:  {name: "${STAGE}-shop", key: {PK: S, SK: S}}
  books:
    name: "${STAGE}-books"
    key: {book_id: S}
    indexes: {by_author: {author_id: S}}
entities:
  user:   {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order:  {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  author: {table: shop, key: {PK: "AUTHOR#{author_id}", SK: AUTHOR}}
  book:   {table: books}
rules:
  names: copy user.name into order.user_name
  authors: {copy: author.name, into: book.author_name}
  expiry: {derive: order.expires_at, as: "ttl(created_at, 60d)"}
deploy: {write: url}
"""
EVERY = (*FUNCTIONS, WRITE)
PLACE = "eu-west-1:111122223333"
AREAS = ["stack", "tables", "mappings", "queues", "versions", "roles", "alarms", "lag", "write", "links", "loads"]
SHOP = f"arn:aws:dynamodb:{PLACE}:table/trial-shop"
QUEUE = f"arn:aws:sqs:{PLACE}:"
TIMEOUT_SECONDS = 180


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "call")


class Deployed:
    """The answers of AWS about a sound stack: by action, or by action and the name that is asked about."""

    def __init__(self, path: Any) -> None:
        self.deployment = read_deployment(path)
        self.rules = parse_rules(path.read_text(), str(path), {"STAGE": "trial"})
        self.denied = ("", "", "", "")  # a role, an action, the end of a resource; the decision
        self.called: list[str] = []
        self.stack = {
            "StackId": f"arn:aws:cloudformation:{PLACE}:stack/sync-rules/1",
            "StackStatus": "UPDATE_COMPLETE",
            "Parameters": [
                {"ParameterKey": "StageVariable", "ParameterValue": "trial"},
                {"ParameterKey": "LagAlarmSeconds", "ParameterValue": "60"},
                {"ParameterKey": "ShopStreamArn", "ParameterValue": ""},
            ],
        }
        self.tables = {table.physical_name: self._table(table) for table in self.rules.streamed_tables}
        self.time_to_live = {"AttributeName": "expires_at", "TimeToLiveStatus": "ENABLED"}
        self.mappings = [self._mapping(table) for table in self.rules.streamed_tables]
        self.queue_mapping = {"UUID": "q", "State": "Enabled", "EventSourceArn": f"{QUEUE}FanoutQueue"}
        policy = json.dumps({"Statement": [{"Condition": {"Bool": {"aws:SecureTransport": "false"}}}]})
        self.queues: dict[str, dict[str, str]] = {
            name: {"ApproximateNumberOfMessages": "0", "Policy": policy} for name in QUEUES
        }
        self.queues["FanoutQueue"] |= {
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": f"{QUEUE}FanoutDeadLetters"}),
            "MaximumMessageSize": "1048576",
            "VisibilityTimeout": "1080",
        }
        carried = {RULES_DIGEST: self.deployment.rules.fingerprint, VERSION: __version__}
        self.functions = {
            name: {
                "Timeout": TIMEOUT_SECONDS,
                "Role": f"arn:aws:iam::111122223333:role/{name}",
                "LastUpdateStatus": "Successful",
                "Environment": {"Variables": dict(carried)},
            }
            for name in EVERY
        }
        self.url = {"AuthType": "AWS_IAM"}
        made = alarms_of.make_alarms(self.deployment, dict.fromkeys(EVERY, TIMEOUT_SECONDS))
        self.alarms = {
            name: {
                "AlarmName": name,
                "AlarmActions": ["arn:aws:sns:eu-west-1:111122223333:t"],
                "ActionsEnabled": True,
                "StateValue": "OK",
                "AlarmDescription": one["Properties"]["AlarmDescription"],
            }
            for name, one in made.items()
        }
        self.items: dict[str, list[Any]] = {}
        self.loads: list[Any] = []
        self.applied: Any = {"Item": {"id": {"S": "sync-rules/applied"}, **LOADS_SINCE}}
        self.points = [{"Maximum": 1_200.0}, {"Maximum": 59_000.0}]
        self.resources = {
            **dict.fromkeys(EVERY, "AWS::Lambda::Function"),
            **{name.replace("Function", "Logs"): "AWS::Logs::LogGroup" for name in EVERY},
            "WriteFunctionUrl": "AWS::Lambda::Url",
            **dict.fromkeys(QUEUES, "AWS::SQS::Queue"),
            **{format_table_id(table): "AWS::DynamoDB::Table" for table in self.rules.streamed_tables},
            **dict.fromkeys(made, "AWS::CloudWatch::Alarm"),
            "StateTable": "AWS::DynamoDB::Table",
            "Bucket": "AWS::S3::Bucket",
        }

    def _table(self, table: Any) -> dict[str, Any]:
        arn = f"arn:aws:dynamodb:{PLACE}:table/{table.physical_name}"
        made = make_table_parameters(table, stream=True)
        indexes = [{**index, "IndexStatus": "ACTIVE"} for index in made.get("GlobalSecondaryIndexes", ())]
        latest = {"TableArn": arn, "LatestStreamArn": f"{arn}/stream/new", "TableStatus": "ACTIVE"}
        return {**made, **latest, "GlobalSecondaryIndexes": indexes}

    def _mapping(self, table: Any) -> dict[str, Any]:
        return {
            "UUID": table.name,
            "State": "Enabled",
            "EventSourceArn": self.tables[table.physical_name]["LatestStreamArn"],
            "LastProcessingResult": "OK",
            "FilterCriteria": make_filter_criteria(self.rules, table),
        }

    # -------------------------------------------------------- calls of the clients
    def client(self, _service: str) -> Any:
        return SimpleNamespace(**{
            name.removeprefix("do_"): self._noted(name.removeprefix("do_"))
            for name in dir(self) if name.startswith("do_")
        }, meta=SimpleNamespace(region_name="eu-west-1", endpoint_url="https://dynamodb.eu-west-1.amazonaws.com"))  # fmt: skip

    refused: tuple[str, Exception] | None = None

    def _noted(self, name: str) -> Callable[..., Any]:
        def call(**asked: Any) -> Any:
            self.called.append(name)
            if self.refused and self.refused[0] == name:
                raise self.refused[1]
            return getattr(self, f"do_{name}")(**asked)

        return call

    def do_describe_stacks(self, **_: Any) -> Any:
        return {"Stacks": [self.stack]}

    def do_list_stack_resources(self, NextToken: str = "", **_: Any) -> Any:  # noqa: N803 - as AWS spells it
        rows = [
            {"LogicalResourceId": name, "ResourceType": kind, "PhysicalResourceId": self._physical(name, kind)}
            for name, kind in self.resources.items()
        ]
        return {"StackResourceSummaries": rows[5:]} if NextToken else {
            "StackResourceSummaries": rows[:5], "NextToken": "more",
        }  # fmt: skip

    def _physical(self, name: str, kind: str) -> str:
        return f"https://sqs.eu-west-1.amazonaws.com/111122223333/{name}" if kind == "AWS::SQS::Queue" else name

    def do_get_function_url_config(self, FunctionName: str) -> Any:  # noqa: N803
        assert FunctionName == WRITE
        return self.url

    def do_describe_table(self, TableName: str) -> Any:  # noqa: N803
        if TableName not in self.tables:
            raise refusal("ResourceNotFoundException")
        return {"Table": self.tables[TableName]}

    def do_get_item(self, **_: Any) -> Any:
        return self.applied

    def do_list_bulk_operations(self, **_: Any) -> Any:
        return {"BulkOperationsSummaryList": self.loads}

    def do_describe_bulk_operation(self, **_: Any) -> Any:
        return {"BulkOperationDescription": {"TableDetails": [{"TableName": "trial-books"}]}}

    def do_scan(self, TableName: str, **_: Any) -> Any:  # noqa: N803
        if TableName not in self.tables:
            raise refusal("ResourceNotFoundException")
        return {"Items": self.items.get(TableName, [])}

    def do_batch_get_item(self, RequestItems: Any) -> Any:  # noqa: N803
        return {"Responses": {name: self.items.get(name, []) for name in RequestItems}}

    def do_describe_time_to_live(self, TableName: str) -> Any:  # noqa: N803
        return {"TimeToLiveDescription": self.time_to_live if TableName == "trial-shop" else {}}

    def do_list_event_source_mappings(self, FunctionName: str, **_: Any) -> Any:  # noqa: N803
        return {"EventSourceMappings": self.mappings if FunctionName == "StreamFunction" else [self.queue_mapping]}

    def do_get_function_configuration(self, FunctionName: str) -> Any:  # noqa: N803
        return self.functions[FunctionName]

    def do_get_queue_attributes(self, QueueUrl: str, **_: Any) -> Any:  # noqa: N803
        return {"Attributes": self.queues[QueueUrl.rpartition("/")[2]]}

    def do_simulate_principal_policy(
        self,
        PolicySourceArn: str,  # noqa: N803
        ActionNames: list[str],  # noqa: N803
        ResourceArns: list[str],  # noqa: N803
    ) -> Any:
        (place,) = ResourceArns
        assert place == "*" or (place.startswith("arn:") and "*" not in place and "$" not in place)
        role, action, end, decision = self.denied
        mine = PolicySourceArn.endswith(f"/{role}") and place.endswith(end)
        decisions = {one: decision if mine and one == action else "allowed" for one in ActionNames}
        return {"EvaluationResults": [{"EvalActionName": k, "EvalDecision": v} for k, v in decisions.items()]}

    def do_describe_alarms(self, AlarmNames: list[str], **_: Any) -> Any:  # noqa: N803
        return {"MetricAlarms": [self.alarms[name] for name in AlarmNames if name in self.alarms]}

    def do_get_metric_statistics(self, StartTime: datetime, EndTime: datetime, **_: Any) -> Any:  # noqa: N803
        assert StartTime < EndTime <= datetime.now(UTC)
        return {"Datapoints": self.points}


@pytest.fixture
def deployed(tmp_path, monkeypatch):
    """A sound stack, and its rules in the folder where the user is, who has no variable set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STAGE", raising=False)
    monkeypatch.setattr(main, "PATIENCE_SECONDS", 0.0)
    (tmp_path / "rules.yaml").write_text(RULES)
    made = Deployed(tmp_path / "rules.yaml")
    monkeypatch.setattr(command.aws, "find_client", lambda service, **_: made.client(service))
    return made


@pytest.fixture
def examine(capsys):
    """Runs the command; gives its code, and its findings as (area, found, cure)."""

    def run(areas=AREAS):
        code = main.main(["doctor", "--format", "json", "--region", "eu-west-1"])
        rows = json.loads(capsys.readouterr().out)
        assert [row["area"] for row in rows] == areas
        return code, [(row["area"], one["found"], one["cure"]) for row in rows for one in row["findings"]]

    return run


BY_HAND = "for what was changed by hand see https://github.com/sync-rules/sync-rules/blob/main/docs/doctor.md"
DEPLOYED_AGAIN = "run `sync-rules infra`, `sam build` and `sam deploy`"
RUNBOOK = "https://github.com/sync-rules/sync-rules/blob/main/docs/runbook.md#"
QUEUE_URL = "https://sqs.eu-west-1.amazonaws.com/111122223333/FailuresQueue"

GONE = object()
LOADS_SINCE = {"document": {"S": json.dumps({"at": "2026-11-20T12:00:00+00:00"})}}
STARTED = datetime(2026, 11, 20, 11, tzinfo=UTC)
LOAD = {"BulkOperationArn": "arn", "BulkOperationStatus": "COMPLETED", "StartTime": STARTED}
OTHER_RULES = {RULES_DIGEST: "0" * 64}
FILLING = [{"IndexName": "near", "IndexStatus": "ACTIVE", "Backfilling": True}]
# By name: a place in the answers of AWS and what is there (`GONE` takes it away); the area, finding and cure of it.
DAMAGES: dict[str, tuple[str, Any, str, str, str]] = {
    "stack rolled back": ("stack/StackStatus", "UPDATE_ROLLBACK_COMPLETE",
        "stack", "UPDATE_ROLLBACK_COMPLETE", "`aws cloudformation describe-stack-events --stack-name"),
    "stack at work": ("stack/StackStatus", "UPDATE_IN_PROGRESS",
        "stack", "UPDATE_IN_PROGRESS", "wait until it is done"),
    "index in making": ("tables/trial-books/GlobalSecondaryIndexes/0/IndexStatus", "CREATING",
        "tables", "table trial-books: index by_author is CREATING", "wait until it is done"),
    "vectors filling": ("tables/trial-shop/VectorIndexes", FILLING,
        "tables", "table trial-shop: index near is BACKFILLING", "wait until it is done"),
    "index gone": ("tables/trial-books/GlobalSecondaryIndexes", [],
        "tables", "it has no index by_author", "Create the index with partition key author_id (S)"),
    "expiry off": ("time_to_live", {"TimeToLiveStatus": "DISABLED"},
        "tables", "on expires_at is not on", "`sam deploy`"),  # it is the stack that creates this table
    "strong in all regions": ("tables/trial-shop/MultiRegionConsistency", "STRONG",
        "tables", "refuses Time to Live: rule expiry needs it on expires_at", "Leave it out of the"),
    "mapping off": ("mappings/0/State", "Disabled",
        "mappings", "Disabled", "`aws lambda update-event-source-mapping --uuid shop --enabled --region"),
    "mapping gone": ("mappings/0", GONE,
        "mappings", "no mapping of StreamFunction reads its stream", DEPLOYED_AGAIN),
    "mapping of old stream": ("mappings/0/EventSourceArn", f"{SHOP}/stream/old",
        "mappings", "reads stream old", f"parameter ShopStreamArn to {SHOP}/stream/new"),
    "mapping failing": ("mappings/0/LastProcessingResult", "PROBLEM: Function call failed",
        "mappings", "'PROBLEM: Function call failed'", f"{RUNBOOK}function-errors"),
    "mapping unfiltered": ("mappings/0/FilterCriteria", GONE, "mappings", "filters other records", BY_HAND),
    "queue mapping off": ("queue_mapping/State", "Disabled",
        "mappings", "FanoutQueue: its mapping is Disabled", "--uuid q --enabled"),
    "no dead letters": ("queues/FanoutQueue/RedrivePolicy", GONE,
        "queues", "does not go to FanoutDeadLetters", '--attributes \'{"RedrivePolicy": "{'),
    "small messages": ("queues/FanoutQueue/MaximumMessageSize", "262144",
        "queues", "up to 262,144 bytes", "FanoutQueue --attributes MaximumMessageSize=1048576"),
    "hidden briefly": ("queues/FanoutQueue/VisibilityTimeout", "30",
        "queues", "less than the timeout of FanoutFunction", "VisibilityTimeout=1080"),
    "open queue": ("queues/FailuresQueue/Policy", GONE, "queues", "FailuresQueue: its policy", BY_HAND),
    "dead letters": ("queues/FanoutDeadLetters/ApproximateNumberOfMessages", "1200",
        "queues", "1,200", "`sync-rules redrive rules.yaml --remote --region eu-west-1`"),
    "failures": ("queues/FailuresQueue/ApproximateNumberOfMessages", "1",
        "queues", "FailuresQueue: messages", f"`sync-rules failures rules.yaml --queue {QUEUE_URL} --region"),
    "failed schedule": ("queues/AsyncDeadLetters/ApproximateNumberOfMessages", "2",
        "queues", "AsyncDeadLetters: messages waiting: 2", f"{RUNBOOK}failed-schedule"),
    "other rules": ("functions/*/Environment/Variables", OTHER_RULES | {VERSION: __version__},
        "versions", "not those of rules.yaml", DEPLOYED_AGAIN),
    "other version": ("functions/*/Environment/Variables", OTHER_RULES | {VERSION: "0.0.9"},
        "versions", f"deployed is sync-rules 0.0.9, and this is {__version__}", "or install 0.0.9"),
    "no version": ("functions/*/Environment/Variables", {}, "versions", "unknown", DEPLOYED_AGAIN),
    "one function behind": (f"functions/VerifyFunction/Environment/Variables/{RULES_DIGEST}", "0" * 64,
        "versions", "VerifyFunction: other rules", DEPLOYED_AGAIN),
    "update failed": ("functions/RedriveFunction/LastUpdateStatus", "Failed",
        "versions", "RedriveFunction: its last update failed", DEPLOYED_AGAIN),
    "role short": ("denied", ("VerifyFunction", "dynamodb:Scan", "trial-books", "implicitDeny"),
        "roles", f"dynamodb:Scan on arn:aws:dynamodb:{PLACE}:table/trial-books (impl", DEPLOYED_AGAIN),
    "role denied": ("denied", ("FanoutFunction", "logs:PutLogEvents", "doctor", "explicitDeny"),
        "roles", "logs:PutLogEvents", "remove the Deny"),
    "no topic": ("alarms/*/AlarmActions", [], "alarms", "have no action", "AlarmTopicArn"),
    "actions off": ("alarms/NamesLagAlarm/ActionsEnabled", False,
        "alarms", "NamesLagAlarm", "`aws cloudwatch enable-alarm-actions --alarm-names NamesLagAlarm"),
    "alarm gone": ("alarms/NamesLagAlarm", GONE, "alarms", "(NamesLagAlarm) no longer exist", DEPLOYED_AGAIN),
    "alarm on": ("alarms/NamesLagAlarm/StateValue", "ALARM",
        "alarms", "alarm NamesLagAlarm is on: A hundredth of the work of rule names", f"{RUNBOOK}lag"),
    "behind": ("points/0/Maximum", 61_000.0, "lag", "up to 61 s behind", f"{RUNBOOK}iterator-age"),
    "loaded": ("loads", [LOAD], "loads", "a bulk load runs since 2026-11-20T11:00:00Z",
        "when it has ended: `sync-rules backfill rules.yaml"),
    "loaded later": ("loads", [LOAD | {"EndTime": datetime(2026, 11, 20, 13, tzinfo=UTC)}],
        "loads", "table trial-books: a bulk load ended at 2026-11-20T13:00:00Z", "`sync-rules backfill rules"),
    "open to everybody": ("url/AuthType", "NONE",
        "write", "WriteFunctionUrl: anybody may call it (AuthType NONE)", BY_HAND),
    "without url": ("resources/WriteFunctionUrl", GONE,
        "write", "WriteFunctionUrl is not deployed, and rules.yaml asks for it", DEPLOYED_AGAIN),
    "without write function": ("resources/WriteFunction", GONE,
        "write", "WriteFunction is not deployed", DEPLOYED_AGAIN),
}  # fmt: skip


def damage(it: Deployed, change: str) -> None:
    """Make a change at its place; `*` stands for each."""
    place, value, *_ = DAMAGES[change]
    *path, last = (int(part) if part.isdecimal() else part for part in place.split("/"))
    found: list[Any] = [vars(it)]
    for part in path:
        found = [inner for one in found for inner in (one.values() if part == "*" else [one[part]])]
    for one in found:
        if value is GONE:
            del one[last]
        else:
            one[last] = value


def test_doctor_finds_nothing_in_a_sound_stack_and_only_reads(deployed, examine, capsys):
    """Every area is well, in words too; every call describes, gets, lists or simulates."""
    assert examine() == (0, [])
    assert main.main(["doctor"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{area}: well" for area in AREAS]
    assert {name.partition("_")[0] for name in deployed.called} == {"describe", "list", "get", "simulate", "scan"}


@pytest.mark.parametrize("change", DAMAGES)
def test_doctor_finds_each_damage_and_no_other(deployed, examine, change):
    """One finding, in its area, with the cure that ends it."""
    *_, area, found, cure = DAMAGES[change]
    damage(deployed, change)
    code, ((where, what, how),) = examine()
    assert (code, where) == (1, area)
    assert found in what
    assert cure in how


def test_doctor_finds_what_the_stack_has_not_got(deployed, examine):
    """Rules that need more than was deployed: what is missing is named in words."""
    deployed.resources = {name: kind for name, kind in deployed.resources.items() if name != "Bucket"}
    code, findings = examine()
    assert code == 1
    assert {area for area, _, _ in findings} == {"roles"}
    assert "StreamFunction may not s3:ListBucket on Bucket (not in the stack)" in {found for _, found, _ in findings}


def test_doctor_finds_a_write_function_that_nobody_asks_for(deployed, examine, tmp_path):
    """A stack that still has what the rules file no longer asks for; without either there is no such area."""
    (tmp_path / "rules.yaml").write_text(RULES.replace("deploy: {write: url}", ""))
    code, findings = examine()
    names = [found.partition(" ")[0] for area, found, _ in findings if area == "write"]
    assert (code, names) == (1, ["WriteFunction", "WriteFunctionUrl"])
    made = deployed.resources.items()
    deployed.resources = {name: kind for name, kind in made if not name.startswith("Write") or name.endswith("Alarm")}
    assert examine(areas=[area for area in AREAS if area != "write"]) == (0, [])


ACTIONS = {
    "dynamodb:DescribeTable": {"tables", "mappings", "roles"},
    "lambda:ListEventSourceMappings": {"mappings"},
    "sqs:GetQueueAttributes": {"queues"},
    "lambda:GetFunctionConfiguration": {"queues", "versions", "roles"},
    "iam:SimulatePrincipalPolicy": {"roles"},
    "cloudwatch:DescribeAlarms": {"alarms"},
    "cloudwatch:GetMetricStatistics": {"lag"},
    "lambda:GetFunctionUrlConfig": {"write"},
}


@pytest.mark.parametrize("action", ACTIONS)
def test_doctor_names_the_right_that_an_area_lacks(deployed, examine, action):
    """The areas that need the action could not be looked at, and say what to allow; the others are looked at."""
    deployed.refused = (WORD.sub("_", action.partition(":")[2]).lower(), refusal("AccessDeniedException"))
    code, findings = examine()
    said = ("could not be checked", f"allow {action} for your credentials")
    assert (code, {one[0] for one in findings}, {one[1:] for one in findings}) == (1, ACTIONS[action], {said})


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        ("describe_stacks", refusal("ValidationError"), "no stack sync-rules in region eu-west-1"),
        ("describe_stacks", refusal("AccessDenied"), "allow cloudformation:DescribeStacks"),
        ("list_stack_resources", refusal("AccessDenied"), "allow cloudformation:ListStackResources"),
        ("get_queue_attributes", EndpointConnectionError(endpoint_url="x"), "sqs:GetQueueAttributes"),
    ],
    ids=["no stack", "no right", "no right to the resources", "no answer"],
)
def test_doctor_ends_where_nothing_can_be_examined(deployed, capsys, call, error, said):
    """Without a stack, the rights to see it, or an answer, it is a mistake and no finding."""
    deployed.refused = (call, error)
    assert main.main(["doctor"]) == 2
    assert said in capsys.readouterr().err


def test_doctor_finds_a_link_that_hits_nothing_in_a_rule_that_was_not_applied(deployed, examine):
    """The sample of `links` names the rule, what no item has, and the cure; a rule that was applied is not sampled."""
    deployed.items["trial-books"] = [{"book_id": {"S": f"b{i}"}, "writer": {"S": "a1"}} for i in range(5)]
    deployed.items["trial-shop"] = [
        {"PK": {"S": "AUTHOR#a1"}, "SK": {"S": "AUTHOR"}, "name": {"S": "SECRET"}},
    ]
    code, found = examine()
    assert code == 1
    ((area, text, cure),) = found
    assert (area, cure) == ("links", "write link: {author_id: writer}")
    assert text.startswith("rule authors: 5 of 5 sampled book items point to no author: link author_id")


def test_doctor_before_the_first_backfill_asks_for_no_bulk_loads(deployed, examine):
    """The first backfill reads all items, so that no load is one that it may not have seen."""
    damage(deployed, "loaded later")
    deployed.applied = {}
    assert examine() == (0, [])


def test_doctor_that_may_not_read_the_state_table_says_so_once(deployed, examine):
    """`links` names the right. `loads` needs the same table, and leaves it at that."""
    deployed.refused = ("get_item", refusal("AccessDeniedException"))
    code, ((area, text, cure),) = examine()
    assert (code, area) == (1, "links")
    assert text.startswith("could not be checked")
    assert cure.startswith("allow dynamodb:GetItem")


@pytest.mark.parametrize("call", ["list_bulk_operations", "describe_bulk_operation"])
def test_doctor_without_the_right_to_list_bulk_loads_says_so_and_finds_nothing(deployed, capsys, call):
    """Credentials of before need not have it."""
    damage(deployed, "loaded later")
    deployed.refused = (call, refusal("AccessDeniedException"))
    assert main.main(["doctor"]) == 0
    assert "loads: bulk loads are unknown: allow dynamodb:ListBulkOperations" in capsys.readouterr().err
