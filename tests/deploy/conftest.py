"""Fixtures of deployment: the template transformed, the project built by sam, the stack on an emulator. Each made once."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.deploy import tools
from tests.deploy.stacks import Stack, deployed
from tests.deploy.tools import ROOT, run, tool

# What a project of a user's own consists of, when it began as a copy of this one.
PROJECT = (
    *("Makefile", "pyproject.toml", "requirements-dev.txt", "samconfig.toml", "template.yaml"),
    *("handlers", "infra", "sync_rules"),
)
RULES = ROOT / "tests/deploy/rules.yaml"

HANG_MAX_SECONDS = 3_600  # of a test; its waits end by themselves once nothing moves, in fixtures too

Shared = Callable[[str, Callable[[Path], AbstractContextManager[str]]], AbstractContextManager[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder as long as there is progress: the suite's limit would count a build by others too."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(HANG_MAX_SECONDS, func_only=True))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Makes a thing by its name, once for all processes of this run of the tests, in a folder of its own."""
    base = tmp_path_factory.getbasetemp()
    everybodys = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name: str, maker: Callable[[Path], AbstractContextManager[str]]) -> AbstractContextManager[str]:
        place = everybodys / f"shared-{name}"
        place.mkdir(exist_ok=True)
        return tools.shared(place, lambda: maker(place))

    return make


@pytest.fixture(scope="session")
def built(shared: Shared) -> Iterator[Path]:
    """A project with rules of its own, after `sync-rules infra` and `sam build`, for this machine's Python."""
    with shared("built", build) as place:
        yield Path(place)


@contextmanager
def build(place: Path) -> Iterator[str]:
    sam = tool("sam", "bin", "sam")
    project = place / "project"
    project.mkdir()
    for name in PROJECT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, project / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, project / name)
    shutil.copyfile(RULES, project / "rules.yaml")
    _share_bundle(project)
    _lend_environment(project / ".venv")
    given = {
        "BUNDLE_PYTHON": "{}.{}".format(*sys.version_info),
        "BUNDLE_PLATFORM": tools.platform(),
        **{name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))},
    }
    run(sys.executable, "-m", "sync_rules", "infra", "--rules", "rules.yaml", given=given, cwd=project)
    run(sam, "build", given=given, cwd=project)
    yield str(project)


def _share_bundle(project: Path) -> None:
    """Let `make` fill the first function's bundle, which takes seconds, and copy it for the others: all are the same."""
    makefile, bundle = project / "Makefile", project / "bundle"
    before, fill, after = makefile.read_text().partition("@PYTHONHASHSEED=0 $(BIN)/python -m sync_rules.deploy.bundle")
    fill = f'@[ -d "{bundle}" ] || {fill[1:]} "{bundle}"\n\t@cp -r "{bundle}/." "$(ARTIFACTS_DIR)"'
    makefile.write_text(before + fill + after.removeprefix(' "$(ARTIFACTS_DIR)"'))


def _lend_environment(venv: Path) -> None:
    """The environment of these tests as the project's own, which `make` takes for installed."""
    venv.mkdir()
    for there in Path(sys.prefix).iterdir():
        if there.name != "installed":
            (venv / there.name).symlink_to(there)
    (venv / "installed").touch()


@pytest.fixture(scope="session")
def everybodys_stack(built: Path, shared: Shared) -> Iterator[Stack]:
    """The project deployed with sam to an emulator that has the bundles and boto3, and nothing else."""
    with shared("stack", lambda place: deployed(built, place)) as found:
        yield Stack(**json.loads(found))


@pytest.fixture
def stack(everybodys_stack: Stack, built: Path) -> Iterator[Stack]:
    """The stack, for a test that does not mind others."""
    with tools.held(built / "at-work", fcntl.LOCK_SH):
        yield everybodys_stack


@pytest.fixture
def quiet_stack(everybodys_stack: Stack, built: Path) -> Iterator[Stack]:
    """The stack while no other test uses it, because pending messages would be looked at again two minutes later."""
    with tools.held(built / "at-work", fcntl.LOCK_EX):
        yield everybodys_stack
