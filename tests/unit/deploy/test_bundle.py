"""The bundle: no module that only people use is in it, and it runs with nothing but boto3 beside it."""

from __future__ import annotations

import marshal
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from sync_rules.deploy import bundle as bundling
from sync_rules.deploy import files
from sync_rules.deploy.bundle import (
    LEFT_OUT,
    fill_bundle,
    list_called_files,
    list_imported_files,
    list_imports,
    list_own_modules,
    precompile,
)
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.template import fill_template
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.rules import compiled_file
from tests.support.every_kind import RULES, text_of
from tests.support.requirements import list_requirements, name_of
from tests.test_house import ROOT

ALONE = """
import sys
sys.path[:0] = sys.argv[1:]
import importlib, pathlib
for path in sorted(pathlib.Path(sys.argv[1]).glob("*/**/*.py")):
    name = ".".join(path.relative_to(sys.argv[1]).with_suffix("").parts)
    if name.startswith(("handlers", "sync_rules")):
        importlib.import_module(name.removesuffix(".__init__"))
import hooks
print(sorted(name for name in sys.modules if name in ("typer", "rich", "pydantic", "ruamel", "infra", "hypothesis", "sync_rules.deploy", "sync_rules.cli")))
"""


def modules() -> list[Path]:
    return [path for found in list_own_modules().values() for path in found]


def usual_paths() -> list[Path]:
    """The modules of a deployment without the write function."""
    return [path for found in list_own_modules(write=False).values() for path in found]


