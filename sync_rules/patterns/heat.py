"""Hot keys: partition keys that are asked or written more often, at the stated rates, than one partition takes.

Invariant: nothing is guessed. A key that is the same for every item has all the traffic; of any other, only the share
that the file states is known, and else the share that would be too much.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sync_rules.model.entities import Entity
from sync_rules.model.units import PARTITION_MAX_READ_UNITS, PARTITION_MAX_WRITE_UNITS, write_units
from sync_rules.patterns.gets import Model
from sync_rules.patterns.makers import Maker, Makers
from sync_rules.patterns.prove import Proof
from sync_rules.patterns.ways import Way, ways_of
from sync_rules.rules.patterns import GetPattern, GraphPattern, TreePattern, WritePattern
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Hot:
    """A partition key under too much traffic: its table or index, its text, the units per second that patterns cause,
    the limit, and the number of shards that would take them. `key` is "" where the share of one key is not stated; then
    `share` is the share, from 0 to 1, from which on one key is hot.
    """

    place: str
    key: str
    kind: str
    units: float
    limit: int
    patterns: tuple[str, ...]
    share: float = 1.0

    @property
    def certain(self) -> bool:
        """True if a key is hot at the stated rates; else it may be."""
        return bool(self.key)

    @property
    def shards(self) -> int:
        """The number of keys over which the traffic of one must be spread."""
        return math.ceil(self.units / self.limit)


@dataclass(frozen=True)
class _Load:
    """Traffic on one place: `key` is the text of the key, "" if that depends on the call."""

    place: str
    key: str
    kind: str
    units: float
    pattern: str
    share: float | None


def hot(rules: Rules, proof: Proof) -> tuple[Hot, ...]:
    """The hot keys, and after them those that may be hot."""
    model = Model(rules, Makers(rules))
    loads = [*_reads(proof), *_writes(model, proof)]
    found: list[Hot] = []
    for place, key, kind in dict.fromkeys((one.place, one.key, one.kind) for one in loads if one.key):
        same = [one for one in loads if (one.place, one.key, one.kind) == (place, key, kind)]
        total = sum(one.units for one in same)
        if total > _limit(kind):
            found.append(Hot(place, key, kind, total, _limit(kind), tuple(dict.fromkeys(one.pattern for one in same))))
    for one in loads:
        limit = _limit(one.kind)
        if one.key or one.units <= limit:
            continue
        if one.share is None:
            found.append(Hot(one.place, "", one.kind, one.units, limit, (one.pattern,), limit / one.units))
        elif one.units * one.share > limit:
            found.append(Hot(one.place, "the busiest", one.kind, one.units * one.share, limit, (one.pattern,)))
    return tuple(sorted(found, key=lambda one: not one.certain))


def _limit(kind: str) -> int:
    return PARTITION_MAX_READ_UNITS if kind == "read" else PARTITION_MAX_WRITE_UNITS


def _reads(proof: Proof) -> Iterator[_Load]:
    for name, answer in proof.answers.items():
        pattern = answer.pattern
        if not isinstance(pattern, GetPattern | GraphPattern | TreePattern) or pattern.rate is None:
            continue
        for step in answer.steps:
            if step.units is not None and not step.follows:
                yield _Load(step.place, step.partition, "read", step.units * pattern.rate, name, pattern.busiest)


def _writes(model: Model, proof: Proof) -> Iterator[_Load]:
    for name, answer in proof.answers.items():
        pattern = answer.pattern
        if not isinstance(pattern, WritePattern) or pattern.rate is None:
            continue
        entity = model.rules.entities[pattern.entity]
        units = write_units(model.size_of(entity) or 0)
        for way in ways_of(entity.table):
            made = _partition(model, entity, way)
            if made:
                texts = (f"{maker.attribute.name} = {maker.text}" for maker in made)
                key = "" if any(maker.fields for maker in made) else " and ".join(texts)
                place = entity.table.name + ("" if way.index is None else f"/{way.index.name}")
                yield _Load(place, key, "write", units * pattern.rate, name, pattern.busiest)


def _partition(model: Model, entity: Entity, way: Way) -> list[Maker]:
    """The makers of a partition key that items of the entity are said to have."""
    if way.index is not None and not all(model.makers.says(entity, one) for one in way.partition):
        return []
    return [model.makers.best(entity, attribute, frozenset()) for attribute in way.partition]
