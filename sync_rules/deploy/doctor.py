"""Judges a deployed stack: functions from what AWS answers about it to findings, each with its cure.

Invariant: nothing here asks AWS; `examination` does, and only reads.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sync_rules import DOCS, __version__
from sync_rules.adapters.acceptance import format_stack_variable
from sync_rules.adapters.preflight import list_table_problems, list_time_to_live_problems
from sync_rules.adapters.sqs import MESSAGE_MAX_BYTES
from sync_rules.deploy import resources
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.filters import make_filter_criteria
from sync_rules.deploy.measures import link_section
from sync_rules.deploy.permissions import FANOUT, STREAM, WRITE
from sync_rules.deploy.resources import RULES_DIGEST, VERSION, format_stream_parameter, format_table_id, is_elsewhere
from sync_rules.deploy.roles import MARK
from sync_rules.deploy.tables import INDEX_KINDS
from sync_rules.deploy.vectors import list_vector_problems
from sync_rules.model import json_bytes
from sync_rules.model.entities import Table
from sync_rules.rules.ruleset import Rules

DEPLOY: Final = "run `sync-rules infra`, `sam build` and `sam deploy`"
BY_HAND: Final = f"{DEPLOY}; for what was changed by hand see {DOCS}/doctor.md"  # a deployment leaves that as it is
AGAIN: Final = "wait until it is done, and run `sync-rules doctor` again"
TOPIC: Final = "set the parameter AlarmTopicArn to the ARN of an SNS topic, and deploy"
RECEIVES_MAX: Final = 8  # of a message, as in the template
HIDDEN_TIMEOUTS: Final = 6  # as in the template, and as Lambda's guide asks for
SHOWN_MAX: Final = 3  # names in one finding
QUEUES: Final = ("FanoutQueue", "FanoutDeadLetters", "FailuresQueue", "AsyncDeadLetters")
ARNS: Final[Mapping[str, str]] = {  # by the type of a resource, from its physical id
    "AWS::DynamoDB::Table": "dynamodb:{region}:{account}:table/{id}",
    "AWS::Logs::LogGroup": "logs:{region}:{account}:log-group:{id}:*",
    "AWS::S3::Bucket": "s3:::{id}",
    "AWS::SQS::Queue": "sqs:{region}:{account}:{id}",
}
SOMETHING: Final = "sync-rules-doctor"  # stands for `*` where a role is asked about one of many
Answer = Mapping[str, Any]
Descriptions = Mapping[Table, Answer | None]


@dataclass(frozen=True)
class StackFinding:
    """One thing that is wrong, and what to do."""

    found: str
    cure: str


@dataclass(frozen=True)
class Site:
    """A deployed stack: its resources by logical id (type and physical id), and the rules on this machine. `rules` have
    the stack's parameters in place of variables; `deployment` has their marks. `options` are the command line
    options that select the stack.
    """

    name: str
    arn: str
    status: str
    parameters: Mapping[str, str]
    resources: Mapping[str, tuple[str, str]]
    deployment: Deployment
    rules: Rules
    rules_file: Path
    options: Sequence[str] = ()

    def own(self, verb: str, *more: str) -> str:
        """Return a command line of sync-rules for this stack."""
        return f"`{shlex.join(['sync-rules', verb, *more, *self.options])}`"

    def format_remote_command(self, verb: str, *more: str) -> str:
        """Return a command line of sync-rules that works in the functions of this stack."""
        return f"`{format_stack_variable(self.name)}{self.own(verb, *more, '--remote')[1:]}"

    def aws(self, *words: str) -> str:
        """A command line of the AWS CLI for this stack."""
        return f"`{shlex.join(['aws', *words, *self.options])}`"

    def physical(self, logical_id: str) -> str:
        """Return the physical id of a resource; "" if the stack lacks it."""
        return self.resources.get(logical_id, ("", ""))[1]

    def find_arn(self, logical_id: str) -> str | None:
        """Return the ARN of a resource, as its Fn::GetAtt gives it; None if the stack lacks it."""
        kind, physical = self.resources.get(logical_id, ("", ""))
        if kind not in ARNS or not physical:
            return None
        _, partition, _, region, account, _ = self.arn.split(":", 5)
        name = physical.rpartition("/")[2] if kind == "AWS::SQS::Queue" else physical
        return f"arn:{partition}:{ARNS[kind].format(region=region, account=account, id=name)}"

    def resolve(self, resource: Any, streams: Mapping[str, str]) -> str | None:
        """Return the ARN that a permission's resource resolves to, given the stream of each table by the name of its
        parameter. None if the stack lacks a part of it.
        """
        match resource:
            case str(text):
                return text
            case {"Fn::GetAtt": [str(name), "Arn"]}:
                return self.find_arn(name)
            case {"Ref": str(name)} | {"Fn::If": [_, _, {"Ref": str(name)}]}:
                return self.parameters.get(name) or streams.get(name)
            case {"Fn::Sub": str(text)}:
                known = self._resolve_marks(text)
                return None if None in known.values() else MARK.sub(lambda mark: str(known[mark[1]]), text)
        return None

    def _resolve_marks(self, text: str) -> dict[str, str | None]:
        _, partition, _, region, account, _ = self.arn.split(":", 5)
        pseudo = {"Partition": partition, "Region": region, "AccountId": account, "StackName": self.name}
        given = {**{f"AWS::{name}": value for name, value in pseudo.items()}, **self.parameters}
        marks = MARK.findall(text)
        return {mark: given.get(mark) or self.find_arn(mark.removesuffix(".Arn")) for mark in marks}


# ---------------------------------------------------------------- the areas
def check_stack(site: Site) -> Iterator[StackFinding]:
    """Check the last deployment of the stack."""
    if site.status.endswith("_COMPLETE") and "ROLLBACK" not in site.status:
        return
    cure = (
        f"{site.aws('cloudformation', 'describe-stack-events', '--stack-name', site.name)} says why; then deploy again"
    )
    yield StackFinding(f"stack {site.name} is {site.status}", AGAIN if site.status.endswith("_IN_PROGRESS") else cure)


def check_tables(site: Site, descriptions: Descriptions) -> Iterator[StackFinding]:
    """Check the keys, indexes and streams of the tables that rules follow."""
    for table, description in descriptions.items():
        name = table.physical_name
        if description is None:
            yield StackFinding(
                f"table {name}: it does not exist", "restore it, or name another one in the rules and deploy"
            )
            continue
        for problem in list_table_problems(site.rules, table, description):
            yield StackFinding(f"table {name}: {problem.found}", problem.cure)
        ours, emulated = format_table_id(table) in site.resources, "--endpoint-url" in site.options
        for problem in list_vector_problems(table, description, site.options, emulated=emulated):
            cure = f"{DEPLOY}; if it is still so then: {problem.cure}" if ours else problem.cure
            yield StackFinding(f"table {name}: {problem.found}", cure)
        states = {"it": description.get("TableStatus", "ACTIVE")}
        for index in (index for kind in INDEX_KINDS for index in description.get(kind, ())):
            state = index.get("IndexStatus", "ACTIVE")
            filling = state == "ACTIVE" and index.get("Backfilling")  # a search of such an index lacks items
            states[f"index {index['IndexName']}"] = "BACKFILLING" if filling else state
        for what, state in states.items():
            if state not in ("ACTIVE", "UPDATING"):  # which can be read and written
                yield StackFinding(f"table {name}: {what} is {state}", AGAIN)


def check_times_to_live(site: Site, described: Mapping[Table, Answer]) -> Iterator[StackFinding]:
    """Check the Times to Live of the tables that rules follow. A deployment sets that of a table of the stack."""
    for table, found in described.items():
        for problem in list_time_to_live_problems(
            table, site.rules.times_to_live[table.name], found, options=site.options
        ):
            ours = format_table_id(table) in site.resources and not found.get("AttributeName")
            yield StackFinding(f"table {table.physical_name}: {problem.found}", DEPLOY if ours else problem.cure)


def check_mappings(site: Site, descriptions: Descriptions, of_stream: Iterable[Answer], of_queue: Iterable[Answer]
                ) -> Iterator[StackFinding]:  # fmt: skip
    """Check the event source mappings of the stream function and the fan-out function."""
    found = list(of_stream)
    for table, description in descriptions.items():
        if description is None:
            continue  # its area says so
        beginning = f"{description.get('TableArn', '')}/stream/"
        mine = [one for one in found if one["EventSourceArn"].startswith(beginning)]
        if not mine:
            yield StackFinding(f"table {table.name}: no mapping of {STREAM} reads its stream", BY_HAND)
        for one in mine:
            yield from _check_mapping_state(site, f"table {table.name}", one)
            yield from _check_stream(table, description, one)
            if _list_patterns(one.get("FilterCriteria")) != _list_patterns(make_filter_criteria(site.rules, table)):
                yield StackFinding(f"table {table.name}: its mapping filters other records than the rules say", BY_HAND)
    queue = [one for one in of_queue if one["EventSourceArn"] == site.find_arn("FanoutQueue")]
    if not queue:
        yield StackFinding(f"FanoutQueue: no mapping of {FANOUT} reads it", BY_HAND)
    for one in queue:
        yield from _check_mapping_state(site, "FanoutQueue", one)


def _check_mapping_state(site: Site, what: str, mapping: Answer) -> Iterator[StackFinding]:
    state, result = mapping.get("State", ""), mapping.get("LastProcessingResult") or ""
    if state in ("Disabled", "Disabling"):
        words = ("lambda", "update-event-source-mapping", "--uuid", mapping["UUID"], "--enabled")
        yield StackFinding(f"{what}: its mapping is {state}", site.aws(*words))
    elif state != "Enabled":
        yield StackFinding(f"{what}: its mapping is {state}", AGAIN)
    if result.startswith("PROBLEM"):
        yield StackFinding(f"{what}: its mapping says {result!r}", f"see {link_section('Function errors')}")


def _check_stream(table: Table, description: Answer, mapping: Answer) -> Iterator[StackFinding]:
    latest = description.get("LatestStreamArn")
    if latest and mapping["EventSourceArn"] != latest:
        parameter = format_stream_parameter(table)
        cure = f"set the parameter {parameter} to {latest}, and deploy; then `sync-rules verify --repair`"
        label = mapping["EventSourceArn"].rpartition("/")[2]
        yield StackFinding(f"table {table.name}: its mapping reads stream {label}, which is no longer written to", cure)


def _list_patterns(criteria: Answer | None) -> set[str]:
    return {_normalize_pattern(one.get("Pattern", "")) for one in (criteria or {}).get("Filters", ())}


def _normalize_pattern(pattern: str) -> str:
    try:
        return str(json_bytes.parse_json(pattern))
    except ValueError:
        return pattern  # none of ours


def check_queues(
    site: Site, attributes: Mapping[str, Mapping[str, str]], timeout_seconds: int
) -> Iterator[StackFinding]:
    """Check the settings of the queues, by logical id, and the messages that wait in them."""
    fanout, dead = attributes["FanoutQueue"], site.find_arn("FanoutDeadLetters")
    if f'"{dead}"' not in fanout.get("RedrivePolicy", ""):
        policy = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": RECEIVES_MAX})
        cure = _set_queue(site, json.dumps({"RedrivePolicy": policy}))
        yield StackFinding("FanoutQueue: what fails each time does not go to FanoutDeadLetters", cure)
    if int(fanout.get("MaximumMessageSize", MESSAGE_MAX_BYTES)) < MESSAGE_MAX_BYTES:
        found = f"FanoutQueue: it takes messages of up to {int(fanout['MaximumMessageSize']):,} bytes"
        yield StackFinding(found, _set_queue(site, f"MaximumMessageSize={MESSAGE_MAX_BYTES}"))
    if int(fanout.get("VisibilityTimeout", timeout_seconds)) < timeout_seconds:
        found = f"FanoutQueue: it hides messages for less than the timeout of {FANOUT}"
        yield StackFinding(found, _set_queue(site, f"VisibilityTimeout={HIDDEN_TIMEOUTS * timeout_seconds}"))
    for name in QUEUES:
        if "aws:SecureTransport" not in attributes[name].get("Policy", ""):
            yield StackFinding(f"{name}: its policy does not refuse requests without encryption", BY_HAND)
    file = str(site.rules_file)
    urls = {name: site.physical(name) for name in QUEUES}
    cures = {
        "FanoutDeadLetters": site.format_remote_command("redrive", file),
        "FailuresQueue": site.own("failures", file, "--queue", urls["FailuresQueue"]),
        "AsyncDeadLetters": f"see {link_section('Failed schedule')}",
    }
    for name, cure in cures.items():
        waiting = int(attributes[name].get("ApproximateNumberOfMessages", 0))
        if waiting:
            yield StackFinding(f"{name}: messages waiting: {waiting:,}", cure)


def _set_queue(site: Site, attributes: str) -> str:
    url = site.physical("FanoutQueue")
    return site.aws("sqs", "set-queue-attributes", "--queue-url", url, "--attributes", attributes)


def check_versions(site: Site, configurations: Mapping[str, Answer]) -> Iterator[StackFinding]:
    """Compare the rules and version of each function, by logical id, with those on this machine."""
    for name, one in configurations.items():
        if one.get("LastUpdateStatus", "Successful") == "Failed":
            yield StackFinding(f"{name}: its last update failed", DEPLOY)
    carried = {name: one.get("Environment", {}).get("Variables", {}) for name, one in configurations.items()}
    pairs = {name: (one.get(VERSION), one.get(RULES_DIGEST)) for name, one in carried.items()}
    version, digest = pairs[STREAM]
    others = [name for name, pair in pairs.items() if pair != (version, digest)]
    if others:
        yield StackFinding(f"{', '.join(others)}: other rules or another version than {STREAM} has", DEPLOY)
    elif version is None:
        yield StackFinding("unknown rules and version: the stack was deployed by an earlier version", DEPLOY)
    elif version != __version__:
        yield StackFinding(
            f"deployed is sync-rules {version}, and this is {__version__}", f"{DEPLOY}, or install {version}"
        )
    elif digest != site.deployment.rules.fingerprint:
        yield StackFinding(f"the deployed rules are not those of {site.rules_file}", DEPLOY)


def check_roles(denied: Iterable[tuple[str, str, str, str]]) -> Iterator[StackFinding]:
    """Report the permissions that roles lack, each as function, action, resource and IAM's decision."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for function, action, resource, decision in denied:
        together.setdefault((function, resource, decision), []).append(action)
    for (function, resource, decision), actions in together.items():
        explicit = "remove the Deny: it is in a policy of the role, its boundary or the organisation"
        yield StackFinding(
            f"{function} may not {', '.join(actions)} on {resource} ({decision})",
            explicit if decision == "explicitDeny" else BY_HAND,
        )


