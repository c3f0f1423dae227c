"""The one question that a verb asks before it spends or removes something."""

from __future__ import annotations

import sys

import typer

from sync_rules.model.errors import UserError


def agreed(question: str, *, yes: bool) -> bool:
    """Ask. Raises UserError where nobody can answer."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UserError("nobody can be asked here: give --yes")
    return typer.confirm(question, err=True)
