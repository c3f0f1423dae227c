"""A dry release: wheel and sdist as a release makes them, checked, and installed from a package index on loopback.

Invariant: no request leaves this machine. The index has the new files, and the installed packages of the lock, which
are packed again; every other address goes through a proxy that is not there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sync_rules import __version__
from sync_rules.deploy import files
from sync_rules.lab.embedded_engine import LOOPBACK
from tests.test_house import ROOT

NAME = "sync-rules"
OF_AN_INSTALLATION = ("INSTALLER", "REQUESTED", "direct_url.json")


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """The output of a command that succeeds."""
    given = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables}
    done = subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, Path]:
    """The wheel and the sdist of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    assert len([*folder.iterdir()]) == 2
    return wheel, source


def packed(one: Distribution, folder: Path) -> None:
    """A wheel of an installed package."""
    record = one.read_text("RECORD") or ""
    kept = [line for line in record.splitlines() if not re.match(r"\.\.|/|.*\.pyc,", line)]
    kept = [line for line in kept if not line.partition(",")[0].endswith(OF_AN_INSTALLATION)]
    names = [re.sub(r",[^,]*,[^,]*$", "", line).strip('"') for line in kept]
    about = next(name.partition("/")[0] for name in names if ".dist-info/" in name)
    tag = re.findall(r"^Tag: (\S+)", one.read_text("WHEEL") or "", re.MULTILINE)[-1]
    with zipfile.ZipFile(folder / f"{about.removesuffix('.dist-info')}-{tag}.whl", "w") as wheel:
        for name in names:
            if name.endswith(".dist-info/RECORD"):
                wheel.writestr(name, "\n".join([*kept, ""]))
            else:
                wheel.write(str(one.locate_file(name)), name)


@pytest.fixture(scope="module")
def index(made, tmp_path_factory) -> Iterator[str]:
    """The address of an index with the release and the packages of the lock."""
    root = tmp_path_factory.mktemp("index")
    lock = (ROOT / files.CLI_REQUIREMENTS).read_text()
    for name in re.findall(r"^([\w.-]+)==\S+ (?!; sys_platform)", lock, re.MULTILINE):
        (folder := root / name).mkdir()
        packed(distribution(name), folder)
    (root / NAME).mkdir()
    for path in made:
        (root / NAME / path.name).hardlink_to(path)
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer((LOOPBACK, 0), partial(quiet, directory=root)) as server:
        served = threading.Thread(target=server.serve_forever)
        served.start()
        yield f"http://{LOOPBACK}:{server.server_port}/"
        server.shutdown()
        served.join()


@pytest.fixture
def alone(index, tmp_path) -> dict[str, str]:
    """The variables of a machine that reaches nothing but this index."""
    nowhere = {f"{name}_proxy": f"http://{LOOPBACK}:9" for name in ("http", "https", "all")}
    of_pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    of_uv = {"UV_NO_CONFIG": "1", "UV_DEFAULT_INDEX": index, "UV_CACHE_DIR": str(tmp_path / "cache")}
    more = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never", "UV_TOOL_DIR": str(tmp_path / "tools")}
    return {"HOME": str(tmp_path), "no_proxy": LOOPBACK, **nowhere, **of_pip, **of_uv, **more}


def test_release_passes_the_checks_of_an_index(made):
    """Names, metadata and the description of both files are what an index accepts, without a warning."""
    assert run(sys.executable, "-m", "twine", "check", "--strict", *made).count("PASSED") == 2


def test_release_source_makes_the_same_wheel(made, tmp_path):
    """The sdist has all that the wheel is built from, and nothing that git does not know."""
    wheel, source = made
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    names = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    known = {*run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines(), "PKG-INFO"}
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names <= known
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", cwd=tree)
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.night
def test_release_is_installed_by_pip(alone, tmp_path):
    """From the index, into an empty environment: the command makes a project and checks it."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    programs = tmp_path / "venv/bin"
    pip = (sys.executable, "-m", "pip", "--python", programs / "python", "install", "--quiet", "--no-compile")
    run(*pip, f"{NAME}=={__version__}", cwd=tmp_path, **alone)
    run(programs / NAME, "init", "mine", cwd=tmp_path, **alone)
    for arguments in (["check"], ["test", "scenarios"], ["infra", "--check"]):
        run(programs / NAME, *arguments, cwd=tmp_path / "mine", **alone)


@pytest.mark.night
@pytest.mark.parametrize("form", [[], ["--no-binary-package", NAME]], ids=["wheel", "sdist"])
def test_release_is_run_by_uvx(form, alone, tmp_path):
    """From the index, by a cache of its own: the wheel, and the sdist with the build backend of the index."""
    uvx = Path(sys.executable).with_name("uvx")
    assert f"{NAME} {__version__} " in run(uvx, *form, f"{NAME}@{__version__}", "--version", cwd=tmp_path, **alone)


def test_release_workflow_gives_the_right_to_publish_to_one_job():
    """Only actions run where a token can be had, each named by its commit; the build has none. A reviewer lets it publish."""
    workflow = YAML(typ="safe").load((ROOT / ".github/workflows/release.yml").read_text())
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {}
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["attest", "publish"]
    assert [name for name, job in jobs.items() if any("run" in step for step in job["steps"])] == ["build"]
    assert jobs["publish"]["environment"] == "release"
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one) for one in used)
    ran = "\n".join(step["run"] for step in jobs["build"]["steps"] if "run" in step)
    assert "twine check --strict" in ran
    assert "--require-hashes -r .github/requirements-sbom.txt" in ran
    for path in re.findall(r"[\w./-]+\.(?:txt|toml|py)\b", ran):
        assert (ROOT / path).exists(), path
