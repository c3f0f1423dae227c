"""Rules as the pipeline reads them: checked and compiled once, then frozen. `rulefile` makes them from YAML.

Law: a rule says which source a target points to (its link), how a source finds its targets, what the copies must equal,
and every path that matters to any of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sync_rules.attributes import AttributeValue, Item, Path, get, overlaps
from sync_rules.entities import Entity, KeyAttribute, Ref, Table
from sync_rules.expressions import Where
from sync_rules.keys import PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES, Fields, Template, possible
from sync_rules.model import ItemKey

Link = tuple[tuple[str, Ref], ...]


@dataclass(frozen=True)
class Find:
    """How a source finds the targets that point to it: one Query, of the base table or of an index.

    Each key attribute comes with the template that builds it from target fields; `sort` holds those sort key attributes
    that can be narrowed, of which the last may be known by its beginning only.
    """

    index: str | None
    partition: tuple[tuple[KeyAttribute, Template], ...]
    sort: tuple[tuple[KeyAttribute, Template], ...] = ()

    def conditions(self, fields: Fields) -> KeyConditions | None:
        """The Query's key conditions for a source with these fields (named as on the target); None: no such targets."""
        equals: list[tuple[str, AttributeValue]] = []
        for attribute, template in self.partition:
            value = template.build(fields, attribute.type)
            if value is None or not possible(value, PARTITION_KEY_MAX_BYTES):
                return None
            equals.append((attribute.name, value))
        for attribute, template in self.sort:
            if all(field in fields for field in template.fields):
                value = template.build(fields, attribute.type)
                if value is None or not possible(value, SORT_KEY_MAX_BYTES):
                    return None
                equals.append((attribute.name, value))
            elif attribute.type == "S" and template.prefix(fields):
                return KeyConditions(tuple(equals), (attribute.name, template.prefix(fields)))
            else:
                break
        return KeyConditions(tuple(equals))


@dataclass(frozen=True)
class KeyConditions:
    """Key attributes that must equal a value and, at most, one string that must begin with a prefix."""

    equals: tuple[tuple[str, AttributeValue], ...]
    begins_with: tuple[str, str] | None = None


@dataclass(frozen=True, eq=False)
class CopyRule:
    """One copy rule: attributes of a source kept equal on every target that points to it.

    `mapping` pairs source paths with target paths. `link` pairs each identity field of the source with the place on the
    target where it is read. `settle_seconds` is how long an index may lag before the second look at its targets.
    """

    name: str
    source: Entity
    target: Entity
    mapping: tuple[tuple[Path, Path], ...]
    link: Link
    find: Find
    where: Where | None = None
    mode: Literal["live", "snapshot"] = "live"
    on_delete: Literal["keep", "clear", "delete"] = "keep"
    strict: bool = False
    settle_seconds: int = 60

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        """The target paths this rule writes; no other rule writes them."""
        return tuple(target for _, target in self.mapping)

    @cached_property
    def source_paths(self) -> tuple[Path, ...]:
        """What this rule reads of a source: a change of any of these pushes."""
        reads = self.where.source_paths if self.where else ()
        named = [*(source for source, _ in self.mapping), *reads]
        return tuple(dict.fromkeys(self.source.stored(path) for path in named))

    @cached_property
    def link_paths(self) -> tuple[Path, ...]:
        """The target paths that say which source it points to, without those inside its key, which cannot change."""
        keys = {attribute.name for attribute in self.target.table.key}
        return tuple(dict.fromkeys(ref.path for _, ref in self.link if ref.path[0] not in keys))

    @cached_property
    def where_paths(self) -> tuple[Path, ...]:
        """What `where` reads of a target, without what its key binds, which cannot change."""
        keys = {attribute.name for attribute in self.target.table.key}
        stored = (self.target.stored(path) for path in (self.where.target_paths if self.where else ()))
        return tuple(dict.fromkeys(path for path in stored if path[0] not in keys))

    def where_holds(self, source: Item, target: Item) -> bool:
        """Whether the rule speaks of this pair."""
        if self.where is None:
            return True
        return self.where.holds(
            self.source.view(source, self.where.source_paths), self.target.view(target, self.where.target_paths)
        )

    def values(self, source: Item) -> dict[Path, AttributeValue | None]:
        """What each copy must hold, given a source."""
        view = self.source.view(source, (path for path, _ in self.mapping))
        return {to: get(view, path) for path, to in self.mapping}

    @cached_property
    def relevant_paths(self) -> tuple[Path, ...]:
        """A change of any of these on a target is a reason to look at it: link, copies, `where`, and the keys of the
        index by which it is listed, because an item that moves inside an index can slip past a page.
        """
        keys = [a.name for a in self.target.table.index(self.find.index).attributes] if self.find.index else []
        return tuple(dict.fromkeys([*self.link_paths, *self.copies, *self.where_paths, *((name,) for name in keys)]))

    def source_key(self, target: Item) -> ItemKey | None:
        """The key of the source that a target points to; None when it points to none."""
        fields: dict[str, AttributeValue] = {}
        for field, ref in self.link:
            value = ref.read(target)
            if value is None:
                return None
            fields[field] = value
        return self.source.key_of(fields)

    def target_fields(self, source: ItemKey) -> Fields:
        """The source's identity as its targets name it: what `find` lists by."""
        fields = self.source.fields(source) or {}
        return {ref.field: fields[field] for field, ref in self.link}


