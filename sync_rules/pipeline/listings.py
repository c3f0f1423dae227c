"""A push in progress: where its listing stands, page by page, and what came of it so far.

Law: an index row is a key and never an image. A cursor goes on only after the page that it stands behind.
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
    """One push in progress: where its listing stands, how many rows it had, and what came of it."""

    push: Push
    cursor: Item | None
    listed_items: int = 0
    done: bool = False
    handed_over: bool = False
    wrote: bool = False
    failed: str = ""
    targets_failed: bool = False
    again: list[Message] = field(default_factory=list)  # a look at each target or part that failed
    unread: bool = False  # some item could not even be read, so that nobody knows which looks it needs
    round_began: Item | None = None
    first_failed: Item | None = None  # where the round began in which one failed first

    @property
    def found(self) -> bool:
        return self.push.found or self.wrote


def list_page(
    listing: Listing, rules: Rules, bounds: Bounds, looked_at: Names = NO_NAMES
) -> Work[list[tuple[ItemKey, Item | None]]]:
    """One page of a push: the keys of its targets, with their images if they may be used as such; of these, the
    attributes that are looked at.
    """
    rule = listing.push.rules[0]  # all rules of a push list alike
    table, index = rule.listed.table, rule.find.index if rule.find is not None else None
    conditions = rule.conditions(listing.push.source)
    if conditions is None:  # nothing can name this item
        listing.done = True
        return []
    try:
        names = looked_at if index is None else NO_NAMES
        limit = bounds.limits.fan_out_page_max_items
        page = yield List(table.name, index, conditions, limit, listing.cursor, attributes=names)
    except StoreError as error:
        given = listing.cursor is not None and listing.cursor is listing.push.cursor
        if given and error.reason == "ValidationException":
            listing.cursor = None  # the message's cursor is of a Query that is no longer this rule's: start over, once
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
        if key is not None and rules.entity_of(key) is rule.listed  # else another entity's, in the same partition
    ]


def failed(listings: Iterable[Listing], reason: str) -> None:
    """Something that these listed could not be finished."""
    for listing in listings:
        listing.first_failed = listing.first_failed if listing.failed else listing.round_began
        listing.failed = reason


def report_unfinished(listings: Iterable[Listing], report: Report) -> Report:
    """The report, with the items named that started listings which could not be finished."""
    for listing in listings:
        if listing.failed:
            report.note(listing.push.source, Unfinished(listing.push.names, listing.failed))
        if listing.failed and not listing.targets_failed:  # its own failure, which no target stands for
            report.tally(listing.push.rules, Outcome.FAILED)
    return report