@pytest.fixture
def rules_file(tmp_path):
    """Rules that call a function of a module, which needs another one beside it."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in {
        "hooks.py": "from helpers.words import LOUD\ndef told(change): print(LOUD)\n",
        "helpers/__init__.py": "",
        "helpers/words.py": "LOUD = 'told'\n",
        "unused.py": "",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    called = {"told": "{call: hooks.told, on: order, when: [created]}"}
    (folder / "rules.yaml").write_text(text_of(RULES | called) + "deploy: {write: true}\n")
    return folder / "rules.yaml"


@pytest.fixture
def template(tmp_path, rules_file):
    path = tmp_path / "template.yaml"
    path.write_text(fill_template((ROOT / "template.yaml").read_text(), read_deployment(rules_file), rules_file, path))
    shutil.copy(ROOT / files.REQUIREMENTS, tmp_path / "requirements.txt")
    return path


def boto3_alone(place: Path) -> Path:
    """A folder to import boto3 from, with its requirements and nothing else."""
    place.mkdir()
    for name in ("boto3", "botocore", "s3transfer", "urllib3", "dateutil", "six", "jmespath"):
        origin = Path(find_spec(name).origin)
        found = origin.parent if origin.name == "__init__.py" else origin
        (place / found.name).symlink_to(found)
    return place


def test_bundle_runs_with_nothing_but_boto3_beside_it(template, rules_file, tmp_path, monkeypatch):
    """Every module in it can be imported in an interpreter that sees no other package, and none of development is."""
    monkeypatch.setenv("BUNDLE_PYTHON", f"{sys.version_info.major}.{sys.version_info.minor}")
    monkeypatch.setenv("BUNDLE_PLATFORM", "linux" if sys.platform == "linux" else "macos")
    out = tmp_path / "out"
    fill_bundle(out, template)
    command = [sys.executable, "-I", "-S", "-c", ALONE, str(out), str(boto3_alone(tmp_path / "of-lambda"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    monkeypatch.setenv("BUCKET_OF_MINE", "mine")
    rules = compiled_file.read((out / "rules.compiled").read_bytes(), "rules.compiled")
    assert rules.fingerprint == load_rules(rules_file).fingerprint
    assert (out / "helpers" / "words.py").exists()
    there = {path.name for path in out.iterdir()}
    assert not there & {
        "rules.yaml",
        "unused.py",
        "tests",
        "docs",
        "infra",
        "boto3",
        "botocore",
        "typer",
        "rich",
        "bin",
    }
    assert not there & {"pydantic", "pydantic_core", "ruamel"}


def test_bundle_has_no_module_that_only_people_use():
    """No verb, no emulator, no report is deployed, and nothing that reads a rules file; all else of ours is."""
    names = {name_of(ROOT, path) for path in modules()}
    assert {
        "handlers.stream",
        "handlers.fanout",
        "sync_rules.pipeline.consumer",
        "sync_rules.rules.kinds.copy",
    } <= names
    unwanted = ("__main__", "cli", "lab", "language", "read", "deploy", "costs", "jobs.dryrun", "jobs.consume")
    assert not [name for name in names if name.removeprefix("sync_rules.").startswith(unwanted)]
    rooms = {name.split(".")[1] for name in names if name.startswith("sync_rules.")}
    assert rooms == {"adapters", "audit", "functions", "jobs", "model", "pipeline", "rules", "write"}
    usual = {name_of(ROOT, path) for path in usual_paths()}
    of_writing = {name for name in names if name.startswith("sync_rules.write")} | {"handlers.write"}
    assert names - usual == of_writing
    needed = {name for path in usual_paths() for name in list_imports(path, name_of(ROOT, path))}
    assert not needed & of_writing


def test_bundle_imports_nothing_that_it_leaves_out():
    """A folder is left out whole only because nothing in the bundle imports from it, in a function neither."""
    left_out = tuple(f"sync_rules.{name.removesuffix('.py').replace('/', '.')}" for name in LEFT_OUT)
    found = {
        (name_of(ROOT, path), name)
        for path in modules()
        for name in list_imports(path, name_of(ROOT, path))
        if f"{name}.".startswith(tuple(f"{one}." for one in left_out))
    }
    assert not found


def test_bundle_says_which_file_is_missing(template, tmp_path, monkeypatch, capsys):
    """Without the locked requirements beside the template, or without the template: one line with the cure."""
    monkeypatch.chdir(tmp_path)
    for name, cure in (("requirements.txt", "`sync-rules init`"), ("template.yaml", "build in the folder of")):
        (tmp_path / name).unlink()
        assert bundling.main(["out"]) == 2
        told = capsys.readouterr().err
        assert f"{name}: no such file" in told
        assert cure in told
        assert not (tmp_path / "out").exists()


def test_bundle_is_installed_by_uv_or_else_by_pip(tmp_path, monkeypatch):
    """A user's environment may have no uv, or uv and no pip, or neither."""
    there = {"uv", "pip"}
    monkeypatch.setattr(bundling, "find_spec", lambda name: name if name in there else None)
    monkeypatch.setattr(bundling.shutil, "which", lambda _: None)
    given = (tmp_path / "requirements.txt", tmp_path / "out", "3.14", "aarch64-manylinux_2_28")
    assert "aarch64-manylinux_2_28" in bundling.make_install_command(*given)
    there.remove("uv")
    by_pip = bundling.make_install_command(*given)
    tags = [after for word, after in pairwise(by_pip) if word == "--platform"]
    assert (tags[0], tags[-1], len(tags)) == ("manylinux_2_28_aarch64", "manylinux2014_aarch64", 13)
    with pytest.raises(UserError, match="pip cannot install for macos: expected a platform such as"):
        bundling.make_install_command(*given[:3], "macos")
    there.clear()
    with pytest.raises(UserError, match="has neither uv nor pip"):
        bundling.make_install_command(*given)
    monkeypatch.setattr(bundling.shutil, "which", lambda _: "/somewhere/uv")
    assert bundling.make_install_command(*given)[0] == "/somewhere/uv"


def test_bundle_lists_no_script_of_this_machine(tmp_path):
    """A script begins with the path of the Python that installed it: its digest would differ by machine."""
    record = tmp_path / "one-1.dist-info/RECORD"
    record.parent.mkdir()
    record.write_text("bin/one,sha256=a,9\n../../bin/one,sha256=a,9\none/bin/a.py,sha256=b,1\n")
    bundling.remove_leftovers(tmp_path)
    assert record.read_text() == "one/bin/a.py,sha256=b,1\n"


def test_bundle_requirements_are_those_of_the_handlers_and_locked():
    """The lock file holds the packages that the functions need except boto3, with hashes and no addresses."""
    names = {re.match(r"[\w.-]+", line)[0].replace(".", "-") for line in list_requirements()}
    assert {"tenacity", "aws-lambda-powertools"} <= names
    assert not names & {"boto3", "typer", "rich", "pydantic", "ruamel-yaml"}
    text = (ROOT / "infra" / "requirements.txt").read_text()
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", text, re.MULTILINE))
    assert names <= locked.keys()
    assert not locked.keys() & {"boto3", "botocore", "s3transfer", "typer", "rich", "pydantic", "ruamel-yaml"}
    assert "://" not in text
    tested = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE))
    assert {name: tested[name] for name in locked} == locked


