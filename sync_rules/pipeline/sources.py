"""Read the sources that targets name and the members that they are made of, after the images of the targets.

Invariant: every read is strongly consistent and later than the images of the round. An index row is only a key. An item
that could not be read fails the rule and the target that need it, and no other. Totals and ranks in books count only
if their mark says complete, before they are read and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.values import Item, Names
from sync_rules.model.writes import Desired
from sync_rules.pipeline.books import read_marks
from sync_rules.pipeline.requests import Found, List, Page, Work, do_together, read_all
from sync_rules.rules.books import Books
from sync_rules.rules.families import Members, TargetRule
from sync_rules.rules.rule import Blocked, Rule, Waiting, list_attributes_read

T = TypeVar("T")
Keys = tuple[ItemKey, ...] | StoreError | Blocked

NO_NAMES: Final[Names] = frozenset()
TOO_MANY: Final = Blocked("TooManyMembers")


@dataclass(slots=True)  # as a Change: made for every record, and never changed
class Target:
    """A target as it was read, and the rules to check. `removed`: the rules whose source a REMOVE record deleted.
    `members`: the items that hinted at the target, and may belong to it. `absent`: the target does not exist, rules
    may make it, and `image` is its key. `fresh`: the image was read for this round, and is not from a record or
    scan.
    """

    key: ItemKey
    image: Item
    rules: tuple[TargetRule, ...]
    removed: tuple[TargetRule, ...] = ()
    attempt: int = 0
    members: tuple[ItemKey, ...] = ()
    absent: bool = False
    fresh: bool = False

    def only(self, rules: Iterable[Rule]) -> Target:
        some = tuple(rules)
        mine = tuple(rule for rule in self.rules if rule in some)
        return replace(self, rules=mine, removed=tuple(rule for rule in self.removed if rule in some))

    @property
    def makers(self) -> tuple[TargetRule, ...]:
        return tuple(rule for rule in self.rules if rule.makes)


def make_absent_target(key: ItemKey, rules: Iterable[TargetRule], attempt: int = 0) -> Target | None:
    """Make the target for a key that has no item; None if no rule makes such items."""
    makers = tuple(rule for rule in rules if rule.makes)
    return Target(key, key.attributes(), makers, attempt=attempt, absent=True) if makers else None


def list_other_makers(makers: Sequence[TargetRule]) -> tuple[TargetRule, ...]:
    """List the rules that make the same targets as these rules, and are not among them."""
    here = {rule.name for rule in makers}
    return tuple(rule for rule in makers[0].list_makers_beside() if rule.name not in here)


@dataclass
class Sources:
    """The items read for a round of targets."""

    attributes: Mapping[str, Names] = field(default_factory=dict)
    items: dict[ItemKey, Found] = field(default_factory=dict)
    members: dict[tuple[ItemKey, str], Keys] = field(default_factory=dict)
    marks: dict[Books, Found] = field(default_factory=dict)
    expected: dict[TargetRule, Mapping[ItemKey, Found]] = field(default_factory=dict)  # instead of `items`, by rule
    empty: frozenset[ItemKey] = frozenset()  # targets without a member of any rule that makes them
    _alike: dict[tuple[TargetRule, tuple[ItemKey, ...]], Desired | None] = field(default_factory=dict)

    def find_shared_values(self, rule: TargetRule, target: Item) -> Desired | None:
        """Return the values that a rule wants on all targets of one source, computed once: most records come from
        copies that the pipeline wrote. Return None if the rule decides for each target.
        """
        if not rule.alike:
            return None
        asked = rule, rule.source_keys(target)
        try:
            return self._alike[asked]
        except KeyError:
            wanted = self._alike[asked] = self._compute_shared_values(*asked)
            return wanted

    def _compute_shared_values(self, rule: TargetRule, keys: tuple[ItemKey, ...]) -> Desired | None:
        items = [self.items[key] for key in keys]
        found = tuple(item for item in items if item is not None and not isinstance(item, StoreError))
        desired = rule.compute_values(found, {}) if found and len(found) == len(items) else None
        return None if isinstance(desired, Blocked) else desired

    def find_obstacle(self, rule: TargetRule) -> StoreError | Waiting | None:
        """Return why the values that a rule reads may not be used: its mark cannot be read, or is not complete. None if
        they may.
        """
        if rule.books is None:
            return None
        mark = self.marks[rule.books]
        if isinstance(mark, StoreError):
            return mark
        return None if rule.books.complete(mark) else Waiting.BACKFILL

    def of(self, rule: TargetRule, target: Target) -> tuple[Item | None, ...] | StoreError | Blocked | Waiting:
        """Return the sources of a target by a rule: the items that the target names, then its members. Return the
        reason if they may not be used.
        """
        if rule.books is not None and (unusable := self.find_obstacle(rule)) is not None:
            return unusable
        keys, items = rule.source_keys(target.image), self.expected.get(rule, self.items)
        found: list[Item | None] = []
        for key in keys:
            item = items[key]
            if isinstance(item, StoreError):
                return item
            found.append(item)
        members = self.members.get((target.key, rule.name), ())
        belonging = members if isinstance(members, StoreError | Blocked) else self.select(rule, target, members)
        return belonging if isinstance(belonging, StoreError | Blocked) else (*found, *belonging.values())

    def has_members(self, rule: TargetRule, target: Target) -> bool | None:
        """True if a target that a rule makes has a member; None if that is unknown."""
        found = self.of(rule, target)
        has = rule.has_members(found) if isinstance(found, tuple) else None
        return has if isinstance(has, bool) else None

    def select(
        self, rule: TargetRule, target: Target, keys: Iterable[ItemKey]
    ) -> dict[ItemKey, Item] | StoreError | Blocked:
        """Return the items under these keys that are members of a target, or the reason why that is unknown."""
        selected: dict[ItemKey, Item] = {}
        for key in keys:
            item = self.items[key]
            if isinstance(item, StoreError):
                return item
            belongs = item is not None and rule.is_member(target.key, item)
            if isinstance(belongs, Blocked):
                return belongs
            if item is not None and belongs:
                selected[key] = item
        return selected


def split(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in order, at most `size` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def split_rounds(targets: Sequence[Target], limits: Limits) -> Iterator[Sequence[Target]]:
    """Split targets into rounds that fit into memory: a target made of several members is held with all of them."""
    some: list[Target] = []
    gathering = 0
    for target in targets:
        gathers = any(rule.gathers for rule in target.rules)
        if len(some) >= limits.fan_out_round_max_items or gathering + gathers > limits.gathered_round_max_items:
            yield some
            some, gathering = [], 0
        some.append(target)
        gathering += gathers
    if some:
        yield some


def read_sources(targets: Sequence[Target], bounds: Bounds) -> Work[Sources]:
    """Read the sources of these targets, each once. If no rule of a target has a member for it, also read the members
    of the other rules that make it.
    """
    sources = yield from _read_sources(targets, bounds)
    empty = [target for target in targets if target.makers and _is_empty(target.makers, target, sources)]
    if not empty:
        return sources
    beside = {target.key: list_other_makers(target.makers) for target in empty}
    others = yield from _read_sources([replace(one, rules=beside[one.key]) for one in empty if beside[one.key]], bounds)
    sources.empty = frozenset(one.key for one in empty if _is_empty(beside[one.key], one, others))
    return sources


def _is_empty(makers: Iterable[TargetRule], target: Target, sources: Sources) -> bool:
    return all(sources.has_members(rule, target) is False for rule in makers)


def _read_sources(targets: Sequence[Target], bounds: Bounds) -> Work[Sources]:
    rules = dict.fromkeys(rule for some in dict.fromkeys(target.rules for target in targets) for rule in some)
    sources = Sources(list_attributes_read((rule, rule.source) for rule in rules))
    books = dict.fromkeys(rule.books for rule in rules if rule.books is not None)
    sources.marks |= yield from read_marks(books)
    wanted: dict[ItemKey, None] = {}
    lists: list[tuple[TargetRule, Target, Members]] = []
    for target in targets:
        for rule in target.rules:
            if rule.books is not None and sources.find_obstacle(rule) is not None:
                continue
            for key in rule.source_keys(target.image):
                wanted[key] = None
            members = rule.members(target.key, target.image)
            if members is not None:
                lists.append((rule, target, members))
    for some in split(lists, bounds.limits.side_by_side_max_lists):
        found = yield from do_together([_list_members(*one, sources, bounds) for one in some])
        for (rule, target, _), keys in zip(some, found, strict=True):
            sources.members[target.key, rule.name] = keys
            wanted |= {} if isinstance(keys, StoreError | Blocked) else dict.fromkeys(keys)
    sources.items |= yield from read_all((key for key in wanted if key not in sources.items), sources.attributes)
    used = (rule.books for rule in rules if rule.books is not None and sources.find_obstacle(rule) is None)
    for one, mark in (yield from read_marks(used)).items():
        same = isinstance(mark, StoreError) or mark == sources.marks[one]
        sources.marks[one] = mark if same else None
    return sources


def _list_members(rule: TargetRule, target: Target, members: Members, sources: Sources, bounds: Bounds) -> Work[Keys]:
    """List the keys of the members of a target. Rows of the base table are images; rows of an index are keys, read
    together with those of other targets, or at once where only the images show which of too many rows are members.
    """
    cursor: Item | None = None
    rows = 0
    keys: dict[ItemKey, None] = {} if members.index is None else dict.fromkeys((*members.named, *target.members))
    while True:
        page = yield from list_members_page(members, cursor, sources.attributes, bounds)
        if isinstance(page, StoreError):
            return page
        rows += len(page.items)
        cursor = page.cursor
        listed = {key: item for item in page.items if (key := rule.source.table.key_of(item)) is not None}
        sources.items |= listed if members.index is None else {}
        keys |= dict.fromkeys(listed)
        if members.index is None or cursor is not None or len(keys) > members.max_items:
            unread = (key for key in keys if key not in sources.items)
            sources.items |= yield from read_all(unread, sources.attributes)
            belonging = sources.select(rule, target, keys)
            if isinstance(belonging, StoreError | Blocked):
                return belonging
            keys = dict.fromkeys(belonging)
        if cursor is None or (members.enough and len(keys) >= members.max_items):
            return tuple(keys) if members.enough or len(keys) <= members.max_items else TOO_MANY
        if len(keys) > members.max_items or rows > bounds.limits.listed_rows_max_items:
            return TOO_MANY


def list_members_page(
    members: Members, cursor: Item | None, attributes: Mapping[str, Names], bounds: Bounds
) -> Work[Page | StoreError]:
    """List a page of members, with the attributes that rules read of them. Return the StoreError if it cannot be
    listed.
    """
    names = attributes[members.table] if members.index is None else NO_NAMES
    limit = bounds.limits.fan_out_page_max_items
    if members.enough and cursor is None:  # most likely one page is enough
        limit = min(limit, members.max_items)
    if bounds.out_of_time():
        return StoreError(OUT_OF_TIME)
    try:
        page: Page = yield List(
            members.table, members.index, members.conditions, limit, cursor, members.backward, names
        )
    except StoreError as error:
        return error
    return page
