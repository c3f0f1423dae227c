"""The trial of `latest`. What would be `tests/kinds/latest.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from tests.kinds import Trial
from tests.simulation.breaking import Mutation
from tests.simulation.spec import text_of
from tests.support.toy_kind.rule import LatestRule

WORLD = """
tables:
  parents: {key: {parent: S}}
  children: {key: {parent: S, child: S}}
entities:
  parent: {table: parents}
  child: {table: children}
rules:
  last: {latest: child.amount, into: parent.kids, by: state}
"""


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
    {"latest": WORLD},
    {
        "latest: the oldest in place of the newest": Mutation(
            lambda: patch.object(LatestRule, "in_key_order", lambda _rule, _members: ()), ("/latest",)
        )
    },
    write,
    check,
)