def test_bundle_without_the_module_that_a_rule_calls_is_refused(rules_file):
    """Before anything is deployed that could not be called."""
    (rules_file.parent / "hooks.py").unlink()
    with pytest.raises(UserError, match=r"rule told calls hooks\.told, and there is no module hooks beside"):
        list_called_files(read_deployment(rules_file).rules, rules_file)


def test_bundle_is_takes_the_certificates_of_the_machine_where_uv_knows_no_better(tmp_path, monkeypatch):
    """uv may refuse a registry that a company's authority signed. It runs again with the machine's certificates."""
    asked = tmp_path / "asked"
    refusing_once = (
        "import os, sys; open(sys.argv[1], 'a').write('x'); "
        "sys.exit(0 if os.environ.get('UV_SYSTEM_CERTS') else 'cause: invalid peer certificate: UnknownIssuer')"
    )
    monkeypatch.delenv("UV_SYSTEM_CERTS", raising=False)
    monkeypatch.setattr(bundling, "make_install_command", lambda *_: [sys.executable, "-c", refusing_once, str(asked)])
    (tmp_path / "out").mkdir()
    bundling.install(tmp_path / "requirements.txt", tmp_path / "out", bundling.HERE, "linux")
    assert asked.read_text() == "xx"


def test_bundle_that_cannot_be_installed_says_why(template, tmp_path, monkeypatch, capsys):
    """A bundle whose requirements cannot be installed exits with 2 and one line."""
    (tmp_path / "requirements.txt").write_text("no-such-package-anywhere==1.0\n")
    assert bundling.main([str(tmp_path / "out"), "--template", str(template)]) == 2
    assert "cannot be installed" in capsys.readouterr().err


def test_imports_follow_functions_and_packages_but_not_type_checking(tmp_path):
    """An import in a function is done one day; one for type checking never is; a relative one is followed too."""
    for name, text in {
        "one/__init__.py": "",
        "one/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import never\nelse:\n    import other\ndef f():\n    from one import b\n",
        "one/b.py": "from .c import name\nfrom . import d\n",
        "one/c.py": "name = 1\n",
        "one/d.py": "import json, foreign.inner\n",
        "other.py": "",
        "never.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    paths = list_imported_files(["one.a"], tmp_path)
    assert [name_of(tmp_path, path) for path in paths] == ["one", "one.a", "one.b", "one.c", "one.d", "other"]


@pytest.mark.parametrize("python", ["3.11", "3.13", "3.15"])
def test_bundle_is_for_the_machine_that_its_template_names(python, template, tmp_path, monkeypatch):
    """Runtime and Architectures of the template select packages and compiled rules. No variable repeats them."""
    for name in ("BUNDLE_PYTHON", "BUNDLE_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    text = template.read_text().replace("python3.14", f"python{python}").replace("[arm64]", "[x86_64]")
    template.write_text(text)
    asked: list = []
    monkeypatch.setattr(bundling, "install", lambda _locked, _directory, *machine: asked.extend(machine))
    fill_bundle(tmp_path / "out", template)
    assert asked == [python, "x86_64-manylinux_2_28"]
    assert f'"python":"{python}"'.encode() in (tmp_path / "out" / "rules.compiled").read_bytes()


def test_bundle_is_compiled_for_where_it_runs(tmp_path):
    """Whatever the times of files: tracebacks name Lambda's folder, and a module that is edited there is as it was edited."""
    (tmp_path / "one.py").write_text("print(1)\n")
    precompile(tmp_path, bundling.HERE)
    (kept,) = tmp_path.rglob("*.pyc")
    compiled = marshal.loads(kept.read_bytes()[16:])
    assert compiled.co_filename == f"{bundling.IN_LAMBDA}/one.py"
    (tmp_path / "one.py").write_text("print(2)\n")
    ran = subprocess.run([sys.executable, "-c", "import one"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "2\n"
