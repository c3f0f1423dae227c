"""Hot keys: partition keys with more traffic, at the stated rates, than one partition takes.

Invariant: nothing is guessed. A key that is the same for every item has all the traffic. Of any other key, only the
share that the file states is known; otherwise the share that would be too much is reported.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, TreePattern, WritePattern
from sync_rules.extras.design.patterns.key_access import AccessPath, list_access_paths
from sync_rules.extras.design.patterns.key_makers import Maker
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.extras.design.patterns.prover import Proof
from sync_rules.model.entities import Entity
from sync_rules.model.sizes import PARTITION_MAX_READ_UNITS, PARTITION_MAX_WRITE_UNITS, count_write_units
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Hot:
    """A partition key with too much traffic: its table or index, its text, the units per second that patterns cause,
    and their limit. It also has the number of shards that would take them. `spread_by` is a field that can spread
    items over shards; "" for a single item. `key` is "" if the file does not state the share of one key. Then
    `share` is the least share, from 0 to 1, that makes a key hot.
    """

    place: str
    key: str
    kind: str
    units: float
    limit: int
    patterns: tuple[str, ...]
    share: float = 1.0
    spread_by: str = ""

    @property
    def certain(self) -> bool:
        """True if a key is hot at the stated rates; otherwise it may be."""
        return bool(self.key)

    @property
    def shards(self) -> int:
        """The number of keys over which the traffic of this key must be spread."""
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
    field: str


def list_hot_keys(rules: Rules, proof: Proof) -> tuple[Hot, ...]:
    """List the hot keys, then those that may be hot."""
    model = ProofInput.of(rules)
    loads = [*_list_read_loads(proof), *_list_all_write_loads(model, proof)]
    found: list[Hot] = []
    for place, key, kind in dict.fromkeys((one.place, one.key, one.kind) for one in loads if one.key):
        same = [one for one in loads if (one.place, one.key, one.kind) == (place, key, kind)]
        total = sum(one.units for one in same)
        if total > _find_limit(kind):
            names = tuple(dict.fromkeys(one.pattern for one in same))
            found.append(Hot(place, key, kind, total, _find_limit(kind), names, spread_by=same[0].field))
    for one in loads:
        limit = _find_limit(one.kind)
        if one.key or one.units <= limit:
            continue
        if one.share is None:
            found.append(Hot(one.place, "", one.kind, one.units, limit, (one.pattern,), limit / one.units))
        elif one.units * one.share > limit:
            share = one.units * one.share
            found.append(Hot(one.place, "the busiest", one.kind, share, limit, (one.pattern,), spread_by=one.field))
    return tuple(sorted(found, key=lambda one: not one.certain))


def _find_limit(kind: str) -> int:
    return PARTITION_MAX_READ_UNITS if kind == "read" else PARTITION_MAX_WRITE_UNITS


def _list_read_loads(proof: Proof) -> Iterator[_Load]:
    for name, answer in proof.answers.items():
        pattern = answer.pattern
        if not isinstance(pattern, GetPattern | GraphPattern | TreePattern) or pattern.rate is None:
            continue
        for step in answer.steps:
            if not step.follows:
                units = step.units or (1.0 if step.consistent else 0.5)  # as little as a read takes
                single = step.request != "Query" and bool(step.terms)  # one item: no shard takes a part of it
                total, field = units * pattern.rate, "" if single else _find_spread_field(step.entity)
                yield _Load(step.place, step.partition, "read", total, name, pattern.busiest, field)


def _list_all_write_loads(model: ProofInput, proof: Proof) -> Iterator[_Load]:
    for answer in proof.answers.values():
        pattern = answer.pattern
        if not isinstance(pattern, WritePattern) or pattern.rate is None:
            continue
        entity = model.rules.entities[pattern.entity]
        yield from _list_write_loads(model, pattern, entity)
        for rule in model.rules.rules.values():
            if isinstance(rule, MirrorRule) and rule.source is entity and pattern.operation != "update":
                yield from _list_write_loads(model, replace(pattern, sets=None), rule.target)


def _list_write_loads(model: ProofInput, pattern: WritePattern, entity: Entity) -> Iterator[_Load]:
    """The writes of one pattern to a table and its indexes, without those that an index does not see."""
    units = count_write_units(model.find_size(entity) or 0)
    for way in list_access_paths(entity.table):
        made = _list_partition_makers(model, entity, way)
        seen = pattern.sets is None or way.index is None or any(way.shows(entity, name) for name in pattern.sets)
        if made and seen and pattern.rate is not None:
            texts = (f"{maker.attribute.name} = {maker.text}" for maker in made)
            key = "" if any(maker.fields for maker in made) else " and ".join(texts)
            place = entity.table.name + ("" if way.index is None else f"/{way.index.name}")
            yield _Load(
                place, key, "write", units * pattern.rate, pattern.name, pattern.busiest, _find_spread_field(entity)
            )


def _find_spread_field(entity: Entity) -> str:
    """The last field of an entity's key: items differ in it."""
    return entity.identity[-1] if entity.identity else ""


def _list_partition_makers(model: ProofInput, entity: Entity, way: AccessPath) -> list[Maker]:
    """The makers of a partition key, if the file says that items of the entity have it; else none."""
    if way.index is not None and not all(model.makers.says(entity, one) for one in way.partition):
        return []
    return [model.makers.choose_maker(entity, attribute, frozenset()) for attribute in way.partition]
