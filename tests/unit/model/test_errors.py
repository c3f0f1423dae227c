"""Errors, as the command line prints them."""

from __future__ import annotations

from sync_rules.model.errors import UserError


def test_error_joins_what_was_found_and_its_cure():
    """One sentence, also if what was found is a sentence of its own."""
    assert (
        str(UserError("unknown option 'x'. Known: a, b.", "leave it out"))
        == "unknown option 'x'. Known: a, b: leave it out"
    )
    assert str(UserError("no such file")) == "no such file"
