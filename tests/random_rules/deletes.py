"""Says which targets must be gone: those that named a source all the while since it was deleted, under a rule that deletes.

Invariant: only what no history can excuse is asked for. A target that came, moved, or was let in later may have come after
the last listing, and stays; verify reports it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.random_rules.oracle import Verdict, copy_holds, copy_of, lets_in, members_of, path_link, shown
from tests.random_rules.plain import RaisingError
from tests.random_rules.spec import Body, Entity, Item, Link, Place, Spec, Way
from tests.random_rules.world import World


def left_over(spec: Spec, world: World, verdict: Verdict) -> Iterator[str]:
    """The targets that a deleted source has left behind, in words."""
    for name, place in sorted(verdict.orphans, key=repr):
        rule = spec.rules[name]
        if rule.get("on_delete") != "delete":
            continue
        one, entity, link, way = _parts(spec, rule)
        source = spec.named(one, link, world.items[place])
        last = max(
            (at for at, (gone, _, new, _) in enumerate(world.log) if gone == source and new is None), default=None
        )
        if source is None or source == place or last is None:
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
