"""The checks of a history that came to rest: verify, a backfill of the bare items, a replay, effects, damage.

Invariant: verify, backfill, repair and replay are the code of production, in whole. Each is asked what the oracle knows:
what is right, what is open, and what was damaged on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from sync_rules.adapters.memory import MemoryStore
from sync_rules.audit.compare import Drift
from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.recording import Recorded
from sync_rules.lab.recording_replay import replay
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change
from sync_rules.model.writes import Put
from sync_rules.pipeline.records import read_event
from tests.simulation.choices import Stream
from tests.simulation.commands import DivergenceError, backfill, verified
from tests.simulation.damage import damage_of_books
from tests.simulation.grammar import Made
from tests.simulation.history import History
from tests.simulation.oracle import (
    HISTORY,
    LATE,
    NOT_IN_INDEX,
    Mirror,
    Verdict,
    has_more,
    lets_in,
    mirror_of,
    mirror_values,
    owned_paths,
    shown,
)
from tests.simulation.plain import RaisingError, same
from tests.simulation.spec import Item, Place, Value, get
from tests.simulation.workload import _put as put
from tests.simulation.world import key_of, place_of

UNSAID: Final = ("perhaps", "no id")  # what is open, and need not be found by verify


# ---------------------------------------------------------------- verify agrees
def check_verify(history: History, verdict: Verdict) -> None:
    """Verify finds what the oracle calls stuck and orphaned, and nothing else."""
    made, world = history.made, history.world
    found: set[tuple[str, Place]] = set()
    for finding in verified(made, world, repair=False):
        one = finding.difference
        titles = {
            one.rule,
            one.rule.partition(".")[0],
        }  # the oracle knows the first rule of a link over two items by its name
        places = [place_of(key) for key in (one.target, one.source, one.part.source if one.part else None) if key]
        names = {(title, place) for title in titles for place in places}
        found |= names
        excused = any(verdict.open.get(name, HISTORY) != HISTORY for name in names)
        if one.drift is Drift.ORPHAN and not one.repairable:
            excused = not names.isdisjoint(verdict.orphans)
        history.seen["verify", one.drift.value] += 1
        if not excused:
            raise DivergenceError(f"verify finds {one} where all is right")
    for (title, place), why in verdict.open.items():
        if (
            why not in (HISTORY, *UNSAID)
            and (title, place) not in found
            and not _of_another(history, title, place, found)
        ):
            raise DivergenceError(f"verify finds nothing of rule {title} on {shown(place)}: {why}")
    for title, place in verdict.orphans - found:
        raise DivergenceError(f"verify finds no orphan of rule {title} on {shown(place)}")


def _of_another(history: History, title: str, place: Place, found: set[tuple[str, Place]]) -> bool:
    """True if all mirrors that a source names are found, with other sources that name them too: each is one finding."""
    spec, item = history.made.spec, history.world.items.get(place)
    rule = spec.rules[title]
    if rule["kind"] != "mirror" or item is None or spec.entity_of(place) is not spec.entities[rule["mirror"]]:
        return False
    named = [at for at, _ in mirror_of(spec, rule).named(rule, item)]
    return bool(named) and all(at is not None and (title, at) in found for at in named)


# ---------------------------------------------------------------- a backfill of the bare items agrees
def bare(history: History, verdict: Verdict) -> MemoryStore:
    """The items without all that rules made: but what is history stays."""
    spec, world = history.made.spec, history.world
    store = MemoryStore(dict(history.made.rules.tables))
    mirrors = [
        (rule, mirror_of(spec, rule)) for rule in spec.rules.values() if rule["kind"] == "mirror" and "mode" not in rule
    ]
    for place, there in world.items.items():
        item, entity = there, spec.entity_of(place)
        if place[0] in spec.ledgers:
            continue
        if entity is not None:
            claims = [rule for rule, one in mirrors if one.target is entity and spec.named(one.source, one.owner, item)]
            sure = claims and not any((rule["name"], place) in verdict.open for rule in claims)
            if entity.made and not has_more(spec, entity, item):
                continue
            if sure and not _has_more(history, place, [one for one in mirrors if one[0] in claims]):
                continue
            for name, paths in owned_paths(spec, entity).items():
                for path in paths:
                    if verdict.settles(name, place, path) and get(item, path) is not None:
                        item = put(item, path, None)
        store.put(place[0], item)
    return store


def _has_more(history: History, place: Place, claims: Sequence[tuple[Any, Mirror]]) -> bool:
    """True if a mirror has attributes of the application's own, which no rule could make again."""
    spec, items = history.made.spec, history.world.items
    entity = spec.entity_of(place)
    assert entity is not None, "a mirror is of an entity"
    made = {*entity.table.key, *(path[0] for paths in owned_paths(spec, entity).values() for path in paths)}
    for rule, one in claims:
        named = spec.named(one.source, one.owner, items[place])
        source = None if named is None else items.get(named)
        for at, fields in one.named(rule, source) if source is not None else ():
            if at == place and source is not None:
                made |= {path[0] for path in mirror_values(spec, rule, one, source, fields)}
    return not items[place].keys() <= made


