"""Says what follows from the past: which targets must be gone, and which snapshots that nothing lists must be filled.

Invariant: only what no history can excuse is asked for. A target that came, moved, or was let in later may have come after
the last listing, and stays; verify reports it. A source that was not there all the while since its target changed may
have come too late.
"""

from __future__ import annotations

from collections.abc import Iterator

from sync_rules.pipeline.acceptance import NOT_ACCEPTED
from tests.simulation.oracle import LATE, Verdict, copy_holds, copy_of, lets_in, members_of, path_link, shown
from tests.simulation.plain import RaisingError
from tests.simulation.spec import Body, Entity, Item, Link, Place, Spec, Way, get
from tests.simulation.world import World, place_of


def left_over(spec: Spec, world: World, verdict: Verdict) -> Iterator[str]:
    """The targets that a deleted source has left behind, in words. A rule that nothing accepted deletes none."""
    unaccepted = {
        (one.rule.partition(".")[0], place_of(one.key))
        for one in world.failures
        if one.key is not None and one.reason.startswith(NOT_ACCEPTED)
    }
    for name, place in sorted(verdict.orphans, key=repr):
        rule = spec.rules[name]
        if rule.get("on_delete") != "delete":
            continue
        one, entity, link, way = _parts(spec, rule)
        source = spec.named(one, link, world.items[place])
        last = max(
            (at for at, (gone, _, new, _) in enumerate(world.log) if gone == source and new is None), default=None
        )
        if source is None or source == place or last is None or (name, place) in unaccepted:
            continue
        images = list(_images(world, place, last))
        if all(
            image is not None and spec.named(one, link, image) == source and _meant(spec, rule, entity, way, image)
            for image in images
        ) and _still(way, images):
            yield f"rule {name} ({rule['kind']}) on {shown(place)}: it is there, though {shown(source)} was deleted"


def _parts(spec: Spec, rule: Body) -> tuple[Entity, Entity, Link, Way | None]:
    """The source of a rule that deletes, its targets, how they name it and how they are listed."""
    if rule["kind"] == "copy":
        copy = copy_of(spec, rule)
        return copy.source, copy.target, copy.link, copy.way
    if rule["kind"] == "path":
        entity, link = path_link(spec, rule)
        return entity, entity, link, spec.way(entity, entity, link, rule)
    members = members_of(spec, rule)
    return members.parent, members.child, members.link, members.way


def _images(world: World, place: Place, last: int) -> Iterator[Item | None]:
    """All images of an item from a position of the log on."""
    found: Item | None = next((item for at, item in world.unheard if at == place), None)
    for at, (where, _, new, _) in enumerate(world.log):
        if at == last:
            yield found
        if where == place:
            found = new
            if at >= last:
                yield found


def _meant(spec: Spec, rule: Body, entity: Entity, way: Way | None, image: Item) -> bool:
    """True if a rule speaks of an item, and its listing finds it."""
    try:
        speaks = (
            copy_holds(copy_of(spec, rule), rule, None, image)
            if rule["kind"] == "copy"
            else lets_in(rule, entity, image)
        )
    except RaisingError:
        return False
    return speaks and way is not None and spec.shown(way, entity, image)


def _still(way: Way | None, images: list[Item | None]) -> bool:
    """True if an item never moved in the index that lists it: what moves may slip past a page."""
    names = way.index.key if way is not None and way.index is not None else ()
    return all(
        image is not None and image.get(name) == (images[0] or {}).get(name) for image in images for name in names
    )


def unfilled(spec: Spec, world: World, verdict: Verdict) -> Iterator[str]:
    """The snapshots that nothing lists and that lack a value, though their source had one since they came, lost it, or
    named that source.
    """
    for (name, place), why in verdict.open.items():
        if why != LATE or "where" in spec.rules[name]:
            continue
        copy, item = copy_of(spec, spec.rules[name]), world.items[place]
        paths = [*(to for _, to in copy.pairs), *(spot.path for spot in copy.link.values())]
        last = max((at for at, (where, old, new, _) in enumerate(world.log) if where == place and (
            old is None or any(get(old, path) != get(new, path) for path in paths))), default=None)  # fmt: skip
        source = spec.named(copy.source, copy.link, item)
        if source is None or last is None:
            continue
        images = list(_images(world, source, last))
        if all(image and copy.source.read(image, path) for image in images for path, _ in copy.pairs):
            yield f"rule {name} (copy) on {shown(place)}: it is empty, and {shown(source)} had a value"
