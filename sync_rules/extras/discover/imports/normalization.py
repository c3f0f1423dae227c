"""Name and clean what an importer found: each table and entity once, with templates that can be told apart.

Invariant: nothing is dropped silently. A repeated table, an unusable index, a template that cannot be parsed and an
ambiguous entity each leave a check or a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sync_rules.extras.discover.imports.foreign_document import ImportedFileError, quote_name
from sync_rules.extras.discover.imports.identifiers import (
    NAME_MAX,
    RESERVED,
    Unique,
    keep_name,
    make_table_slug,
    make_variable_name,
    split_words,
)
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundPattern, FoundTable, ImportedModel
from sync_rules.language.links import make_default_template
from sync_rules.language.schema import INDEX_NAME
from sync_rules.language.variables import VARIABLE
from sync_rules.model.entities import Index, KeyAttribute, Table, check_table_name, find_clashes
from sync_rules.model.errors import UserError
from sync_rules.model.templates import Template, may_overlap, parse_template

PATTERN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
TABLE_CURE: Final = "give the table a name that DynamoDB takes, and export the file again"


@dataclass(eq=False)
class SettledTable:
    """A table by its name in the file. `physical` is empty if that is also its name in DynamoDB."""

    name: str
    found: FoundTable
    physical: str
    indexes: list[Index]
    checks: list[str]


@dataclass(eq=False)
class SettledEntity:
    """An entity by its name in the file. `refused` says why it is written as a comment."""

    name: str
    table: SettledTable
    found: FoundEntity
    key: dict[str, str]
    checks: list[str]
    refused: str = ""
    templates: Mapping[str, Template] = field(default_factory=dict)  # of the table's key

    @property
    def identity(self) -> tuple[str, ...]:
        """The fields that name one of its items."""
        return tuple(dict.fromkeys(name for template in self.templates.values() for name in template.fields))

    @property
    def repeats(self) -> bool:
        """True if a field is in both key attributes, as with a node of a graph."""
        return sum(len(set(template.fields)) for template in self.templates.values()) > len(self.identity)

    @property
    def letters(self) -> int:
        """The number of fixed letters in its keys, which set them apart from others."""
        return sum(len(text) for template in self.templates.values() for text in template.literals)


@dataclass(eq=False)
class SettledPattern:
    """An access pattern by its name in the file. `refused` says why it is written as a comment."""

    name: str
    entities: tuple[SettledEntity, ...]
    found: FoundPattern
    refused: str


@dataclass
class SettledModel:
    """The named parts of a rules file, in their order."""

    tables: list[SettledTable] = field(default_factory=list)
    entities: list[SettledEntity] = field(default_factory=list)
    patterns: list[SettledPattern] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def settle(found: ImportedModel, file: str) -> SettledModel:
    """Name and clean all that was found."""
    settled = SettledModel(notes=list(found.notes))
    tables = _settle_tables(found.tables, file, settled)
    names = Unique()
    named: list[SettledEntity] = []
    for entity in found.entities:
        table = tables.get(id(entity.table))
        if table is not None:
            named.append(_settle_entity(names.name(keep_name(entity.called)), table, entity))
    settled.entities = _separate(named)
    by_found = {id(entity.found): entity for entity in settled.entities}
    patterns = Unique()
    for one in found.patterns:
        asked = (*([] if one.entity is None else [one.entity]), *one.beside)
        known = tuple(by_found[id(entity)] for entity in asked if id(entity) in by_found)
        settled.patterns.append(_settle_pattern(patterns.name(_make_pattern_name(one.called)), known, one))
    return settled


# ---------------------------------------------------------------- patterns
def _settle_pattern(name: str, entities: tuple[SettledEntity, ...], found: FoundPattern) -> SettledPattern:
    commented = next((f"entity {one.name} is written as a comment" for one in entities if one.refused), "")
    refused = found.refused or (commented if entities else "what it is for is not known")
    return SettledPattern(name, entities, found, refused)


def _make_pattern_name(called: str) -> str:
    """A name for a pattern: as it is where a rules file can have it, else of its words."""
    if PATTERN_NAME.fullmatch(called) and called not in RESERVED:
        return called
    parts = split_words(called)
    while parts and parts[0].isdigit():
        parts = parts[1:]
    made = "-".join(parts)
    if len(made) > NAME_MAX:
        made = made[: NAME_MAX + 1].rpartition("-")[0] or made[:NAME_MAX]
    return f"{made}-pattern" if made in RESERVED else made or "pattern"


# ---------------------------------------------------------------- tables
def _settle_tables(found: Iterable[FoundTable], file: str, settled: SettledModel) -> dict[int, SettledTable]:
    names, by_found = Unique(), dict[int, SettledTable]()
    named = [(table, *_choose_physical_name(table, file)) for table in found]
    effective = [fill_defaults(physical) or make_table_slug(table.called) for table, physical, _ in named]
    bare = (Table(str(number), physical, KeyAttribute("", "S")) for number, physical in enumerate(effective))
    twins = {table.name: first.name for first, table in find_clashes(bare)}
    for number, (table, physical, checks) in enumerate(named):
        if str(number) in twins:
            first = named[int(twins[str(number)])][0].called
            message = (
                f"{quote_name(table.called)} may be the same table in DynamoDB as {quote_name(first)}: it is left out"
            )
            settled.notes.append(message)
            continue
        name = names.name(make_table_slug(table.called))
        indexes, remarks = _select_indexes(table)
        made = SettledTable(name, table, "" if physical == name else physical, indexes, [*checks, *remarks])
        by_found[id(table)] = made
        settled.tables.append(made)
    return by_found


def fill_defaults(physical: str) -> str:
    """Return the name with the defaults of its variables; "" if a variable has no default."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        missing = missing or not match[2]
        return match[2] or ""

    text = VARIABLE.sub(value, physical)
    return "" if missing else text


