"""Every example of docs/frameworks.md, on an engine: each section alone, after the one of the plain client."""

from __future__ import annotations

import doctest
import json
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import boto3
import pytest

from sync_rules.adapters import aws
from sync_rules.language.load import load_rules
from sync_rules.write import transact
from tests.support import engines

PAGE = (engines.ROOT / "docs/frameworks.md").read_text()
FIRST = "A boto3 client"
LOCAL: dict[str, Any] = {"region_name": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local"}
# The package that the example imports, as far as it uses it: it sends a command to an engine, which checks no signature.
SDK = """
export class DynamoDBClient {
  async send({ operation, parameters }) {
    const answer = await fetch("%s", { method: "POST", body: JSON.stringify(parameters), headers: {
      "X-Amz-Target": "DynamoDB_20120810." + operation, "Content-Type": "application/x-amz-json-1.0", Authorization: "%s",
    } });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }
}
const command = (operation) => class { constructor(parameters) { Object.assign(this, { operation, parameters }); } };
export const GetItemCommand = command("GetItem");
export const TransactWriteItemsCommand = command("TransactWriteItems");
"""
SIGNED = "AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


class Site:
    def __init__(self, endpoint_url: str) -> None:
        prefix = engines.unique_prefix()
        (rules_text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
        file = Path("rules.yaml")
        file.write_text(rules_text.replace("{key: {PK: S", f"{{name: {prefix}shop, key: {{PK: S"))
        self.rules = load_rules(file)
        engines.create(endpoint_url, self.rules.tables)
        self.name = f"{prefix}shop"
        self.endpoint_url = endpoint_url
        self.client = aws.dynamodb(endpoint_url)
        resource: Any = boto3.resource("dynamodb", endpoint_url=endpoint_url, **LOCAL)
        self.table = resource.Table(self.name)
        self.globs: dict[str, Any] = {"client": self.client, "table": self.table}

    def play(self, title: str) -> None:
        text = re.sub(r'((?:TableName|table_name) ?= ?)"shop"', rf'\1"{self.name}"', section(title))
        test = doctest.DocTestParser().get_doctest(text, self.globs, title, "docs/frameworks.md", 0)
        results = doctest.DocTestRunner().run(test, clear_globs=False)
        self.globs = test.globs
        assert results.attempted > 3
        assert not results.failed


@pytest.fixture
def site(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Site(engine)


@pytest.mark.parametrize("title", [FIRST, "A boto3 resource", "PynamoDB", "pydantic"])
def test_frameworks_page_shows_what_happens(site, title):
    """The output of each example is that of the engine."""
    if title == "PynamoDB" and find_spec("pynamodb") is None:
        pytest.skip("pynamodb is not installed")
    site.play(FIRST)
    if title != FIRST:
        site.play(title)


def test_frameworks_page_javascript_does_what_transact_does(site, tmp_path):
    """The example runs, and writes what `transact` writes of the same order."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    with transact(site.rules, site.table) as tx:
        tx.put("user", {"user_id": "7", "name": "Ada"})
    package = tmp_path / "node_modules/@aws-sdk/client-dynamodb"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"type": "module", "main": "index.js"}))
    (package / "index.js").write_text(SDK % (site.endpoint_url, SIGNED))
    (example,) = re.findall(r"```javascript\n(.*?)```", section("JavaScript"), re.DOTALL)
    script = tmp_path / "example.mjs"
    script.write_text(example.replace('"shop"', f'"{site.name}"'))
    done = subprocess.run([node, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    keys = [{"PK": "USER#7", "SK": f"ORDER#{number}"} for number in "78"]
    with transact(site.rules, site.table) as tx:
        tx.put("order", {**keys[1], "total": 3})
    written, meant = (site.table.get_item(Key=key)["Item"] for key in keys)
    assert {**written, "SK": ""} == {**meant, "SK": ""}
