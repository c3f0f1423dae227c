"""What targets are judged by: the sources they name and the members they are made of, read after their images.

Law: every read is strongly consistent and later than the images of the round. An index row is only a key. What could
not be read fails the rule and the target that need it, and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sync_rules.attributes import Item
from sync_rules.errors import StoreError
from sync_rules.families import Members, Rule, TargetRule, Trouble
from sync_rules.limits import Limits
from sync_rules.model import ItemKey
from sync_rules.store import List, Read, Work

Found = Item | StoreError | None  # an error stands for an item that could not be read


@dataclass(frozen=True, slots=True)
class Target:
    """A target as it was seen, and the rules to check. `removed`: those whose source, a record said, was removed.
    `members`: those that hinted at it, as items that it may be made of.
    """

    key: ItemKey
    image: Item
    rules: tuple[TargetRule, ...]
    removed: tuple[TargetRule, ...] = ()
    attempt: int = 0
    members: tuple[ItemKey, ...] = ()

    def only(self, rules: Iterable[Rule]) -> Target:
        """The same target for some of its rules."""
        some = tuple(rules)
        mine = tuple(rule for rule in self.rules if rule in some)
        return replace(self, rules=mine, removed=tuple(rule for rule in self.removed if rule in some))


@dataclass
class Sources:
    """What was read for a round of targets."""

    items: dict[ItemKey, Found] = field(default_factory=dict)
    members: dict[tuple[ItemKey, str], tuple[ItemKey, ...] | StoreError | Trouble] = field(default_factory=dict)

    def of(self, rule: TargetRule, target: Target) -> tuple[Item | None, ...] | StoreError | Trouble:
        """The sources of a target by a rule: those it names, then the members that belong to it."""
        found: list[Item | None] = []
        for key in rule.source_keys(target.image):
            item = self.items[key]
            if isinstance(item, StoreError):
                return item
            found.append(item)
        members = self.members.get((target.key, rule.name), ())
        if isinstance(members, StoreError | Trouble):
            return members
        for key in members:
            item = self.items[key]
            if isinstance(item, StoreError):
                return item
            if item is not None and rule.belongs(target.key, item):
                found.append(item)
        return tuple(found)


def read_sources(targets: Sequence[Target], limits: Limits) -> Work[Sources]:
    """The sources of these targets, each read once."""
    sources = Sources()
    wanted: dict[ItemKey, None] = {}
    for target in targets:
        for rule in target.rules:
            wanted |= dict.fromkeys(rule.source_keys(target.image))
            members = rule.members(target.key, target.image)
            if members is not None:
                keys = yield from _list_members(rule, target, members, sources, limits)
                sources.members[target.key, rule.name] = keys
                wanted |= {} if isinstance(keys, StoreError | Trouble) else dict.fromkeys(keys)
    sources.items |= yield from read_all(key for key in wanted if key not in sources.items)
    return sources


def _list_members(
    rule: TargetRule, target: Target, members: Members, sources: Sources, limits: Limits
) -> Work[tuple[ItemKey, ...] | StoreError | Trouble]:
    """The keys of the members of a target. Rows of the base table are images at once."""
    consistent = members.index is None
    keys: dict[ItemKey, None] = {} if consistent else dict.fromkeys((*members.named, *target.members))
    table, cursor = rule.source.table, None
    count = 0
    while True:
        room = members.max_items - count if members.enough else limits.fan_out_page_max_items
        limit = min(room, limits.fan_out_page_max_items)
        try:
            page = yield List(members.table, members.index, members.conditions, limit, cursor, members.backward)
        except StoreError as error:
            return error
        for item in page.items:
            key = table.key_of(item)
            if key is None or (consistent and not rule.belongs(target.key, item)):
                continue
            count += key not in keys
            keys[key] = None
            if consistent:
                sources.items[key] = item
        cursor = page.cursor
        if members.enough and count >= members.max_items:
            return tuple(keys)
        if count > members.max_items:
            return Trouble("TooManyMembers")
        if cursor is None:
            return tuple(keys)


def read_all(keys: Iterable[ItemKey]) -> Work[dict[ItemKey, Found]]:
    """Items by key, each once, strongly consistent, table by table: one that fails holds up no other."""
    tables: dict[str, dict[ItemKey, None]] = {}
    for key in keys:
        tables.setdefault(key.table, {})[key] = None
    found: dict[ItemKey, Found] = {}
    for wanted in map(tuple, tables.values()):
        try:
            found.update(zip(wanted, (yield Read(wanted)), strict=True))
        except StoreError as error:
            found.update(dict.fromkeys(wanted, error))
    return found
