"""sync-rules in an app of the AWS CDK: a nested stack of the template that `sync-rules infra` writes. Synthesis
compiles the rules, fills the bundle of the functions, and checks the given tables. The twin of `packages/cdk`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import aws_cdk
from aws_cdk import aws_dynamodb, aws_s3_assets, cloudformation_include
from constructs import Construct

from sync_rules.model import json_bytes

MACHINE: Final = "AWS::Serverless::StateMachine"
DROPPED: Final = ("Condition", "DependsOn")  # by CfnInclude, of resources that it does not parse


class SyncRules(aws_cdk.NestedStack):  # type: ignore[misc] # aws_cdk is not installed where types are checked
    """sync-rules for one rules file. `template` has the resources, such as `get_resource("StreamFunction")`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        rules: str | Path,
        tables: Mapping[str, aws_dynamodb.ITable] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        """Compile a rules file. In a project of `sync-rules init`, use the template and requirements beside it.
        `tables`: tables of the app by their names in the rules file; the stack creates the others. `parameters`: those
        of the template, such as `StageVariable`.

        Raises:
            RuntimeError: if the rules are wrong, or a table or a parameter does not fit them.
        """
        with tempfile.TemporaryDirectory(prefix="sync-rules-") as folder:
            inputs = _make_inputs(folder, rules, tables or {}, parameters or {})
            wired = dict(parameters or {})
            for name, table in (tables or {}).items():
                wired[inputs["streams"][name]] = table.table_stream_arn
                if name in inputs["names"]:
                    wired[inputs["names"][name]] = table.table_name
            super().__init__(scope, construct_id, parameters=wired)
            # CloudFormation puts this id into the name of the nested stack, and that name is limited.
            self.nested_stack_resource.override_logical_id(re.sub(r"[^A-Za-z0-9]", "", construct_id))
            self.template = self._include(inputs)

    def _include(self, inputs: Mapping[str, Any]) -> cloudformation_include.CfnInclude:
        path = Path(inputs["template"])
        template = json_bytes.parse_json(path.read_bytes())
        template["Globals"]["Function"]["CodeUri"] = self._locate("Code", inputs["code"])
        definition = self._locate("Machine", inputs["machine"])
        for resource in template["Resources"].values():
            if resource["Type"] == MACHINE:
                resource["Properties"]["DefinitionUri"] = definition
        url = template["Outputs"].pop("WriteUrl", None)  # it names a resource that SAM adds, unknown to CfnInclude
        if url:
            value = aws_cdk.Token.as_string(url["Value"])
            aws_cdk.CfnOutput(self, "WriteUrl", description=url["Description"], value=value)
        path.write_text(json.dumps(template), encoding="utf-8")
        # Not parsed: the classes of SAM's resources know only some of their properties.
        included = cloudformation_include.CfnInclude(
            self, "Template", template_file=str(path), dehydrated_resources=list(template["Resources"])
        )
        for name, resource in template["Resources"].items():
            element = included.get_resource(name)
            element.override_logical_id(name)
            for key in DROPPED:
                if key in resource:
                    element.add_override(key, resource[key])
        return included

    def _locate(self, construct_id: str, path: str) -> Any:
        asset = aws_s3_assets.Asset(self, construct_id, path=path)
        return self.resolve({"Bucket": asset.s3_bucket_name, "Key": asset.s3_object_key})


def _make_inputs(
    folder: str, rules: str | Path, tables: Mapping[str, aws_dynamodb.ITable], parameters: Mapping[str, str]
) -> Any:
    given = {"tables": {name: _describe(table) for name, table in tables.items()}, "parameters": dict(parameters)}
    done = subprocess.run(  # noqa: S603 -- this Python; a process of its own has one seed, so the bundle is the same each time
        [sys.executable, "-P", "-m", "sync_rules.extras.cdk.inputs", folder, "--rules", str(rules)],
        input=json.dumps(given), capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    print(done.stderr, end="", file=sys.stderr)
    return json_bytes.parse_json(done.stdout)


def _describe(table: aws_dynamodb.ITable) -> dict[str, str | None]:
    """Return the facts of a table; None for each that is not known."""
    own = table.node.default_child
    if own is None:
        name = None if aws_cdk.Token.is_unresolved(table.table_name) else table.table_name
        return {"view": None if table.table_stream_arn else "", "name": name}
    stack = aws_cdk.Stack.of(table)
    properties = own._cfn_properties  # noqa: SLF001 -- jsii cannot read the public `stream_specification` of a TableV2
    name = stack.resolve(properties["tableName"]) or ""
    stream = stack.resolve(properties["streamSpecification"]) or {}
    return {"view": stream.get("streamViewType", ""), "name": name if isinstance(name, str) else None}
