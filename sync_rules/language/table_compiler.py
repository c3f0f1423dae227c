"""Compile the tables of a rules file. Names, keys and indexes that DynamoDB does not take are reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sync_rules.language.problems import Problems
from sync_rules.language.schema import IndexForm, TableForm, VectorForm
from sync_rules.language.variables import Variables
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import (
    Index,
    KeyAttribute,
    KeyType,
    Table,
    VectorIndex,
    check_table_name,
    describe_clash,
    find_clashes,
)
from sync_rules.model.errors import UserError
from sync_rules.model.values import parse_path

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
LOCAL_INDEXES_MAX: Final = 5
GLOBAL_INDEXES_MAX: Final = 20  # the default quota, which AWS raises
PROJECTED_MAX: Final = 100  # names of attributes in all indexes of a table together


def compile_tables(
    document: Document, problems: Problems, forms: Mapping[str, TableForm], variables: Variables
) -> dict[str, Table]:
    """Compile the tables, by their names in the file. `variables` fill their names in DynamoDB."""
    tables: dict[str, Table] = {}
    for name, form in forms.items():
        location = document.value("tables", name, "name")
        filled = variables.fill(form.name or name, location)
        if filled is not None and (wrong := check_table_name(filled)):
            problems.add("SR006", location, wrong)
        physical = name if filled is None else filled
        partition, *sort = _compile_attributes(form.key)
        indexes = tuple(_compile_index(index, entry) for index, entry in form.indexes.items())
        most = form.max_write_units_per_second
        table = Table(name, physical, partition, sort[0] if sort else None, indexes, most)
        _check_types(document, problems, table)
        _check_indexes(document, problems, table)
        ttl = _compile_time_to_live(document, problems, table, form.ttl)
        vectors = tuple(
            _compile_vector(document, problems, table, index, entry) for index, entry in form.vectors.items()
        )
        tables[name] = replace(table, ttl=ttl, vectors=vectors)
    for first, table in find_clashes(table for table in tables.values() if not check_table_name(table.physical_name)):
        problems.add("SR007", document.value("tables", table.name, "name"), describe_clash(first, table))
    return tables


def _compile_attributes(form: Mapping[str, KeyType]) -> tuple[KeyAttribute, ...]:
    return tuple(KeyAttribute(name, kind) for name, kind in form.items())


def _compile_index(name: str, entry: Mapping[str, KeyType] | IndexForm) -> Index:
    if not isinstance(entry, IndexForm):
        partition, *sort = _compile_attributes(entry)
        return Index(name, (partition,), tuple(sort))
    projection = tuple(entry.projection) if isinstance(entry.projection, list) else entry.projection
    return Index(name, _compile_attributes(entry.partition), _compile_attributes(entry.sort), projection, entry.local)


def _check_types(document: Document, problems: Problems, table: Table) -> None:
    types = {attribute.name: attribute.type for attribute in table.key}
    for index in table.indexes:
        for attribute in index.attributes:
            first = types.setdefault(attribute.name, attribute.type)
            if first != attribute.type:
                message = f"{attribute.name!r} is of type {attribute.type} here and of type {first} before"
                problems.add("SR115", document.value("tables", table.name, "indexes", index.name), message)


def _compile_vector(document: Document, problems: Problems, table: Table, name: str, form: VectorForm) -> VectorIndex:
    """A vector index of a table. A name or a type that another index has otherwise is reported."""
    place = document.value("tables", table.name, "vectors", name)
    if name in {index.name for index in table.indexes}:
        problems.add("SR134", place, f"table {table.name!r} has another index {name!r}", "give it another name")
    types = {one.name: one.type for one in table.key_attributes}
    for part, attributes in (("partition", form.partition), ("filters", form.filters)):
        for attribute, kind in attributes.items():
            first = types.setdefault(attribute, kind)
            if first != kind:
                message = f"{attribute} is {kind} here, and {first} in another key of the table"
                location = document.value("tables", table.name, "vectors", name, part, attribute)
                problems.add("SR134", location, message, f"{attribute}: {first}")
    shows = tuple(form.projection) if isinstance(form.projection, list) else form.projection
    index = Index(name, _compile_attributes(form.partition), _compile_attributes(form.filters), shows)
    return VectorIndex(index, form.vector, form.dimensions, form.distance)


def _compile_time_to_live(document: Document, problems: Problems, table: Table, text: str | None) -> str | None:
    """The application's own attribute of Time to Live; None if the file names none, or one that cannot be."""
    if text is None:
        return None
    location, types = document.value("tables", table.name, "ttl"), {one.name: one.type for one in table.key_attributes}
    try:
        name, *inner = parse_path(text)
    except UserError as error:
        problems.add("SR125", location, error.found, error.cure or None)
        return None
    message = None
    if inner:
        message = f"{text} is inside of a map: DynamoDB takes an attribute of the item itself"
    elif name in {one.name for one in table.key}:
        message = f"{text} is part of the key of table {table.name!r}, which no item can change"
    elif types.get(name, "N") != "N":
        message = f"index keys type {text} as {types[name]}, but Time to Live needs a number (seconds since 1970)"
    if message is not None:
        problems.add("SR125", location, message, "name an attribute of numbers that is not a key: ttl: expires_at")
        return None
    return name


def _check_indexes(document: Document, problems: Problems, table: Table) -> None:
    """Report the indexes of a table that cannot be, and more of them than AWS makes at first."""
    _check_local(document, problems, table)
    for index in table.indexes:
        if isinstance(index.projection, tuple):
            _check_projection(document, problems, table, index, index.projection)
    projected = sum(len(index.projection) for index in table.indexes if isinstance(index.projection, tuple))
    place = document.value("tables", table.name, "indexes")
    if projected > PROJECTED_MAX:
        message = f"{projected} names in the projections of table {table.name!r}: DynamoDB takes {PROJECTED_MAX} in all"
        problems.add("SR133", place, message, "projection: all, for the index with the most names")
    others = sum(not index.local for index in table.indexes)
    if others > GLOBAL_INDEXES_MAX:
        message = f"{others} global indexes: AWS's default quota for a table is {GLOBAL_INDEXES_MAX}"
        problems.add("SR471", place, message)


def _check_projection(
    document: Document, problems: Problems, table: Table, index: Index, names: tuple[str, ...]
) -> None:
    place = document.value("tables", table.name, "indexes", index.name, "projection")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if not names:
        problems.add("SR133", place, "a projection of no attribute", "projection: keys")
    elif twice:
        problems.add("SR133", place, f"{', '.join(twice)}: named twice", "name each attribute once")


def _check_local(document: Document, problems: Problems, table: Table) -> None:
    """Report local indexes that DynamoDB does not make."""
    local = [index for index in table.indexes if index.local]
    for number, index in enumerate(local):
        location = document.value("tables", table.name, "indexes", index.name, "local")
        if table.sort is None:
            problems.add("SR124", location, f"the key of table {table.name!r} has no sort key", "remove local: true")
        elif index.partition != (table.partition,) or len(index.sort) != 1 or index.sort == (table.sort,):
            own = f"{{{table.partition.name}: {table.partition.type}}}"
            message = f"a local index has the table's partition key {own} and one sort key other than the table's"
            problems.add("SR124", location, message, f"partition: {own}, sort: {{one: S}}; or remove local: true")
        elif number >= LOCAL_INDEXES_MAX:
            message = f"{len(local)} local indexes: DynamoDB takes {LOCAL_INDEXES_MAX} for a table"
            problems.add("SR124", location, message, "make the others global")
