"""`sync-rules graph`: what it writes where, and what it cannot."""

from __future__ import annotations

import io
import re
import sys

import pytest

from sync_rules.cli import main
from tests.support.every_kind import RULES, text_of


@pytest.fixture
def rules_file(here):
    file = here / "rules.yaml"
    file.write_text(text_of(RULES))
    return file


@pytest.mark.parametrize("name", ["a.mmd", "a.md", "a.MERMAID"])
def test_graph_writes_a_file_or_to_the_terminal(rules_file, run, name):
    """The file has the text that the terminal shows, which ends with one end of line."""
    code, printed, _ = run("graph")
    assert code == 0
    assert printed.startswith("flowchart LR")
    assert re.search(r"[^\n]\n$", printed)
    assert run("graph", "--out", name)[0] == 0
    assert rules_file.with_name(name).read_text() == printed


def test_graph_into_an_ascii_pipe_is_the_same_picture(tmp_path, monkeypatch):
    """Letters that the output's encoding lacks are written as Mermaid refers to them, not as Python escapes."""
    (tmp_path / "rules.yaml").write_text(text_of({"name": "copy user.n\xe9 into order.user_name"}), "utf-8")
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "ascii"))
    assert main.main(["graph", str(tmp_path / "rules.yaml")]) == 0
    assert "\\x" not in pipe.getvalue().decode("ascii")
    assert "n#233;" in pipe.getvalue().decode("ascii")


@pytest.mark.parametrize("name", ["rules.yaml", "link.mmd", "a.svg", "a.dot", "a"])
def test_graph_writes_over_no_rules_file_and_nothing_it_cannot_draw(rules_file, name, run):
    """`graph --out` refuses the rules file under any name, and an ending of an unknown format."""
    (rules_file.parent / "link.mmd").symlink_to(rules_file)
    before = rules_file.read_text()
    code, _, err = run("graph", "--out", name)
    assert (code, f"{name}: " in err) == (2, True)
    assert rules_file.read_text() == before
    assert sorted(path.name for path in rules_file.parent.iterdir()) == ["link.mmd", "rules.yaml"]
