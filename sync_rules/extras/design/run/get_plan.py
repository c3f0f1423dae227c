"""Run `get`: a GetItem, a Query, or a BatchGetItem, and the reads that follow it.

Invariant: the requests are those of the proof. An item that no longer exists when it is read by its key is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sync_rules.extras.design.patterns.answers import PatternAnswer, ProvedRequest
from sync_rules.extras.design.patterns.declarations import GetPattern
from sync_rules.extras.design.patterns.gets import map_mirror_names
from sync_rules.extras.design.run.arguments import CallValues
from sync_rules.extras.design.run.key_conditions import list_formula_fields, make_check, make_condition, make_key
from sync_rules.extras.design.run.projection import OutputAttribute, Sight, list_key_paths, list_output_attributes
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.values import AttributeValue, Item, Path
from sync_rules.read.listing import Listing
from sync_rules.read.reader import Reader
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.ruleset import Rules

View = dict[str, AttributeValue] | None
OtherRead = tuple[tuple[OutputAttribute, ...], Callable[[Item], ItemKey | None], ProvedRequest]
FoundItem = Item | None  # an item as the pattern returns it, raw; None for one that is not asked for


@dataclass(frozen=True)
class GetPlan:
    """A proved `get` pattern, ready to run."""

    rules: Rules
    answer: PatternAnswer
    pattern: GetPattern
    reader: Reader

    # ------------------------------------------------------------ steps
    @property
    def first(self) -> ProvedRequest:
        """The request that finds items, or rows."""
        return self.answer.steps[0]

    @cached_property
    def mirror(self) -> MirrorRule | None:
        """The rule whose mirrors are read instead of the pattern's entity, or None."""
        if self.first.entity.name == self.pattern.entity:
            return None
        return next(
            rule
            for rule in self.rules.rules.values()
            if isinstance(rule, MirrorRule)
            and rule.target is self.first.entity
            and rule.source.name == self.pattern.entity
            and rule.title in self.answer.use.rules
        )

    @cached_property
    def again(self) -> ProvedRequest | None:
        """The read of items whose rows an index shows."""
        return self._find_next_step(self.first.entity) if self.first.index is not None else None

    @cached_property
    def source(self) -> ProvedRequest | None:
        """The read of the sources of mirrors."""
        return None if self.mirror is None else self._find_next_step(self.mirror.source)

    def _find_next_step(self, entity: Entity) -> ProvedRequest | None:
        return next((step for step in self.answer.steps[1:] if step.entity is entity), None)

    @cached_property
    def sight(self) -> Sight:
        """The items that are returned, or their mirrors."""
        if self.source is not None:
            return Sight(self.rules, self.source.entity)
        return Sight(self.rules, self.first.entity, self.mirror)

    @cached_property
    def row_sight(self) -> Sight:
        """The rows that the first request finds."""
        return Sight(self.rules, self.first.entity, self.mirror)

    # ------------------------------------------------------------ what is asked for
    @cached_property
    def output_attributes(self) -> list[OutputAttribute] | None:
        """The attributes to return; None for whole items."""
        if self.pattern.returns is None:
            return None
        entity = self.rules.entities[self.pattern.entity]
        found = list_output_attributes(self.rules, entity, self.pattern.returns, self.sight.entity)
        steps = {step.entity for step in self.answer.steps[1:]}
        lost = [one.name for one in found if one.other is not None and one.other not in steps]
        if lost:
            raise UserError(
                f"pattern {self.pattern.name}: no request reads {', '.join(lost)}",
                f"copy it onto {entity.name}, or leave it out of `attributes`",
            )
        return found

    @cached_property
    def others(self) -> dict[Entity, OtherRead]:
        """The other entities whose attributes are returned: the attributes, the key that an item names, and the
        step.
        """
        found: dict[Entity, OtherRead] = {}
        for other in dict.fromkeys(one.other for one in self.output_attributes or () if one.other is not None):
            mine = tuple(one for one in self.output_attributes or () if one.other is other)
            step = next(step for step in self.answer.steps[1:] if step.entity is other)
            found[other] = (mine, self._make_pointer(other), step)
        return found

    def _link(self, other: Entity) -> LinkedRule | None:
        """Find a rule that links these items to an item of another entity."""
        rules = (rule for rule in self.rules.rules.values() if isinstance(rule, LinkedRule))
        return next((rule for rule in rules if rule.source is other and rule.target is self.sight.entity), None)

    def _make_pointer(self, other: Entity) -> Callable[[Item], ItemKey | None]:
        linked = self._link(other)
        if linked is not None:
            return linked.pointer

        def find_key(item: Item) -> ItemKey | None:
            values = {name: self.sight.read(item, name) for name in other.identity}
            return other.key_of({name: value for name, value in values.items() if value is not None})

        return find_key

    def _list_link_paths(self, other: Entity) -> tuple[Path, ...]:
        linked = self._link(other)
        if linked is not None:
            return tuple(ref.path for _, ref in linked.link)
        return tuple(self.sight.path(name) for name in other.identity)

    @cached_property
    def needed_paths(self) -> tuple[Path, ...] | None:
        """The paths of the items that are returned; None for all."""
        if self.output_attributes is None:
            return None
        own = [self.sight.path(one.field) for one in self.output_attributes if one.other is None]
        linked = [path for other in self.others for path in self._list_link_paths(other)]
        asked = [] if self.pattern.where is None else [self.sight.path(path[0]) for path in self.pattern.where.paths]
        return tuple(dict.fromkeys((*list_key_paths(self.sight.entity), *own, *linked, *asked)))

    @cached_property
    def projects(self) -> tuple[Path, ...] | None:
        """The paths of the first request; None for all that it can show."""
        more = [
            self.row_sight.path(name)
            for name in self.row_sight.list_shown_fields(self.first.index, list_formula_fields(self.first))
        ]
        keys = list_key_paths(self.first.entity, self.first.index)
        if self.again is not None:
            return (*keys, *more)
        if self.source is not None:
            names = () if self.mirror is None else tuple(ref.path for _, ref in self.mirror.names)
            return tuple(dict.fromkeys((*keys, *names, *more)))
        return None if self.needed_paths is None else tuple(dict.fromkeys((*keys, *self.needed_paths, *more)))

    @cached_property
    def _filters(self) -> bool:
        return self.pattern.where is not None and any(step.filters for step in self.answer.steps)

    # ------------------------------------------------------------ runs
    def _complete_values(self, given: CallValues) -> CallValues:
        fixed = CallValues({**dict(self.pattern.fixed), **given.fields}, given.least, given.greatest, given.beginning)
        return fixed if self.mirror is None else fixed.rename_fields(map_mirror_names(self.mirror))

    def one(self, given: CallValues) -> FoundItem:
        """Return the item of a GetItem, or the first item of a Query."""
        if self.first.request != "GetItem":
            found, _ = self.page(given, 1, None)
            return found[0] if found else None
        (item,) = self._complete_items([self._read_by_key(given)])
        return item

    def _read_by_key(self, given: CallValues) -> FoundItem:
        given = self._complete_values(given)
        key = make_key(self.first, given)
        table = self.first.entity.table
        item = self.reader.item(table, key, projects=self.projects, consistent=self.first.consistent or None)
        return item if item is not None and make_check(self.first, given)(item) else None

    def key(self, given: CallValues) -> ItemKey | None:
        """Return the key that a call names; None if no item can have it."""
        return make_key(self.first, self._complete_values(given))

    def batch(self, given: Sequence[CallValues]) -> list[FoundItem]:
        """The items of these keys, in their order."""
        keys = [self.key(one) for one in given]
        table = self.first.entity.table
        items = self.reader.get(table, keys, projects=self.projects, consistent=self.first.consistent or None)
        return self._complete_items(items)

    def page(self, given: CallValues, limit: int | None, cursor: str | None) -> tuple[list[Item], str | None]:
        """Return some items and the token of the next page. Without a limit: those of one response of at most 1 MB."""
        if self.first.request == "GetItem":
            if cursor is not None:
                raise UserError(f"pattern {self.pattern.name} finds one item: no cursor leads on")
            item = self._complete_items([self._read_by_key(given)])[0]
            return ([] if item is None else [item]), None
        if limit is not None and limit < 1:
            raise UserError(f"limit is {limit}: expected at least 1")
        listing = self._make_listing(given)
        start = None if cursor is None else listing.decode(cursor)
        found: list[Item] = []
        while True:
            rows, after = listing.ask(start, self._ask(limit, len(found)))
            more = False
            if not self._filters and limit is not None:
                more, rows = len(rows) > limit - len(found), rows[: limit - len(found)]
            for at, (row, item) in enumerate(zip(rows, self._complete_items(rows), strict=True), 1):
                if item is None:
                    continue
                found.append(item)
                if len(found) == limit:
                    start = after if at == len(rows) and not more else self._start(row)
                    return found, None if start is None else listing.encode(start)
            start = after
            if start is None or limit is None:
                return found, None if start is None else listing.encode(start)

    def _ask(self, limit: int | None, found: int) -> int | None:
        """The number of rows to read: more than are wanted, where a filter keeps a part."""
        if limit is None:
            return None
        keeps = self.pattern.keeps if self._filters and self.pattern.keeps else 1
        return math.ceil((limit - found) / keeps)

    def all(self, given: CallValues) -> Iterator[Item]:
        """Every item."""
        if self.first.request == "GetItem":
            row = self._read_by_key(given)
            yield from (item for item in self._complete_items([row]) if item is not None)
            return
        listing = self._make_listing(given)
        start: Item | None = None
        while True:
            rows, start = listing.ask(start, None)
            yield from (item for item in self._complete_items(rows) if item is not None)
            if start is None:
                return

    def _make_listing(self, given: CallValues) -> Listing:
        given = self._complete_values(given)
        condition = make_condition(self.first, given)
        index = self.first.index
        fetches = index is not None and index.local and index.projection not in ("all", None)
        return Listing(
            self.reader,
            self.first.entity.table,
            condition.conditions,
            None if index is None else index.name,
            self.first.backward,
            make_check(self.first, given),
            condition.within,
            self.projects,
            self.first.consistent or None,
            whole=fetches and self.projects is None,
        )

    def _start(self, row: Item) -> Item:
        """The key after which a Query goes on behind a row."""
        return {name: row[name] for (name,) in list_key_paths(self.first.entity, self.first.index)}

    # ------------------------------------------------------------ what follows
    def _complete_items(self, rows: Sequence[FoundItem]) -> list[FoundItem]:
        """The items of rows as the pattern returns them; None for one that is gone, or that the condition drops."""
        items = self._read_sources(self._read_whole_items(rows))
        if self._filters:
            items = [item if item is not None and self._is_let_in(item) else None for item in items]
        return self._make_views(items)

    def _is_let_in(self, item: Item) -> bool:
        """True if the pattern's condition holds; of a mirror by the names that its source has for the fields."""
        where, sight = self.pattern.where, self.sight
        assert where is not None, "a filter is a condition"
        if sight.mirror is None:
            return where.holds_for(item, sight.entity)
        read = {path[0]: sight.read(item, path[0]) for path in where.paths}
        seen = {name: value for name, value in read.items() if value is not None}
        return where.holds(seen, seen)

    def _read_whole_items(self, rows: Sequence[FoundItem]) -> Sequence[FoundItem]:
        if self.again is None:
            return rows
        table = self.again.entity.table
        keys = [None if row is None else table.key_of(row) for row in rows]
        projects = self.needed_paths
        if self.source is not None and self.mirror is not None:
            projects = (*list_key_paths(self.again.entity), *(ref.path for _, ref in self.mirror.names))
        return self._read(self.again, keys, projects)

    def _read_sources(self, rows: Sequence[FoundItem]) -> Sequence[FoundItem]:
        if self.source is None or self.mirror is None:
            return rows
        pointer = self.mirror.pointer
        keys = [None if row is None else pointer(row) for row in rows]
        return self._read(self.source, keys, self.needed_paths)

    def _read(
        self, step: ProvedRequest, keys: Sequence[ItemKey | None], projects: tuple[Path, ...] | None
    ) -> Sequence[FoundItem]:
        table, consistent = step.entity.table, step.consistent or None
        if step.request == "GetItem" and len(keys) == 1:
            return [self.reader.item(table, keys[0], projects=projects, consistent=consistent)]
        return self.reader.get(table, keys, projects=projects, consistent=consistent)

    def _make_views(self, items: Sequence[FoundItem]) -> list[FoundItem]:
        if self.output_attributes is None:
            return [*items]
        views: list[View] = [None if item is None else {} for item in items]
        own = [one for one in self.output_attributes if one.other is None]
        self._fill(views, items, self.sight, own)
        for other, (mine, pointer, step) in self.others.items():
            sight = Sight(self.rules, other)
            keys = [None if item is None else pointer(item) for item in items]
            paths = (*list_key_paths(other), *(sight.path(one.field) for one in mine))
            self._fill(views, self._read(step, keys, paths), sight, mine)
        return [
            None if view is None else {one.name: view[one.name] for one in self.output_attributes if one.name in view}
            for view in views
        ]

    @staticmethod
    def _fill(
        views: Sequence[dict[str, AttributeValue] | None],
        items: Sequence[FoundItem],
        sight: Sight,
        asked: Sequence[OutputAttribute],
    ) -> None:
        for view, item in zip(views, items, strict=True):
            for one in asked if view is not None and item is not None else ():
                value = sight.read(item or {}, one.field)
                if view is not None and value is not None:
                    view[one.name] = value
