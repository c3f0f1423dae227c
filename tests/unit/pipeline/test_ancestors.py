"""Ancestors: a sweep over a hierarchy writes each item whose path is wrong once, and no other item."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from sync_rules.adapters.state import MemoryState
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item
from sync_rules.pipeline import ancestors
from sync_rules.pipeline.requests import Read
from tests.support.builders import s
from tests.support.depth import deep
from tests.support.worlds import Scene

RULES = parse_rules("""
tables: {parts: {key: {id: S}, indexes: {by_parent: {parent: S}}}}
entities: {part: {table: parts}}
rules:
  way: {path: part.path, parent: parent, depth: depth, carry: [model]}
""")
NAMES = frozenset({"way"})
CHAIN = "rabcde"


def scene_of(*parts: Item) -> Scene:
    scene = Scene(RULES)
    scene.put("parts", *parts)
    scene.rest()
    scene.tap.requests.clear()
    return scene


def part(own: str, parent: str | None = None) -> Item:
    return {"id": s(own), "model": s("m"), **({} if parent is None else {"parent": s(parent)})}


def chain() -> Scene:
    """A chain of right items; each item but the root has one leaf more."""
    ids = [part(own, CHAIN[level - 1] if level else None) for level, own in enumerate(CHAIN)]
    return scene_of(*ids, *(part(f"leaf-{own}", own) for own in CHAIN))


def damage(scene: Scene, *changes: tuple[str, str]) -> None:
    """Change paths without a record, as a writer did before the pipeline was there."""
    for own, path in changes:
        scene.there("parts", {**scene.item(scene.at("parts", own)), "path": s(path)})


def contents(scene: Scene) -> dict[str, Item]:
    return {item["id"]["S"]: item for item in scene.memory.items("parts")}


def planned(scene: Scene) -> Counter[ItemKey]:
    found: Counter[ItemKey] = Counter()
    plan = Planner(scene.rules, NAMES, scene.memory, on_write=lambda write: found.update([write.key])).run()
    assert plan.writes == found.total()
    return found


def backfilled(scene: Scene) -> Counter[ItemKey]:
    selection, supplies = Selection(scene.rules, NAMES), make_supplies(scene.rules, 3)
    assert BackfillRun(selection, scene.tap, scene.world.failures, MemoryState(), {}, supplies=supplies).run()
    return written(scene)


def repaired(scene: Scene) -> Counter[ItemKey]:
    verifier = Verifier(scene.rules, scene.world, NAMES, repair=True, grace_seconds=0)
    assert all(finding.repaired for finding in verifier.sweep())
    return written(scene)


def verified(scene: Scene) -> Counter[ItemKey]:
    verifier = Verifier(scene.rules, scene.world, NAMES, grace_seconds=0)
    return Counter(finding.difference.target for finding in verifier.sweep())


def written(scene: Scene) -> Counter[ItemKey]:
    return Counter(write.key for write in scene.tap.writes)


SWEEPS = (planned, verified, backfilled, repaired)


@pytest.mark.parametrize("seed", range(deep(60)))
def test_ancestors_of_any_forest_are_settled_before_their_children(seed):
    """In any forest with any wrong paths a sweep writes each wrong item once and no other, whatever the scan's order."""
    random = Random(seed)
    ids = random.sample("abcdefghijklmnopqrstuvw", 12)
    forest = [part(own, random.choice([None, *ids[:place]]) if place else None) for place, own in enumerate(ids)]
    wrong = {own: random.choice(["x", f"x|{own}", "|".join(ids)]) for own in random.sample(ids, random.randint(1, 5))}
    for sweep in SWEEPS:
        scene = scene_of(*forest)
        before = contents(scene)
        damage(scene, *wrong.items())
        differing = {own for own, item in contents(scene).items() if item != before[own]}
        assert sweep(scene) == Counter(scene.at("parts", own) for own in differing)
        assert sweep in (planned, verified) or contents(scene) == before


def test_ancestors_in_a_ring_are_reported_and_end_the_walk():
    """A ring above a child that differs is left as it is; the walk ends, and only the child is written."""
    scene = chain()
    damage(scene, ("leaf-b", "y"))
    scene.there("parts", {**scene.item(scene.at("parts", "a")), "parent": s("b")})
    assert backfilled(scene) == {scene.at("parts", "leaf-b"): 1}
    assert scene.parked.told == [("way", "Cycle")]


def test_ancestors_beyond_the_bound_count_as_they_are(monkeypatch):
    """No more ancestors are held than the bound says; the sweep comes to the same paths all the same. A sweep over right
    items reads no ancestors: one read of parents for its page.
    """
    monkeypatch.setattr(ancestors, "ANCESTORS_MAX_ITEMS", 3)
    scene = chain()
    before = contents(scene)
    verified(scene)
    assert len(scene.tap.seen(Read)) == 1
    damage(scene, ("a", "WRONG"), ("d", "x"))
    backfilled(scene)
    assert contents(scene) == before


def test_ancestors_are_not_followed_for_a_record():
    """A record compares a child with the path that its parent has: an ancestor that moves back before its own record
    is handled would leave a child that nothing looks at again.
    """
    scene = scene_of(part("r"), part("d", "r"), part("a", "r"), part("b", "a"), part("c", "b"))
    b, c = scene.at("parts", "b"), scene.at("parts", "c")
    scene.put("parts", {**scene.item(b), "parent": s("d")})
    of_b = scene.records[:]
    scene.records.clear()
    scene.put("parts", {**scene.item(c), "path": s("r|d|b|c")})
    scene.rest()  # the record of c comes first
    scene.put("parts", {**scene.item(b), "parent": s("a")})
    scene.records[:0] = of_b
    scene.rest()
    assert scene.item(c)["path"] == s("r|a|b|c")
