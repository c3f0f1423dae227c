"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

SHOWN_MAX_NAMES: Final = 40


def shorten_names(names: Sequence[str], between: str = ", ") -> str:
    """Join names; of many, show the first and the last, and the number of the others."""
    if len(names) > SHOWN_MAX_NAMES:
        names = [*names[: SHOWN_MAX_NAMES - 1], f"{len(names) - SHOWN_MAX_NAMES:,} more", names[-1]]
    return between.join(names)


def explain_unknown_name(what: str, name: str, known: Iterable[str], of: str = "") -> str:
    """Explain that a name is unknown: list the known names, and suggest the closest. `of`: the thing that should have
    it.
    """
    names = list(known)
    text = f"no {what} {name!r}{of and ' in '}{of}. Known: {shorten_names(names) or 'none'}."
    folded = {one.lower(): one for one in names}
    close = get_close_matches(name.lower(), folded, n=1)
    return f"{text} Did you mean {folded[close[0]]!r}?" if close else text
