"""An app of the CDK in Python: tables and the construct, as its first argument says. The twin of app.cjs."""

from __future__ import annotations

import json
import sys

import aws_cdk
from aws_cdk.aws_dynamodb import Attribute, AttributeType, StreamViewType, Table, TableV2

from sync_rules.extras.cdk.construct import SyncRules

given = json.loads(sys.argv[1])
app = aws_cdk.App(outdir=given["folder"])
stack = aws_cdk.Stack(app, "Shop")
tables = {}
for name, one in given["tables"].items():
    view = one.get("stream") and StreamViewType(one["stream"])
    stream = {"dynamo_stream": view} if one.get("v2") else {"stream": view}
    key = {
        "partition_key": Attribute(name="PK", type=AttributeType.STRING),
        "sort_key": Attribute(name="SK", type=AttributeType.STRING),
    }
    make = TableV2 if one.get("v2") else Table
    tables[name] = make(stack, name, table_name=one.get("tableName"), **key, **stream)
keeper = SyncRules(stack, "sync-rules", rules=given["rules"], tables=tables, parameters=given["parameters"])
aws_cdk.CfnOutput(stack, "SyncRulesStack", value=keeper.stack_name)
app.synth()
