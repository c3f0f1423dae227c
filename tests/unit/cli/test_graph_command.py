"""`sync-rules graph`: what it writes where, and what it cannot."""

from __future__ import annotations

import io
import sys

import pytest

from sync_rules.cli import main
from tests.support.every_kind import RULES, text_of


@pytest.fixture
def rules_file(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text(text_of(RULES))
    return file


def test_graph_prints_mermaid(rules_file, capsys):
    """The text goes to the terminal, and ends with one end of line."""
    assert main.main(["graph", str(rules_file)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("flowchart LR")
    assert out.endswith("\n")
    assert not out.endswith("\n\n")


@pytest.mark.parametrize("name", ["a.mmd", "a.md", "a.MERMAID"])
def test_graph_writes_a_file(rules_file, tmp_path, name):
    """The file has the text that the terminal would show."""
    out = tmp_path / name
    assert main.main(["graph", str(rules_file), "--out", str(out)]) == 0
    assert out.read_text().startswith("flowchart LR")


def test_graph_into_an_ascii_pipe_is_the_same_picture(tmp_path, monkeypatch):
    """Letters that the output's encoding lacks are written as Mermaid refers to them, not as Python escapes."""
    (tmp_path / "rules.yaml").write_text(text_of({"name": "copy user.n\xe9 into order.user_name"}), "utf-8")
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "ascii"))
    assert main.main(["graph", str(tmp_path / "rules.yaml")]) == 0
    assert "\\x" not in pipe.getvalue().decode("ascii")
    assert "n#233;" in pipe.getvalue().decode("ascii")


@pytest.mark.parametrize("name", ["rules.yaml", "link.mmd", "a.svg", "a.dot", "a"])
def test_graph_writes_over_no_rules_file_and_nothing_it_cannot_draw(rules_file, name, capsys):
    """`graph --out` refuses the rules file under any name, and an ending of an unknown format."""
    (rules_file.parent / "link.mmd").symlink_to(rules_file)
    before = rules_file.read_text()
    out = rules_file.parent / name
    assert main.main(["graph", str(rules_file), "--out", str(out)]) == 2
    assert f"{out}: " in capsys.readouterr().err
    assert rules_file.read_text() == before
    assert sorted(path.name for path in rules_file.parent.iterdir()) == ["link.mmd", "rules.yaml"]