def check_alarms(site: Site, alarms: Iterable[Answer]) -> Iterator[StackFinding]:
    by_name = {alarm["AlarmName"]: alarm for alarm in alarms}
    wanted = [physical for kind, physical in site.resources.values() if kind == "AWS::CloudWatch::Alarm"]
    silent = [name for name, one in by_name.items() if not one.get("AlarmActions")]
    off = [name for name, one in by_name.items() if not one.get("ActionsEnabled", True)]
    for names, what, cure in (
        ([name for name in wanted if name not in by_name], "no longer exist", BY_HAND),
        (silent, "have no action: they notify no one", TOPIC),
        (off, "have their actions off", site.aws("cloudwatch", "enable-alarm-actions", "--alarm-names", *off)),
    ):
        if names:
            yield StackFinding(f"{_name_alarms(names)} {what}", cure)
    for name, one in by_name.items():
        if one.get("StateValue") == "ALARM":
            said, _, where = one.get("AlarmDescription", "").partition(" What to do: ")
            yield StackFinding(f"alarm {name} is on: {said}", f"see {where or link_section('Runbook')}")


def check_write(site: Site, url: Answer) -> Iterator[StackFinding]:
    """Compare the write function with what the rules file asks for, and check who may call its Function URL."""
    asked = {WRITE: bool(site.deployment.write), resources.WRITE_URL: site.deployment.write == "url"}
    for name, wanted in asked.items():
        if wanted and name not in site.resources:
            yield StackFinding(f"{name} is not deployed, and {site.rules_file} asks for it", DEPLOY)
        elif name in site.resources and not wanted:
            yield StackFinding(f"{name} is deployed, and {site.rules_file} does not ask for it", DEPLOY)
    if url.get("AuthType", resources.AUTHORISED) != resources.AUTHORISED:
        yield StackFinding(f"{resources.WRITE_URL}: anybody may call it (AuthType {url['AuthType']})", BY_HAND)


def _name_alarms(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return f"{len(names)} alarms ({', '.join(names[:SHOWN_MAX])}{more})" if len(names) > 1 else f"alarms ({names[0]})"


def check_lag(site: Site, points: Iterable[Answer], minutes: int) -> Iterator[StackFinding]:
    """Check the lag of the stream function, by CloudWatch's data points of the last `minutes`."""
    most_seconds = max((point["Maximum"] for point in points), default=0) / 1000
    if most_seconds > float(site.parameters.get("LagAlarmSeconds", 300)):
        found = f"{STREAM} was up to {most_seconds:,.0f} s behind its streams in the last {minutes} minutes"
        yield StackFinding(found, f"see {link_section('Iterator age')}")


def find_stream(table: Table, description: Answer | None) -> dict[str, str]:
    """Return the stream ARN of a table by the name of its parameter: "" if it has no stream. Return nothing if the
    stack cannot have created the table.
    """
    return (
        {} if is_elsewhere(table) else {format_stream_parameter(table): (description or {}).get("LatestStreamArn", "")}
    )
