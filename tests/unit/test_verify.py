"""Verify: what differs twice is drift, what differs once is lag; a repair mends that and nothing newer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.compare import Drift
from sync_rules.errors import StoreError, UserError
from sync_rules.model import ItemKey
from sync_rules.store import Apply, Read, Scan
from sync_rules.verify import PAGE_MAX_ITEMS, Verifier
from tests.builders import author_item, book_item, key, library, mapping, rules_of, s
from tests.worlds import Scene

RULE = "author-on-books"
ADA = author_item("a1", name=s("Ada"), bio=s("..."))
RIGHT = book_item("b1", "a1", author_name=s("Ada"), author_bio=s("..."))
GRACE_SECONDS = 120.0


class Run:
    """A verify run on a clock that only its own waiting moves. `meanwhile` happens while it waits."""

    def __init__(self, scene: Scene, *, repair: bool = False, only: frozenset[str] | None = None, meanwhile=None):
        self.waits: list[float] = []
        self._meanwhile = meanwhile or (lambda: None)
        self._now = 1_000.0
        self.verifier = Verifier(
            scene.rules,
            scene.world,
            frozenset(scene.rules.rules) if only is None else only,
            repair=repair,
            grace_seconds=GRACE_SECONDS,
            sleep=self._sleep,
            clock=lambda: self._now,
        )

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._now += seconds
        self._meanwhile()

    def sweep(self) -> list[tuple[ItemKey, Drift, bool]]:
        return self._shown(self.verifier.sweep())

    def one(self, at: ItemKey) -> list[tuple[ItemKey, Drift, bool]]:
        return self._shown(self.verifier.one(at))

    @staticmethod
    def _shown(findings):
        return [(found.difference.target, found.difference.drift, found.repaired) for found in findings]


def library_scene(**options) -> Scene:
    scene = Scene(library(**options))
    scene.there("authors", ADA, author_item("mute"))
    return scene


def test_verify_finds_every_kind_of_drift_and_mends_it():
    """Wrong, missing and extra copies are found after one wait and mended; what was right is not touched."""
    scene = library_scene()
    right = scene.there("books", RIGHT)
    wrong = scene.there("books", {**RIGHT, "book_id": s("b2"), "author_name": s("x")})
    missing = scene.there("books", book_item("b3", "a1"))
    extra = scene.there("books", {**RIGHT, "book_id": s("b4"), "author_id": s("mute")})
    run = Run(scene, repair=True)
    expected = {(wrong, Drift.WRONG, True), (missing, Drift.MISSING, True), (extra, Drift.EXTRA, True)}
    assert set(run.sweep()) == expected
    assert run.waits == [GRACE_SECONDS]
    assert run.verifier.tally.left == 0
    assert {write.key for write in scene.tap.writes} == {wrong, missing, extra}
    assert scene.item(right) == RIGHT
    again = Run(scene)
    assert again.sweep() == []
    assert (again.waits, again.verifier.tally.right) == ([], {RULE: 4})


def test_verify_without_repair_writes_nothing():
    """Drift is only reported, and left."""
    scene = library_scene()
    book = scene.there("books", book_item("b1", "a1"))
    run = Run(scene)
    assert run.sweep() == [(book, Drift.MISSING, False)]
    assert run.verifier.tally.left == 1
    assert scene.tap.writes == []


def test_verify_never_calls_lag_drift():
    """What comes right between the first and the second look was lag: no finding, and nothing left."""
    scene = library_scene()
    scene.put("books", book_item("b1", "a1"))
    run = Run(scene, repair=True, meanwhile=scene.rest)
    assert run.sweep() == []
    tally = run.verifier.tally
    assert (tally.lag[RULE], tally.drift[RULE], tally.left) == (1, 0, 0)


def test_verify_never_repairs_over_a_newer_write():
    """A copy that changes under the repair keeps the newer value, and the drift is reported as not mended."""
    scene = library_scene()
    book = scene.there("books", {**RIGHT, "author_name": s("x")})

    def newer(request):
        if isinstance(request, Apply):
            scene.memory.put("books", {**RIGHT, "author_name": s("newer")})

    scene.tap.before = newer
    run = Run(scene, repair=True)
    assert run.sweep() == [(book, Drift.WRONG, False)]
    assert scene.item(book)["author_name"] == s("newer")
    assert run.verifier.tally.left == 1


def test_verify_reports_orphans_and_leaves_them():
    """An orphan is reported and neither deleted nor counted as mended."""
    scene = library_scene(on_delete="delete")
    orphan = scene.there("books", {**RIGHT, "author_id": s("gone")})
    run = Run(scene, repair=True)
    assert run.sweep() == [(orphan, Drift.ORPHAN, False)]
    assert scene.item(orphan)
    assert run.verifier.tally.left == 1


def test_verify_reports_what_cannot_be_mended():
    """A copy that has no room is parked and reported as left."""
    scene = library_scene(mapping=mapping(name="author__name"))
    book = scene.there("books", book_item("b1", "a1", author=s("text")))
    run = Run(scene, repair=True)
    assert run.sweep() == [(book, Drift.MISSING, False)]
    assert [failure.key for failure in scene.parked.failures] == [book]


def two_rules() -> Scene:
    rules = library(mapping=mapping(name="author_name"))
    bio = replace(rules.rules[RULE], name="bio", mapping=mapping(bio="author_bio"))
    scene = Scene(rules_of(*rules.rules.values(), bio))
    scene.there("authors", ADA)
    return scene


def test_verify_looks_only_at_the_rules_it_is_given():
    """With one rule named, another rule's drift is neither found nor counted."""
    scene = two_rules()
    scene.there("books", {**RIGHT, "author_bio": s("x")})
    run = Run(scene, only=frozenset({RULE}))
    assert run.sweep() == []
    assert run.verifier.tally.right == {RULE: 1}


