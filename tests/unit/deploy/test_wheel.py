"""The wheel: one import name, every file that the package reads, and what a project without a clone needs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from zipfile import ZipFile

from sync_rules import DOCS, HOME
from sync_rules.deploy import files
from tests.test_house import ROOT

FILES = {path for path in (ROOT / "sync_rules").rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_wheel_installs_one_name(tmp_path):
    """`sync_rules` and the notes about it, nothing that could collide with a package of the user's."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names} == {"sync_rules", f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}
    assert names >= {str(path.relative_to(ROOT)) for path in FILES}
    folders = {
        path
        for folder in ("handlers", "examples")
        for path in (ROOT / folder).rglob("*.[py]*")
        if "__pycache__" not in path.parts
    }
    alone = {
        ROOT / name
        for name in (files.TEMPLATE, files.SAM_CONFIG, files.MACHINE, files.REQUIREMENTS, files.CLI_REQUIREMENTS)
    }
    carried = f"{files.CARRIED.relative_to(ROOT)}/"
    assert names >= {f"{carried}{path.relative_to(ROOT)}" for path in folders | alone}
    assert not [name for name in names if name.endswith(".pyc")]
    (notes,) = (name for name in names if name.endswith("/METADATA"))
    links = re.findall(r"\]\(([^)]+)\)", ZipFile(wheel).read(notes).decode())
    assert len(links) > 30
    assert [link for link in links if not link.startswith((f"{DOCS}/", f"{HOME}/blob/main/"))] == []
    assert [link for link in links if ".png" in link] == [f"{HOME}/blob/main/docs/playground.png?raw=true"]


def test_wheel_names_pages_by_their_url():
    """An installed package has no folder of pages: no text of the code or of a project that `init` writes names one."""
    told = {
        path: re.sub(r"(?m)^#.*", "", path.read_text()) if path.suffix == ".toml" else path.read_text()
        for path in FILES
        if path.suffix in (".yaml", ".yml", ".toml")
    }
    for path in (path for path in FILES if path.suffix == ".py" and "docs/" in path.read_text()):
        tree = ast.parse(path.read_text())
        notes = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        texts = [one for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in notes]
        told[path] = "\n".join(str(one.value) for one in texts)
    named = {(path.name, page) for path, text in told.items() for page in re.findall(r"(?<!/)docs/[a-z-]+\.md", text)}
    assert named == {("project.py", "docs/deploy.md")}, "which `init` replaces in the template by its URL"


def test_wheel_has_no_data_that_nothing_reads():
    """Each file that is no module is named by a module."""
    source = "\n".join(path.read_text() for path in FILES if path.suffix == ".py")
    assert not [path.name for path in FILES if path.suffix != ".py" and path.name not in source]
