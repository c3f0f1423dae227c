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
