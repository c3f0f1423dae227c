"""Doubt paths that begin with the name of their own entity, such as `attributes: [product.name]` of a product.

Such a path means an attribute in a map `product`. It is doubted only if nothing in the file names that map.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from sync_rules.language.problems import Location, Problem
from sync_rules.model.entities import Entity
from sync_rules.model.values import Path, show_path
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class OwnName:
    """A path of an entity that begins with the entity's own name. `quoted`: the path with that name in quotes, or "".
    `sign`: - before an order. `written`: the rule writes there.
    """

    entity: Entity
    path: Path
    location: Location
    quoted: str
    sign: str
    written: bool


def doubt_own_names(
    names: Iterable[OwnName], rules: Rules, said: Callable[[Entity], Collection[str]]
) -> Iterator[Problem]:
    """Warn of these paths, unless a rule writes the map, or the file says that all items have it (`said`)."""
    made = {(rule.target, path[0]) for rule in rules.rules.values() for path in rule.copies}
    for one in names:
        name, *rest = one.path
        if name in said(one.entity) or ((one.entity, name) in made and not one.written):
            continue
        short = show_path(tuple(rest))
        message = f"{show_path(one.path)!r} is {short!r} in a map {name!r} of each {one.entity.name!r}"
        instead = one.quoted or f"entities.{name}.required: [{name}]"
        yield Problem(
            "SR421", message, one.location, f"write {one.sign}{short}; or, if its items have that map, {instead}"
        )
