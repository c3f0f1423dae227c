"""The checks of a table's indexes: those that DynamoDB does not make are reported."""

from __future__ import annotations

from collections import Counter
from typing import Final

from sync_rules.language.problems import Problems
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import Index, Table

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
LOCAL_INDEXES_MAX: Final = 5
GLOBAL_INDEXES_MAX: Final = 20  # the default quota, which AWS raises
PROJECTED_MAX: Final = 100  # names of attributes in all indexes of a table together


def check_indexes(document: Document, problems: Problems, table: Table) -> None:
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
