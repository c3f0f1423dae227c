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


@pytest.mark.parametrize(
    ("options", "begins"),
    [([], "flowchart LR"), (["--format", "dot"], "digraph rules {")],
    ids=["default", "dot"],
)
def test_graph_prints_the_format_asked_for(rules_file, options, begins, capsys):
    """Mermaid unless said otherwise, to the terminal unless a file is named."""
    assert main.main(["graph", str(rules_file), *options]) == 0
    out = capsys.readouterr().out
    assert out.startswith(begins)
    assert out.endswith("\n")
    assert not out.endswith("\n\n")


@pytest.mark.parametrize(
    ("name", "options", "begins"),
    [
        ("a.dot", [], "digraph"),
        ("a.gv", [], "digraph"),
        ("a.mmd", [], "flowchart"),
        ("a.mmd", ["--format", "dot"], "digraph"),
    ],
)
def test_graph_writes_what_the_file_is_called(rules_file, tmp_path, name, options, begins):
    """The ending of the file says the format, unless --format does."""
    out = tmp_path / name
    assert main.main(["graph", str(rules_file), "--out", str(out), *options]) == 0
    assert out.read_text().startswith(begins)


@pytest.mark.parametrize(("form", "written"), [("mermaid", "#233;"), ("dot", "&#233;")])
def test_graph_into_an_ascii_pipe_is_the_same_picture(form, written, tmp_path, monkeypatch):
    """Letters that the output's encoding lacks are written as the format refers to them, not as Python escapes."""
    (tmp_path / "rules.yaml").write_text(text_of({"name": "copy user.n\xe9 into order.user_name"}), "utf-8")
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "ascii"))
    assert main.main(["graph", str(tmp_path / "rules.yaml"), "--format", form]) == 0
    assert "\\x" not in pipe.getvalue().decode("ascii")
    assert f"n{written}" in pipe.getvalue().decode("ascii")


@pytest.mark.parametrize("name", ["rules.yaml", "link.dot", "a.svg", "a"])
def test_graph_writes_over_no_rules_file_and_nothing_it_cannot_draw(rules_file, name, capsys):
    """`graph --out` refuses the rules file under any name, and an ending of an unknown format."""
    (rules_file.parent / "link.dot").symlink_to(rules_file)
    before = rules_file.read_text()
    out = rules_file.parent / name
    for options in ([], ["--format", "dot"]):
        assert main.main(["graph", str(rules_file), "--out", str(out), *options]) == 2
        assert f"{out}: " in capsys.readouterr().err
    assert rules_file.read_text() == before
    assert sorted(path.name for path in rules_file.parent.iterdir()) == ["link.dot", "rules.yaml"]
