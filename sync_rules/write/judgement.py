"""Compute in memory what the rules would make of items now. A repair can then write the stored items accordingly.

Invariant: every item and every source is read once, strongly consistent, images first. Only the items themselves are
computed: their own attributes, the elements in their sets, and mirrors by their source items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.sizes import is_possible_key
from sync_rules.model.values import Item
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import NULL_PORTS, Store, Work, World, run_work
from sync_rules.pipeline.tasks import PartLook, Tasks, group_pushes, make_pull
from sync_rules.pipeline.work import do_tasks
from sync_rules.rules.families import Part, PartRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Concern, Rules
from sync_rules.write.read_through import IN_MEMORY, LISTED_MAX_ITEMS, TOO_MANY, ReadThrough

ROUNDS_MAX: Final = 20  # one for each rule that waits for another rule's value on the same item
REPAIRING: Final = Limits(parked_max_looks=0)

Pushed = tuple[ItemKey, Rule]


@dataclass
class Judgement:
    """The items as they must be. `left` are the items and rules that stay unchanged, because one page does not list all
    items that the rule needs.
    """

    items: dict[ItemKey, Item | None] = field(default_factory=dict)
    left: frozenset[Pushed] = frozenset()


def judge(keys: Iterable[ItemKey], rules: Rules, seen: ReadThrough, out_of_time: Callable[[], bool]) -> Judgement:
    """Compute what the rules would make of these items, which `seen` knows, each from the other items as they were
    read.

    Raises:
        StoreError: if something could not be read.
    """
    wanted = tuple(keys)
    seen.load(key for one in wanted for key in list_sources(one, seen.item(one), rules) if is_possible_key(key))
    bounds, done = Bounds(IN_MEMORY, out_of_time), Judgement()
    for key in wanted:
        before = seen.item(key)
        if before is not None or _is_made(key, rules):
            done.left |= _judge_one(key, before, rules, seen, bounds)
        done.items[key] = seen.item(key)
        seen.know(key, before)
    return done


def _is_made(key: ItemKey, rules: Rules) -> bool:
    """True for an item that rules alone make, perhaps now."""
    entity = rules.entity_of(key)
    return entity is not None and entity.made


def _judge_one(key: ItemKey, before: Item | None, rules: Rules, seen: ReadThrough, bounds: Bounds) -> frozenset[Pushed]:
    """Bring one item in memory to what the rules say. Returns the rules whose values stay unchanged."""
    left = frozenset(one for one in _list_listing_rules(key, rules) if _has_too_many(one, before, rules))
    for _ in range(ROUNDS_MAX):
        report = run_work(_process_item(key, seen.item(key), rules, left, bounds), World(seen, NULL_PORTS, NULL_PORTS))
        if _is_too_long(report) and left != (everything := frozenset(_list_listing_rules(key, rules))):
            seen.know(key, before)
            left = everything
        elif not seen.changes():
            break
    return left


def repair(
    key: ItemKey, before: Item | None, rules: Rules, store: Store, *, left: frozenset[Pushed], bounds: Bounds
) -> None:
    """Write what differs on an item as it was read, under guard."""
    run_work(_process_item(key, before, rules, left, bounds), World(store, NULL_PORTS, NULL_PORTS))


def list_sources(key: ItemKey, image: Item | None, rules: Rules) -> Iterator[ItemKey]:
    """List the other keys that an item names and that decide about it: sources, and marks of books."""
    entity = rules.entity_of(key)
    if entity is None or (image is None and not entity.made):
        return
    image = key.attributes() if image is None else image
    for rule in rules.into_target(entity):
        yield from rule.source_keys(image)
        if rule.books is not None:
            yield rule.books.mark
    for part in _list_parts(key, image, rules):
        if part.source is not None and part.rule.find is None:  # else most of them are listed
            yield part.source


def guess_keys(key: ItemKey, image: Item, concern: Concern, rules: Rules) -> Iterator[ItemKey]:
    """Yield the keys that rules will probably read for an item's new image: sources, targets of its parts, marks and
    totals of books. One request can then read them all; a missing key is read when it is needed.
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
    yield from _list_shown_totals(dict.fromkeys(around), rules)


def _list_shown_totals(keys: Iterable[ItemKey], rules: Rules) -> Iterator[ItemKey]:
    """Yield the keys of the totals that these items show, and of the marks of their books."""
    for key in keys:
        entity = rules.entity_of(key)
        for rule in () if entity is None else rules.into_target(entity):
            if rule.books is not None:
                yield from rule.source_keys(key.attributes())
                yield rule.books.mark


def _process_item(
    key: ItemKey, image: Item | None, rules: Rules, left: frozenset[Pushed], bounds: Bounds
) -> Work[Report]:
    """The pipeline's own work on an item: as a target, as a node whose edges are listed, as a part."""
    one = make_pull(key, rules)
    listed = dict.fromkeys((one for one in _list_listing_rules(key, rules) if one not in left), False)
    looks = (PartLook(part) for part in _list_parts(key, image, rules) if (key, part.rule) not in left)
    tasks = Tasks(() if one is None else (one,), group_pushes(listed), tuple(looks))
    return (yield from do_tasks(tasks, rules, bounds))


def _list_listing_rules(key: ItemKey, rules: Rules) -> Iterator[Pushed]:
    """The rules that keep elements on an item, and list the sources in the base table, consistently."""
    entity = rules.entity_of(key)
    for rule in () if entity is None else rules.find_concern(entity).anchored:
        if isinstance(rule, PartRule) and rule.target is entity and _is_plain(rule):
            yield key, rule


def _list_parts(key: ItemKey, image: Item | None, rules: Rules) -> Iterator[Part]:
    """The parts on an item, or the part that it is."""
    entity = rules.entity_of(key)
    if entity is None or image is None:
        return
    for rule in rules.parts_of(entity):
        if rule.target is entity and _is_plain(rule):
            yield from (part for part in rule.parts(Change(key, None, image), entity) if part.target == key)


def _is_plain(rule: PartRule) -> bool:
    """True if two items decide about a part, which no index must list, and no books."""
    return rule.books is None and (rule.find is None or rule.find.index is None)


def _has_too_many(pushed: Pushed, image: Item | None, rules: Rules) -> bool:
    key, rule = pushed
    return sum(part.rule is rule for part in _list_parts(key, image, rules)) > LISTED_MAX_ITEMS


def _is_too_long(report: Report) -> bool:
    """True if a listing did not end.

    Raises:
        StoreError: when something failed for another reason.
    """
    for one in report.failed.values():
        if not one.reason.startswith(TOO_MANY):
            raise StoreError(one.reason.partition(":")[0], "no answer to the reads of rules " + ", ".join(one.rules))
    return bool(report.failed)
