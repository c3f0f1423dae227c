"""Event source mappings as SAM deploys them, because SAM drops settings that linters accept."""

from __future__ import annotations

from typing import Any

from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.resources import stream_arn
from sync_rules.deploy.template import find_rules_file
from tests.support.cloudformation import read_template
from tests.test_house import ROOT

TEMPLATE = ROOT / "template.yaml"
Resources = dict[str, dict[str, Any]]


def of_type(resources: Resources, kind: str) -> Resources:
    return {name: resource["Properties"] for name, resource in resources.items() if resource["Type"] == kind}


def test_mappings_of_all_streams_have_every_setting(resources: Resources):
    """Each setting that the template gives a stream is there after the transform: none was dropped or renamed."""
    text = TEMPLATE.read_text()
    events = read_template(text)["Resources"]["StreamFunction"]["Properties"]["Events"]
    tables = read_deployment(find_rules_file(text, TEMPLATE)).rules.streamed_tables
    mappings = of_type(resources, "AWS::Lambda::EventSourceMapping")
    found = [one for one in mappings.values() if one["FunctionName"] == {"Ref": "StreamFunction"}]
    assert [one["EventSourceArn"] for one in found] == [stream_arn(table) for table in tables]
    for given, mapping in zip(events.values(), found, strict=True):
        wanted = dict(given["Properties"])
        assert wanted.pop("Stream") == mapping["EventSourceArn"]
        wanted["DestinationConfig"] = {"OnFailure": {"Destination": {"Fn::GetAtt": ["Bucket", "Arn"]}}}
        assert {name: mapping.get(name) for name in wanted} == wanted


def test_mappings_of_the_queue_bounds_its_workers(resources: Resources):
    """Concurrency by the parameter, failures in part, counted events."""
    mappings = of_type(resources, "AWS::Lambda::EventSourceMapping")
    (mapping,) = (one for one in mappings.values() if one["FunctionName"] == {"Ref": "FanoutFunction"})
    workers = {"Fn::FindInMap": ["FanoutPace", {"Ref": "WriteUnitsPerSecond"}, "Workers"]}
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": workers}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BatchSize"] == 1
    assert mapping["MetricsConfig"] == {"Metrics": ["EventCount"]}


def test_mappings_of_the_schedule_lose_no_failed_run(resources: Resources):
    """A run that cannot be started, or fails, ends in the queue of dead letters; two stacks have two schedules."""
    (schedule,) = of_type(resources, "AWS::Scheduler::Schedule").values()
    letters = {"Fn::GetAtt": ["AsyncDeadLetters", "Arn"]}
    assert schedule["Target"]["DeadLetterConfig"] == {"Arn": letters}
    assert schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] > 0
    assert schedule["Name"] == {"Fn::Sub": "${AWS::StackName}-verify"}
    (invoked,) = of_type(resources, "AWS::Lambda::EventInvokeConfig").values()
    assert invoked["DestinationConfig"]["OnFailure"]["Destination"] == letters


def test_mappings_functions_have_their_role_and_their_log_group(resources: Resources):
    """Each function has the role that was generated for it, and none that SAM made; logs go where they expire."""
    for name, function in of_type(resources, "AWS::Lambda::Function").items():
        word = name.removesuffix("Function")
        assert function["Role"] == {"Fn::GetAtt": [f"{word}Role", "Arn"]}
        assert function["LoggingConfig"] == {"LogGroup": {"Ref": f"{word}Logs"}}
        assert function["Architectures"] == ["arm64"]
        assert function["Runtime"] == "python3.14"
        assert len(function["Environment"]["Variables"]) == len(
            read_template(TEMPLATE.read_text())["Globals"]["Function"]["Environment"]["Variables"]
        )
    for group in of_type(resources, "AWS::Logs::LogGroup").values():
        assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}
