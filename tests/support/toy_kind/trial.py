"""The trial of `latest`. What would be `tests/kinds/latest.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from tests.kinds import Trial
from tests.random_rules.spec import text_of
from tests.simulation.breaking import Mutation, among
from tests.simulation.facts import Configuration, text
from tests.simulation.truths import Items, Wanted
from tests.simulation.worlds_gathered import HELD, HELD_CHILD, PARENT, Gathered
from tests.support.toy_kind.rule import LatestRule


@dataclass(frozen=True)
class Latest(Gathered):
    """The size of the child with the greatest name; of equal ones, of the first by key."""

    def wanted(self, items: Items) -> Wanted:
        found = {}
        for place in filter(self.at, items):
            newest = max(self.of(place, items), key=lambda child: text(child, "name") or "", default={})
            found[place] = {self.paths[0]: newest.get("size")}
        return found


WORLD = Configuration(
    "latest",
    f"{HELD}  last: {{latest: child.size, into: parent.kids, by: name}}\n",
    (HELD_CHILD, PARENT),
    truths=(Latest("parents", (("kids",),)),),
)


def write(file: Any) -> dict[str, Any] | None:
    """A rule for a parent whose key lists its children."""
    found = [one for one in file.relations if one.base and not one.given]
    if not found:
        return None
    relation = file.one(*found)
    name = f"r{file.number()}"
    file.readable[relation.one].append(name)
    return {"latest": f"{relation.many}.amount", "into": f"{relation.one}.{name}", "by": "state"}


def check(view: Any, rule: Mapping[str, Any]) -> None:
    """Each parent has the amount of its child with the greatest state, the first by key of equal ones."""
    spec = view.spec
    (child, of), (parent, into) = spec.ref(rule["latest"]), spec.ref(rule["into"])
    link = spec.link(parent, child, {})
    groups: dict[Any, list[Any]] = {}
    for place, item in view.of(child):
        named = spec.named(parent, link, item)
        if named is not None:
            groups.setdefault(named, []).append((place, item))
    for place, item in view.of(parent):
        members = sorted(groups.get(place, ()), key=lambda one: tuple(content for _, content in one[0][1]))
        states = [text_of(child.read(one, ("state",))) or "" for _, one in members]
        newest = members[states.index(max(states))][1] if members else {}
        view.require(rule, place, item, {into: child.read(newest, of)})


TRIAL = Trial(
    "latest",
    (WORLD,),
    {
        "latest: the oldest in place of the newest": Mutation(
            lambda: patch.object(LatestRule, "in_key_order", lambda _rule, _members: ()), among("O1", "latest")
        )
    },
    write,
    check,
)
