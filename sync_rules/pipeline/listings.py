"""A push in progress: how far it has listed, and what failed so far.

Invariant: an index row is a key and never an image. A cursor advances only after the page before it was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.model.values import Item, Names
from sync_rules.pipeline.messages import Message
from sync_rules.pipeline.report import Report, Unfinished
from sync_rules.pipeline.requests import List, Work
from sync_rules.pipeline.sources import NO_NAMES
from sync_rules.pipeline.tasks import Push
from sync_rules.rules.ruleset import Rules


@dataclass
class Listing:
    """One push in progress: its cursor, the number of its rows, and its outcomes."""

    push: Push
    cursor: Item | None
    listed_items: int = 0
    done: bool = False
    handed_over: bool = False
    wrote: bool = False
    failed: str = ""
    targets_failed: bool = False
    retries: list[Message] = field(default_factory=list)  # one for each target or part that failed
    unread: bool = False  # some item could not be read, so its targets and parts are unknown
    round_began: Item | None = None
    first_failed: Item | None = None  # the cursor of the first round with a failure

    @property
    def found(self) -> bool:
        return self.push.found or self.wrote

    def fail(self, reason: str) -> None:
        """Note that the listing, or an item that it listed, could not be finished."""
        self.first_failed = self.first_failed if self.failed else self.round_began
        self.failed = reason


def list_page(
    listing: Listing, rules: Rules, bounds: Bounds, looked_at: Names = NO_NAMES, max_items: int | None = None
) -> Work[list[tuple[ItemKey, Item | None]]]:
    """List one page of a push, of at most `max_items`: the keys of its targets, and the image of each that is not an
    index row, with the attributes that rules read.
    """
    rule, index = listing.push.rules[0], listing.push.index  # all rules of a push list alike
    table = rule.listed_entity.table
    conditions = rule.conditions(listing.push.source)
    if conditions is None:  # no item can name this one
        listing.done = True
        return []
    try:
        names = looked_at if index is None else NO_NAMES
        limit = max_items or bounds.limits.fan_out_page_max_items
        page = yield List(table.name, index, conditions, limit, listing.cursor, attributes=names)
    except StoreError as error:
        given = listing.cursor is not None and listing.cursor is listing.push.cursor
        if given and error.reason == "ValidationException":
            listing.cursor = None  # the cursor is of a Query that the rule had before: start over, once
            return []
        listing.done = True
        listing.failed = str(error)
        return []
    listing.cursor = page.cursor
    listing.done = page.cursor is None
    listing.listed_items += len(page.items)
    keys = ((table.key_of(item), item) for item in page.items)
    return [
        (key, item if index is None else None)
        for key, item in keys
        if key is not None
        and rules.entity_of(key) is rule.listed_entity  # else another entity's, in the same partition
    ]


def report_unfinished(listings: Iterable[Listing], report: Report) -> Report:
    """Add to the report the items whose pushes could not be finished."""
    for listing in listings:
        if listing.failed:
            report.note(listing.push.source, Unfinished(listing.push.names, listing.failed))
        if listing.failed and not listing.targets_failed:  # a failure of the listing, which no target has counted
            report.count(listing.push.rules, Outcome.FAILED)
    return report