def check_backfill(history: History, verdict: Verdict) -> None:
    """A backfill makes of the bare items what the handlers made."""
    store = bare(history, verdict)
    pick = history.choices.people.pick if history.mode in ("backfill", "people") else None
    backfill(history.made, store, pick)
    items = items_of(history.made, store)
    again = history.oracle.look(items)
    if again.wrong:
        raise DivergenceError("after a backfill of the bare items: " + "\n  ".join(again.wrong))
    for name, place, path in verdict.settled:
        left, right = get(history.world.items.get(place), path), get(items.get(place), path)
        if not same(left, right) and (name, place) not in again.open:
            raise DivergenceError(f"a backfill makes {right} of {'.'.join(path)} on {shown(place)}, and here is {left}")


def items_of(made: Made, store: MemoryStore) -> dict[Place, Item]:
    return {made.spec.tables[name].place(item): item for name in made.spec.tables for item in store.items(name)}


# ---------------------------------------------------------------- a replay agrees
def check_replay(history: History) -> None:
    """A replay of everything that happened, by all ways of delivery in turn, ends as the rules say."""
    made, world = history.made, history.world
    if world.lost:
        return
    records = []
    for number, (place, _, _, record) in enumerate(world.log, 1):
        (change,) = tuple(read_event({"Records": [record]}, made.rules)) or (None,)
        if isinstance(change, Change):
            records.append(Recorded(number, change, record, f"{place}/{number}"))
    data = [Put(key_of(made, place), item, ()) for place, item in world.unheard]
    delivery = VARIANTS[history.choices.configuration.pick(len(VARIANTS))]
    mismatch = replay(records, made.rules, delivery, data)
    if mismatch is not None:
        raise DivergenceError(f"a replay of the recording ends {mismatch}")


# ---------------------------------------------------------------- effects
def check_effects(history: History) -> None:
    """Each change that a rule calls for was called once."""
    made, world = history.made, history.world
    if world.lost:
        return
    calls: Counter[tuple[str, str]] = Counter()
    for rule in made.spec.rules.values():
        if rule["kind"] != "call":
            continue
        entity = made.spec.entities[rule["on"]]
        for place, old, new, record in world.log:
            item = old if new is None else new
            assert item is not None, "a change"
            if made.spec.entity_of(place) is not entity:
                continue
            try:
                if not lets_in(rule, entity, item):
                    continue
            except RaisingError:
                continue
            if _called(rule, entity, old, new):
                calls[rule["name"], record["dynamodb"]["SequenceNumber"]] = 1
    if world.calls != calls:
        raise DivergenceError(f"called: too few {calls - world.calls}, too many {world.calls - calls}")


def _called(rule: Any, entity: Any, old: Item | None, new: Item | None) -> bool:
    when = "created" if old is None else "deleted" if new is None else "changed"
    if when not in rule.get("when", (when,)):
        return False
    if when != "changed" or not rule.get("watch"):
        return True
    return any(not same(get(old, (*one.split("."),)), get(new, (*one.split("."),))) for one in rule["watch"])


