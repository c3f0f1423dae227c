"""`sync-rules graph`: what it writes where, and what it cannot."""

from __future__ import annotations

import sys

import pytest

from sync_rules import cli
from tests.every_kind import RULES, text_of
from tests.reports import needs_graphviz


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
    assert cli.main(["graph", str(rules_file), *options]) == 0
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
    assert cli.main(["graph", str(rules_file), "--out", str(out), *options]) == 0
    assert out.read_text().startswith(begins)


def test_graph_without_graphviz_says_how_to_get_the_picture(rules_file, tmp_path, monkeypatch, capsys):
    """An SVG needs the extra `report`; without it nothing is written."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    out = tmp_path / "a.svg"
    assert cli.main(["graph", str(rules_file), "--out", str(out)]) == 2
    assert "install sync-rules[report]" in capsys.readouterr().err
    assert not out.exists()


def test_graph_cannot_write_everywhere(rules_file, tmp_path, capsys):
    """A place that cannot be written is the user's mistake."""
    assert cli.main(["graph", str(rules_file), "--out", str(tmp_path / "nowhere" / "a.dot")]) == 2
    assert "nowhere/a.dot: cannot be written" in capsys.readouterr().err


def test_graph_of_a_file_with_errors_is_refused(tmp_path, capsys):
    """A rules file that check refuses has no graph."""
    file = tmp_path / "rules.yaml"
    file.write_text(text_of({"it": "copy usr.name into order.user_name"}))
    assert cli.main(["graph", str(file)]) == 2
    assert "SR" in capsys.readouterr().err
