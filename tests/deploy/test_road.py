"""The road of a user with an own repository: an empty folder, the wheel in a fresh environment, and nothing of the clone.

Each step is a function of the `Road`. `STEPS` has the steps in the order of a user.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.stacks import Stack, deployed, eventually
from tests.deploy.tools import finished, run, tool
from tests.support.builders import order_item, s, user_item
from tests.support.engines import ROOT

BUCKET = "my-artifacts"


@dataclass(frozen=True)
class Road:
    """A folder outside of the clone, with the wheel installed into `.venv` there."""

    folder: Path

    def run(self, *command: str | Path, **more: str) -> str:
        """The output of a command that succeeds, run in the folder as its user would with `.venv` active."""
        return run(*command, given=self.given(**more), cwd=self.folder)

    def given(self, **more: str) -> dict[str, str]:
        """The variables that the user's shell passes on to commands."""
        return {
            **more,
            **{name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))},
            "PATH": f"{self.folder / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
            "BUNDLE_PYTHON": "{}.{}".format(*sys.version_info),
            "BUNDLE_PLATFORM": f"{os.uname().machine.replace('arm64', 'aarch64')}-manylinux_2_28",
        }

    def sync_rules(self, *arguments: str) -> str:
        """The output of the installed command."""
        return self.run(self.folder / ".venv/bin/sync-rules", *arguments)


# ---------------------------------------------------------------- the steps
def begins(road: Road) -> None:
    """`init` makes a project that knows nothing of the clone; test_release has its checks."""
    road.sync_rules("init")
    origin = road.run(road.folder / ".venv/bin/python", "-c", "import sync_rules; print(sync_rules.__file__)")
    assert Path(origin.strip()).is_relative_to(road.folder / ".venv")
    texts = [path.read_bytes() for path in road.folder.rglob("*") if path.is_file() and ".venv" not in path.parts]
    assert not [text for text in texts if str(ROOT).encode() in text]


def builds(road: Road) -> None:
    """`sam build` finds all that the functions need in the folder and in the installed package."""
    road.run(tool("sam", "bin", "sam"), "build")
    made = road.folder / ".aws-sam/build/StreamFunction"
    assert {"handlers", "sync_rules", "tenacity", "rules.compiled"} <= {path.name for path in made.iterdir()}


def deploys(road: Road) -> None:
    """`sam deploy`, and one write is followed by one copy."""
    place = road.folder.parent / "engine"
    place.mkdir()
    with deployed(road.folder, place) as found:
        stack = Stack(**json.loads(found))
        stack.put("shop", user_item("u1", name=s("Ada")), order_item("u1", "o1"))
        key = {"PK": "USER#u1", "SK": "ORDER#o1"}
        eventually(lambda: stack.item("shop", **key), lambda item: item.get("user_name") == s("Ada"))
        deploys_from_a_bucket(road, stack)


def deploys_from_a_bucket(road: Road, stack: Stack) -> None:
    """A template that `sam package` wrote is deployed by its address alone, as an outer stack or Terraform does."""
    stack.client("s3").create_bucket(Bucket=BUCKET)
    to = ("--s3-bucket", BUCKET, "--output-template-file", "packaged.yaml")
    road.run(tool("sam", "bin", "sam"), "package", *to, AWS_ENDPOINT_URL=stack.url)
    packaged = (road.folder / "packaged.yaml").read_bytes()
    stack.client("s3").put_object(Bucket=BUCKET, Key="packaged.yaml", Body=packaged)
    client = stack.client("cloudformation")
    client.create_stack(
        StackName="packaged",
        TemplateURL=f"{stack.url}/{BUCKET}/packaged.yaml",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        Parameters=[{"ParameterKey": "StageVariable", "ParameterValue": "packaged"}],
    )

    def status() -> str:
        found: str = client.describe_stacks(StackName="packaged")["Stacks"][0]["StackStatus"]
        return found

    assert eventually(status, lambda found: found != "CREATE_IN_PROGRESS") == "CREATE_COMPLETE"
    assert "packaged-shop" in stack.client("dynamodb").list_tables()["TableNames"]


STEPS: tuple[Callable[[Road], None], ...] = (begins, builds, deploys)


# ---------------------------------------------------------------- the test
@pytest.fixture
def road(tmp_path) -> Road:
    """An empty folder but for `.venv`. Skips without a package registry, and fails there where engines are required."""
    tool("sam", "bin", "sam")
    tool("ministack", "bin", "python")
    built = tmp_path / "dist"
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built, cwd=ROOT)
    (wheel,) = built.glob("*.whl")
    road = Road(tmp_path / "mine")
    road.folder.mkdir()
    run(sys.executable, "-m", "venv", road.folder / ".venv")
    python = road.folder / ".venv/bin/python"
    done = finished(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=road.folder,
        env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
    )  # fmt: skip
    if done.returncode:
        said = f"the wheel cannot be installed: {done.stderr[-1000:]}"
        pytest.fail(said) if os.environ.get("REQUIRE_ENGINES") == "1" else pytest.skip(said)
    return road


@pytest.mark.night
def test_road_from_an_empty_folder_to_a_copy(road: Road):
    """Every step of a user's own project, with the wheel alone."""
    for step in STEPS:
        step(road)
