"""Asks AWS about a deployed stack, area by area, and lets `doctor` judge the answers.

Invariant: every call reads. If an area cannot be read, a finding names the missing action, and the other areas are
still examined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from sync_rules.adapters import aws_errors, retries
from sync_rules.adapters.preflight import is_strong
from sync_rules.deploy import doctor, resources
from sync_rules.deploy.doctor import SOMETHING, Answer, Site, StackFinding
from sync_rules.deploy.permissions import FANOUT, FUNCTIONS, STREAM, WRITE, list_functions
from sync_rules.deploy.roles import format_role_id, list_statements, shorten_name
from sync_rules.model.entities import Table

LAG_MINUTES: Final = 10
ALARMS_MAX: Final = 100  # of one DescribeAlarms
GONE: Final = frozenset({
    "ResourceNotFoundException", "NoSuchEntity", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist",
})  # fmt: skip
UNFIT: Final = "ParamValidationError"  # the stack, or an answer before, lacks the name that is asked about
WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")


class NotSeenError(Exception):
    """The service refused to answer: `action`, as IAM spells it, and the `code` of the refusal."""

    def __init__(self, action: str, code: str) -> None:
        super().__init__(f"{action}: {code}")
        self.action, self.code = action, code

    def make_finding(self) -> StackFinding:
        """The refusal as a finding of its area."""
        if self.code.startswith("AccessDenied"):
            return StackFinding("could not be checked", f"allow {self.action} for your credentials")
        cure = f"restore what was deleted: {doctor.DEPLOY}" if self.code in GONE else "run it again later"
        return StackFinding(f"could not be checked: {self.action} failed with {self.code}", cure)


Client = Callable[[str], Any]  # by the prefix of its actions in IAM, such as dynamodb


def ask(client: Client, action: str, **parameters: Any) -> Any:
    """Return the answer to a call that is named by its IAM action. Raises NotSeenError if AWS refuses it, StoreError if
    AWS does not answer.
    """
    service, _, operation = action.partition(":")
    call = getattr(client(service), WORD.sub("_", operation).lower())
    try:
        return retries.make_retry(first=True)(call, **parameters)
    except aws_errors.ERRORS as error:
        code = aws_errors.read_code(error)
        if code == type(error).__name__ and code != UNFIT:  # the service did not answer
            raise aws_errors.make_store_error(error, action) from error
        raise NotSeenError(action, code) from error


def ask_pages(client: Client, action: str, key: str, marks: tuple[str, str], **parameters: Any) -> Iterator[Any]:
    """Yield the entries of all pages of an answer. `marks` are the names of the next page's mark in the request and in
    the answer.
    """
    answer = ask(client, action, **parameters)
    yield from answer.get(key, ())
    while answer.get(marks[1]):
        answer = ask(client, action, **parameters, **{marks[0]: answer[marks[1]]})
        yield from answer.get(key, ())


def list_resources(client: Client, stack: str) -> dict[str, tuple[str, str]]:
    """Return the type and physical id of each resource of a stack. Raises like `ask`."""
    found = ask_pages(
        client, "cloudformation:ListStackResources", "StackResourceSummaries", ("NextToken",) * 2, StackName=stack
    )
    return {
        one["LogicalResourceId"]: (one["ResourceType"], one.get("PhysicalResourceId", ""))
        for one in found
        if one.get("ResourceStatus") != "DELETE_COMPLETE"
    }


@dataclass
class Examination:
    """An examination of a site through its clients. Answers that two areas need are requested once."""

    site: Site
    client: Client
    now: datetime
    areas: Mapping[str, Callable[[], Iterable[StackFinding]]] = field(init=False)

    def __post_init__(self) -> None:
        self.areas = {
            "stack": lambda: doctor.check_stack(self.site),
            "tables": self._check_tables,
            "mappings": self._check_mappings,
            "queues": self._check_queues,
            "versions": lambda: doctor.check_versions(self.site, self._configurations),
            "roles": lambda: doctor.check_roles(self._find_denied_actions()),
            "alarms": self._check_alarms,
            "lag": self._check_lag,
        }
        if self.site.deployment.write or WRITE in self.site.resources:
            self.areas = {**self.areas, "write": self._check_write}

    def findings(self) -> Iterator[tuple[str, list[StackFinding]]]:
        """Yield each area with its findings. Raises StoreError if a service does not answer."""
        for area, look in self.areas.items():
            try:
                yield area, list(look())
            except NotSeenError as refused:
                yield area, [refused.make_finding()]

    @cached_property
    def _descriptions(self) -> dict[Table, Answer | None]:
        return {table: self._describe_table(table) for table in self.site.rules.streamed_tables}

    def _describe_table(self, table: Table) -> Answer | None:
        try:
            answer: Answer = self._ask("dynamodb:DescribeTable", TableName=table.physical_name)["Table"]
        except NotSeenError as refused:
            if refused.code != "ResourceNotFoundException":
                raise
            return None
        return answer

    def _check_tables(self) -> Iterator[StackFinding]:
        yield from doctor.check_tables(self.site, self._descriptions)
        try:
            yield from doctor.check_times_to_live(self.site, self._times_to_live)
        except NotSeenError as refused:  # which hides nothing of what was found before
            yield refused.make_finding()

    @cached_property
    def _times_to_live(self) -> dict[Table, Answer]:
        names, there = self.site.rules.times_to_live, self._descriptions
        action, key = "dynamodb:DescribeTimeToLive", "TimeToLiveDescription"
        needed = (t for t, one in there.items() if one is not None and t.name in names and not is_strong(one))
        return {table: self._ask(action, TableName=table.physical_name).get(key) or {} for table in needed}

    @cached_property
    def _configurations(self) -> dict[str, Answer]:
        names = {one: self.site.physical(one) for one in self._functions}
        return {one: self._ask("lambda:GetFunctionConfiguration", FunctionName=name) for one, name in names.items()}

    @property
    def _functions(self) -> list[str]:
        """The functions that are looked at. If the write function is not there, its own area says so."""
        return [one for one in list_functions(self.site.deployment) if one in (*FUNCTIONS, *self.site.resources)]

    def _check_write(self) -> Iterator[StackFinding]:
        function = self.site.physical(WRITE)
        url = function and resources.WRITE_URL in self.site.resources
        found = self._ask("lambda:GetFunctionUrlConfig", FunctionName=function) if url else {}
        return doctor.check_write(self.site, found)

    def _check_mappings(self) -> Iterator[StackFinding]:
        action, key, marks = "lambda:ListEventSourceMappings", "EventSourceMappings", ("Marker", "NextMarker")
        stream, fanout = (
            ask_pages(self.client, action, key, marks, FunctionName=self.site.physical(name))
            for name in (STREAM, FANOUT)
        )
        return doctor.check_mappings(self.site, self._descriptions, stream, fanout)

    def _check_queues(self) -> Iterator[StackFinding]:
        urls = {name: self.site.physical(name) for name in doctor.QUEUES}
        asked = {
            name: self._ask("sqs:GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])
            for name, url in urls.items()
        }
        attributes = {name: answer.get("Attributes", {}) for name, answer in asked.items()}
        return doctor.check_queues(self.site, attributes, int(self._configurations[FANOUT].get("Timeout", 0)))

    def _find_denied_actions(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield every permission that a role lacks according to IAM. Resources that do not exist are skipped."""
        streams: dict[str, str] = {}
        for table, description in self._descriptions.items():
            streams |= doctor.find_stream(table, description)
        granted = list_statements(self.site.deployment)
        for function in self._functions:
            for statement in granted[format_role_id(function)]:
                for resource in statement.resources:
                    place = self.site.resolve(resource, streams)
                    if place == "":
                        continue  # the stream of a table that has none: the area of tables says so
                    for action, decision in self._simulate_policy(function, statement.actions, place).items():
                        yield function, action, place or shorten_name(resource), decision

    def _simulate_policy(self, function: str, actions: tuple[str, ...], place: str | None) -> dict[str, str]:
        if place is None:
            return dict.fromkeys(actions, "not in the stack")
        one = place if place == "*" else place.replace(":*", f":log-stream:{SOMETHING}").replace("*", SOMETHING)
        answer = self._ask(
            "iam:SimulatePrincipalPolicy",
            PolicySourceArn=self._configurations[function].get("Role", ""),
            ActionNames=list(actions),
            ResourceArns=[one],
        )
        decisions = {found["EvalActionName"]: found["EvalDecision"] for found in answer["EvaluationResults"]}
        return {action: decision for action, decision in decisions.items() if decision != "allowed"}

    def _check_alarms(self) -> Iterator[StackFinding]:
        names = [name for kind, name in self.site.resources.values() if kind == "AWS::CloudWatch::Alarm"]
        found: list[Answer] = []
        for first in range(0, len(names), ALARMS_MAX):
            asked = {"AlarmNames": names[first : first + ALARMS_MAX], "MaxRecords": ALARMS_MAX}
            found += self._ask("cloudwatch:DescribeAlarms", **asked).get("MetricAlarms", ())
        return doctor.check_alarms(self.site, found)

    def _check_lag(self) -> Iterator[StackFinding]:
        answer = self._ask(
            "cloudwatch:GetMetricStatistics",
            Namespace="AWS/Lambda",
            MetricName="IteratorAge",
            Dimensions=[{"Name": "FunctionName", "Value": self.site.physical(STREAM)}],
            StartTime=self.now - timedelta(minutes=LAG_MINUTES),
            EndTime=self.now,
            Period=60,
            Statistics=["Maximum"],
        )
        return doctor.check_lag(self.site, answer.get("Datapoints", ()), LAG_MINUTES)

    def _ask(self, action: str, **parameters: Any) -> Any:
        return ask(self.client, action, **parameters)
