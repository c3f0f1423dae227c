"""The rules of one file, compiled and frozen, and an index from an item to the rules that concern it.

Invariant: an item is of one entity by its key, and its entity alone says which rules concern it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeVar

from sync_rules.model.cache import find_once
from sync_rules.model.entities import KEYS_KEPT_MAX, Entity, Table, parse_address
from sync_rules.model.errors import RecordError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import Find
from sync_rules.model.templates import Beginnings
from sync_rules.model.values import Item, Path
from sync_rules.rules.families import EffectRule, PartRule, TargetRule
from sync_rules.rules.record_filter import RecordFilter
from sync_rules.rules.rule import Rule

T = TypeVar("T")
STREAMS_KEPT_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class Concern:
    """The rules that an event on an item of an entity concerns, by their task. `listed`: rules whose index must list
    the items, each with its Query.
    """

    reading: tuple[Rule, ...]
    into: tuple[TargetRule, ...]
    anchored: tuple[Rule, ...]
    hinting: tuple[TargetRule, ...]
    effects: tuple[EffectRule, ...]
    parts: tuple[PartRule, ...]
    listed: tuple[tuple[Rule, Find], ...]

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(dict.fromkeys((*self.reading, *self.into, *self.parts, *self.anchored)))

    @property
    def leads_on(self) -> bool:
        """True if a write of one rule can give another rule work."""
        return bool(self.reading or self.parts or self.anchored or len(self.into) > 1)


@dataclass(frozen=True)
class Rules:
    """One compiled rules file. `fingerprint` changes with everything that matters to the pipeline. `sections`: the
    compiled sections for tools, by name; no function reads them.
    """

    tables: Mapping[str, Table]
    entities: Mapping[str, Entity]
    rules: Mapping[str, Rule]
    fingerprint: str = ""
    sections: Mapping[str, object] = field(default_factory=dict)

    @property
    def declared_entities(self) -> tuple[Entity, ...]:
        """The entities that the file declares. Those of the pipeline's own books have a dot in their names."""
        return tuple(entity for name, entity in self.entities.items() if "." not in name)

    @cached_property
    def by_physical_name(self) -> Mapping[str, tuple[Table, ...]]:
        """Tables by their name in DynamoDB; those of one name are of different Regions or accounts."""
        found: dict[str, tuple[Table, ...]] = {}
        for table in self.tables.values():
            found[table.address.name] = (*found.get(table.address.name, ()), table)
        return found

    def find_table_of_stream(self, arn: str) -> Table | None:
        """Find the table of a stream by the ARN of either, or by the table's name. None if no rule uses the table.

        Raises:
            RecordError: if several tables fit.
        """
        return find_once(self._of_streams, arn, self._find_table, STREAMS_KEPT_MAX)

    @cached_property
    def _of_streams(self) -> dict[str, Table | None]:
        return {}

    def _find_table(self, arn: str) -> Table | None:
        address = parse_address(arn)
        found = self.by_physical_name.get(address.name, ())
        if len(found) > 1:
            found = tuple(table for table in found if table.address.may_be(address))
            if len(found) != 1:
                names = " and ".join(table.name for table in self.by_physical_name[address.name])
                raise RecordError(f"the stream or the record may belong to any of the tables {names}")
        return found[0] if found else None

    @cached_property
    def _by_table(self) -> Mapping[str, tuple[Entity, ...]]:
        return _group_by_name(((entity.table.name, entity) for entity in self.entities.values()), self.tables)

    @cached_property
    def _by_beginning(self) -> Mapping[str, Beginnings[Beginnings[tuple[Entity, ...]]]]:
        """The entities of each table by what their partition keys begin with, then their sort keys."""
        return {
            name: Beginnings(
                {begins: Beginnings(_group_by_literal(some, -1)) for begins, some in _group_by_literal(of, 0).items()}
            )
            for name, of in self._by_table.items()
        }

    @cached_property
    def _around(self) -> Mapping[str, tuple[Rule, ...]]:
        """The rules that have each entity as their source or their target."""
        rules = self.rules.values()
        sides = ((name, rule) for rule in rules for name in dict.fromkeys((rule.source.name, rule.target.name)))
        return _group_by_name(sides, self.entities)

    @cached_property
    def _by_former_name(self) -> Mapping[str, Rule]:
        return {rule.former_name: rule for rule in self.rules.values() if rule.former_name is not None}

    def find_rule_by_name(self, name: str) -> Rule | None:
        """Return the rule with this name or former name; None if unknown. Messages and failures outlive names."""
        return self.rules.get(name) or self._by_former_name.get(name)

    def entity_of(self, key: ItemKey) -> Entity | None:
        """Find the entity of an item by its key. None if no entity of the rules file has such a key."""
        return find_once(self._known_entities, key, self._find_entity, KEYS_KEPT_MAX)

    @cached_property
    def _known_entities(self) -> dict[ItemKey, Entity | None]:
        return {}

    def _find_entity(self, key: ItemKey) -> Entity | None:
        by_partition = self._by_beginning.get(key.table)
        if by_partition is None or not key.values:
            return None
        partition, sort = key.values[0][2], key.values[-1][2]
        first, last = partition if isinstance(partition, str) else "", sort if isinstance(sort, str) else ""
        for length in by_partition.lengths:  # loops, as in the filter of records: every record comes by here
            by_sort = by_partition.values.get(first[:length])
            if by_sort is None:
                continue
            for sort_length in by_sort.lengths:
                for entity in by_sort.values.get(last[:sort_length], ()):
                    if entity.has(key):
                        return entity
        return None

    def only(self, names: Iterable[str]) -> Rules:
        """Return a rule set with the rules of these names alone, on the same tables."""
        return replace(self, rules={name: self.rules[name] for name in names})

    def select_titles(self, titles: Container[str] | None) -> Rules:
        """Return a rule set with the rules of these names in the rules file; None: all."""
        return self if titles is None else self.only(n for n, rule in self.rules.items() if rule.title in titles)

    def from_source(self, entity: Entity) -> tuple[Rule, ...]:
        return self.find_concern(entity).reading

    def into_target(self, entity: Entity) -> tuple[TargetRule, ...]:
        """Return the rules that keep attributes of this entity. A check of a target always checks all of them."""
        return self.find_concern(entity).into

    def parts_of(self, entity: Entity) -> tuple[PartRule, ...]:
        """Return the rules whose parts are made from, or written on, items of this entity."""
        return self.find_concern(entity).parts

    def list_blind_rules(self, entity: Entity, item: Item, *, at_rest: bool = False) -> tuple[Rule, ...]:
        """Return the rules that cannot find this item: it lacks a key attribute of their index, and no rule will write
        it. `at_rest`: rules that read other items have already written.
        """
        return tuple(
            rule
            for rule, find in self.find_concern(entity).listed
            if any(
                not self._can_be_filled(entity, (one.name,), item, at_rest=at_rest)
                for one in find.list_missing_attributes(item)
            )
            and rule.points(item)
        )

    def find_concern(self, entity: Entity) -> Concern:
        name = entity.name
        if name not in self._concerns:
            around = self._around[name]
            reading = tuple(rule for rule in around if rule.source.name == name)
            listing = ((rule, rule.find) for rule in around if rule.find and rule.find.needs and not rule.sparse)
            self._concerns[name] = Concern(
                reading,
                tuple(rule for rule in around if isinstance(rule, TargetRule) and rule.target.name == name),
                tuple(rule for rule in around if rule.find is not None and rule.anchor.name == name),
                tuple(rule for rule in reading if isinstance(rule, TargetRule)),
                tuple(rule for rule in reading if isinstance(rule, EffectRule)),
                tuple(rule for rule in around if isinstance(rule, PartRule)),
                tuple((rule, find) for rule, find in listing if rule.listed_entity.name == name),
            )
        return self._concerns[name]

    @cached_property
    def _concerns(self) -> dict[str, Concern]:
        return {}

    def list_rules_in_reach(self, change: Change, entity: Entity) -> tuple[Rule, ...]:
        """Return the rules whose index lists the new image of a change and did not list the old one."""
        old, new = change.old, change.new
        if old is None or new is None:
            return ()
        listing = self.find_concern(entity).listed
        return tuple(
            rule
            for rule, find in listing
            if find.list_missing_attributes(old) and not find.list_missing_attributes(new)
        )

    def _can_be_filled(self, entity: Entity, path: Path, item: Item, *, at_rest: bool) -> bool:
        fills = [rule.fills(path, item) for rule in self.into_target(entity) if path in rule.copies]
        return True in fills or (not at_rest and None in fills)

    @cached_property
    def keeper_names(self) -> frozenset[str]:
        """The names of the rules that keep data in tables."""
        return frozenset(name for name, rule in self.rules.items() if rule.swept_entities)

    @cached_property
    def functions(self) -> Mapping[str, str]:
        return {name: rule.calls for name, rule in self.rules.items() if rule.calls}

    @cached_property
    def times_to_live(self) -> Mapping[str, str]:
        """The attribute of Time to Live of each table that must have one, by the table's name."""
        stated = {name: table.ttl for name, table in self.tables.items() if table.ttl is not None}
        return {**stated, **self.needed_times_to_live}

    @cached_property
    def needed_times_to_live(self) -> Mapping[str, str]:
        """The attribute of Time to Live of each table where a rule needs it, by the table's name."""
        return {table.name: name for rule in self.rules.values() for table, name in rule.times_to_live}

    @cached_property
    def record_filters(self) -> Mapping[str, RecordFilter]:
        concerned = {name: {one: self.find_concern(one).rules for one in of} for name, of in self._by_table.items()}
        return {name: RecordFilter(table, concerned[name]) for name, table in self.tables.items()}

    @cached_property
    def streamed_tables(self) -> tuple[Table, ...]:
        """The tables whose records the rules must see: each needs a stream with both images."""
        names = {table.name for rule in self.rules.values() for table in rule.streamed_tables}
        return tuple(table for name, table in self.tables.items() if name in names)


def _group_by_name(pairs: Iterable[tuple[str, T]], names: Iterable[str]) -> Mapping[str, tuple[T, ...]]:
    """Group values by name, in order; an empty tuple for a name without values."""
    found: dict[str, list[T]] = {name: [] for name in names}
    for name, value in pairs:
        if name in found:
            found[name].append(value)
    return {name: tuple(values) for name, values in found.items()}


def _group_by_literal(entities: Iterable[Entity], place: int) -> Mapping[str, tuple[Entity, ...]]:
    """Entities by what the key attribute in this place begins with."""
    found: dict[str, tuple[Entity, ...]] = {}
    for entity in entities:
        begins = entity.templates[entity.table.key[place].name].literals[0]
        found[begins] = (*found.get(begins, ()), entity)
    return found
