"""The constructs of the AWS CDK: synthesized without network beside the template of `sync-rules infra`, and deployed."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from sync_rules.adapters import aws
from sync_rules.cli.main import main
from tests.deploy import tools
from tests.deploy.stacks import eventually
from tests.deploy.tools import REGION, ROOT, environment, finished, ministack, tool
from tests.support.builders import order_item, s, user_item
from tests.support.cloudformation import read_template

PACKAGE: Final = ROOT / "packages/cdk"
APPS: Final = ROOT / "tests/deploy/cdk"
RULES: Final = ROOT / "tests/deploy/rules.yaml"
IMAGES: Final = "NEW_AND_OLD_IMAGES"
PAGE: Final = (ROOT / "docs/cdk.md").read_text()
STACK: Final = "Shop"
ACCOUNT: Final = "000000000000"
ONE_TABLE: Final = """
tables: {shop: {name: "${SHOP}", key: {PK: S, SK: S}}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  user-name-on-orders: copy user.name into order.user_name
"""
TWO_RULES: Final = ONE_TABLE + "  user-city-on-orders: copy user.city into order.user_city\n"


@dataclass(frozen=True)
class Assembly:
    """The output of a synthesis."""

    folder: Path

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    @property
    def outer(self) -> Any:
        return self.read(f"{STACK}.template.json")

    @property
    def nested(self) -> Any:
        (path,) = self.folder.glob("*.nested.template.json")
        return self.read(path.name)


Synthesize = Callable[..., Assembly]


def name_python() -> list[str | Path]:
    return [tool("cdk", "bin", "python")]


def name_node() -> list[str | Path]:
    tools.require(PACKAGE / "dist/index.js")
    return [shutil.which("node") or "node"]


LANGUAGES: Final = {"python": (name_python, "app.py"), "typescript": (name_node, "app.cjs")}


def make_environment(**given: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    made = environment(
        BUNDLE_PYTHON="{}.{}".format(*sys.version_info), BUNDLE_PLATFORM=tools.platform(), PYTHONPATH=str(ROOT),
        JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION="1", **kept, **given,
    )  # fmt: skip
    return {**made, "PATH": os.pathsep.join([f"{sys.prefix}/bin", made["PATH"]])}  # with uv


@pytest.fixture
def synthesize(tmp_path) -> Synthesize:
    """Run an app; `fails` is a part of its message."""

    def run(language: str, tables: Mapping[str, Any], *, rules: Path = RULES, fails: str = "", **parameters: str):
        folder = tmp_path / f"{language}-{len(list(tmp_path.iterdir()))}"
        name_program, app = LANGUAGES[language]
        given = {"folder": str(folder), "rules": str(rules), "tables": tables, "parameters": parameters}
        given["python"] = sys.executable
        done = finished(*name_program(), APPS / app, json.dumps(given), env=make_environment(), cwd=tmp_path)
        if fails:
            assert done.returncode
            assert fails in done.stderr
        else:
            assert done.returncode == 0, done.stderr
        return Assembly(folder)

    return run


def remove_locations(template: Any) -> list[Any]:
    """Take the locations of code and definitions out of a template."""
    machines = [one["Properties"] for one in template["Resources"].values() if one["Type"].endswith("StateMachine")]
    return [
        template["Globals"]["Function"].pop("CodeUri"),
        *(machine.pop("DefinitionUri") for machine in machines),
    ]


@pytest.mark.night
def test_cdk_has_the_template_of_infra(synthesize, tmp_path):
    """The nested stack is the template that `sync-rules infra` writes, but for the locations of its inputs. Given tables
    are parameters of it. Both languages make the same.
    """
    shutil.copyfile(ROOT / "template.yaml", tmp_path / "template.yaml")
    shutil.copyfile(RULES, tmp_path / "rules.yaml")
    assert main(["infra", "--template", f"{tmp_path}/template.yaml", "--rules", f"{tmp_path}/rules.yaml"]) == 0
    expected = read_template((tmp_path / "template.yaml").read_text())
    assert remove_locations(expected) == [".", *["infra/machine.asl.json"] * 3]
    (tmp_path / "template.yaml").unlink()  # a project's template beside its rules would be used
    tables = {
        "shop": {"stream": IMAGES, "tableName": "trial-shop"},
        "ledger": {"v2": True, "stream": IMAGES, "tableName": "trial-ledger"},
    }
    found = [synthesize(one, tables, rules=tmp_path / "rules.yaml", StageVariable="trial") for one in LANGUAGES]
    for assembly in found:
        nested = assembly.nested
        locations = remove_locations(nested)
        assert nested == expected
        assert {key for one in locations for key in one} == {"Bucket", "Key"}
        resources = assembly.outer["Resources"]
        ids = {one["Properties"].get("TableName"): name for name, one in resources.items()}
        assert resources["syncrules"]["Properties"]["Parameters"] == {
            "StageVariable": "trial",
            "ShopStreamArn": {"Fn::GetAtt": [ids["trial-shop"], "StreamArn"]},
            "LedgerStreamArn": {"Fn::GetAtt": [ids["trial-ledger"], "StreamArn"]},
        }
    python, typescript = (assembly.nested for assembly in found)
    assert python == typescript  # the digests of the bundles too


@pytest.mark.night
@pytest.mark.parametrize("language", LANGUAGES)
def test_cdk_refuses_a_stream_that_rules_cannot_use(synthesize, language):
    """An app with such a table fails with the message of the inputs, whatever class the table has."""
    keys = {"stream": "KEYS_ONLY", "tableName": "test-shop"}
    expected = f"table shop: expected a stream of {IMAGES}, found"
    synthesize(language, {"shop": keys}, fails=f"{expected} KEYS_ONLY")
    synthesize(language, {"shop": {**keys, "v2": True}}, fails=f"{expected} KEYS_ONLY")
    synthesize(language, {"shop": {"v2": True, "tableName": "test-shop"}}, fails=f"{expected} no stream")


def read_block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def write_python_app(folder: Path) -> list[str | Path]:
    (folder / "app.py").write_text(read_block("python"))
    return [*name_python(), "app.py"]


def write_typescript_app(folder: Path) -> list[str | Path]:
    """Write the app of the page beside its packages, and compile it."""
    node, modules = name_node(), folder / "node_modules"
    modules.mkdir()
    for name in ("aws-cdk-lib", "constructs", "@types"):
        (modules / name).symlink_to(PACKAGE / "node_modules" / name)
    (modules / "sync-rules-cdk").symlink_to(PACKAGE)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "app.ts").write_text(read_block("ts"))
    options = ["--strict", "--skipLibCheck", "--module", "commonjs", "--target", "es2022"]
    tools.run(*node, PACKAGE / "node_modules/typescript/bin/tsc", *options, "app.ts", cwd=folder)
    return [*node, "app.js"]


@pytest.mark.night
@pytest.mark.parametrize("write_app", [write_python_app, write_typescript_app])
def test_cdk_synthesizes_the_apps_of_the_page_without_network(tmp_path, write_app):
    """Once the packages of the functions are in uv's cache, an app needs no network."""
    command, alone = write_app(tmp_path), ["unshare", "--map-root-user", "--net"]
    (tmp_path / "rules.yaml").write_text(read_block("yaml"))
    if finished(*alone, "true", env=environment()).returncode:
        pytest.skip("this machine cannot make a network of its own")
    locked = ["--no-deps", "--require-hashes", "--quiet", "-r", ROOT / "infra/requirements.txt"]
    tools.run("uv", "pip", "install", "--target", tmp_path / "unused", *locked, given=make_environment())
    env = make_environment(CDK_OUTDIR=str(tmp_path / "out"), UV_OFFLINE="1")
    done = finished(*alone, *command, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    nested = Assembly(tmp_path / "out").outer["Resources"]["SyncRules"]["Properties"]["Parameters"]
    assert nested.keys() == {"WriteUnitsPerSecond", "ShopStreamArn", "ShopVariable"}


# ---------------------------------------------------------------- deployed
def upload(url: str, assembly: Assembly) -> str:
    """Upload the assets as `cdk deploy` does; give the address of the nested template. The emulator does not expand
    nested templates: it is expanded here.
    """
    client, address = aws._make_client("s3", url, REGION), ""
    for asset in assembly.read(f"{STACK}.assets.json")["files"].values():
        path = assembly.folder / asset["source"]["path"]
        (place,) = asset["destinations"].values()
        bucket = place["bucketName"].replace("${AWS::AccountId}", ACCOUNT).replace("${AWS::Region}", REGION)
        if asset["source"]["packaging"] == "zip":
            body = make_zip(path)
        elif path.name.endswith(".nested.template.json"):
            body = json.dumps(tools.transformed(path.read_text())).encode()
            address = f"https://s3.{REGION}.amazonaws.com/{bucket}/{place['objectKey']}"
        else:
            body = path.read_bytes()
        client.create_bucket(Bucket=bucket)
        client.put_object(Bucket=bucket, Key=place["objectKey"], Body=body)
    return address


def make_zip(folder: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return file.getvalue()


@dataclass(frozen=True)
class Account:
    """An emulator, as an application with the construct sees it."""

    url: str

    def client(self, service: str) -> Any:
        return aws._make_client(service, self.url, REGION)

    def describe(self, stack: str) -> Any:
        return self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]

    def wait(self, stack: str, status: str) -> Any:
        """The description of a stack when its deployment has ended, in this status."""
        found = eventually(lambda: self.describe(stack), lambda one: not one["StackStatus"].endswith("IN_PROGRESS"))
        events = self.client("cloudformation").describe_stack_events(StackName=stack)["StackEvents"]
        reasons = [one.get("ResourceStatusReason") for one in events if one["ResourceStatus"].endswith("FAILED")]
        assert found["StackStatus"] == status, reasons
        return found

    def create(self, assembly: Assembly) -> tuple[str, str]:
        """Deploy an application; gives the names of the nested stack and of the table."""
        self.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String")
        upload(self.url, assembly)
        capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
        body, formation = json.dumps(assembly.outer), self.client("cloudformation")
        formation.create_stack(StackName=STACK, TemplateBody=body, Capabilities=capabilities)
        (output,) = self.wait(STACK, "CREATE_COMPLETE")["Outputs"]
        (table,) = (
            one["PhysicalResourceId"]
            for one in formation.list_stack_resources(StackName=STACK)["StackResourceSummaries"]
            if one["ResourceType"] == "AWS::DynamoDB::Table"
        )
        return output["OutputValue"], table

    def update(self, stack: str, assembly: Assembly) -> None:
        """Deploy a nested stack again. The emulator updates it only by itself: through the outer stack, it forgets the
        attributes of resources that do not change.
        """
        known = [one["ParameterKey"] for one in self.describe(stack)["Parameters"]]
        self.client("cloudformation").update_stack(
            StackName=stack,
            TemplateURL=upload(self.url, assembly),
            Capabilities=["CAPABILITY_IAM"],
            Parameters=[{"ParameterKey": name, "UsePreviousValue": True} for name in known],
        )
        self.wait(stack, "UPDATE_COMPLETE")

    def copy(self, table: str, user: str) -> Callable[[], Any]:
        """Put an order and its user; gives a look at what the order has of the user."""
        client, key = self.client("dynamodb"), {"PK": s(f"USER#{user}"), "SK": s("ORDER#o1")}
        for item in (order_item(user, "o1"), user_item(user, name=s("Ada"), city=s("Bonn"))):
            client.put_item(TableName=table, Item=item)

        def look() -> Any:
            found = client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]
            return {name: found[name]["S"] for name in ("user_name", "user_city") if name in found}

        return look


@pytest.mark.night
def test_cdk_is_deployed_upgraded_and_rolled_back(synthesize, tmp_path):
    """A stack with a table of the app copies; a new rule comes with an upgrade, and goes with the state before."""
    rules, tables = tmp_path / "rules.yaml", {"shop": {"stream": IMAGES}}
    rules.write_text(ONE_TABLE)
    before = synthesize("typescript", tables, rules=rules)
    rules.write_text(TWO_RULES)
    after = synthesize("typescript", tables, rules=rules)
    with ministack(tmp_path) as url:
        account = Account(url)
        stack, table = account.create(before)
        assert table.startswith(f"{STACK}-")  # generated, and given to the functions
        eventually(account.copy(table, "u1"), lambda found: found == {"user_name": "Ada"})
        account.update(stack, after)
        eventually(account.copy(table, "u2"), lambda found: found == {"user_name": "Ada", "user_city": "Bonn"})
        account.update(stack, before)
        eventually(account.copy(table, "u3"), lambda found: found == {"user_name": "Ada"})
