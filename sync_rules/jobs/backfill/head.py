"""The document that says what is being brought in line, and how far that is.

Law: it is gone on with only by who can read all of it; what cannot be read is the user's to drop.
"""

from __future__ import annotations

from typing import Any, Final

from sync_rules.adapters.state import State
from sync_rules.jobs.backfill.place import Place
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.model.errors import UserError

HEAD: Final = "backfill"
UNREADABLE: Final = "the state says how far a backfill is in words that cannot be read: begin anew with --restart"


def unfinished(state: State) -> dict[str, Any] | None:
    """The backfill that was begun and not finished, if there is one.

    Raises:
        UserError: when what is there cannot be read.
        StoreError: when the state does not answer.
    """
    head = state.load(HEAD)
    if head is None or head.get("done") is True:
        return None
    try:
        Place(**head["place"])
        for name in ("steps", "rounds"):
            Totals.of(head[name])
        readable = isinstance(head["run"], str) and isinstance(head["scope"], dict)
    except (KeyError, TypeError, ValueError, AttributeError):
        readable = False
    if not readable:
        raise UserError(UNREADABLE)
    return head


def abandon(state: State) -> None:
    """Forget the backfill that was begun and not finished. Raises StoreError."""
    if (head := state.load(HEAD)) is not None:
        state.save(HEAD, {**head, "done": True})
