"""Digests of what stands and of what should: two looks at a copy are compared by them, and no value is kept.

Invariant: equal values have equal digests, whatever the order in which they were read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sync_rules.model.errors import StoreError
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.model.writes import Update


def digest(*seen: object) -> str:
    """Sixteen hexadecimal digits of a hash."""
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def at_stake(item: Item | StoreError | None, write: object, copies: Iterable[Path]) -> object:
    """The values that a write would change. Of an item that is deleted: what a rule keeps on it, `copies`, or all."""
    if item is None or isinstance(item, StoreError):
        return None
    paths = [*(path for path, _ in write.sets), *write.removes] if isinstance(write, Update) else list(copies)
    return [ordered(get(item, path)) for path in paths] if paths else whole(item)


def whole(item: Item | StoreError | None) -> object:
    """An item as a value."""
    return ordered({"M": item}) if item is not None and not isinstance(item, StoreError) else None


def ordered(value: AttributeValue | None) -> object:
    """A value without the order of its sets and maps, which may differ from one read to the next."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "SS" | "NS" | "BS":
            return kind, sorted(content)
        case "M":
            return kind, [(name, ordered(content[name])) for name in sorted(content)]
        case "L":
            return kind, [*map(ordered, content)]
    return kind, content
