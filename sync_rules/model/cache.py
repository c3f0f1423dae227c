"""Values that are found once and kept, up to a number of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def find_once(kept: dict[K, V], key: K, find: Callable[[K], V], kept_max: int) -> V:
    """Return the kept value of a key, or find and keep it. A full dict is cleared first. A plain dict
    can be pickled and copied with its owner.
    """
    try:
        return kept[key]
    except KeyError:
        found = find(key)
    if len(kept) >= kept_max:
        kept.clear()
    kept[key] = found
    return found
