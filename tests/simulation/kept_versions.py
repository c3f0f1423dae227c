"""Rules of kind history: how the grammar writes them, what the items say of them, and what the past does.

Invariant: the application alone makes versions, by what it writes under each number, and it writes nothing into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.oracle import Mirror, View, lets_in, mirror_values, once, shown
from tests.simulation.plain import RaisingError, same
from tests.simulation.spec import Body, Entity, Item, Path, Place, Spec, Value, fits, nested

if TYPE_CHECKING:
    from tests.simulation.grammar import File
    from tests.simulation.world import World

PLAIN: Final = ("name", "title", '"full.name"', "größe", "info.city", "state", "amount", "rank")
LOST: Final = "VersionLost"  # a version was reported before, and its retry fails
SHARE: Final = 0.2  # of all files


# ---------------------------------------------------------------- as the grammar writes them
def history(file: File, number: int, attempt: int, condition: Callable[[File, str], str]) -> None:
    """Perhaps one more rule, of draws of its own, so that every other rule of the file is what it was without."""
    before, file.random = file.random, Random(f"history {number} {attempt}")
    if file.chance(float("history" in file.only) if file.only else SHARE):
        sources = [one for one, ids in file.ids.items() if one not in file.mirrors and all(k != "B" for _, k in ids)]
        if sources:
            _rule(file, file.one(*sources), condition)
    file.random = before


def _rule(file: File, source: str, condition: Callable[[File, str], str]) -> None:
    name = f"v{file.number()}"
    first, *rest = [part for part, _ in file.ids[source]]
    read = file.one("name", "title", "state", "amount", "rank")
    which = "{ver:pad(4)}" if read in ("amount", "rank") else "{ver}"
    texts = f"{name.upper()}#{{{first}}}", "#".join(["AT", *(f"{{{part}}}" for part in rest), which])
    table, key = "main", ("PK", "SK")
    if "main" not in file.tables or file.chance(0.5):
        table, key = f"{name}s", ("hk", "rk")
        file.tables[table] = {"key": dict.fromkeys(key, "S")}
    file.entities[name] = {"table": table, "key": dict(zip(key, texts, strict=True))}
    form: dict[str, Any] = {"history": source, "into": name, "link": {"ver": read}}
    plain = [text for text in dict.fromkeys(file.readable[source]) if text in PLAIN]
    chosen = file.random.sample(plain, min(len(plain), file.one(1, 2, 3)))
    untouched = {*file.readable[source]} <= {*PLAIN, *(part for part, _ in file.ids[source])}  # by other rules
    match file.one("list", "map", "all" if untouched else "list"):
        case "list":
            form["attributes"] = [text for text in chosen if "." not in text] or ["name"]
        case "map":
            form["attributes"] = {text: f"k{at}" for at, text in enumerate(chosen)}
    if file.chance(0.3):
        form["where"] = condition(file, source)
    file.rules[f"rule{len(file.rules)}"] = form


# ---------------------------------------------------------------- what the items say
@once
def history_of(spec: Spec, rule: Body) -> Mirror:
    """A version is named and made like a mirror."""
    source, target = spec.entities[rule["history"]], spec.entities[rule["into"]]
    given = rule.get("link", {})
    bound = [field for pattern in target.patterns.values() for field in pattern.fields]
    fields = {name: source.spot(given.get(name, name)) for name in dict.fromkeys([*target.identity, *bound, *given])}
    return Mirror(source, target, fields, {name: target.spot(name) for name in source.identity}, None)


def version_of(spec: Spec, rule: Body, state: Item) -> tuple[Place, Item] | None:
    """The version of a state of a source, and what it holds; None where it has none."""
    one = history_of(spec, rule)
    for place, fields in one.named(rule, state):
        if place is not None:
            wanted = _values(spec, rule, state, fields)
            return place, {**one.target.table.attributes(place), **nested(wanted.items())}
    return None


def _values(spec: Spec, rule: Body, state: Item, fields: Mapping[str, Value]) -> dict[Path, Value]:
    one = history_of(spec, rule)
    wanted = mirror_values(spec, {"attributes": "all", **rule}, one, state, fields)
    if "attributes" not in rule:
        limits = one.target.table.limits
        made = {n for n in limits if n in one.target.patterns or n in fields}
        wanted = {path: value for path, value in wanted.items() if path[0] not in limits or path[0] in made}
    return {path: value for path, value in wanted.items() if value is not None}


def fit(spec: Spec, item: Item, place: Place) -> bool:
    """True if the indexes of its table can take an item."""
    limits = spec.tables[place[0]].limits
    return all(
        name not in item or (kind in item[name] and fits(item[name], most)) for name, (kind, most) in limits.items()
    )


def look(view: View, rule: Body) -> None:
    """Check that each source has its current version, or note why it has none."""
    one = history_of(view.spec, rule)
    for at, source in view.of(one.source):
        try:
            if not lets_in(rule, one.source, source):
                continue
        except RaisingError:
            view.leave(rule, at, "raises")
            continue
        version = version_of(view.spec, rule, source)
        if version is None:
            view.leave(rule, at, "NoVersion")
            continue
        place, wanted = version
        item = view.items.get(place)
        if item is None and not fit(view.spec, wanted, place):
            view.leave(rule, place, "rejected")
        elif item is None:
            view.wrong(rule, place, f"no version of {shown(at)}")
        elif not same({"M": item}, {"M": wanted}):
            view.leave(rule, place, "VersionTaken")


# ---------------------------------------------------------------- what the past does
def states_of(spec: Spec, rule: Body, entity: Entity, images: Sequence[Item | None]) -> Iterator[tuple[Place, Item]]:
    """The versions that some states of an item are."""
    for image in images:
        try:
            if image is None or not lets_in(rule, entity, image):
                continue
        except RaisingError:
            continue
        if (version := version_of(spec, rule, image)) is not None:
            yield version


def is_version(spec: Spec, place: Place, item: Item, past: Mapping[Place, Sequence[Item]]) -> bool:
    """True if an item is a state that its source had."""
    for rule in spec.rules.values():
        if rule["kind"] == "history" and history_of(spec, rule).target is spec.entity_of(place):
            one = history_of(spec, rule)
            named = spec.named(one.source, one.owner, item)
            states = past.get(named, ()) if named is not None else ()
            found = states_of(spec, rule, one.source, states)
            return any(at == place and same({"M": item}, {"M": held}) for at, held in found)
    return False


def lost(spec: Spec, world: World) -> Iterator[str]:
    """The versions that the record of some change showed, and that are not there, though nothing was reported of them. A
    deletion shows none, nor does a change of nothing that they hold.
    """
    reported = (one for one in world.failures if one.key is not None and one.reason != LOST)
    told = {(one.rule, world_place(one.key)) for one in reported}
    for rule in spec.rules.values():
        if rule["kind"] != "history":
            continue
        entity = history_of(spec, rule).source
        for place, old, new, _ in world.log:
            if spec.entity_of(place) is not entity:
                continue
            before, after = (list(states_of(spec, rule, entity, [state])) for state in (old, new))
            for at, held in () if new is None or before == after else (*before, *after):
                if at not in world.items and fit(spec, held, at) and (rule["name"], at) not in told:
                    yield f"rule {rule['name']} (history) on {shown(at)}: the version is lost"


def world_place(key: Any) -> Place:
    return key.table, tuple((kind, value) for _, kind, value in key.values)
