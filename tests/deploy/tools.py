"""Deployment tools, each in an environment of its own that `make engines` makes, and the variables that they run with.

A missing tool skips its tests, and fails them under REQUIRE_ENGINES=1. DEPLOY_TOOLS names another folder of tools.

Invariant: a tool sees no setting, no credentials and no address of this machine but those that it is given.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from sync_rules.lab import embedded_engine as emulator
from tests.support.engines import ROOT

TOOLS: Final = Path(os.environ.get("DEPLOY_TOOLS", ROOT / ".engines"))
TOOL_MAX_SECONDS: Final = 1_800  # of one program
START_MAX_SECONDS: Final = 1_200.0  # of an emulator whose process lives; one that ends is noticed at once
REGION: Final = "us-east-1"

# AWS's own transform of a SAM template; code and definitions need not be uploaded to know what it comes to.
TRANSFORM: Final = """
import json, sys
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

class NoManagedPolicies:
    def load(self):
        return {}

template = yaml_parse(sys.stdin.read())
uploaded = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::StateMachine": "DefinitionUri"}
for made in [template.get("Globals", {}).get("Function", {}), *(
    resource["Properties"] for resource in template["Resources"].values() if resource["Type"] in uploaded
)]:
    for name in uploaded.values():
        if isinstance(made.get(name), str):
            made[name] = "s3://bucket/key"
print(json.dumps(transform(template, {}, NoManagedPolicies())))
"""


def tool(*parts: str) -> Path:
    """A file of a tool, which must be there."""
    return require(TOOLS.joinpath(*parts))


def require(path: Path) -> Path:
    """A file that `make engines` makes. Skips the test when it is missing, or fails it where all are required."""
    if not path.exists():
        said = f"no {path}: run `make engines`; for the AWS CDK `make engines WITH_CDK=yes`"
        if os.environ.get("REQUIRE_ENGINES") == "1":
            pytest.fail(said)
        pytest.skip(said)
    return path


def environment(**given: str) -> dict[str, str]:
    """The environment of a tool: this machine's paths and locale, fake credentials, and the given variables."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR") if name in os.environ}
    fixed = {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "SAM_CLI_TELEMETRY": "0",
    }
    return {**kept, **fixed, **given}


def platform() -> str:
    """This machine as `uv pip install --python-platform` calls it."""
    system = {"Linux": "unknown-linux-gnu", "Darwin": "apple-darwin"}[os.uname().sysname]
    machine = os.uname().machine
    return f"{'aarch64' if machine == 'arm64' else machine}-{system}"


def run(*command: str | Path, given: Mapping[str, str] | None = None, cwd: Path = ROOT, stdin: str = "") -> str:
    """The output of a tool that succeeds; its output is the message of the failure otherwise."""
    done = finished(*command, env=environment(**(given or {})), cwd=cwd, stdin=stdin)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def finished(
    *command: str | Path, env: Mapping[str, str], cwd: Path = ROOT, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with what it prints."""
    return subprocess.run(
        [*map(str, command)], input=stdin, capture_output=True, text=True, cwd=cwd, env=env, check=False,
        timeout=TOOL_MAX_SECONDS,
    )  # fmt: skip


def transformed(template: str) -> dict[str, Any]:
    """A SAM template as CloudFormation deploys it."""
    found: dict[str, Any] = json.loads(run(tool("sam", "bin", "python"), "-c", TRANSFORM, stdin=template))
    return found


@contextmanager
def ministack(directory: Path) -> Iterator[str]:
    """An emulator that knows nothing but boto3, so that a function finds only what its bundle has; gives its URL."""
    python, port = tool("ministack", "bin", "python"), emulator.find_free_port()
    inherited = emulator._make_environment(port, str(directory))
    alone = {name: value for name, value in inherited.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    alone |= {"SFN_WAIT_SCALE": "0", "AWS_EC2_METADATA_DISABLED": "true"}
    server = emulator.Server("ministack", [str(python), *emulator.ENGINE], port, emulator.HEALTH_PATH, directory, alone)
    with emulator.run_server(server, START_MAX_SECONDS) as engine:
        yield engine.url


@contextmanager
def held(place: Path, how: int) -> Iterator[None]:
    """Lock a file for the block, shared (LOCK_SH) or exclusively (LOCK_EX)."""
    with place.open("a") as file:
        fcntl.flock(file, how)
        yield


@contextmanager
def shared(place: Path, make: Callable[[], AbstractContextManager[str]]) -> Iterator[str]:
    """Text made by one of several processes for all of them.

    The others wait for the text, and its maker waits at the end until no process uses it.
    """
    with (place / "used").open("a+") as used, (place / "made").open("a+") as made, ExitStack() as stack:
        fcntl.flock(used, fcntl.LOCK_SH)
        fcntl.flock(made, fcntl.LOCK_EX)
        made.seek(0)
        text = made.read()
        maker = not text
        if maker:
            text = stack.enter_context(make())
            made.write(text)
            made.flush()
        fcntl.flock(made, fcntl.LOCK_UN)
        try:
            yield text
        finally:
            if maker:
                fcntl.flock(used, fcntl.LOCK_EX)
                made.truncate(0)
