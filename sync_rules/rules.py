"""Rules as the pipeline reads them: tables, entities, links and copy rules, checked and compiled once, then frozen.

`rulefile` makes these from YAML; nothing here knows of files. A `Ref` says where on a target a field is read, a `Find`
how a source finds its targets, a `Where` is the condition of a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sync_rules.attributes import AttributeValue, Item, Path, get
from sync_rules.expressions import Where
from sync_rules.keys import Fields, Template
from sync_rules.model import ItemKey

KeyType = Literal["S", "N", "B"]


@dataclass(frozen=True)
class KeyAttribute:
    """One attribute of a key schema."""

    name: str
    type: KeyType


@dataclass(frozen=True)
class Index:
    """A global secondary index; up to four attributes in its partition key and four in its sort key.

    `projection` is "all", "keys", or the names of the attributes projected beside the keys; None: not said.
    """

    name: str
    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...] = ()
    projection: Literal["all", "keys"] | tuple[str, ...] | None = None

    @property
    def attributes(self) -> tuple[KeyAttribute, ...]:
        return self.partition + self.sort


@dataclass(frozen=True)
class Table:
    """A table: its name in the rules file, its name in DynamoDB, its key and its indexes."""

    name: str
    physical_name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[Index, ...] = ()

    @property
    def key(self) -> tuple[KeyAttribute, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    def index(self, name: str) -> Index:
        return next(index for index in self.indexes if index.name == name)

    def key_of(self, item: Item) -> ItemKey | None:
        """The primary key inside an item or a record's Keys; None when an attribute is missing or of another type."""
        values = []
        for attribute in self.key:
            value = item.get(attribute.name)
            if value is None or attribute.type not in value:
                return None
            values.append((attribute.name, attribute.type, value[attribute.type]))
        return ItemKey(self.name, tuple(values))


@dataclass(frozen=True)
class Ref:
    """Where an entity's item carries a field: at a path, or inside a composite key attribute."""

    field: str
    path: Path
    template: Template | None = None

    def read(self, item: Item) -> AttributeValue | None:
        value = get(item, self.path)
        if self.template is None:
            return value
        bound = self.template.parse(value)
        return None if bound is None else bound.get(self.field)


@dataclass(frozen=True, eq=False)
class Entity:
    """A kind of item, recognised by its key. `templates` covers the table's key and may cover an index's."""

    name: str
    table: Table
    templates: Mapping[str, Template]

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The fields that name one item of this entity: those its key templates bind, in order."""
        names = [field for attribute in self.table.key for field in self.templates[attribute.name].fields]
        return tuple(dict.fromkeys(names))

    def fields(self, key: ItemKey) -> dict[str, AttributeValue] | None:
        """The identity fields bound by a key; None when the item is another entity's."""
        bound: dict[str, AttributeValue] = {}
        for name, kind, value in key.values:
            found = self.templates[name].parse({kind: value})
            if found is None:
                return None
            for field, content in found.items():
                if bound.setdefault(field, content) != content:
                    return None
        return bound

    def key_of(self, fields: Fields) -> ItemKey | None:
        """The key of the item these fields name; None when a field is missing or cannot stand in the key."""
        values = []
        for attribute in self.table.key:
            value = self.templates[attribute.name].build(fields, attribute.type)
            if value is None or value[attribute.type] in ("", b""):
                return None  # DynamoDB does not allow empty key attributes
            values.append((attribute.name, attribute.type, value[attribute.type]))
        return ItemKey(self.table.name, tuple(values))

    def ref(self, field: str) -> Ref:
        """Where items of this entity hold a field: base key templates, then index templates, else an attribute."""
        base = [attribute.name for attribute in self.table.key]
        for name in (*base, *(name for name in self.templates if name not in base)):
            template = self.templates[name]
            if template.whole == field:
                return Ref(field, (name,))
            if field in template.fields:
                return Ref(field, (name,), template)
        return Ref(field, tuple(field.split(".")))


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
            if value is None or value[attribute.type] in ("", b""):
                return None
            equals.append((attribute.name, value))
        for attribute, template in self.sort:
            if all(field in fields for field in template.fields):
                value = template.build(fields, attribute.type)
                if value is None:
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
        return tuple(dict.fromkeys([*(source for source, _ in self.mapping), *reads]))

    @cached_property
    def link_paths(self) -> tuple[Path, ...]:
        """The target paths that say which source it points to, without those inside its key, which cannot change."""
        keys = {attribute.name for attribute in self.target.table.key}
        return tuple(dict.fromkeys(ref.path for _, ref in self.link if ref.path[0] not in keys))

    @cached_property
    def where_paths(self) -> tuple[Path, ...]:
        """What `where` reads of a target."""
        return self.where.target_paths if self.where else ()

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
        """The entity an item belongs to by its key, or None: an item no rule speaks of."""
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
