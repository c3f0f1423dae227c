"""Find every place that holds something of one item, for a request to erase it: copies, elements, mirrors, entries, and
what is made of those in turn.

Invariant: it follows the rules as the pipeline does, by Query and by key, never by a scan. It shows the present values,
right or wrong. Listed items are not kept in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sync_rules.audit.standings import list_parts_on
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, Path, get
from sync_rules.pipeline.fanout import list_linked_rules
from sync_rules.pipeline.requests import List, Page, Read, Store
from sync_rules.pipeline.tasks import Push
from sync_rules.rules.families import Part, PartRule, TargetRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

PAGE_MAX_ITEMS = 100


@dataclass(frozen=True, slots=True)
class UsePlace:
    """A place that holds something of an item: paths of another item, an element of its set, or the whole item (no
    paths). `through` is the item that the value came from: the requested item, or an earlier place.
    """

    rule: Rule
    target: ItemKey
    through: ItemKey
    paths: tuple[Path, ...] = ()
    element: str = ""


def find_uses(key: ItemKey, rules: Rules, store: Store) -> Iterator[UsePlace]:
    """Yield the places that hold something of an item, each as it is found. For a deleted item: the places that name
    its key. Raises StoreError.
    """
    item = _read(store, key) or key.attributes()
    seen: set[int] = set()
    looks = [_list_uses(key, item, rules.rules, rules, store)]
    while looks:  # depth first, so that of each level but a page is in memory
        found = next(looks[-1], None)
        if found is None:
            looks.pop()
            continue
        use, image = found
        yield use
        fed = _list_readers(use.rule, rules)
        again = hash((use.target, fed))
        if fed and again not in seen:
            seen.add(again)
            looks.append(_list_uses(use.target, image, fed, rules, store))


def _list_readers(writer: Rule, rules: Rules) -> frozenset[str]:
    return frozenset(rule.name for rule in rules.rules.values() if writer.feeds(rule))


def _list_uses(
    key: ItemKey, item: Item, names: Collection[str], rules: Rules, store: Store
) -> Iterator[tuple[UsePlace, Item]]:
    """The direct uses of one item by the rules of these names, each with the image of the other item."""
    change, entity = Change(key, None, item), rules.entity_of(key)
    for rule in rules.rules.values():
        if entity is None or rule.name not in names or rule.source is not entity:
            continue
        if isinstance(rule, TargetRule):
            if rule.find is not None and rule.anchor is entity and rule.copies:
                yield from _list_targets(rule, key, rules, store)
            for hint in rule.hints(change):
                image = _read(store, hint.target)
                if image is not None and (paths := _list_held_paths(rule, image)):
                    yield UsePlace(rule, hint.target, key, paths), image
        elif isinstance(rule, PartRule):
            for part in rule.parts(change, entity):
                if part.source == key != part.target:
                    yield from _list_part_uses(part, rules, store)


def _list_targets(rule: TargetRule, key: ItemKey, rules: Rules, store: Store) -> Iterator[tuple[UsePlace, Item]]:
    """Yield the targets of a source that hold values of the rule. For an index, read the images by key."""
    conditions = rule.conditions(key)
    table, index = rule.listed_entity.table, rule.find.index if rule.find is not None else None
    cursor: Item | None = None
    while conditions is not None:
        page: Page = store.list(List(table.name, index, conditions, PAGE_MAX_ITEMS, cursor))
        found = {
            at: row for row in page.items if (at := table.key_of(row)) and rules.entity_of(at) is rule.listed_entity
        }
        images = found if index is None else dict(zip(found, store.read(Read(tuple(found))), strict=True))
        for target, image in images.items():
            if (
                image is not None
                and list_linked_rules(Push(key, (rule,)), image)
                and (paths := _list_held_paths(rule, image))
            ):
                yield UsePlace(rule, target, key, paths), image
        cursor = page.cursor
        if cursor is None:
            break


def _list_part_uses(part: Part, rules: Rules, store: Store) -> Iterator[tuple[UsePlace, Item]]:
    image = _read(store, part.target)
    entity = rules.entity_of(part.target)
    assert part.source is not None, "it was asked about its source"
    if image is None or entity is not part.rule.target:
        return
    if part.element:
        if part in list_parts_on(part.target, image, entity, rules):
            yield UsePlace(part.rule, part.target, part.source, part.rule.copies, part.rule.label(part)), image
        return
    yield UsePlace(part.rule, part.target, part.source), image
    total = part.rule.find_total(image)
    if total is not None:
        yield from _list_total_uses(total, part.target, rules, store)


def _list_total_uses(total: ItemKey, entry: ItemKey, rules: Rules, store: Store) -> Iterator[tuple[UsePlace, Item]]:
    """The number that an entry is counted in, on its parent."""
    entity = rules.entity_of(total)
    for rule in rules.from_source(entity) if entity is not None else ():
        for hint in rule.hints(Change(total, None, total.attributes())) if isinstance(rule, TargetRule) else ():
            parent = _read(store, hint.target)
            if parent is not None and (paths := _list_held_paths(rule, parent)):
                yield UsePlace(rule, hint.target, entry, paths), parent


def _list_held_paths(rule: Rule, image: Item) -> tuple[Path, ...]:
    return tuple(path for path in rule.copies if get(image, path) is not None)


def _read(store: Store, key: ItemKey) -> Item | None:
    (item,) = store.read(Read((key,)))
    return item
