"""The paths of items that rules read to do, or to leave out, each write of a transaction.

Invariant: every item that decided something is compared with its image. An item that was already right, or did not
exist, decides as much as an item whose value is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.numbers import SPELLING
from sync_rules.model.semantics import SETS, Place, is_same_item, make_place
from sync_rules.model.values import AttributeValue, Item, Path, get, has_changed, has_overlap, is_same_value
from sync_rules.model.writes import Condition, expect_item
from sync_rules.pipeline.requests import List
from sync_rules.rules.families import Part, PartRule, TargetRule
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Own, subtract_elements
from sync_rules.write.read_through import LISTED_MAX_ITEMS, ReadThrough

Paths = tuple[Path, ...] | None  # None: all of an item


class Needs:
    """The paths of each item, read before a write, that decided the write. `left` names the rules with work left to the
    stream: whether their copies are right is unknown.
    """

    def __init__(self, owns: Mapping[Place, Own], store: ReadThrough, rules: Rules, left: Collection[str]) -> None:
        self._owns = owns
        self._store = store
        self._rules = rules
        self._left = left
        self._needs: dict[Place, dict[Path, None] | None] = {}

    @property
    def places(self) -> Collection[Place]:
        """The items that decided something."""
        return self._needs

    def note(self, written: Collection[Place]) -> None:
        """Note what decided about the items that are written, and about those that stay as they are."""
        for place in written:
            self._note_needs(place)
        for place in self._store.before:
            self._note_right_copies(place, written)

    def guard(self, place: Place) -> tuple[Condition, ...]:
        """Return the conditions that an item still has, in all paths that decided, the values that were read."""
        if place not in self._needs:
            return ()
        key, before, needs = self._store.keys[place], self._store.before[place], self._needs[place]
        names = {name for name, _, _ in key.values}
        paths = [(name,) for name in before or ()] if needs is None else list(needs)
        return expect_item(key.values[0][0], before, (path for path in paths if path[0] not in names))

    def _need(self, key: ItemKey, paths: Paths) -> None:
        """Note that these paths of an item decided something."""
        place = make_place(key)
        if place not in self._store.before:
            return
        before = self._needs.get(place, {})
        self._needs[place] = None if paths is None or before is None else {**before, **dict.fromkeys(paths)}

    def _note_needs(self, place: Place) -> None:
        key, entity = self._store.keys[place], self._find_entity(place)
        if entity is None:
            return
        before, now = self._store.before[place], self._store.now(place)
        own = self._owns.get(place)
        if own is not None:
            self._need_own(own, before)
        change = Change(key, before, now)
        meant = now if now is not None or own is None else own.after(before)  # a rule may have moved it since
        for rule in self._rules.into_target(entity) if meant is not None else ():
            self._need_of_copies(rule, Change(key, before, meant), own)
        for of_source in self._rules.from_source(entity):
            if isinstance(of_source, TargetRule):
                for hint in of_source.hints(change):
                    self._need_right_copies(of_source, hint.target, (before, now))
        for part_rule in self._rules.parts_of(entity):
            for part in self._list_parts(part_rule, change, own):
                self._need_of_part(part)

    def _list_parts(self, rule: PartRule, change: Change, own: Own | None) -> Iterator[Part]:
        """The parts that a change concerns. An own item may also have lacked parts, which then come with it."""
        entity = self._rules.entity_of(change.key)
        if entity is None:
            return
        yield from rule.parts(change, entity)
        if own is not None and change.old is not None and change.new is not None:
            whole = rule.parts(replace(change, old=None), entity)
            yield from (part for part in whole if part.target != change.key and self._has_changed(part.target))

    def _need_of_part(self, part: Part) -> None:
        """Note what decided about a part: its source if the part is written, else the values that are right."""
        source = None if part.source is None else make_place(part.source)
        if source in self._store.before and self._has_changed(part.target):
            item = self._store.before[source]
            self._need(self._store.keys[source], () if item is None else part.rule.list_read_paths(item))
        self._need_absence(part.target)
        if (
            standing := self._list_stable_part_paths(part)
        ) is not None:  # as it should be: that must be so when it is written
            self._need(part.target, standing)

    def _note_right_copies(self, place: Place, written: Collection[Place]) -> None:
        """Note an item whose copies are right although the transaction writes a source of theirs."""
        item, entity = self._store.now(place), self._find_entity(place)
        for rule in () if item is None or entity is None else self._rules.into_target(entity):
            for source in map(make_place, rule.source_keys(item or {})):
                if source in written and self._is_read_of_changed(source, rule.watches_in_source):
                    self._need_right_copies(rule, self._store.keys[place])

    def _is_read_of_changed(self, place: Place, paths: Paths) -> bool:
        before, now = self._store.before[place] or {}, self._store.now(place) or {}
        return paths is None or has_changed(before, now, paths) or (not before) != (not now)

    def _need_right_copies(self, rule: TargetRule, key: ItemKey, of: Collection[Item | None] = ()) -> None:
        """Require that an item's copies are still right, or the item absent, when the transaction writes their source.
        `of`: that source before and after, if it is one of several; then only its own copies count.
        """
        place = make_place(key)
        before, now = self._store.before.get(place), self._store.now(place) if place in self._store.keys else None
        if before is None:
            self._need_absence(key)
        elif rule.title not in self._left and now is not None:
            copies = dict.fromkeys(path for one in of if one is not None for path in rule.copies_of(one, before))
            standing = _list_stable_paths(copies or rule.copies, before, now)
            if standing:
                self._need(key, (*rule.deciding_paths, *standing))
                if not of or any(one is not None and rule.is_member(key, one) is not False for one in of):
                    self._need_sources(rule, key, now)

    def _need_absence(self, key: ItemKey) -> None:
        """Note that there was no item to write on: one that came meanwhile has listed its sources without this one."""
        place = make_place(key)
        if self._store.before.get(place) is None and not self._has_changed(key):
            self._need(key, ())

    def _need_of_copies(self, rule: TargetRule, change: Change, own: Own | None) -> None:
        """Note what decided about the copies of one rule: a source that is not there, or says nothing, decides too. A
        copy that comes meanwhile would go with what erases it.
        """
        key, before, now = change.key, change.old, change.new
        if now is None:
            return
        kept, looked = self._keeps_values(rule, own, before, now), rule.pulls(change)
        if kept or looked:
            self._need_sources(rule, key, now)
        if looked and before is not None and not (kept and own is not None and own.verb == "put"):
            self._need(key, _list_stable_paths(rule.copies, before, now))  # they were found right, or there were none
        if own is None:
            return
        if _mentions(own, rule.relevant_paths) and not rule.pulls(Change(key, before, own.after(before))):
            self._need(key, rule.relevant_paths)  # the rule had no reason to look: all is as it was
        if _mentions(own, rule.copies) and not kept:
            self._need(key, rule.copies)

    def _need_own(self, own: Own, before: Item | None) -> None:
        """Note that the old image of an own item decides: the items that it named must lose its copies."""
        entity = own.entity
        reading = [rule.watches_in_source for rule in self._rules.from_source(entity) if isinstance(rule, TargetRule)]
        for rule in self._rules.parts_of(entity):
            if rule.source is entity:
                reading.append(() if before is None else rule.list_read_paths(before))
            if rule.target is entity and _mentions(own, rule.copies):
                reading.append(rule.copies)
        if own.verb != "check":
            for paths in reading:
                self._need(own.key, paths)
        if own.new or (before is None and self._rules.into_target(entity)):
            self._need(own.key, ())

    def _keeps_values(self, rule: TargetRule, own: Own | None, before: Item | None, now: Item) -> bool:
        """True if a rule has given this item a value, or the application has put one that the rule found right."""
        if own is not None and own.verb == "put":
            return any(get(now, path) is not None or get(before, path) is not None for path in rule.copies)
        return any(not is_same_value(get(before, path), get(now, path)) for path in rule.copies)

    def _need_sources(self, rule: TargetRule, key: ItemKey, item: Item) -> None:
        marks = () if rule.books is None else (rule.books.mark,)
        for source in rule.source_keys(item):
            if source not in marks:
                self._need(source, rule.watches_in_source)
        members = rule.members(key, item)
        if members is not None:
            limit = min(members.max_items, LISTED_MAX_ITEMS) if members.enough else LISTED_MAX_ITEMS
            asked = List(members.table, members.index, members.conditions, limit, None, members.backward)
            for row in self._store.list_known_items(asked).items:
                member = rule.source.table.key_of(row)
                if member is not None and rule.is_member(key, self._store.item(member) or {}) is True:
                    self._need(member, rule.watches_in_source)

    def _list_stable_part_paths(self, part: Part) -> Paths:
        """The paths to compare for a part that stays as it was, though its item may change. None for a part that
        comes, changes or goes. Other elements of its set may come and go.
        """
        before, now = self._store.before.get(make_place(part.target)), self._store.item(part.target)
        if before is None or now is None:
            return None
        if not self._has_changed(part.target):
            return part.rule.list_compared_paths(before)
        if not part.element:
            return _list_stable_paths(part.rule.list_compared_paths(before), before, now) or None
        stands = all(
            _has_element(part.element, get(before, to)) == _has_element(part.element, get(now, to))
            for to in part.rule.copies
        )
        return part.rule.copies if stands else None

    def _has_changed(self, key: ItemKey) -> bool:
        place = make_place(key)
        return place in self._store.before and not is_same_item(self._store.before[place], self._store.now(place))

    def _find_entity(self, place: Place) -> Entity | None:
        return self._rules.entity_of(self._store.keys[place])


def _list_stable_paths(paths: Iterable[Path], before: Item, now: Item) -> tuple[Path, ...]:
    return tuple(path for path in paths if is_same_value(get(before, path), get(now, path)))


def _mentions(own: Own, paths: Iterable[Path]) -> bool:
    """True if an action of the application says something of these paths: a put does of all of them."""
    if own.verb == "update":
        return any(has_overlap(path, other) for path in own.paths for other in paths)
    return own.verb != "check"


def _has_element(element: str, value: AttributeValue | None) -> bool:
    """True if a set holds an element. A text that is not a number is in no set of numbers."""
    kind = next(iter(SETS & (value or {}).keys()), None)
    if kind is None or (kind == "NS" and SPELLING.fullmatch(element) is None):
        return False
    return subtract_elements(kind, [element], (value or {})[kind]) is None
