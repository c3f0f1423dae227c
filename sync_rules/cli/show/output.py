"""Output without characters that could move, recolour or reverse what a terminal or a log shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TextIO

from sync_rules.model.values import escape_invisible

# Control characters but tabs and ends of lines, other ends of lines in Unicode, and what changes the direction of text.
CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

# A backslash does not stop GitHub from sending a notice to @name: a comment does.
MARKUP: Final = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#~"} | {"@": "@<!-- -->"})


def escape_controls(text: str) -> str:
    """Return the text with control characters escaped as in JSON; line breaks and tabs stay."""
    return CONTROLS.sub(lambda found: escape_invisible(found[0]), text)


def escape_markdown(text: str) -> str:
    """Return the text escaped for Markdown, on one line, so that it displays literally."""
    return escape_invisible(text).translate(MARKUP)


def wrap_output(out: TextIO | None) -> Any:
    """Return the stream with control characters escaped; None for None, as in a process without a console."""
    return None if out is None else SafeOutput(out)


class SafeOutput:
    """Standard output or standard error with control characters escaped. `out` is the stream itself."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def write(self, text: str) -> int:
        self.out.write(escape_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each text."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.out, name)
