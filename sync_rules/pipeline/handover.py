"""Send on what does not fit into one invocation: the rest of a push, chunks of keys for parallel workers, second looks.
The rest of a push through the base table is a `fanout.relay`.

Invariant: messages hold keys and rule names, and nothing counts as done before its message is safe. The keys of a page
are sent before the rest that begins behind it. The second look through an index is sent after the last page. A second
look is never spread: it is not urgent, and all of its pages together decide if there will be another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds, Limits
from sync_rules.pipeline.listings import Listing, list_page, report_unfinished
from sync_rules.pipeline.messages import ChunkMessage, PullMessage, PushMessage, key_bytes
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Later, Work
from sync_rules.pipeline.tasks import Push
from sync_rules.rules.ruleset import Rules

FAILED_MAX_MESSAGES: Final = 20  # per push that goes on; more would take long to send


def inline_max_items(push: Push, limits: Limits) -> int:
    """The number of targets that one invocation reconciles before it sends the rest on."""
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
    rest = replace(listing.push, cursor=cursor, found=listing.found, spread=shared)
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


def second_look_of_push(listing: Listing, bounds: Bounds) -> Work[None]:
    """Send the second look of a push after the last page of its index."""
    push = listing.push
    if push.index is None or listing.handed_over:
        return
    settle_seconds = max(rule.settle_seconds for rule in push.rules)
    message = replace(push, cursor=None, found=False, spread=False).message()
    try:
        yield from send_second_look(message, settle_seconds, bounds, found=listing.found)
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
            yield from second_look_of_push(listing, bounds)
    return report_unfinished(listings, Report())


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
            *full, waiting = chunks([*waiting, *(key for key, _ in page)], limits)
            for keys in full:
                yield Later(chunk_message(push, keys))
    if waiting and not listing.failed:
        yield Later(chunk_message(push, waiting))
    if listing.handed_over:
        yield Later(replace(push, cursor=listing.cursor).message())


def send_chunks(push: Push, keys: Collection[ItemKey], limits: Limits) -> Work[None]:
    """Send these targets of a push on, so that a worker reads them again. Raises StoreError."""
    for some in chunks(keys, limits) if keys else ():
        yield Later(chunk_message(push, some))


def chunks(keys: Iterable[ItemKey], limits: Limits) -> list[list[ItemKey]]:
    """Split keys, in order, into chunks as large as the limits allow."""
    some: list[ItemKey] = []
    found, room = [some], limits.fan_out_chunk_max_bytes
    for key in keys:
        size = key_bytes(key)
        if some and (len(some) >= limits.fan_out_chunk_max_items or size > room):
            some = []
            found.append(some)
            room = limits.fan_out_chunk_max_bytes
        some.append(key)
        room -= size
    return found


def chunk_message(push: Push, keys: Iterable[ItemKey]) -> ChunkMessage:
    return ChunkMessage(push.message_names, push.source, tuple(keys), push.removed)
