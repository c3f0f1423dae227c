"""The keys that a transaction will most likely read, so that one request reads them all.

Invariant: this is a guess. A key that is missing here is read when it is needed; an extra one costs a read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Concern, Rules


def keys_of(key: ItemKey, image: Item, concern: Concern, rules: Rules) -> Iterator[ItemKey]:
    """The keys that the rules of a concern name by an item as it is about to be: its sources, what it is part of, and
    the marks and totals of books.
    """
    entity = rules.entity_of(key)
    if entity is None:
        return
    change = Change(key, None, image)
    around: list[ItemKey] = []
    for into in concern.into:
        around += into.source_keys(image)
        yield from () if into.books is None else (into.books.mark,)
    for hinting in concern.hinting:
        around += (hint.target for hint in hinting.hints(change))
    for rule in concern.parts:
        for part in rule.parts(change, entity):
            around += (part.target, *(() if part.source is None else (part.source,)))
            if rule.books is not None:
                yield rule.books.mark
    yield from around
    yield from _shown(dict.fromkeys(around), rules)


def _shown(keys: Iterable[ItemKey], rules: Rules) -> Iterator[ItemKey]:
    """The totals that are shown on these items, and the marks of their books."""
    for key in keys:
        entity = rules.entity_of(key)
        for rule in () if entity is None else rules.into_target(entity):
            if rule.books is not None:
                yield from rule.source_keys(key.attributes())
                yield rule.books.mark
