"""Output that no terminal shows: whole lines, one for each record, whatever the width of some terminal."""

from __future__ import annotations

import re
import sys
from io import StringIO

import pytest

from sync_rules.cli.show.console import make_console, make_grid

LONG = "a-rule-whose-name-says-in-a-whole-sentence-what-it-keeps-true-and-for-whom-and-why-of-all-things"
WORDS = "several words in a row " * 20
FIGURE = "1,234,567,890,123"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def narrow(monkeypatch) -> None:
    """A terminal of 40 columns, which must not affect a pipe, and a build server that asks for colours."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")


def shown() -> None:
    table = make_grid(["rule", "what it reached"], ["right", "drift"])
    table.add_row(LONG, WORDS, FIGURE, "0")
    table.add_row("short", "nothing", "7", "0")
    make_console().print(table)


def test_output_into_a_pipe_has_each_record_whole_on_its_own_line(capsys):
    """No name and no figure is cut, and no cell goes on in the next line."""
    shown()
    _, long, short = [re.sub(r"\x1b\[[\d;]*m", "", text) for text in capsys.readouterr().out.splitlines()]
    assert long.split() == [LONG, *WORDS.split(), FIGURE, "0"]
    assert short.split() == ["short", "nothing", "7", "0"]


def test_output_on_a_narrow_terminal_cuts_no_figure(monkeypatch):
    """A figure that does not fit goes on below: half a figure is a wrong one."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)
    table = make_grid(["rule"], ["right", "kept", "lag", "drift"])
    table.add_row("a-rule", *[FIGURE] * 4)
    make_console().print(table)
    text = re.sub(r"\x1b\[[\d;]*m", "", sys.stdout.getvalue())
    assert "…" not in text
    assert len(re.findall(r"\d", text)) == 4 * len(re.findall(r"\d", FIGURE))