Rule = CopyRule  # other kinds join here


def causes(writer: CopyRule, written: int, rule: CopyRule, index: int) -> bool:
    """Whether what one pair of a rule's mapping writes decides what the copy of another pair, of any rule, must be."""
    path = writer.copies[written]
    reads = [rule.mapping[index][0], *(rule.where.source_paths if rule.where else ())]
    if writer.target is rule.source and any(overlaps(path, read) for read in reads):
        return True
    if writer is rule:
        return False  # a rule that writes its own link or `where` is an error of its own
    reads = [*rule.link_paths, *rule.where_paths]
    return writer.target is rule.target and any(overlaps(path, read) for read in reads)


@dataclass(frozen=True)
class Rules:
    """One rules file, compiled. `fingerprint` changes when anything that matters to the pipeline does."""

    tables: Mapping[str, Table]
    entities: Mapping[str, Entity]
    rules: Mapping[str, Rule]
    fingerprint: str = ""

    @cached_property
    def by_physical_name(self) -> Mapping[str, Table]:
        """Tables by their name in DynamoDB, which may be given as an ARN."""
        return {table.physical_name.rpartition("/")[2]: table for table in self.tables.values()}

    @cached_property
    def _by_table(self) -> Mapping[str, tuple[Entity, ...]]:
        return {
            name: tuple(entity for entity in self.entities.values() if entity.table.name == name)
            for name in self.tables
        }

    @cached_property
    def _as_source(self) -> Mapping[str, tuple[Rule, ...]]:
        return {n: tuple(r for r in self.rules.values() if r.source.name == n) for n in self.entities}

    @cached_property
    def _as_target(self) -> Mapping[str, tuple[Rule, ...]]:
        return {n: tuple(r for r in self.rules.values() if r.target.name == n) for n in self.entities}

    def entity_of(self, key: ItemKey) -> Entity | None:
        """The entity an item belongs to by its key, or None: an item no rule speaks of, or no key of its table."""
        table = self.tables.get(key.table)
        if table is None or len(key.values) != len(table.key):
            return None
        if any(a.name != name or a.type != kind for a, (name, kind, _) in zip(table.key, key.values, strict=True)):
            return None
        for entity in self._by_table.get(key.table, ()):
            if entity.fields(key) is not None:
                return entity
        return None

    def from_source(self, entity: Entity) -> tuple[Rule, ...]:
        """The rules that read this entity."""
        return self._as_source[entity.name]

    def into_target(self, entity: Entity) -> tuple[Rule, ...]:
        """The rules that write this entity. A look at a target always checks all of them."""
        return self._as_target[entity.name]

    @cached_property
    def streamed_tables(self) -> tuple[Table, ...]:
        """The tables that hold a source or a target: each needs a stream with both images."""
        names = {entity.table.name for rule in self.rules.values() for entity in (rule.source, rule.target)}
        return tuple(table for name, table in self.tables.items() if name in names)
