"""The template: what linters say of it, what they miss, and that what is written down as policy would be noticed."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.template import fill_template
from tests.deploy import policy
from tests.deploy.tools import ROOT, run, tool, transformed
from tests.support import every_kind
from tests.support.depth import spread_over_night


@pytest.mark.night
def test_template_is_valid_by_sam():
    """`sam validate --lint` finds nothing."""
    run(tool("sam", "bin", "sam"), "validate", "--lint")


NESTED = re.compile(r"^```yaml nested\n(.*?)^```$", re.DOTALL | re.MULTILINE)
AROUND = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  Stage: {Type: String}
Resources:
  ShopTable:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: PK, AttributeType: S}]
      KeySchema: [{AttributeName: PK, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}
"""


@pytest.mark.night
@pytest.mark.parametrize("block", NESTED.findall((ROOT / "docs/deploy.md").read_text()))
def test_template_around_ours_is_valid_by_sam(tmp_path, block):
    """Each way of nesting that the page shows, in a template with a table and a parameter."""
    (tmp_path / "template.yaml").write_text(AROUND + textwrap.indent(block, "  "))
    run(tool("sam", "bin", "sam"), "validate", "--lint", cwd=tmp_path)


def test_template_has_a_definition_that_step_functions_takes(tmp_path):
    """asl-validator finds nothing in the definition of the state machines, the function filled in."""
    validator = tool("asl", "node_modules", ".bin", "asl-validator")
    text = (ROOT / "infra/machine.asl.json").read_text()
    path = tmp_path / "machine.asl.json"
    path.write_text(text.replace("${Function}", "arn:aws:lambda:us-east-1:111122223333:function:backfill"))
    run(validator, "--json-path", path)


@pytest.fixture
def deploy(tmp_path) -> Callable[[str], dict[str, Any]]:
    """The template for rules of every kind, and with what they ask to be written, as CloudFormation deploys it."""

    def make(write: str) -> dict[str, Any]:
        rules, template = tmp_path / "rules.yaml", ROOT / "template.yaml"
        text = every_kind.text_of(every_kind.RULES | every_kind.EFFECTS)
        rules.write_text(f"{text}deploy: {{write: {write}}}\n")
        return transformed(
            fill_template(template.read_text(), read_deployment(rules), rules, tmp_path / "template.yaml")
        )

    return make


def test_template_of_any_rules_is_according_to_policy(deploy):
    """Encrypted, TLS only, not public, least actions on named resources, dead letters and retention everywhere."""
    whole = deploy("url")
    assert policy.offences(whole) == []
    whole["Resources"]["WriteFunctionUrl"]["Properties"]["AuthType"] = "NONE"
    assert policy.offences(whole) == ["WriteFunctionUrl: AuthType is NONE, not AWS_IAM"]


@pytest.mark.night
def test_template_of_any_rules_is_valid_by_cfn_lint(deploy, tmp_path):
    """cfn-lint finds nothing."""
    (tmp_path / "whole.json").write_text(json.dumps(deploy("url")))
    run(tool("sam", "bin", "cfn-lint"), "--template", tmp_path / "whole.json")


WRITE_ALARMS = {f"WriteFunction{name}Alarm" for name in ("Errors", "Throttles", "Duration")}
WRITE_RESOURCES = {"WriteFunction", "WriteLogs", "WriteRole", *WRITE_ALARMS}


@pytest.mark.parametrize(
    ("write", "resources", "outputs"),
    spread_over_night(
        [
            ("true", WRITE_RESOURCES, {"WriteFunctionName"}),
            ("false", set(), set()),
            ("url", WRITE_RESOURCES | {"WriteFunctionUrl"}, {"WriteFunctionName", "WriteUrl"}),
        ]
    ),
)
def test_template_has_the_write_function_where_it_is_asked_for(deploy, write, resources, outputs):
    """By itself, or with a Function URL."""
    whole = deploy(write)
    assert {name for name in whole["Resources"] if name.startswith("Write")} == resources
    assert {name for name in whole["Outputs"] if name.startswith("Write")} == outputs
