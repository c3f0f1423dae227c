"""Exit codes: each verb declares its own, every command keeps them, and the documentation is made from them."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from inspect import getsource
from pathlib import Path

import pytest

from sync_rules.cli import main
from sync_rules.cli.exit_codes import ExitCode

ROOT = Path(__file__).parent.parent.parent.parent
SPOKEN = re.compile(r"[Ee]xit(?:s|ed)? (?:with|code) (\d+)|[Ee]xit codes? (?:is |of )?(\d+)")


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.stem)
def test_exit_codes_that_a_page_names_are_those_of_the_table(page):
    """A page names no code that no command ends with."""
    named = {int(one or two) for one, two in SPOKEN.findall(page.read_text())}
    assert named <= set(ExitCode)


@pytest.mark.parametrize("verb", main.VERBS)
def test_exit_code_1_is_returned_by_those_verbs_that_say_when(verb):
    """A command whose row has no meaning of 1 returns nothing but 0; one that never returns 1 has no such meaning."""
    function = next(
        node
        for node in ast.parse(getsource(import_module(main.VERBS[verb].module))).body
        if isinstance(node, ast.FunctionDef) and node.name == verb
    )
    returned = {ast.unparse(one.value) for one in ast.walk(function) if isinstance(one, ast.Return) and one.value}
    assert (returned - {"0", "ExitCode.INTERRUPTED"} != set()) == bool(main.VERBS[verb].found), returned


@pytest.mark.parametrize("code", [4, -1, 256])
def test_exit_code_that_the_table_does_not_have_is_a_bug(monkeypatch, capsys, code):
    """No command invents a code."""
    monkeypatch.setattr(import_module("sync_rules.cli.commands.schema"), "schema", lambda: code)
    assert main.main(["schema"]) == ExitCode.BUG
    assert "a bug in sync-rules" in capsys.readouterr().err
