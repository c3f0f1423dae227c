"""List a push page by page, and send on what does not fit into one invocation: the rest of a push, chunks of keys for
parallel workers, second looks. The rest of a push through the base table is a `fanout.relay`.

Invariant: an index row is a key and never an image. A cursor advances only after the page before it was read. Messages
hold keys and rule names, and nothing counts as done before its message is safe. The keys of a page are sent before the
rest that begins behind it. The second look through an index is sent after the last page. A second look is never spread:
it is not urgent, and all of its pages together decide if there will be another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.values import Item, Names
from sync_rules.pipeline.messages import ChunkMessage, Message, PullMessage, PushMessage, count_key_bytes
from sync_rules.pipeline.report import Report, Unfinished
from sync_rules.pipeline.requests import Later, List, Work
from sync_rules.pipeline.sources import NO_NAMES
from sync_rules.pipeline.tasks import Push
from sync_rules.rules.ruleset import Rules

FAILED_MAX_MESSAGES: Final = 20  # per push that goes on; more would take long to send


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
    def has_effect(self) -> bool:
        return self.push.found or self.wrote

    def fail(self, reason: str) -> None:
        """Note that the listing, or an item in it, was not finished."""
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


def report_unfinished_pushes(listings: Iterable[Listing], report: Report) -> Report:
    """Add to the report the items whose pushes could not be finished."""
    for listing in listings:
        if listing.failed:
            report.note(listing.push.source, Unfinished(listing.push.names, listing.failed))
        if listing.failed and not listing.targets_failed:  # a failure of the listing, which no target has counted
            report.count(listing.push.rules, Outcome.FAILED)
    return report


# ---------------------------------------------------------------- to other workers
def choose_inline_max_items(push: Push, limits: Limits) -> int:
    """Choose how many targets of a push one invocation reconciles before it sends the rest on."""
    return limits.fan_out_second_look_max_items if push.delay_seconds else limits.fan_out_inline_max_items


def hand_over(listing: Listing, bounds: Bounds) -> Work[None]:
    """Send the rest of a push on as a message, together with what failed so far: otherwise the whole push would be
    delivered again, and send the same rest once more. A few failed targets are sent as messages of their own. For many,
    for targets that could not be read, and for deletes, which only a push makes, the rest begins where the first of
    them was listed; if this push began there too, nothing is sent, and the push fails.

    The rest of a base table's listing is shared out only if something was written. Where all is right, the push of
    another delivery may have been here, and one that only reads needs no help.
    """
    listing.done = listing.handed_over = True
    cursor = listing.cursor
    known = not listing.push.removed and not listing.unread
    few = known and len(listing.retries) <= FAILED_MAX_MESSAGES and not bounds.out_of_time()
    if listing.failed and not few:
        cursor = listing.first_failed
        if cursor == listing.push.cursor:
            return
    shared = listing.push.delay_seconds == 0 and (listing.wrote or listing.push.index is not None)
    rest = replace(listing.push, cursor=cursor, found=listing.has_effect, spread=shared)
    try:
        for message in listing.retries if few else ():
            yield Later(message, bounds.limits.parked_first_delay_seconds)
        begins = listing.push.cursor is None and listing.push.delay_seconds == 0  # else it goes on with another's
        yield Later(rest.message(), rules=rest.names if begins else ())
    except StoreError as error:
        listing.failed = str(error)
    else:
        listing.failed, listing.targets_failed = "", False


def send_second_look(
    message: PushMessage | PullMessage, settle_seconds: int, bounds: Bounds, *, found: bool
) -> Work[None]:
    """Send a look through an index once more for when the index must have caught up; then again after twice the delay,
    for as long as the look before it `found` something. `message` carries the delay of that look, 0 for the first.

    Raises:
        StoreError: when the message could not be sent.
    """
    waited = message.delay_seconds
    if settle_seconds > 0 and (waited == 0 or found):
        delay = min(2 * waited, bounds.limits.settle_max_seconds) if waited else settle_seconds
        yield Later(replace(message, delay_seconds=delay), delay)


def send_second_look_of_push(listing: Listing, bounds: Bounds) -> Work[None]:
    """Send the second look of a push after the last page of its index. The listing fails if the message cannot be
    sent.
    """
    push = listing.push
    if push.index is None or listing.handed_over:
        return
    settle_seconds = max(rule.settle_seconds for rule in push.rules)
    message = replace(push, cursor=None, found=False, spread=False).message()
    try:
        yield from send_second_look(message, settle_seconds, bounds, found=listing.has_effect)
    except StoreError as error:
        listing.failed = str(error)


# ---------------------------------------------------------------- in chunks
def spread(pushes: Sequence[Push], rules: Rules, bounds: Bounds) -> Work[Report]:
    """List pushes through an index that were handed over, and send their keys on in chunks; nothing is reconciled here.
    The report names as failed the items whose listing or messages were not finished: chunks may then be sent twice.
    """
    listings = [Listing(one, one.cursor) for one in pushes]
    for listing in listings:
        try:
            yield from _send_chunks(listing, rules, bounds)
        except StoreError as error:
            listing.failed = str(error)
        if not listing.failed:
            yield from send_second_look_of_push(listing, bounds)
    return report_unfinished_pushes(listings, Report())


def _send_chunks(listing: Listing, rules: Rules, bounds: Bounds) -> Work[None]:
    """Send all keys of a push, page by page. After the pages that fit one invocation, the rest is one message. If there
    is no time for a single page, it fails: the same message, sent again, would circulate for ever.
    """
    push, limits = listing.push, bounds.limits
    waiting: list[ItemKey] = []
    while not listing.done and not listing.handed_over:
        if bounds.out_of_time() or listing.listed_items >= limits.fan_out_spread_max_items:
            if listing.cursor == push.cursor:
                raise StoreError(OUT_OF_TIME)
            listing.handed_over = True
        else:
            page = yield from list_page(listing, rules, bounds)
            *full, waiting = split_keys([*waiting, *(key for key, _ in page)], limits)
            for keys in full:
                yield Later(make_chunk_message(push, keys))
    if waiting and not listing.failed:
        yield Later(make_chunk_message(push, waiting))
    if listing.handed_over:
        yield Later(replace(push, cursor=listing.cursor).message())


def send_chunks(push: Push, keys: Collection[ItemKey], limits: Limits) -> Work[None]:
    """Send these targets of a push on, so that a worker reads them again. Raises StoreError."""
    for some in split_keys(keys, limits) if keys else ():
        yield Later(make_chunk_message(push, some))


def split_keys(keys: Iterable[ItemKey], limits: Limits) -> list[list[ItemKey]]:
    """Split keys, in order, into chunks as large as the limits allow."""
    some: list[ItemKey] = []
    found, room = [some], limits.fan_out_chunk_max_bytes
    for key in keys:
        size = count_key_bytes(key)
        if some and (len(some) >= limits.fan_out_chunk_max_items or size > room):
            some = []
            found.append(some)
            room = limits.fan_out_chunk_max_bytes
        some.append(key)
        room -= size
    return found


def make_chunk_message(push: Push, keys: Iterable[ItemKey]) -> ChunkMessage:
    return ChunkMessage(push.message_names, push.source, tuple(keys), push.removed)
