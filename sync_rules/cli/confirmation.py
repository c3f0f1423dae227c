"""The question that a verb asks before it spends money or removes something."""

from __future__ import annotations

import sys

import typer

from sync_rules.model.errors import UserError


def confirm(question: str, *, yes: bool) -> bool:
    """Ask the question, and return the answer; True without a question if `yes`. Raises UserError if standard input is
    not a terminal.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UserError("standard input is not a terminal, so no question can be answered: give --yes")
    return typer.confirm(question, err=True)
