"""The template: what linters say of it, what they miss, and that what is written down as policy would be noticed."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

import pytest

from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.template import fill_template
from tests.deploy import policy
from tests.deploy.tools import ROOT, run, tool, transformed
from tests.support import every_kind

Whole = dict[str, Any]


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


@pytest.mark.parametrize("block", NESTED.findall((ROOT / "docs/deploy.md").read_text()))
def test_template_around_ours_is_valid_by_sam(tmp_path, block):
    """Each way of nesting that the page shows, in a template with a table and a parameter."""
    (tmp_path / "template.yaml").write_text(AROUND + textwrap.indent(block, "  "))
    run(tool("sam", "bin", "sam"), "validate", "--lint", cwd=tmp_path)


def test_template_is_valid_as_it_is_deployed(whole, tmp_path):
    """cfn-lint finds nothing in what the template is transformed to."""
    path = tmp_path / "template.json"
    path.write_text(json.dumps(whole))
    run(tool("sam", "bin", "cfn-lint"), "--template", path)


def test_template_has_a_definition_that_step_functions_takes(tmp_path):
    """asl-validator finds nothing in the definition of the state machines, the function filled in."""
    validator = tool("asl", "node_modules", ".bin", "asl-validator")
    text = (ROOT / "infra/machine.asl.json").read_text()
    path = tmp_path / "machine.asl.json"
    path.write_text(text.replace("${Function}", "arn:aws:lambda:us-east-1:111122223333:function:backfill"))
    run(validator, "--json-path", path)


def test_template_is_according_to_policy(whole):
    """Encrypted, TLS only, not public, least actions on named resources, dead letters and retention everywhere."""
    assert policy.offences(whole) == []


EVERYTHING = every_kind.text_of(every_kind.RULES | every_kind.EFFECTS) + "deploy: {write: url}\n"


def test_template_of_any_rules_is_according_to_policy(tmp_path):
    """The template for rules of every kind meets the policy and passes cfn-lint."""
    rules, template = tmp_path / "rules.yaml", tmp_path / "template.yaml"
    rules.write_text(EVERYTHING)
    template.write_text(fill_template((ROOT / "template.yaml").read_text(), read_deployment(rules), rules, template))
    whole = transformed(template.read_text())
    assert policy.offences(whole) == []
    template.write_text(json.dumps(whole))
    run(tool("sam", "bin", "cfn-lint"), "--template", template)


def test_template_has_the_write_function_where_it_is_asked_for(tmp_path):
    """By itself or with a Function URL for signed requests; a URL for everybody offends the policy."""
    found = {}
    for asked in ("false", "true", "url"):
        rules, template = tmp_path / "rules.yaml", tmp_path / "template.yaml"
        rules.write_text(EVERYTHING.replace("write: url", f"write: {asked}"))
        template.write_text(
            fill_template((ROOT / "template.yaml").read_text(), read_deployment(rules), rules, template)
        )
        whole = transformed(template.read_text())
        found[asked] = {name for name in whole["Resources"] if name.startswith("Write")}
        outputs = {name for name in whole["Outputs"] if name.startswith("Write")}
        assert (
            outputs == {"false": set(), "true": {"WriteFunctionName"}, "url": {"WriteFunctionName", "WriteUrl"}}[asked]
        )
    alarms = {f"WriteFunction{name}Alarm" for name in ("Errors", "Throttles", "Duration")}
    assert found["false"] == set()
    assert found["true"] == {"WriteFunction", "WriteLogs", "WriteRole", *alarms}
    assert found["url"] == {*found["true"], "WriteFunctionUrl"}
    whole["Resources"]["WriteFunctionUrl"]["Properties"]["AuthType"] = "NONE"
    assert policy.offences(whole) == ["WriteFunctionUrl: is for signed requests only"]


def test_template_gives_each_function_what_it_is_for(whole):
    """Each function is there with its handler, and the handler is in a file."""
    found = {name: it["Handler"] for name, it in policy.Template(whole).of("AWS::Lambda::Function").items()}
    assert found == {
        f"{kind.title()}Function": f"handlers.{kind}.handler"
        for kind in ("stream", "fanout", "verify", "backfill", "redrive")
    }
    assert all(
        (ROOT / f"{handler.removesuffix('.handler').replace('.', '/')}.py").exists() for handler in found.values()
    )


# ---------------------------------------------------------------- a policy that cannot be offended is none