def _choose_physical_name(table: FoundTable, file: str) -> tuple[str, list[str]]:
    """The name in DynamoDB, and what to check of it. Raises ImportedFileError for one that DynamoDB refuses."""
    text = fill_defaults(table.physical)
    wrong = check_table_name(text) if text else ""
    if not wrong:
        return table.physical, list(table.checks)
    if VARIABLE.search(table.physical):
        made = f"${{{make_variable_name(table.called, 'table')}:-{make_table_slug(table.called)}-table}}"
        return made, [*table.checks, "the name that the source makes is none of DynamoDB: give the right one"]
    expected = "a table's name: 3 to 255 of A-Z a-z 0-9 _ - ."
    raise ImportedFileError(file, table.at, expected, quote_name(table.physical), TABLE_CURE)


def _select_indexes(table: FoundTable) -> tuple[list[Index], list[str]]:
    """The indexes that a rules file can have, and a check for each of the others."""
    types = {one.name: one.type for one in table.key}
    kept: dict[str, Index] = {}
    checks = []
    for index in table.indexes:
        if index.name in kept:
            if (index.partition, index.sort) != (kept[index.name].partition, kept[index.name].sort):
                checks.append(f"index {index.name} is there twice, with other keys: the first was taken")
        elif not re.fullmatch(INDEX_NAME, index.name):
            checks.append(f"{quote_name(index.name)} is not a name that DynamoDB takes for an index: left out")
        elif any(types.get(one.name, one.type) != one.type for one in index.attributes):
            checks.append(f"index {index.name} gives an attribute another type than the table: left out")
        else:
            kept[index.name] = index
            types |= {one.name: one.type for one in index.attributes}
    return list(kept.values()), checks


# ---------------------------------------------------------------- entities
def _settle_entity(name: str, table: SettledTable, found: FoundEntity) -> SettledEntity:
    types = {one.name: one.type for index in table.indexes for one in index.attributes}
    types |= {one.name: one.type for one in table.found.key}
    checks = list(found.checks)
    templates: dict[str, Template] = {}
    for attribute, text in found.key.items():
        if attribute not in types:
            continue
        try:
            template = parse_template(text, pads=True)
        except UserError:
            checks.append(
                f"{quote_name(attribute)} is made as {quote_name(text)}, which cannot be told apart: write a template"
            )
            continue
        if types[attribute] != "S" and template.whole is None:
            checks.append(f"{quote_name(attribute)} is of type {types[attribute]}, which holds one field and no text")
        elif template.whole != attribute:
            templates[attribute] = template
    base = {one.name: templates.get(one.name) or make_default_template(one.name) for one in table.found.key}
    key = {attribute: template.text for attribute, template in templates.items()}
    return SettledEntity(name, table, found, key, checks, "", base)


def _separate(entities: list[SettledEntity]) -> list[SettledEntity]:
    """The entities, refused where a key may be of another one that says more of its keys. Nodes stand before edges."""
    kept: dict[int, list[SettledEntity]] = {}
    nodes: set[int] = set()
    for entity in sorted(entities, key=lambda one: -one.letters):
        others = kept.setdefault(id(entity.table), [])
        alike = [other for other in others if _can_overlap(entity, other)]
        wrong = next((other for other in alike if entity.repeats == other.repeats), None)
        if wrong is not None:
            entity.refused = f"a key of table {entity.table.name} may be of {wrong.name} and of {entity.name}"
            continue
        others.append(entity)
        nodes |= {id(one) for one in (entity, *alike) if alike and one.repeats}
    tables = {id(entity.table): place for place, entity in reversed([*enumerate(entities)])}
    return sorted(entities, key=lambda one: (tables[id(one.table)], bool(one.refused), id(one) not in nodes))


def _can_overlap(one: SettledEntity, two: SettledEntity) -> bool:
    return all(may_overlap(template, two.templates[name]) for name, template in one.templates.items())
