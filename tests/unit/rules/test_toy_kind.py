"""A kind of rule that the product does not name: all that goes through rules works with it.

The kind is `tests/support/toy_kind.py`. tests/docs/test_contributing.py adds another one by its files.
"""

from __future__ import annotations

import pytest

from sync_rules.adapters.state import MemoryState
from sync_rules.audit.leftovers import FormerRules, prune_page, remove
from sync_rules.audit.standings import list_standings
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.language.kinds import registry
from sync_rules.language.load import parse_rules
from sync_rules.rules import compiled_file
from sync_rules.rules.description import Operation
from tests.support import toy_kind
from tests.support.builders import s
from tests.support.worlds import Parked, Scene


@pytest.fixture
def scene(monkeypatch) -> Scene:
    """An order with both stamps, and one whose record was not delivered."""
    monkeypatch.setitem(registry.KINDS, toy_kind.KIND.name, toy_kind.KIND)
    scene = Scene(parse_rules(toy_kind.RULES))
    scene.put("shop", {"PK": s("ORDER#1"), "SK": s("ORDER")})
    scene.rest()
    scene.there("shop", {"PK": s("ORDER#2"), "SK": s("ORDER"), "version": s("v1")})
    return scene


def test_toy_kind_is_handled_verified_and_allowed(scene):
    """A kind that overrides no answer works, and its functions may do all that its family asks for."""
    at = scene.at("shop", "ORDER#1", "ORDER")
    assert (scene.item(at)["source"], scene.item(at)["version"]) == (s("sync-rules"), s("v2"))
    found = Verifier(scene.rules, scene.world, frozenset(scene.rules.rules), grace_seconds=0).sweep()
    assert sorted(str(one.difference.drift.value) for one in found) == ["missing", "wrong"]
    assert {use.operation for use in scene.rules.rules["stamped"].uses()} == {
        Operation.READ, Operation.UPDATES, Operation.SCAN, Operation.DESCRIBE
    }  # fmt: skip


def test_toy_kind_is_planned_backfilled_explained_and_pruned(scene):
    """The plan says the writes that the backfill makes; what a dropped rule has written is removed."""
    names, at = frozenset(scene.rules.rules), scene.at("shop", "ORDER#2", "ORDER")
    assert {name: one.to_write for name, one in Planner(scene.rules, names, scene.tap).run().rules.items()} == {
        "stamped": 1,
        "stamped-more": 1,
    }
    supplies = make_supplies(scene.rules, 1)
    run = BackfillRun(Selection(scene.rules, names), scene.memory, Parked(), MemoryState(), {}, supplies=supplies)
    assert run.run()
    assert {one.state for one in scene.drive(list_standings(at, scene.item(at), scene.rules))} == {"right"}
    past = FormerRules(scene.rules, parse_rules(toy_kind.RULES.partition("  stamped-more:")[0]))
    leftovers = scene.drive(prune_page(past.tables[0], past, None)).leftovers
    assert {one.paths for one in leftovers} == {(("version",),)}
    assert scene.drive(remove(leftovers)) == ()
    assert "version" not in scene.item(at)


def test_toy_kind_is_compiled_for_functions(scene, monkeypatch):
    """The file that functions read has its declared fields, and makes the same rules."""
    monkeypatch.setattr(compiled_file, "PACKAGES", (*compiled_file.PACKAGES, "tests.support.toy_kind"))
    assert scene.rules.rules["stamped"].watches(scene.rules.entities["order"])  # is worked out once, and not written
    data = compiled_file.dump(scene.rules, {})
    assert b"StampRule" in data
    assert b"read_paths" not in data
    assert compiled_file.read(data, "rules").fingerprint == scene.rules.fingerprint
