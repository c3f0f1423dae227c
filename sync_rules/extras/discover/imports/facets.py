"""Facets of NoSQL Workbench as access patterns: a facet's items by the partition keys of the table and its indexes.

A facet says which items and attributes are looked at together, by the aliases of the key and by sample data. The newer
access patterns of Workbench have no documented form: they are named, and left to write.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/workbench.Modeler.Facets.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import Node, quoted
from sync_rules.extras.discover.imports.identifiers import letters, says_nothing, words
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundPattern, FoundTable
from sync_rules.extras.discover.imports.request_patterns import fields_of

SAYS_NOTHING: Final = "neither the aliases of the facet nor its sample data say what its key is made of"
NO_ITEMS: Final = "its sample data has no item with the table's key"
UNDOCUMENTED: Final = "the form of Workbench's own access patterns is not documented: write it as a pattern"
NAMED: Final = ("Name", "name", "AccessPatternName", "accessPatternName")


def patterns_of(table: FoundTable, entities: Sequence[FoundEntity], node: Node) -> Iterator[FoundPattern]:
    """The patterns of a table's facets, and those of its indexes that all items of a facet are in."""
    for facet in node["TableFacets"].list("a list of facets"):
        name = facet["FacetName"].text()
        shown = [one for one in entities if name in one.facets]
        called = "-".join(words(name))
        if not shown:
            yield FoundPattern(called, said=f"facet {name}", refused=NO_ITEMS)
        for entity in shown:
            own = called if len(shown) == 1 else "-".join([called, *words(entity.called)])
            yield from _of_facet(table, entity, own, name, names_of(facet["NonKeyAttributes"]))


def _of_facet(
    table: FoundTable, entity: FoundEntity, called: str, name: str, attributes: Sequence[str]
) -> Iterator[FoundPattern]:
    returns = [one for one in attributes if one not in table.types]
    by = fields_of(entity, table.key[:1])
    if any(says_nothing(one) for one in by):
        yield FoundPattern(called, said=f"facet {name}", refused=SAYS_NOTHING)
        return
    one = set(fields_of(entity, table.key)) == set(by)
    yield FoundPattern(called, "get", entity, by, one=one, returns=returns, said=f"facet {name}")
    held = {*entity.key, *attributes, *(one.name for one in table.key)}
    for index in table.indexes:
        if all(one.name in held for one in index.attributes):
            fields = fields_of(entity, index.partition)
            ending = [*(word for field in fields for word in words(field))] or words(index.name)
            own = "-".join([called, "by", *ending])
            refused = SAYS_NOTHING if any(says_nothing(field) for field in fields) else ""
            said = f"facet {name}, by index {index.name}"
            yield FoundPattern(
                own, "get", entity, fields, returns=returns, via=index.name, said=said, refused=refused
            )  # fmt: skip


def names_of(node: Node) -> list[str]:
    """The names of attributes, listed as texts or as maps."""
    entries = node.value if isinstance(node.value, list) else []
    names = (entry.get("AttributeName") if isinstance(entry, dict) else entry for entry in entries)
    return [name for name in names if isinstance(name, str) and name]


def unread(holder: Node) -> Iterator[FoundPattern]:
    """The access patterns that a model or a table of it holds beside facets: each is named, and none is read."""
    for key, node in holder.items():
        if letters(key).endswith("accesspatterns") and isinstance(node.value, list):
            for number, one in enumerate(node.value, start=1):
                name = _name(one)
                said = f"access pattern {quoted(name)}" if name else f"access pattern {number}"
                yield FoundPattern(name or f"access-pattern-{number}", said=said, refused=UNDOCUMENTED)


def _name(value: Any) -> str:
    named = (value.get(name) for name in NAMED) if isinstance(value, dict) else ()
    return next((name for name in named if isinstance(name, str) and name), "")
