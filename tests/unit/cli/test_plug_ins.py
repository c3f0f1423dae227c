"""Verbs of other packages: an installed package with an entry point adds a verb, whose declaration is honoured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sync_rules.cli import main
from tests.test_house import ROOT

MODULE = '''
"""A verb of a package."""
from typing import Annotated

import typer

from sync_rules.cli.verb import Verb

VERB = Verb(needs={"--loud": ("--name",)}, only_reads=True)


def greet(
    name: Annotated[str | None, typer.Option("--name", help="The name.")] = None,
    loud: Annotated[bool, typer.Option("--loud", help="With --name: in capitals.")] = False,
) -> int:
    """Greet somebody."""
    if name == "ctrl-c":
        raise KeyboardInterrupt
    print(f"hello {name.upper() if loud else name}" if name else "nobody")
    return int(name is None)
'''


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """An installed package: its module, and the metadata that an installer writes."""
    (tmp_path / "greeting_package.py").write_text(MODULE)
    info = tmp_path / "greeting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{main.PLUG_INS}]\ngreet = greeting_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "greeting_package", raising=False)
    return tmp_path


def test_plug_in_is_called_by_its_name(package, capsys):
    """Its exit code is the process's."""
    assert main.main(["greet", "--name", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"
    assert main.main(["greet"]) == 1


def test_plug_in_s_needs_are_checked(package, capsys):
    """As those of our own verbs."""
    assert main.main(["greet", "--loud"]) == 2
    assert "--loud needs --name, and has no effect without it" in capsys.readouterr().err


def test_plug_in_without_its_library_names_the_package_that_brings_it(package, capsys):
    """In one line, with exit code 2."""
    (package / "greeting_package.py").write_text("import no_such_library\n")
    assert main.main(["greet"]) == 2
    cure = "greet needs no_such_library, which is not installed: pip install 'greeting'"
    assert capsys.readouterr().err == f"sync-rules: {cure}\n"


def test_plug_in_without_a_declaration_is_refused(package, capsys):
    """A module that declares no verb is no bug of ours."""
    (package / "greeting_package.py").write_text("def greet() -> int:\n    return 0\n")
    assert main.main(["greet"]) == 2
    assert "package greeting: module greeting_package has no VERB" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["patterns", "--help"]])
def test_known_verbs_read_no_entry_points(words):
    """Entry points are read for an unknown verb only: reading them takes longer than all of `--help`."""
    script = (
        "import sys, importlib.metadata as metadata\n"
        "read = metadata.entry_points\n"
        "def entry_points(*, group, **more):\n"
        f"    assert group != {main.PLUG_INS!r}\n"
        "    return read(group=group, **more)\n"
        "metadata.entry_points = entry_points\n"
        f"from sync_rules.cli.main import main; sys.exit(main({words}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_check_loads_no_client():
    """A check of rules and patterns does not load botocore, which takes a third of its time."""
    file = ROOT / "examples/authors-and-books/rules.yaml"
    script = f"from sync_rules.cli.main import main; import sys; main(['check', {str(file)!r}]); sys.exit('botocore' in sys.modules)"
    assert "patterns:" in file.read_text()
    subprocess.run([sys.executable, "-c", script], check=True)


def test_built_in_verb_without_its_library_names_the_extra(monkeypatch, capsys):
    """The cure installs the extra of the verb."""
    monkeypatch.setitem(sys.modules, "sync_rules.extras.discover.commands.propose", None)

    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")

    monkeypatch.setattr("sync_rules.cli.modules.import_module", fail)
    assert main.main(["propose"]) == 2
    said = "sync-rules: propose needs duckdb, which is not installed: pip install 'sync-rules[propose]'\n"
    assert capsys.readouterr().err == said
