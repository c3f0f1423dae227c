"""Repair: a target that drifted is pulled anew, under guards; one that is still wrong afterwards is counted as left."""

from __future__ import annotations

from sync_rules.audit.compare import Drift, look_again, sweep_page
from sync_rules.audit.verifier import repair
from sync_rules.model.items import ItemKey
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.requests import Apply, Read, Scan
from tests.support import every_kind
from tests.support.builders import author_item, book_item, library, n, s
from tests.support.worlds import Scene

RIGHT = book_item("b1", "a1", author_name=s("Ada"), author_bio=s("..."))


def scene_with(*books, **options) -> Scene:
    scene = Scene(library(**options))
    scene.there("authors", author_item("a1", name=s("Ada"), bio=s("...")))
    scene.there("books", *books)
    return scene


def found(scene: Scene, table: str = "books"):
    return scene.drive(sweep_page(Scan(table, 100), scene.rules, frozenset(scene.rules.rules))).comparison.different


def left(scene: Scene, drifted) -> set[ItemKey]:
    return {target for _, target, _ in scene.drive(repair(drifted, scene.rules)).left}


def test_repair_leaves_what_no_pull_can_mend():
    """An orphan that the rule does not clear is left without a write; one that it clears is cleared."""
    orphan = {**RIGHT, "author_id": s("gone")}
    for on_delete, stays in (("restrict", True), ("clear", False)):
        scene = scene_with(orphan, on_delete=on_delete)
        drifted = found(scene)
        assert bool(left(scene, drifted)) is stays
        assert ("author_name" in scene.item(drifted[0].target)) is stays


def test_repair_gives_an_orphan_its_default_and_reports_it_still():
    """A target without its source and without its copy gets the default; then it is an orphan that the rule leaves."""
    lost = book_item("b1", "gone")
    scene = scene_with(lost, on_delete="restrict", defaults={("author_name",): s("nobody")})
    drifted = found(scene)
    assert [one.drift for one in drifted] == [Drift.MISSING]
    assert left(scene, drifted) == set()
    assert scene.item(drifted[0].target) == {**lost, "author_name": s("nobody")}
    assert [one.drift for one in found(scene)] == [Drift.ORPHAN]


def test_repair_says_what_a_foreign_writer_keeps_wrong():
    """A wrong copy that is written under the repair is left: its source says what it said."""
    scene = scene_with({**RIGHT, "author_name": s("x")})
    drifted = found(scene)

    def foreign(request):
        if isinstance(request, Apply):
            scene.memory.put("books", {**RIGHT, "author_name": s("y")})

    scene.tap.before = foreign
    assert left(scene, drifted) == {drifted[0].target}


def test_repair_does_not_say_of_lag_that_it_is_left():
    """A source that changes after the repair of its copy causes lag, which is not counted as left."""
    scene = scene_with({**RIGHT, "author_name": s("x")})
    drifted = found(scene)

    def change_after_the_write(request):
        if isinstance(request, Read) and scene.tap.writes:
            scene.memory.put("authors", author_item("a1", name=s("Bea"), bio=s("...")))

    scene.tap.before = change_after_the_write
    assert left(scene, drifted) == set()
    assert scene.item(drifted[0].target)["author_name"] == s("Ada")
    assert scene.drive(look_again(drifted, scene.rules)).different


def test_repair_says_what_could_not_be_written_though_its_source_moved():
    """A copy that is as it was is left, whatever became of its source."""
    scene = scene_with({**RIGHT, "author_name": s("x")})
    drifted = found(scene)

    def fail(_write):
        scene.memory.put("authors", author_item("a1", name=s("Bea"), bio=s("...")))
        return Result(Status.FAILED, reason="Slow")

    scene.tap.result = fail
    assert left(scene, drifted) == {drifted[0].target}


def test_repair_mends_parts_and_only_those_named():
    """Repair changes only the given elements, not an entry or a copy on the same items."""
    scene = Scene(every_kind.rules_of(effects=False))
    scene.put("shop", every_kind.order("1", "a", 10), every_kind.user("1", name=s("Ada"), rank=n(1)))
    scene.rest()
    user = scene.at("shop", "USER#1", "PROFILE")
    scene.there("shop", {**scene.item(user), "orders": {"SS": ["ghost"]}, "head": s("x")})
    drifted = [one for one in found(scene, "shop") if one.rule == "tags"]
    assert len(drifted) == 2
    assert left(scene, drifted) == set()
    assert (scene.item(user)["orders"], scene.item(user)["head"]) == ({"SS": ["a"]}, s("x"))
