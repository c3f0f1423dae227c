"""The consoles of all verbs, and tables on them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table as Grid

from sync_rules.cli.show.output import SafeOutput, escape_controls, escape_markdown

WIDE_COLUMNS: Final = 100_000  # more than any line has


class _SafeConsole(Console):
    """A console that escapes control characters in what it shows, and none of its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else escape_controls(text), style, control)


def make_console(*, stderr: bool = False) -> Console:
    """Make the console of standard output or standard error. It has a width only on a terminal. Elsewhere each record
    is one whole line, however long, so that other programs can search it.
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream is not None and stream.isatty() else WIDE_COLUMNS
    return _SafeConsole(file=stream.out if isinstance(stream, SafeOutput) else stream, highlight=False, width=width)


def make_grid(texts: Iterable[str], numbers: Iterable[str] = ()) -> Grid:
    """Make a table for people: columns of text, then columns of numbers. The first column is never wrapped."""
    table = Grid(box=None, header_style="bold", pad_edge=False)
    for place, name in enumerate(texts):
        table.add_column(name, no_wrap=place == 0, overflow="fold")  # a narrow terminal breaks a text and cuts none
    for name in numbers:
        table.add_column(name, justify="right", overflow="fold")
    return table


def say(console: Console, text: str) -> None:
    """Print a text unchanged: no markup, no highlighting, no line breaks."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_parts(console: Console, parts: Iterable[Grid | str]) -> None:
    """Print tables and lines."""
    for part in parts:
        if isinstance(part, Grid):
            console.print(part)
        else:
            say(console, part)


def format_markdown(table: Grid) -> str:
    """Return a table in GitHub's Markdown.

    https://github.github.com/gfm/#tables-extension-
    """
    marks = ["---:" if column.justify == "right" else "---" for column in table.columns]
    cells = zip(*(column.cells for column in table.columns), strict=True)
    rows = [[escape_markdown(str(column.header)) for column in table.columns], marks]
    rows += [[escape_markdown(str(cell)) for cell in row] for row in cells]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
