"""The work that writes cause: of the application in tables and indexes, and of the rules that act on them.
A write is followed as the pipeline follows it: a write of one rule is an event for the next rule.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from sync_rules.extras.design.costs.efforts import Effort, Occasion, find_effort, follows
from sync_rules.extras.design.costs.loads import Load, Place
from sync_rules.extras.design.costs.pipeline_costs import (
    RECORD_SECONDS,
    REQUESTS_OF_A_MESSAGE,
    WORKER_COPIES_SECOND,
    WORKER_GIGABYTES,
    count_fanout_units,
    estimate_compute,
)
from sync_rules.extras.design.costs.volumes import Sizes
from sync_rules.extras.design.patterns.declarations import WritePattern
from sync_rules.model.entities import Entity, Index
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.sizes import READ_UNIT_BYTES, count_index_write_units, count_read_units, count_write_units
from sync_rules.model.values import Path, has_overlap
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import Rule

STEPS_MAX = 100  # of rules, one after the other; a hierarchy feeds itself


@dataclass(frozen=True)
class WriteEvent:
    """Writes to items of one entity, `rate` per second. `paths` are the paths that change; None: any. `by` holds the
    rules that make the writes, none for the application. `young`: the items are new; no other item names them yet.
    """

    entity: Entity
    came: bool
    gone: bool
    paths: tuple[Path, ...] | None
    rate: float
    by: tuple[Rule, ...] = ()
    young: bool = False


# ---------------------------------------------------------------- the application's writes
def apply_write(sizes: Sizes, pattern: WritePattern, rate: float) -> tuple[Load, WriteEvent]:
    """Return the load of an application's writes, and the event that they cause. The load is empty if a size is
    unknown.
    """
    entity = sizes.rules.entities[pattern.entity]
    sets = pattern.sets if pattern.operation == "update" else None
    if sets is None and pattern.operation == "update":
        sizes.note(f"pattern {pattern.name} does not say what it `sets`: taken to change everything but keys")
    paths = None if sets is None else tuple(entity.ref(name).path for name in sets)
    if pattern.operation == "put":
        sizes.note("puts are taken to be of new items, and deletes of items that are there")
    event = WriteEvent(entity, pattern.operation == "put", pattern.operation == "delete", paths, rate)
    return _compute_write_load(sizes, event), event


def _compute_write_load(sizes: Sizes, event: WriteEvent) -> Load:
    load, entity = Load(), event.entity
    size, table = sizes.find_size(entity), entity.table.name
    if size is None:
        return load
    load.write(Place(table), event.rate * count_write_units(size))
    for index, units in list_index_units(sizes, entity, event.paths, whole=event.came or event.gone):
        load.write(Place(table, index.name), event.rate * units)
    if any(table == one.name for rule in sizes.rules.rules.values() for one in rule.streamed_tables):
        load.records[table] += event.rate
    return load


def list_index_units(
    sizes: Sizes, entity: Entity, paths: tuple[Path, ...] | None, *, whole: bool
) -> Iterator[tuple[Index, int]]:
    """List the write units in each index for a change of these paths of an item; None means any path except keys.
    `whole`: the item is created or deleted.
    """
    for index in entity.table.indexes:
        if not sizes.is_in(entity, index):
            continue
        row = sizes.find_row_bytes(entity, index)
        if row is None:
            continue
        names = None if paths is None else {path[0] for path in paths}
        moved = names is not None and any(attribute.name in names for attribute in index.attributes)
        if whole:
            yield index, count_index_write_units(None, row)
        elif moved or _shows(index, names):
            yield index, count_index_write_units(row, row, moved=moved)


def _shows(index: Index, names: set[str] | None) -> bool:
    """True if a row shows one of these attributes; None: any attribute that is no key."""
    if index.projection in (None, "all"):
        return True
    if index.projection == "keys":
        return False
    return names is None or bool(names & set(index.projection))


# ---------------------------------------------------------------- the work of rules
def follow_rules(sizes: Sizes, first: WriteEvent) -> dict[str, Load]:
    """Return the load of each rule, by its title, that an event causes, directly or through other rules."""
    found: dict[str, Load] = defaultdict(Load)
    waiting = [first]
    for _ in range(STEPS_MAX):
        if not waiting:
            return found
        event = waiting.pop()
        for group in _group_acting_rules(sizes, event):
            waiting += _add_group_work(sizes, event, group, found)
    sizes.note(f"what a write of {first.entity.name} causes goes on: it was followed for {STEPS_MAX} steps")
    return found


Acting = tuple[Rule, Occasion]


@dataclass(frozen=True, slots=True)
class Done:
    """The work of a rule for an event: its load, and its writes of targets per second. `comes`: each target is a new
    item.
    """

    rule: Rule
    load: Load
    times: float
    comes: bool = False


def _group_acting_rules(sizes: Sizes, event: WriteEvent) -> Iterator[list[Acting]]:
    """The rules that act on an event. Those that write the same targets in one update are together."""
    groups: dict[object, list[Acting]] = defaultdict(list)
    for rule in sizes.rules.rules.values():
        for occasion in _list_occasions(rule, event):
            alone = rule.strict or not isinstance(rule, TargetRule)
            own = rule.target is event.entity and (occasion is Occasion.TARGET or rule.source is rule.target)
            place = "own" if own else rule.lists_by
            groups[rule.name if alone else (rule.target, place)].append((rule, occasion))
    yield from groups.values()


def _add_group_work(
    sizes: Sizes, event: WriteEvent, group: list[Acting], found: dict[str, Load]
) -> Iterator[WriteEvent]:
    """Add the work of a group for an event. Returns what it causes. Rules of a group share the writes, and those with
    one source the reads.
    """
    done: list[Done] = []
    for rule, occasion in group:
        with sizes.subject(rule.title):
            made = _compute_work(sizes, rule, occasion, event)
        if made is not None:
            done.append(made)
    writing = sum(one.times > 0 for one in done)
    for one in done:
        reading = sum(other.rule.source is one.rule.source for other in done)
        found[one.rule.title].add(one.load.take_share(1 / reading, 1 / writing if one.times else 1.0))
    causes: dict[Entity, WriteEvent] = {}
    for one in done:
        for caused in _list_caused_events(one, event):
            before = causes.get(caused.entity)
            causes[caused.entity] = caused if before is None else _join_events(before, caused)
    yield from causes.values()


def _join_events(one: WriteEvent, other: WriteEvent) -> WriteEvent:
    paths = None if one.paths is None or other.paths is None else (*one.paths, *other.paths)
    rate = max(one.rate, other.rate)
    came, gone, young = one.came or other.came, one.gone or other.gone, one.young or other.young
    return WriteEvent(one.entity, came, gone, paths, rate, (*one.by, *other.by), young)


def _list_occasions(rule: Rule, event: WriteEvent) -> Iterator[Occasion]:
    """The occasions of a rule that an event is."""
    if rule.source is event.entity and _read_by(rule, event):
        yield Occasion.SOURCE
    if rule.target is event.entity and rule not in event.by and not event.gone:
        decided = [path for node in rule.nodes() for entity, path in node.deciding_paths if entity is event.entity]
        if event.came or _has_overlap(event.paths, decided):
            yield Occasion.TARGET


def _read_by(rule: Rule, event: WriteEvent) -> bool:
    """True if a rule reads what changes of a source."""
    if rule in event.by or not follows(rule, "created" if event.came else "deleted" if event.gone else "changed"):
        return False
    if event.came or event.gone:
        return True
    read = [path for node in rule.nodes() for entity, path in node.reads if entity is event.entity]
    watched = rule.watches(event.entity)
    return _has_overlap(event.paths, read) if read else watched is None or _has_overlap(event.paths, watched)


def _has_overlap(paths: tuple[Path, ...] | None, read: list[Path] | tuple[Path, ...]) -> bool:
    return paths is None or any(has_overlap(path, one) for path in paths for one in read)


def _compute_work(sizes: Sizes, rule: Rule, occasion: Occasion, event: WriteEvent) -> Done | None:
    """The work of a rule for an event. None: nothing is done."""
    whole = event.came or event.gone
    effort = find_effort(rule, occasion, None if whole else event.paths)
    if effort is None:
        return None
    _note_assumptions(sizes, rule, effort)
    if occasion is Occasion.SOURCE and not whole and not event.young:
        sizes.followed.add(rule.title)
    if effort.of_all:
        return _compute_fan_out(sizes, rule, effort, event)
    if event.gone and rule.target is rule.source and not rule.calls:
        return None
    each = sizes.compute_ratio(rule.source, rule.target) if effort.each else 1.0
    load = None if each is None else _compute_target_load(sizes, rule, effort, event.rate * each, event.rate)
    if load is None or each is None:
        return None
    times = event.rate * each * bool(effort.target_writes or effort.ledger_writes) * (2 if effort.moves else 1)
    return Done(rule, load, times, effort.comes)


def _note_assumptions(sizes: Sizes, rule: Rule, effort: Effort) -> None:
    if effort.taken:
        sizes.note(f"rule {rule.title}: {effort.taken}")
    for option in rule.filters:
        sizes.note(f"rule {rule.title}: its `{option}` is taken to leave every item in")


def _compute_target_load(sizes: Sizes, rule: Rule, effort: Effort, rate: float, often: float) -> Load | None:
    """The load of writes and reads of targets, `rate` per second, and of their source, `often` per second. None where a
    size is not known.
    """
    target, source = sizes.find_size(rule.target), sizes.find_size(rule.source)
    if target is None or source is None:
        return None
    load = Load()
    own, other = Place(rule.target.table.name), Place(rule.source.table.name)
    effects = rule.target is rule.source and bool(rule.calls)
    ledger = Place("calls") if effects else other if sizes.is_made(rule.source) else own
    load.write(own, rate * effort.target_writes * count_write_units(target))
    load.write(other, often * effort.source_writes * count_write_units(source))
    load.write(ledger, rate * effort.ledger_writes)
    load.read(own, rate * effort.target_reads * count_read_units(target, consistent=True))
    load.read(other, often * effort.source_reads * count_read_units(source, consistent=True))
    load.read(ledger, rate * effort.ledger_reads)
    if effort.transactions:
        load.transactions = load.write_units
    if effort.target_writes:
        _add_index_writes(sizes, rule, rate, load)
    _add_function_time(rule, rate, load)
    _add_listings(sizes, rule, effort, rate, load)
    return load


def _add_index_writes(sizes: Sizes, rule: Rule, rate: float, load: Load) -> None:
    """Add the writes of indexes that follow the writes of targets."""
    paths = tuple(path for node in rule.nodes() for entity, path in (node.writes,) if entity is rule.target)
    for index, units in list_index_units(sizes, rule.target, paths, whole=_is_item_maker(rule, paths)):
        load.write(Place(rule.target.table.name, index.name), rate * units)


def _is_item_maker(rule: Rule, paths: tuple[Path, ...]) -> bool:
    keys = {attribute.name for attribute in rule.target.table.key}
    return any(not path or path[0] in keys for path in paths)


def _add_function_time(rule: Rule, rate: float, load: Load) -> None:
    """Add the time of the functions for one write, and its record, which comes back."""
    if not load.writes:
        return
    load.busy += rate / WORKER_COPIES_SECOND * WORKER_GIGABYTES
    load.records[rule.target.table.name] += rate


def _add_listings(sizes: Sizes, rule: Rule, effort: Effort, rate: float, load: Load) -> None:
    """Add the listings of all that a target is made of. Through an index, each item that it lists is read, too."""
    if not effort.listings:
        return
    table = rule.source.table.name
    if sizes.is_made(rule.source):
        load.read(Place(table), rate * effort.listings)
        return
    each, size = sizes.compute_ratio(rule.target, rule.source), sizes.find_size(rule.source)
    if each is None or size is None:
        return
    index = None if rule.find is None or rule.find.index is None else rule.source.table.index(rule.find.index)
    if index is None:
        load.read(Place(table), rate * effort.listings * count_read_units(math.ceil(each * size), consistent=True))
        return
    row = sizes.find_row_bytes(rule.source, index) or size
    load.read(
        Place(table, index.name), rate * effort.listings * count_read_units(math.ceil(each * row), consistent=False)
    )
    load.read(Place(table), rate * effort.listings * each * count_read_units(size, consistent=True))
    load.requests += rate * REQUESTS_OF_A_MESSAGE


def _compute_fan_out(sizes: Sizes, rule: Rule, effort: Effort, event: WriteEvent) -> Done | None:
    """The load of a source's event on all of its targets, which its listing finds."""
    load, rate, table = Load(), event.rate, rule.target.table.name
    index = None if rule.find is None or rule.find.index is None else rule.target.table.index(rule.find.index)
    listed = Place(table, index.name if index else "")
    if event.came or event.young:  # it has no targets yet
        load.read(listed, rate * count_read_units(0, consistent=index is None))
        return Done(rule, load, 0.0)
    gone = Change(ItemKey(rule.source.table.name, ()), {}, None)
    if event.gone and not rule.pushes(gone):
        return None
    each, target, source = (
        sizes.compute_ratio(rule.source, rule.target),
        sizes.find_size(rule.target),
        sizes.find_size(rule.source),
    )
    if each is None or target is None or source is None:
        return None
    row = target if index is None else sizes.find_row_bytes(rule.target, index) or target
    copies = max(1, math.ceil(each))
    share = each / copies
    load.write(Place(table), rate * each * effort.target_writes * count_write_units(target))
    load.write(Place(rule.source.table.name), rate * each * effort.source_writes * count_write_units(source))
    load.transactions = load.write_units if effort.transactions else 0.0
    _add_index_writes(sizes, rule, rate * each, load)
    reads = count_fanout_units(copies, target, row, consistent=index is None) * share
    if index is not None:  # a second look, when the index has caught up
        reads += each * (row / READ_UNIT_BYTES * 0.5 + count_read_units(target, consistent=True))
        load.requests += rate * REQUESTS_OF_A_MESSAGE
    load.read(listed if index is None else Place(table), rate * reads)
    done = estimate_compute(copies, consistent=index is None)
    load.busy += rate * (done.gb_seconds * share - each * RECORD_SECONDS * WORKER_GIGABYTES)
    load.records[table] += rate * each
    load.requests += rate * done.queue_requests
    return Done(rule, load, rate * each)


def _list_caused_events(done: Done, event: WriteEvent) -> Iterator[WriteEvent]:
    rule, times = done.rule, done.times
    if not times:
        return
    written_paths: dict[Entity, list[Path]] = defaultdict(list)
    for node in rule.nodes():
        entity, path = node.writes
        written_paths[entity].append(path)
    for entity, paths in written_paths.items():
        whole = entity is rule.target and _is_item_maker(rule, tuple(paths))
        came, gone = whole and (event.came or done.comes), whole and event.gone
        young = entity is event.entity and (event.came or event.young)
        yield WriteEvent(entity, came, gone, None if whole else tuple(paths), times, (rule,), young)
