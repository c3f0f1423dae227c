"""The stages of the pipeline: one table orders them."""

from __future__ import annotations

import pytest

from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.pipeline import work
from sync_rules.pipeline.requests import Read
from sync_rules.pipeline.tasks import make_tasks
from tests.support.builders import s
from tests.support.every_kind import order, user
from tests.support.worlds import Scene, scene_of


def renamed() -> tuple[Scene, ItemKey]:
    """A user who was renamed, and an order of hers that shows another name."""
    scene = scene_of("names")
    at = scene.there("shop", order("7", "1", 5, user_name=s("Eve")))
    scene.put("shop", user("7", name=s("Bob")))
    return scene, at


def test_work_runs_a_stage_in_the_place_of_its_line(monkeypatch: pytest.MonkeyPatch):
    """Stages run in the order of the table: each of them sees what those before it have written."""
    scene, at = renamed()
    seen = []

    def first(_tasks, _rules, _bounds, _report):
        seen.append((yield Read((at,)))[0]["user_name"])

    monkeypatch.setattr(work, "STAGES", {"first": first, **work.STAGES, "last": first})
    scene.deliver()
    assert seen == [s("Eve"), s("Bob")]


def test_work_leaves_a_stage_to_a_caller_that_does_it_in_its_own_way():
    """The caller's stage runs instead of the one of the table, and all others run as they are."""
    scene, at = renamed()
    own: list[int] = []

    def instead(tasks, _rules, _bounds, _report):
        own.append(len(tasks.pushes))
        yield from ()

    tasks = make_tasks(scene.records, scene.rules)
    scene.drive(work.do_tasks(tasks, scene.rules, Bounds(), {"push": instead}))
    assert own == [1]
    assert scene.item(at)["user_name"] == s("Eve")