# ---------------------------------------------------------------- damage is found and repaired
def check_damage(history: History, verdict: Verdict, pick: Stream) -> None:
    """Somebody changes what a rule keeps, and no record says so: verify finds it, and repairs it."""
    world = history.world
    damage = _damage(history, verdict, pick)
    if damage is None:
        return
    place, item, told = damage
    before = world.items.get(place)
    try:
        world.quietly(place, item)
    except StoreError:
        return
    after = history.oracle.look(world.items)
    if not after.wrong:  # the damage does not show, or no rule could cure it
        world.quietly(place, before)
        return
    history.seen["damage", "done"] += 1
    history.tell(f"-- damage: {told} -> {item}")
    found = verified(history.made, world, repair=False)
    if not any(one.difference.repairable or one.difference.tried for one in found):  # or stuck in another way too
        raise DivergenceError(f"verify does not find the damage: {told}\n  " + "\n  ".join(after.wrong))
    repaired(history, told)


def repaired(history: History, told: str) -> None:
    """A verify repairs everything while no other worker runs. Then no work is left."""
    verified(history.made, history.world, repair=True)
    wrong = history.oracle.look(history.world.items).wrong
    if wrong:
        raise DivergenceError(f"after a repair of {told}: " + "\n  ".join(wrong))
    history.rest()
    check_verify(history, history.judged())


def _damage(history: History, verdict: Verdict, pick: Stream) -> tuple[Place, Item | None, str] | None:
    """An item, what it shall be, and what that is in words."""
    world = history.world
    if not verdict.settled:
        return None
    name, place, path = verdict.settled[pick.pick(len(verdict.settled))]
    item = world.items.get(place)
    if item is None:
        return None
    entity = history.made.spec.entity_of(place)
    if entity is not None and entity.made and not pick.pick(3):
        return place, None, f"the item of rule {name} at {shown(place)}"
    value = get(item, path)
    others: list[Value | None] = [None, {"S": "damage"}, {"N": "77"}, {"M": {}}]
    if value is not None and "M" in value and value["M"]:
        one = next(iter(value["M"]))
        others += [{"M": {k: v for k, v in value["M"].items() if k != one}}, {"M": {**value["M"], "odd": {"N": "9"}}}]
    return place, put(item, path, others[pick.pick(len(others))]), f"rule {name} at {'.'.join(path)} of {shown(place)}"


def check_books(history: History, pick: Stream) -> None:
    """Somebody damages the books: verify repairs them, and the handlers go on."""
    world = history.world
    found = damage_of_books(history.made, world, pick.pick)
    if found is None:
        return
    place, damaged = found
    told = f"the books at {shown(place)}: {world.items[place]}"
    world.quietly(place, damaged)
    history.seen["damage", "books"] += 1
    history.tell(f"-- damage: {told} -> {damaged}")
    repaired(history, told)
    taken = any(one.difference.reason == "KeyTaken" for one in verified(history.made, world, repair=False))
    history.calm = False
    for _ in range(3):
        history.operate()
    history.calm = True
    history.rest()
    history.redrive()
    if taken:  # a repair gave the key to another of those that claim it: who waits for it was told, and verifies again
        verified(history.made, world, repair=True)
        history.rest()
    check_verify(history, history.judged())


# ---------------------------------------------------------------- nothing is left to do
def may_come_again(verdict: Verdict) -> bool:
    """True if nothing changes when all is delivered once more."""
    if verdict.orphans:
        return False  # a REMOVE that comes again also deletes what was attached since
    # an INSERT that comes again finds the source that came after its item, or changed unlisted
    return {LATE, NOT_IN_INDEX}.isdisjoint(verdict.open.values())


def check_quiet(history: History, verdict: Verdict) -> None:
    """Everything delivered once more changes nothing."""
    if not may_come_again(verdict):
        return
    streams, before = history.world.streams, history.world.clock
    if not streams.finished:
        return
    for old in streams.finished:
        history.world.streams.dead.append(type(old)(old.records, old.places, first=False))
    history.rest()
    if history.world.clock != before:
        raise DivergenceError(f"{history.world.clock - before} changes when all was delivered once more")
