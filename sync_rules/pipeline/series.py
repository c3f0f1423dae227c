"""List what decides about parts that their own two items do not decide, such as which versions are too many.

Invariant: each look at such parts lists the base table again, strongly consistent. No message or report says which
parts they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.requests import Work
from sync_rules.pipeline.sources import NO_NAMES, TOO_MANY, list_page
from sync_rules.rules.families import Part, PartRule
from sync_rules.rules.rule import Blocked


@dataclass(frozen=True, slots=True)
class Series:
    """The parts of a listing that are not right, and all `keys` that were listed; `more` may follow."""

    parts: tuple[Part, ...] = ()
    keys: tuple[ItemKey, ...] = ()
    more: bool = False


def group_by_series(parts: Sequence[Part]) -> Mapping[tuple[PartRule, ItemKey | None], list[Part]]:
    """These parts, by the listing that decides about them."""
    found: dict[tuple[PartRule, ItemKey | None], list[Part]] = {}
    for part in parts:
        found.setdefault((part.rule, part.source), []).append(part)
    return found


def list_series(part: Part, bounds: Bounds) -> Work[Series | Blocked | StoreError]:
    """List the series of a part: a bounded number of rows, from its beginning."""
    listing = part.rule.listing(part)
    if listing is None or part.source is None:
        return Series()
    table, cursor, rows = part.rule.target.table, None, 0
    keys: list[ItemKey] = []
    while True:
        page = yield from list_page(listing, cursor, {listing.table: NO_NAMES}, bounds)
        if isinstance(page, StoreError):
            return page
        rows, cursor = rows + len(page.items), page.cursor
        keys += (key for item in page.items if (key := table.key_of(item)) is not None)
        if cursor is None or rows >= listing.max_items + bounds.limits.fan_out_round_max_items:
            break
    found = tuple(part.rule.list_wrong_parts(part.source, keys))
    if not found and cursor is not None:
        return TOO_MANY
    return Series(found, tuple(keys), cursor is not None)


def is_taken_again(part: Part, bounds: Bounds) -> Work[bool | StoreError]:
    """True for a part that is missing because the listing of another rule would have it taken away again. Most parts
    are at the beginning of that, which one row shows.
    """
    other = part.rule.find_removing_part(part)
    listing = None if other is None else other.rule.listing(other)
    if other is None or other.source is None or listing is None:
        return False
    table = other.rule.target.table
    page = yield from list_page(replace(listing, max_items=1), None, {listing.table: NO_NAMES}, bounds)
    if isinstance(page, StoreError):
        return page
    first = table.key_of(page.items[0]) if page.items else None
    if first is None or other.rule.is_first_part(other, first):
        return False
    found = yield from list_series(other, bounds)
    if isinstance(found, StoreError):
        return found
    keys = () if isinstance(found, Blocked) else (*found.keys, other.target)
    return any(one.target == other.target for one in other.rule.list_wrong_parts(other.source, keys))
