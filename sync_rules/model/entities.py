"""Tables and entities: the kinds of items, the key templates that recognise them, and where items keep their fields.

Invariant: the key alone says to which entity an item belongs. A field that a key template binds is read from the key;
any other is an attribute of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from sync_rules.model.cache import find_once
from sync_rules.model.items import ItemKey
from sync_rules.model.templates import PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES, Fields, Template, is_possible
from sync_rules.model.values import AttributeValue, Item, Path, get

KeyType = Literal["S", "N", "B"]
Distance = Literal["cosine", "euclidean", "dot-product"]
KEYS_KEPT_MAX: Final = 1_024  # with what follows from each: most are asked for again at once
KEY_MAX_BYTES = (PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES)
TABLE_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")
TABLE_ARN: Final = re.compile(r"arn:[^\s:]+:dynamodb:[^\s:/]+:[^\s:/]+:table/[A-Za-z0-9_.-]{3,255}")
IN_ARN: Final = re.compile(
    r"arn:[^:]+:dynamodb:([^:]*):([^:]*):table/([^/]+)"
)  # of a table or stream, an emulator's too
ARN_FORM: Final = "arn:aws:dynamodb:REGION:ACCOUNT:table/NAME"


def check_table_name(physical: str) -> str:
    """Return the problem of a table's name or ARN in DynamoDB; "" if there is none."""
    if TABLE_NAME.fullmatch(physical) or TABLE_ARN.fullmatch(physical):
        return ""
    if physical.startswith("arn:"):
        return f"{physical!r} is not the ARN of a DynamoDB table: expected {ARN_FORM}"
    return f"{physical!r} is not a name of a DynamoDB table: expected 3 to 255 of A-Z a-z 0-9 _ - ."


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of the ARN of a table or its stream. Region and account are "" for a table that is given by name."""

    region: str
    account: str
    name: str

    def may_be(self, other: Address) -> bool:
        """True if both may be the address of one table."""
        if not (self.region and other.region):
            return self.name == other.name
        return self == other


def parse_address(physical: str) -> Address:
    """Parse the address of a table from its name, its ARN, or the ARN of its stream."""
    arn = IN_ARN.match(physical)
    return Address("", "", physical) if arn is None else Address(arn[1], arn[2], arn[3])


def describe_clash(first: Table, table: Table) -> str:
    """Describe the problem of two tables that the ARN of a stream may both mean."""
    if first.physical_name == table.physical_name:
        return f"tables {first.name} and {table.name} both name the DynamoDB table {table.physical_name!r}"
    one, other = first.physical_name, table.physical_name
    names = f"tables {first.name} and {table.name}"
    return f"{names} may be one table in DynamoDB: the ARN of a stream may be of {one!r} and of {other!r}"


def find_clashes(tables: Iterable[Table]) -> Iterator[tuple[Table, Table]]:
    """List each table whose stream may have the same ARN as that of an earlier table, after that earlier table."""
    before: dict[str, list[Table]] = {}
    for table in tables:
        others = before.setdefault(table.address.name, [])
        first = next((other for other in others if table.address.may_be(other.address)), None)
        if first is not None:
            yield first, table
        others.append(table)


@dataclass(frozen=True)
class KeyAttribute:
    name: str
    type: KeyType


@dataclass(frozen=True)
class Index:
    """A secondary index, with up to four attributes each in its partition key and its sort key. `projection`: "all",
    "keys", or the names of attributes besides the keys; None: unknown. `local`: a local secondary index.
    """

    name: str
    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...] = ()
    projection: Literal["all", "keys"] | tuple[str, ...] | None = None
    local: bool = False

    @property
    def attributes(self) -> tuple[KeyAttribute, ...]:
        return self.partition + self.sort


@dataclass(frozen=True)
class VectorIndex:
    """A vector index. `index` has its name and projection. The partition of `index` is the attribute that each search
    gives, its sort key the filter attributes. `vector`: the attribute with the vector.
    """

    index: Index
    vector: str
    dimensions: int
    distance: Distance


@dataclass(frozen=True)
class Table:
    """A table: its names in the rules file and in DynamoDB, its key and its indexes. `max_write_units_per_second`: the
    write units that the pipeline may spend (None: no limit). `ttl`: the attribute of Time to Live that the
    application sets.
    """

    name: str
    physical_name: str
    partition: KeyAttribute
    sort: KeyAttribute | None = None
    indexes: tuple[Index, ...] = ()
    max_write_units_per_second: int | None = None
    ttl: str | None = None
    vectors: tuple[VectorIndex, ...] = ()

    @cached_property
    def address(self) -> Address:
        return parse_address(self.physical_name)

    @cached_property
    def key(self) -> tuple[KeyAttribute, ...]:
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @property
    def key_attributes(self) -> tuple[KeyAttribute, ...]:
        """The attributes of its own key and of its indexes' keys, each once."""
        return tuple(dict.fromkeys((*self.key, *(a for index in self.indexes for a in index.attributes))))

    def index(self, name: str) -> Index:
        return next(index for index in self.indexes if index.name == name)

    def row(self, index: Index, item: Item) -> Item:
        """Make the row that an index has of an item; the whole item if the projection is unknown."""
        if index.projection is None or index.projection == "all":
            return item
        extra = () if index.projection == "keys" else index.projection
        names = {*extra, *(attribute.name for attribute in (*self.key, *index.attributes))}
        return {name: value for name, value in item.items() if name in names}

    def key_of(self, item: Item) -> ItemKey | None:
        """The primary key inside an item or a record's Keys; None when an attribute is missing or of another type."""
        try:
            return ItemKey(self.name, tuple([(name, kind, item[name][kind]) for name, kind in self._key_types]))
        except (KeyError, TypeError):
            return None

    @cached_property
    def _key_types(self) -> tuple[tuple[str, KeyType], ...]:
        """Name and type of each attribute of its key: every record asks."""
        return tuple((attribute.name, attribute.type) for attribute in self.key)


