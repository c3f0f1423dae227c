"""Merges two versions of a text that began as one, line by line: what one side changed is taken, whichever side it is.

Where both sides changed the same lines, the first side's stay, and the other's are given back. There are no marks of
conflicts in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple


@dataclass(frozen=True)
class Kept:
    """Lines of `mine` that stayed although `theirs` has others in their place."""

    mine: tuple[str, ...]
    theirs: tuple[str, ...]


class Common(NamedTuple):
    """A run of lines that all three texts have."""

    base: int
    mine: int
    theirs: int
    size: int


def merged(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> tuple[list[str], tuple[Kept, ...]]:
    """The lines of `mine` with the changes that `theirs` made to `base`, and what was kept against them."""
    result: list[str] = []
    kept: list[Kept] = []
    at = Common(0, 0, 0, 0)
    for common in _common(base, mine, theirs):
        was = base[at.base : common.base]
        here, there = mine[at.mine : common.mine], theirs[at.theirs : common.theirs]
        if here not in (was, there) and was != there:
            kept.append(Kept(tuple(here), tuple(there)))
        result += there if here == was else here
        result += base[common.base : common.base + common.size]
        base_at, mine_at, theirs_at = (start + common.size for start in common[:3])
        at = Common(base_at, mine_at, theirs_at, 0)
    return result, tuple(kept)


def _common(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Common]:
    """The runs of lines that all three have, in order; the last one is empty, at the end of all."""
    ours, others = (
        SequenceMatcher(None, base, other, autojunk=False).get_matching_blocks() for other in (mine, theirs)
    )
    for one in ours:
        for other in others:
            start = max(one.a, other.a)
            size = min(one.a + one.size, other.a + other.size) - start
            if size > 0:
                yield Common(start, one.b + start - one.a, other.b + start - other.a, size)
    yield Common(len(base), len(mine), len(theirs), 0)
