"""Volumes: sizes and numbers of items, and the rows of indexes, as stated in the rules file or measured.

Invariant: nothing is assumed silently. An unknown number that is needed is noted as a gap, with the cure. An assumption
is noted too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sync_rules.extras.design.patterns.declarations import Volume, find_design
from sync_rules.model.entities import Entity, Index, Table
from sync_rules.model.sizes import count_item_bytes
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules

MADE_BYTES = 100  # an item of the pipeline's own: an entry or a total


@dataclass(frozen=True, slots=True)
class IndexRows:
    """The number of rows that items of an entity have in an index, and the mean size of a row."""

    items: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MeasuredEntity:
    """An entity as measured on the tables. `rows` is by index."""

    items: int
    size_bytes: int
    rows: Mapping[str, IndexRows] = field(default_factory=dict)


def replace_volumes(rules: Rules, measured: Mapping[str, MeasuredEntity]) -> Rules:
    """Return the rules with measured volumes in place of stated volumes."""
    design, found = find_design(rules), {name: Volume(one.size_bytes, one.items) for name, one in measured.items()}
    sections = {**rules.sections, "patterns": replace(design, volumes={**design.volumes, **found})}
    return replace(rules, sections=sections)


@dataclass(frozen=True)
class Sizes:
    """Sizes and numbers for one estimate. `gaps` and `notes` collect each gap and assumption once. `unsure` holds the
    subjects that lack a size or a number. `followed` holds the rules that an update of a source triggers. `listed`
    holds names of entities, each with an index through which a rule or pattern reads the entity.
    """

    rules: Rules
    measured: Mapping[str, MeasuredEntity] = field(default_factory=dict)
    listed: frozenset[tuple[str, str]] = frozenset()
    gaps: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    followed: set[str] = field(default_factory=set)
    _subjects: list[str] = field(default_factory=list)

    @contextmanager
    def subject(self, name: str) -> Iterator[None]:
        """Attribute all gaps within the block to this subject."""
        self._subjects.append(name)
        try:
            yield
        finally:
            self._subjects.pop()

    def note_gap(self, text: str) -> None:
        """Note something that is unknown, with its cure."""
        self.gaps[text] = None
        self.unsure.update(self._subjects[-1:])

    def note(self, text: str) -> None:
        """Note an assumption."""
        self.notes[text] = None

    def note_vectors(self) -> None:
        """Note each vector index: it is billed by bytes, and the price files have no price for them."""
        for name, table in self.rules.tables.items():
            for one in table.vectors:
                what = "the bytes that it searches, writes and stores are not in the estimate"
                self.note(f"vector index {one.index.name} of {name}: {what}")

    def is_made(self, entity: Entity) -> bool:
        """Return True for an entity of the pipeline's own, which the file does not have."""
        return "." in entity.name

    def find_size(self, entity: Entity) -> int | None:
        """Return the bytes of an item; None, with a gap noted, if unknown."""
        if self.is_made(entity):
            return MADE_BYTES
        volume = find_design(self.rules).volumes.get(entity.name)
        if volume is not None and volume.size_bytes is not None:
            return volume.size_bytes
        self.note_gap(f"the size of {entity.name}: state `size: 1KB` on the entity, or give --sample")
        return None

    def find_item_count(self, entity: Entity) -> int | None:
        volume = find_design(self.rules).volumes.get(entity.name)
        if volume is not None and volume.items is not None:
            return volume.items
        self.note_gap(f"the number of {entity.name}: state `items: 1000000` on the entity, or give --sample")
        return None

    def compute_ratio(self, one: Entity, many: Entity) -> float | None:
        """Return the number of items of `many` for each item of `one`; None if unknown."""
        ones, all_of_many = self.find_item_count(one), self.find_item_count(many)
        if ones == 0 and all_of_many:
            self.note_gap(
                f"the number of {one.name}: it is 0, but {all_of_many:,} of {many.name} belong to one; state `items`"
            )
            return None
        return None if ones is None or all_of_many is None else all_of_many / max(ones, 1)

    # ---------------------------------------------------------------- indexes
    def find_row_bytes(self, entity: Entity, index: Index) -> int | None:
        """Return the bytes of a row in an index. For an unmeasured row with a partial projection, return the bytes of
        the item.
        """
        rows = self.measured[entity.name].rows.get(index.name) if entity.name in self.measured else None
        if rows is not None:
            return rows.size_bytes
        if index.projection not in (None, "all") and not self.is_made(entity):
            self.note(
                f"rows of {entity.name} in index {index.name} are taken to be as large as the items: "
                "--sample measures them"
            )
        return self.find_size(entity)

    def find_row_count(self, entity: Entity, index: Index) -> int | None:
        """Return the number of rows that items of an entity have in an index."""
        if entity.name in self.measured:
            rows = self.measured[entity.name].rows.get(index.name)
            return 0 if rows is None else rows.items
        return self.find_item_count(entity) if self.is_in(entity, index) else 0

    def is_in(self, entity: Entity, index: Index) -> bool:
        """Return True if items of an entity are in an index. Without a sample, this needs one of three facts. The file
        gives this entity each key attribute of the index. Or a rule or pattern reads the entity through the index.
        Or the entity is alone in its table.
        """
        if entity.name in self.measured:
            return index.name in self.measured[entity.name].rows
        if self.is_made(entity):
            return False
        names = [one.name for one in index.attributes if not self._has(entity, one.name)]
        others = [one for one in self.rules.entities.values() if one.table is entity.table and one is not entity]
        if not names or not others or (entity.name, index.name) in self.listed:
            return True
        if not any(name in other.templates or name in other.required for name in names for other in others):
            self.note(
                f"items of {entity.name} are not counted in index {index.name}, which no rule or pattern reads for "
                f"them: if they have {', '.join(names)}, say so by `required` on the entity, or give --sample"
            )
        return False

    def _has(self, entity: Entity, name: str) -> bool:
        """True if the file says that each item of an entity has this attribute."""
        if name in entity.templates or name in entity.identity or name in entity.required:
            return True
        return any(path[:1] == (name,) for rule in self.rules.into_target(entity) for path in rule.puts)


class SizeSampler:
    """Counts and sizes of items by entity, and of their rows in indexes."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._items: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._rows: Counter[tuple[str, str]] = Counter()
        self._row_bytes: Counter[tuple[str, str]] = Counter()

    def add(self, table: Table, items: Iterable[Item]) -> None:
        """Count some items of a table. Items of no entity do not count."""
        for item in items:
            key = table.key_of(item)
            entity = None if key is None else self._rules.entity_of(key)
            if entity is None:
                continue
            self._items[entity.name] += 1
            self._bytes[entity.name] += count_item_bytes(item)
            for index in table.indexes:
                if all(attribute.type in item.get(attribute.name, {}) for attribute in index.attributes):
                    self._rows[entity.name, index.name] += 1
                    self._row_bytes[entity.name, index.name] += count_item_bytes(table.row(index, item))

    def samples(self, factor: float = 1.0) -> Mapping[str, MeasuredEntity]:
        """Return the entities that were found. `factor`: the size of the tables divided by the size of the sample."""
        return {
            name: MeasuredEntity(
                round(count * factor),
                round(self._bytes[name] / count),
                {
                    index: IndexRows(round(rows * factor), round(self._row_bytes[name, index] / rows))
                    for (of, index), rows in self._rows.items()
                    if of == name
                },
            )
            for name, count in self._items.items()
        }