@dataclass(frozen=True)
class Ref:
    """The place of a field on an entity's items: a path, or a part of a composite key attribute."""

    field: str
    path: Path
    template: Template | None = None

    @property
    def body(self) -> object:
        """The reference in a form for fingerprints."""
        return self.path

    def find_fault(self, _value: AttributeValue | None) -> str:
        """Return why the field cannot be made from the value at the path, as a reason for a failure record; "" if it
        can.
        """
        return ""

    def read(self, item: Item) -> AttributeValue | None:
        return self.within(get(item, self.path))

    def within(self, value: AttributeValue | None) -> AttributeValue | None:
        """Return the field that is in the value at the path; None if the value does not have it."""
        if self.template is None:
            return value
        bound = self.template.parse(value)
        return None if bound is None else bound.get(self.field)


@dataclass(frozen=True, eq=False)
class Entity:
    """A kind of item, recognised by its key. `templates`: those of the table's key, and of index keys if given.

    `first`: entities that take precedence if a key fits both, such as the nodes of a graph among its edges. `required`:
    the attributes that every item has. `made`: only rules make and remove its items.
    """

    name: str
    table: Table
    templates: Mapping[str, Template]
    first: tuple[Entity, ...] = ()
    required: tuple[str, ...] = ()
    made: bool = False

    @cached_property
    def identity(self) -> tuple[str, ...]:
        """The fields that its key templates bind, in order: together they name one item."""
        names = [field for attribute in self.table.key for field in self.templates[attribute.name].fields]
        return tuple(dict.fromkeys(names))

    def has(self, key: ItemKey) -> bool:
        """True if an item with this key is of this entity. Each record asks; `python -m benchmarks.shortcuts` compares
        it with `fields`, which takes 5.1 us instead of 0.8.
        """
        simple, values = self._simple, key.values
        if simple is None or len(values) != len(simple):
            return self.fields(key) is not None
        for (expected, begins, open_end), (name, kind, text) in zip(simple, values):  # noqa: B905 -- as long as each other
            if name != expected or kind != "S" or not isinstance(text, str):
                return self.fields(key) is not None
            if not (text.startswith(begins) and len(text) > len(begins) if open_end else text == begins):
                return False
        return True

    @cached_property
    def _simple(self) -> tuple[tuple[str, str, bool], ...] | None:
        """For keys whose attributes are text with at most one field, at the end: name, beginning, True for a field."""
        templates = [(attribute.name, self.templates[attribute.name]) for attribute in self.table.key]
        fields = [field for _, template in templates for field in template.fields]
        if self.first or len(set(fields)) < len(fields):
            return None
        if any(one.whole or one.pads or one.cases or one.literals[1:] not in ((), ("",)) for _, one in templates):
            return None
        return tuple((name, template.literals[0], bool(template.fields)) for name, template in templates)

    def fields(self, key: ItemKey) -> Fields | None:
        """Return the identity fields that a key binds; None for a key of another entity or table. They are kept,
        because each rule that an item concerns asks for them.
        """
        return find_once(self._known_fields, key, self._parse_key, KEYS_KEPT_MAX)

    @cached_property
    def _known_fields(self) -> dict[ItemKey, Fields | None]:
        return {}

    def _parse_key(self, key: ItemKey) -> Fields | None:
        if len(key.values) != len(self.table.key):
            return None
        bound: dict[str, AttributeValue] = {}
        for attribute, (name, kind, value) in zip(self.table.key, key.values, strict=True):
            if name != attribute.name or kind != attribute.type:
                return None
            found = self.templates[name].parse({kind: value})
            if found is None:
                return None
            for field, content in found.items():
                if bound.setdefault(field, content) != content:
                    return None
        return None if any(other.fields(key) is not None for other in self.first) else bound

    @cached_property
    def bound_fields(self) -> Mapping[str, Ref]:
        """The fields that a key attribute holds under another name than the field's own."""
        fields = (field for name, template in self.templates.items() for field in template.fields if field != name)
        refs = {field: self.ref(field) for field in dict.fromkeys(fields)}
        return {field: ref for field, ref in refs.items() if ref.path[0] in self.templates}

    def locate_field(self, path: Path) -> Path:
        """Return the path where an item stores the field at this path: the key attribute if the key binds the field."""
        return self.bound_fields[path[0]].path if path[0] in self.bound_fields else path

    def drop_key_paths(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Return these paths, each once, without paths inside the table's key, which cannot change."""
        keys = {attribute.name for attribute in self.table.key}
        return tuple(dict.fromkeys(path for path in paths if path[0] not in keys))

    def view(self, item: Item, paths: Iterable[Path]) -> Item:
        """Return the item with its bound fields as attributes, as far as these paths name them. A padded field becomes
        a number, because text sorts 10 before 9.
        """
        names = {path[0] for path in paths} & self.bound_fields.keys()
        if not names:
            return item
        read = {name: self.bound_fields[name].read(item) for name in names}
        seen = {
            name: {"N": value["S"]} if name in self._padded_fields else value for name, value in read.items() if value
        }
        return {**item, **seen}

    def is_padded(self, field: str) -> bool:
        """True for a field that the key pads with zeros. Its values are whole numbers."""
        return field in self._padded_fields

    def is_attribute(self, field: str) -> bool:
        """True for a field that the key holds in lower or upper case. An attribute of its name keeps its letters."""
        return any(self.templates[one.name].is_cased(field) for one in self.table.key)

    @cached_property
    def _padded_fields(self) -> frozenset[str]:
        return frozenset(field for template in self.templates.values() for field, _ in template.pads)

    def key_of(self, fields: Fields) -> ItemKey | None:
        """The key of the item that these fields name; None when a field is missing or the key is impossible."""
        values = []
        for name, kind, template, max_bytes in self._key_templates:
            value = template.build(fields, kind)
            if value is None or not is_possible(value, max_bytes):
                return None
            values.append((name, kind, value[kind]))
        key = ItemKey(self.table.name, tuple(values))
        return None if self.first and any(other.fields(key) is not None for other in self.first) else key

    @cached_property
    def _key_templates(self) -> tuple[tuple[str, KeyType, Template, int], ...]:
        return tuple(
            (attribute.name, attribute.type, self.templates[attribute.name], max_bytes)
            for attribute, max_bytes in zip(self.table.key, KEY_MAX_BYTES, strict=False)
        )

    def ref(self, field: str) -> Ref:
        """Find the place of a field: in the table's key templates, else in index templates, else in an attribute."""
        base = [attribute.name for attribute in self.table.key]
        for name in (*base, *(name for name in self.templates if name not in base)):
            template = self.templates[name]
            if template.whole == field:
                return Ref(field, (name,))
            if field in template.fields and not template.is_cased(field):
                return Ref(field, (name,), template)
        return Ref(field, tuple(field.split(".")))
