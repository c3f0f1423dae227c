"""Push, relay, pull and chunk: which targets are reconciled, their order, and how many at a time.

Invariant: pages are processed in rounds. In each round every image is read first, the sources then, so that no copy is
compared with a source older than its image. An index row is never an image, nor is the row that a chunk was made from.
A follow-up worker lists again from the message's start key. Messages carry no items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import Change, ItemKey, Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.values import Item, Names
from sync_rules.pipeline.handover import (
    Listing,
    choose_inline_max_items,
    hand_over,
    list_page,
    make_chunk_message,
    report_unfinished_pushes,
    send_chunks,
    send_second_look,
    send_second_look_of_push,
)
from sync_rules.pipeline.messages import Message, PullMessage
from sync_rules.pipeline.parts import reconcile_parts
from sync_rules.pipeline.reconcile import reconcile
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import ALL, Later, Work, do_together, read_all
from sync_rules.pipeline.sources import Target, list_other_makers, make_absent_target, split
from sync_rules.pipeline.tasks import Chunk, PartLook, Pull, Push, make_part_message
from sync_rules.rules.families import Part, TargetRule
from sync_rules.rules.rule import list_attributes_read
from sync_rules.rules.ruleset import Rules

T = TypeVar("T")


def pull(pulls: Sequence[Pull], bounds: Bounds) -> Work[Report]:
    """Reconcile single targets, a bounded number at a time. Targets without an image are read first."""
    report = Report()
    for some in split(pulls, bounds.limits.fan_out_round_max_items):
        yield from _pull_some(some, bounds, report)
    return report


def _pull_some(pulls: Sequence[Pull], bounds: Bounds, report: Report) -> Work[None]:
    if bounds.out_of_time():
        for one in pulls:
            report.fail(Target(one.key, {}, one.rules), OUT_OF_TIME)
        return
    unread = [one for one in pulls if one.image is None]
    looks = any(one.attempt for one in unread)  # a parked target is read as a whole: is there room in it now?
    attributes = ALL if looks else list_attributes_read((rule, rule.target) for one in unread for rule in one.rules)
    images = yield from read_all((one.key for one in unread), attributes)
    targets = []
    for one in pulls:
        image = images[one.key] if one.image is None else one.image
        if isinstance(image, StoreError):
            report.fail(Target(one.key, {}, one.rules), str(image))
        elif image is not None:
            fresh = one.image is None
            targets.append(Target(one.key, image, one.rules, attempt=one.attempt, members=one.members, fresh=fresh))
        elif (absent := make_absent_target(one.key, one.rules, one.attempt)) is not None:
            beside = list_other_makers(absent.makers)  # an item comes with all that rules keep on it
            targets.append(replace(absent, rules=(*absent.rules, *beside)))
    report.add((yield from reconcile(targets, bounds)))
    present = {target.key: target for target in targets}
    for one in pulls:
        if one.settles and one.key in present:
            yield from _send_second_look_of_pull(one, present[one.key], bounds, report)


def _send_second_look_of_pull(one: Pull, target: Target, bounds: Bounds, report: Report) -> Work[None]:
    """Send the second look of a pull whose members are listed through an index."""
    settles = [
        rule.settle_seconds
        for rule in one.rules
        if (members := rule.members(one.key, target.image)) is not None and members.index is not None
    ]
    message = PullMessage(one.key, delay_seconds=one.delay_seconds)
    try:
        yield from send_second_look(message, max(settles, default=0), bounds, found=one.key in report.written)
    except StoreError as error:
        report.fail(target, str(error))


@dataclass
class Listed:
    """An item listed in a round: its image once read, and the pushes that listed it."""

    image: Item | None = None
    listings: list[Listing] = field(default_factory=list)


def push(pushes: Sequence[Push], rules: Rules, bounds: Bounds) -> Work[Report]:
    """Reconcile all targets of these pushes, a bounded number at a time. A message asks for the rest.

    The report names the item that started a push as failed if the listing or a target was not finished.
    """
    report = Report()
    listings = [Listing(one, one.cursor) for one in pushes]
    active = listings
    while active:
        for listing in active:
            listing.round_began = listing.cursor
        done = yield from _push_round(active, rules, bounds)
        report.outcomes.update(done.outcomes)
        report.alterations.update(done.alterations)
        for listing in active:
            if listing.done and not listing.failed:
                yield from send_second_look_of_push(listing, bounds)
        # pushes that had no turn in this round come first in the next one
        active = sorted((one for one in active if not one.done), key=lambda one: one.listed_items)
    return report_unfinished_pushes(listings, report)


def _push_round(active: Sequence[Listing], rules: Rules, bounds: Bounds) -> Work[Report]:
    """Process one round. A function of its own, so that no image is held while the next round is listed."""
    listed = yield from _list_round(active, rules, bounds)
    return (yield from _reconcile_listed_items(listed, bounds))


def relay(pushes: Sequence[Push], rules: Rules, bounds: Bounds, *, ahead: bool) -> Work[Report]:
    """Reconcile one page of each push through the base table; another worker goes on where it ends. `ahead`: the rest
    is sent before the page is reconciled, so that workers share the listing, and each item is read once.

    A message that is delivered again may have sent its rest before. So it sends the rest last and unshared, and sends
    failed targets on as chunks of keys: a worker that dies again and again must not multiply the messages behind it.
    """
    report = Report()
    for one in pushes:
        listing, done = Listing(one, one.cursor), Report()
        try:
            yield from _relay(listing, rules, bounds, done, ahead=ahead)
        except StoreError as error:
            listing.failed = str(error)
        report.add(report_unfinished_pushes([listing], done))
    return report


def _relay(listing: Listing, rules: Rules, bounds: Bounds, report: Report, *, ahead: bool) -> Work[None]:
    if bounds.out_of_time():
        raise StoreError(OUT_OF_TIME)
    push = listing.push
    names = _list_attributes_read([listing])[push.rules[0].listed_entity.table.name]
    page = yield from list_page(listing, rules, bounds, names, bounds.limits.fan_out_relay_max_items)
    if listing.failed:
        return
    rest = None if listing.done else replace(push, cursor=listing.cursor, spread=ahead).message()
    if rest is not None and ahead:
        yield Later(rest)
    listed = {key: Listed(image, [listing]) for key, image in page}
    done = yield from _reconcile_listed_items(listed, bounds)
    failed = tuple(done.failed if done.failed.keys() <= listed.keys() else listed)  # else parts, of any of them
    report.add(_drop_failures(done))
    listing.failed, listing.targets_failed = "", False
    yield from send_chunks(push, failed, bounds.limits)
    if rest is not None and not ahead:
        yield Later(rest)


def _drop_failures(report: Report) -> Report:
    """A report without the targets that failed: the worker of their chunk counts them."""
    report.failed = {}
    report.outcomes = Counter({of: n for of, n in report.outcomes.items() if of[1] is not Outcome.FAILED})
    return report


def process_chunks(chunks: Sequence[Chunk], bounds: Bounds) -> Work[Report]:
    """Reconcile the targets of these chunks. Nothing is listed. If a target fails, its whole chunk is delivered
    again.
    """
    report = Report()
    for one in chunks:
        report.add((yield from _process_chunk(one, bounds)))
    return report


def _process_chunk(chunk: Chunk, bounds: Bounds) -> Work[Report]:
    """Reconcile some targets at a time. When time is up after some of them, the others go on as a chunk of their own: a
    slow chunk is not given up as long as each delivery finishes some targets.
    """
    report, targets = Report(), tuple(dict.fromkeys(chunk.targets))
    step = bounds.limits.chunk_step_max_items
    for start in range(0, len(targets), step):
        listing = Listing(chunk.push, None)
        done = Report()
        if bounds.out_of_time():
            listing.fail(OUT_OF_TIME)
        else:
            listed = {key: Listed(listings=[listing]) for key in targets[start : start + step]}
            yield from _read_images(listed, tuple(listed), _list_attributes_read([listing]))
            done = yield from _reconcile_listed_items(listed, bounds)
        if start and not report.failed and listing.failed.startswith(OUT_OF_TIME):
            try:
                yield Later(make_chunk_message(chunk.push, targets[start:]))
            except StoreError as error:
                listing.failed = str(error)
            else:
                report.add(_drop_failures(done))
                return report
        report.add(report_unfinished_pushes([listing], done))
    return report


def _list_round(active: Sequence[Listing], rules: Rules, bounds: Bounds) -> Work[dict[ItemKey, Listed]]:
    """List a page of each push, until the round is full; then read the images of index rows, strongly consistent.
    First pages are short and listed side by side, because most items have few targets. Further pages are long.
    """
    listed: dict[ItemKey, Listed] = {}
    unread: dict[ItemKey, None] = {}
    attributes = _list_attributes_read(active)
    room = bounds.limits.fan_out_round_max_items
    waiting = list(active)
    while waiting and room > 0:
        some, waiting = _split_turn(waiting, bounds.limits)
        inline = []
        for listing in some:
            if bounds.out_of_time() or listing.listed_items >= choose_inline_max_items(listing.push, bounds.limits):
                yield from hand_over(listing, bounds)
            else:
                inline.append(listing)
        limit = max(1, bounds.limits.fan_out_page_max_items // max(1, len(inline)))
        tables = [listing.push.rules[0].listed_entity.table.name for listing in inline]
        works = [
            list_page(listing, rules, bounds, attributes[table], limit)
            for listing, table in zip(inline, tables, strict=True)
        ]
        for listing, page in zip(inline, (yield from do_together(works)), strict=True):
            for key, image in page:
                row = listed.setdefault(key, Listed())
                row.listings.append(listing)
                if image is None:
                    unread[key] = None
                else:
                    row.image = image
                room -= 1
    if unread:
        yield from _read_images(listed, tuple(unread), attributes)
    return listed


def _split_turn(waiting: list[Listing], limits: Limits) -> tuple[list[Listing], list[Listing]]:
    """Split off the pushes to list next: several that begin, or one that goes on."""
    begin = next((n for n, one in enumerate(waiting) if one.listed_items), len(waiting))
    size = min(max(begin, 1), limits.side_by_side_max_lists)
    return waiting[:size], waiting[size:]


def _list_attributes_read(listings: Iterable[Listing]) -> Mapping[str, Names]:
    """The attributes that the rules of all these pushes read of listed items, by table: several may list one item."""
    return list_attributes_read((rule, rule.listed_entity) for one in listings for rule in one.push.rules)


def _read_images(
    listed: dict[ItemKey, Listed], keys: tuple[ItemKey, ...], attributes: Mapping[str, Names]
) -> Work[None]:
    for key, image in (yield from read_all(keys, attributes)).items():
        if isinstance(image, StoreError):
            for listing in listed.pop(key).listings:
                listing.fail(str(image))
                listing.unread = True
        else:
            listed[key].image = image


def _reconcile_listed_items(listed: Mapping[ItemKey, Listed], bounds: Bounds) -> Work[Report]:
    """Reconcile each item of a round once, for all rules that listed it, and note the outcomes on the pushes."""
    targets: list[Target] = []
    parts: dict[Part, dict[int, Listing]] = {}
    for key, row in listed.items():
        if row.image is None:
            continue  # deleted, but still in the index
        linked = {rule: one.push.removed for one in row.listings for rule in list_linked_rules(one.push, row.image)}
        if linked:
            targets.append(Target(key, row.image, tuple(linked), tuple(rule for rule in linked if linked[rule])))
        for listing in row.listings:
            for part in list_parts(listing.push, key, row.image):
                parts.setdefault(part, {})[id(listing)] = listing
    report = yield from reconcile(targets, bounds)
    _note_outcomes(report, ((key, key, row.listings) for key, row in listed.items()), PullMessage)
    of_parts = yield from reconcile_parts([PartLook(part) for part in parts], bounds)
    _note_outcomes(of_parts, ((part.target, part, asked.values()) for part, asked in parts.items()), make_part_message)
    report.add(of_parts)
    return report


def _note_outcomes(
    report: Report, asked: Iterable[tuple[ItemKey, T, Collection[Listing]]], message_for: Callable[[T], Message]
) -> None:
    """Note outcomes on the pushes that listed the items. `message_for` makes the message that retries an item."""
    for key, what, listings in asked:
        for listing in listings:
            listing.wrote |= key in report.written
            if key in report.failed:
                listing.fail(report.failed[key].reason)
                listing.targets_failed = True
                listing.retries.append(message_for(what))


def list_linked_rules(push: Push, image: Item) -> tuple[TargetRule, ...]:
    """List the rules of a push that link this image to its source. A target that names another source now has its own
    record.
    """
    return tuple([rule for rule in push.target_rules if push.source in rule.source_keys(image)])


def list_parts(push: Push, key: ItemKey, image: Item) -> list[Part]:
    """List the parts that a listed item contributes to the item that started the push."""
    return [
        part
        for rule in push.part_rules
        for part in rule.parts(Change(key, None, image), rule.listed_entity)
        if part.target == push.source
    ]
