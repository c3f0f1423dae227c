"""`sync-rules graph`: what it writes where, and what it cannot."""

from __future__ import annotations

import io
import os
import sys

import pytest

from sync_rules.cli import main
from tests.support.every_kind import RULES, text_of
from tests.support.reports import needs_graphviz


@pytest.fixture
def rules_file(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text(text_of(RULES))
    return file


@pytest.mark.parametrize(
    ("options", "begins"),
    [([], "flowchart LR"), (["--format", "dot"], "digraph rules {"), (["--format", "svg"], "<svg ")],
    ids=["default", "dot", "svg"],
)
def test_graph_prints_the_format_asked_for(rules_file, options, begins, capsys):
    """Mermaid unless said otherwise, to the terminal unless a file is named."""
    if "svg" in options:
        needs_graphviz()
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
        ("a.svg", ["--format", "dot"], "digraph"),
    ],
)
def test_graph_writes_what_the_file_is_called(rules_file, tmp_path, name, options, begins):
    """The ending of the file says the format, unless --format does."""
    out = tmp_path / name
    assert main.main(["graph", str(rules_file), "--out", str(out), *options]) == 0
    assert out.read_text().startswith(begins)


@pytest.mark.parametrize(("form", "written"), [("mermaid", "#233;"), ("dot", "&#233;"), ("svg", "&#233;")])
def test_graph_into_an_ascii_pipe_is_the_same_picture(form, written, tmp_path, monkeypatch):
    """Letters that the output's encoding lacks are written as the format refers to them, not as Python escapes."""
    if form == "svg":
        needs_graphviz()
    (tmp_path / "rules.yaml").write_text(text_of({"name": "copy user.n\xe9 into order.user_name"}), "utf-8")
    pipe = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "ascii"))
    assert main.main(["graph", str(tmp_path / "rules.yaml"), "--format", form]) == 0
    assert "\\x" not in pipe.getvalue().decode("ascii")
    assert f"n{written}" in pipe.getvalue().decode("ascii")


def test_graph_without_graphviz_says_how_to_get_the_picture(rules_file, tmp_path, monkeypatch, capsys):
    """An SVG needs the extra `report`; without it nothing is written."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    out = tmp_path / "a.svg"
    assert main.main(["graph", str(rules_file), "--out", str(out)]) == 2
    assert "install sync-rules[report]" in capsys.readouterr().err
    assert not out.exists()


def test_graph_says_which_library_graphviz_lacks_and_where_it_comes_from(rules_file, tmp_path, monkeypatch, capsys):
    """A wheel that is installed and does not load, as on a bare Debian, is not to be installed once more."""
    (tmp_path / "pygraphviz.py").write_text('raise ImportError("libgobject-2.0.so.0: cannot open shared object file")')
    monkeypatch.delitem(sys.modules, "pygraphviz", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "a.svg"
    assert main.main(["graph", str(rules_file), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "libgobject-2.0.so.0" in said
    assert "apt install libglib2.0-0t64" in said
    assert "install sync-rules[report]" not in said
    assert not out.exists()


def test_graph_cannot_write_everywhere(rules_file, tmp_path, capsys):
    """A place that cannot be written is the user's mistake."""
    assert main.main(["graph", str(rules_file), "--out", str(tmp_path / "nowhere" / "a.dot")]) == 2
    assert "nowhere/a.dot: expected a place where a file can be written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rules.yaml", "link.dot", "a.png", "a"])
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


def test_graph_keeps_standard_error_clean_while_it_draws(rules_file, monkeypatch, capfd):
    """Messages that the Graphviz libraries print to standard error while drawing are hidden; later ones are not."""
    needs_graphviz()
    pygraphviz = pytest.importorskip("pygraphviz")
    draw = pygraphviz.AGraph.draw

    def loud(*arguments, **options):
        os.write(2, b"Fontconfig warning")
        return draw(*arguments, **options)

    monkeypatch.setattr(pygraphviz.AGraph, "draw", loud)
    assert main.main(["graph", str(rules_file), "--format", "svg"]) == 0
    os.write(2, b"after")
    assert capfd.readouterr().err == "after"


def test_graph_of_a_file_with_errors_is_refused(tmp_path, capsys):
    """A rules file that check refuses has no graph."""
    file = tmp_path / "rules.yaml"
    file.write_text(text_of({"it": "copy usr.name into order.user_name"}))
    assert main.main(["graph", str(file)]) == 2
    assert "SR" in capsys.readouterr().err
