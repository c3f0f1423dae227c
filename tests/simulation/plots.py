"""Short plots of applications around one source and its targets: what races is what meets at the same two items.

Invariant: a plot is nothing but writes that any application may make, one after another with anything in between. Each is
chosen when it is made, by what is there then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sync_rules.model.sizes import count_item_bytes
from tests.simulation.indexes import BALLAST, ITEM_MAX_BYTES
from tests.simulation.oracle import children_of, copy_of, members_of, mirror_of, path_link
from tests.simulation.spec import Entity, Item, Link, Path, Place, Spec, Value, get, put

if TYPE_CHECKING:
    from tests.simulation.workload import Application

Write = tuple[Place, Item | None]
Step = Callable[["Application"], Write | None]


@dataclass(frozen=True, eq=False)
class Tie:
    """Items of `many` that name an item of `one`, for a rule; `pairs` are what is copied, and to where."""

    one: Entity
    many: Entity
    link: Link
    pairs: tuple[tuple[Path, Path], ...] = ()


def ties_of(spec: Spec) -> list[Tie]:
    return list(_ties(spec))


def _ties(spec: Spec) -> Iterator[Tie]:
    for rule in spec.rules.values():
        match rule["kind"]:
            case "copy":
                copy = copy_of(spec, rule)
                if rule["copy"] and copy.source is not copy.target:
                    yield Tie(copy.source, copy.target, copy.link, copy.pairs)
            case "embed" | "collect" | "count" | "sum" | "mean" | "min" | "max" | "values":
                yield Tie(members_of(spec, rule).parent, children_of(spec, rule), members_of(spec, rule).link)
            case "path":
                entity, link = path_link(spec, rule)
                yield Tie(entity, entity, link)
            case "mirror":
                mirror = mirror_of(spec, rule)
                yield Tie(mirror.source, mirror.target, mirror.owner)


# ---------------------------------------------------------------- pairs of items
def pair(app: Application) -> tuple[Tie, Place, Place] | None:
    """An item and one that it names, both there."""
    names = {kind.entity.name for kind in app.focus}
    ties = [tie for tie in app.playground.ties if tie.many.name in names or tie.one.name in names]
    if not ties:
        return None
    tie = app.one(ties)
    found = [(source, place) for source, place in pairs_of(app, tie) if source in app.items()]
    return (tie, *app.one(found)) if found else None


def pairs_of(app: Application, tie: Tie) -> Iterator[tuple[Place, Place]]:
    spec = app.playground.spec
    for place, item in app.items().items():
        if spec.entity_of(place) is tie.many:
            named = spec.named(tie.one, tie.link, item)
            if named is not None and named != place:
                yield named, place


def race(app: Application) -> Write | None:
    """Begin a plot: its first write is made now, the others follow."""
    found = pair(app)
    if found is None:
        return app.insert()
    plot = PLOTS[app.pick(len(PLOTS))]
    first, *rest = plot(app, *found)
    app.following += rest
    return first(app)


def change_the_source(app: Application, *, most: bool) -> Write | None:
    """A change of an item that others name: of that which `most` name, or of any."""
    if not most:
        found = pair(app)
        return None if found is None else change_source(found[0], found[1])(app)
    tie = app.one(app.playground.ties)
    named = Counter(source for source, _ in pairs_of(app, tie) if source in app.items())
    return change_source(tie, named.most_common(1)[0][0])(app) if named else None


# ---------------------------------------------------------------- steps
def change_source(tie: Tie, source: Place) -> Step:
    """A change of what a rule reads of a source, or else of anything of it."""

    def step(app: Application) -> Write | None:
        item, kind = app.items().get(source), app.kind_of(source)
        if item is None or kind is None:
            return None
        read = [path for path, _ in tie.pairs if path in kind.values]
        path = app.one(read or list(kind.values))
        return source, app.put(item, path, app.value(kind, path, odd=False))

    return step


def copied(tie: Tie, place: Place, *, again: bool) -> Step:
    """An application writes the copies as they are right now: nothing is left to do. `again`: it recreates the item."""

    def step(app: Application) -> Write | None:
        there = app.items().get(place)
        images = [there] if there is not None else app.past.get(place, [])[-1:] if again else []
        if not images:
            return None
        item = images[0]
        named = app.playground.spec.named(tie.one, tie.link, item)
        source = None if named is None else app.items().get(named)
        for path, to in tie.pairs if source is not None else ():
            item = app.put(item, to, tie.one.read(source or {}, path))
        return place, item

    return step


def deleted(place: Place) -> Step:
    return lambda app: (place, None) if place in app.items() else None


def back(place: Place) -> Step:
    """Make again what was deleted, as it was or changed."""

    def step(app: Application) -> Write | None:
        kind, images = app.kind_of(place), app.past.get(place, [])
        if place in app.items() or kind is None or not images:
            return None
        path = app.one(list(kind.values))
        return place, app.put(images[-1], path, app.value(kind, path, odd=False)) if app.pick(2) else images[-1]

    return step


def come(place: Place) -> Step:
    """Make an item where there never was one."""

    def step(app: Application) -> Write | None:
        kind = app.kind_of(place)
        made = app.new(kind) if kind is not None and place not in app.items() else None
        return made and (place, {**made[1], **app.playground.spec.tables[place[0]].attributes(place)})

    return step


def touched(place: Place) -> Step:
    """A change of anything of a target but what it names: of a condition, of its place in an index, of its copies."""

    def step(app: Application) -> Write | None:
        item, kind = app.items().get(place), app.kind_of(place)
        if item is None or kind is None:
            return None
        paths = [path for path in kind.values if path not in kind.links]
        if kind.owned and app.pick(3) == 2:
            return place, app.put(item, app.one(kind.owned), None)
        if not paths:
            return None
        path = app.one([*paths, *(one for one in paths if one in kind.scarce)])
        return place, app.put(item, path, app.value(kind, path, odd=False))

    return step


def elsewhere(tie: Tie, place: Place) -> Step:
    """A target names another source."""

    def step(app: Application) -> Write | None:
        item, kind = app.items().get(place), app.kind_of(place)
        paths = [spot.path for spot in tie.link.values() if kind is not None and spot.path in kind.values]
        if item is None or kind is None or not paths:
            return None
        path = app.one(paths)
        return place, app.put(item, path, app.value(kind, path, odd=False))

    return step


def as_before(place: Place) -> Step:
    """A target as it was one write ago."""

    def step(app: Application) -> Write | None:
        images = app.past.get(place, [])
        return (place, images[-2]) if len(images) > 1 and place in app.items() else None

    return step


def another(tie: Tie, place: Place) -> Step:
    """One more target of the same source, with the copies of this one."""

    def step(app: Application) -> Write | None:
        item, kind = app.items().get(place), app.kind_of(place)
        made = app.new(kind) if kind is not None else None
        if item is None or made is None or made[0] in app.items():
            return None
        key = tie.many.table.key
        return made[0], {**item, **{name: made[1][name] for name in key}}

    return step


def filled(place: Place) -> Step:
    """An item becomes as large as items may be here."""
    return lambda app: _full(app, place) if app.fills else None


def _full(app: Application, place: Place) -> Write | None:
    item = app.items().get(place)
    if item is None or BALLAST in item:
        return None
    room = ITEM_MAX_BYTES - count_item_bytes({**item, BALLAST: {"S": ""}}) - app.one((0, 0, 2, 12))
    return (place, {**item, BALLAST: {"S": "x" * room}}) if room >= 0 else None


def fill(app: Application) -> Write | None:
    """An item that rules write to becomes as large as items may be here, or nearly."""
    kinds = ((place, app.kind_of(place)) for place in app.items())
    found = [place for place, kind in kinds if kind is not None and (kind.owned or kind.mirrored)]
    return _full(app, app.one(found)) if found else None


def spoilt(tie: Tie, place: Place) -> Step:
    """The map around a copy becomes a text; or else the copy goes."""

    def step(app: Application) -> Write | None:
        item = app.items().get(place)
        inside = [to for _, to in tie.pairs if len(to) > 1]
        if item is None or not tie.pairs:
            return None
        return place, put(item, app.one(inside)[:1], {"S": "a text"}) if inside else app.put(
            item, tie.pairs[0][1], None
        )

    return step


def cured(tie: Tie, place: Place) -> Step:
    """Remove what stands where the map around a copy was, or make it a map again."""

    def step(app: Application) -> Write | None:
        item = app.items().get(place)
        inside = [to for _, to in tie.pairs if len(to) > 1 and get(item, to[:1]) is not None]
        if item is None or not inside:
            return None
        return place, put(item, app.one(inside)[:1], app.one((None, {"M": {}})))

    return step


# ---------------------------------------------------------------- plots
Plot = Callable[["Application", Tie, Place, Place], list[Step]]
PLOTS: Final[tuple[Plot, ...]] = (
    lambda _app, tie, source, place: [copied(tie, place, again=False), change_source(tie, source)],
    lambda _app, tie, source, place: [deleted(place), copied(tie, place, again=True), change_source(tie, source)],
    lambda _app, tie, source, place: [another(tie, place), change_source(tie, source)],
    lambda _app, tie, source, place: [another(tie, place), another(tie, place), change_source(tie, source)],
    lambda _app, tie, source, place: [change_source(tie, source), touched(place)],
    lambda _app, tie, source, place: [change_source(tie, source), change_source(tie, source)],
    lambda _app, _tie, source, place: [deleted(source), touched(place)],
    lambda _app, _tie, source, place: [deleted(source), back(source)],
    lambda _app, tie, source, place: [deleted(source), back(source), change_source(tie, source)],
    lambda _app, tie, source, place: [elsewhere(tie, place), as_before(place), change_source(tie, source)],
    lambda _app, tie, source, place: [elsewhere(tie, place), deleted(source)],
    lambda _app, tie, source, place: [filled(place), change_source(tie, source)],
    lambda _app, tie, source, place: [filled(place), elsewhere(tie, place)],
    lambda _app, tie, source, place: [filled(source), another(tie, place), another(tie, place)],
    lambda _app, tie, source, place: [spoilt(tie, place), change_source(tie, source), cured(tie, place)],
    lambda _app, tie, source, place: [touched(place), change_source(tie, source), touched(place)],
)  # fmt: skip


def disturb(app: Application, places: list[Place]) -> Write | None:
    """Change something that a worker has read and goes by: what is there, or what was found to be gone."""
    known = [place for place in places if app.kind_of(place) is not None]
    if not known:
        return None
    place = app.one(known)
    if place not in app.items():
        if app.past.get(place):
            return back(place)(app)
        app.following += [deleted(place)] * app.pick(2)
        return come(place)(app)
    how = app.pick(8)
    if how == 7:
        app.following.append(back(place))
        return place, None
    kind = app.kind_of(place)
    assert kind is not None, "one of those known"
    if how == 6 and kind.owned:
        return place, app.put(app.items()[place], app.one(kind.owned), None)
    inside = [path for path in kind.owned if len(path) > 1] if how > 2 and app.playground.dense else []
    if inside:  # the map around a copy
        return place, put(app.items()[place], app.one(inside)[:1], app.one(({"M": {}}, {"M": {}}, None)))
    paths = [path for path in kind.links if path in kind.values] if how == 5 else []
    path = app.one(paths or list(kind.values))
    return place, app.put(app.items()[place], path, app.value(kind, path, odd=False))


def shrunk(items: Mapping[Place, Item]) -> list[Write]:
    """The writes that give room to all items that are full."""
    return [(place, put(item, (BALLAST,), None)) for place, item in items.items() if BALLAST in item]


def fits(item: Item, values: Mapping[Path, Value | None]) -> bool:
    """True if an item, full or not, has room for these values."""
    for path, value in values.items():
        item = put(item, path, value)
    return BALLAST not in item or count_item_bytes(item) <= ITEM_MAX_BYTES