def test_verify_repairs_only_the_rules_it_is_given():
    """With one rule named, a repair writes no other rule's copies."""
    scene = two_rules()
    book = scene.there("books", {**RIGHT, "author_name": s("x"), "author_bio": s("x")})
    assert Run(scene, repair=True, only=frozenset({RULE})).sweep() == [(book, Drift.WRONG, True)]
    assert scene.item(book)["author_bio"] == s("x")


def test_verify_of_one_item():
    """A single target is looked at twice like any other; one that does not exist, or is no target, is said to be so."""
    scene = library_scene()
    book = scene.there("books", book_item("b1", "a1"))
    scene.there("books", book_item("b2", "a1"))
    assert Run(scene, repair=True).one(book) == [(book, Drift.MISSING, True)]
    assert len(scene.tap.writes) == 1
    with pytest.raises(UserError, match=r"no item books\[nowhere\]"):
        Run(scene).one(key(scene.rules.tables["books"], "nowhere"))
    with pytest.raises(UserError, match="it is a author"):
        Run(scene).one(key(scene.rules.tables["authors"], "a1"))


def test_verify_sweeps_page_by_page():
    """A table is scanned in pages; sources are read after each page, once per source."""
    scene = library_scene()
    scene.there("books", *({**RIGHT, "book_id": s(f"b{i:04}")} for i in range(PAGE_MAX_ITEMS + 1)))
    run = Run(scene)
    assert run.sweep() == []
    assert run.verifier.tally.items == PAGE_MAX_ITEMS + 1
    assert [type(request) for request in scene.tap.requests] == [Scan, Read, Scan, Read]
    assert {len(request.keys) for request in scene.tap.seen(Read)} == {1}


def test_verify_bounds_what_waits_for_a_second_look(monkeypatch):
    """When too many differences have gathered they get their second look before the scan goes on."""
    monkeypatch.setattr("sync_rules.verify.CANDIDATES_MAX", 3)
    monkeypatch.setattr("sync_rules.verify.PAGE_MAX_ITEMS", 2)
    scene = library_scene()
    scene.there("books", *(book_item(f"b{i}", "a1") for i in range(10)))
    run = Run(scene)
    assert len(run.sweep()) == 10
    assert len(run.waits) == 3


def test_verify_a_table_that_cannot_be_read_is_an_error():
    """A missing table ends the run with an error; it never passes for a table without drift."""
    rules = library()
    scene = Scene(rules, tables={"authors": rules.tables["authors"]})
    with pytest.raises(StoreError, match="TableNotFound"):
        Run(scene).sweep()
