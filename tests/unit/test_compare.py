"""Compare: says which copies differ, in which way, without writing, and never on one look."""

from __future__ import annotations

import pytest

from sync_rules.compare import Asked, Drift, Verdict, ask, compare, judge, look_again, sweep_page
from sync_rules.expressions import compile_where
from tests.builders import author_item, book_item, library, m, s
from tests.worlds import Scene

RULE = "author-on-books"
RIGHT = book_item("b1", "a1", author_name=s("Ada"), author_bio=s("..."))
BARE = book_item("b1", "a1")


def sweep(scene: Scene, only: frozenset[str] = frozenset({RULE})):
    return scene.drive(sweep_page(scene.rules.tables["books"], scene.rules, only, None, 100)).comparison


def with_author(**options) -> Scene:
    scene = Scene(library(**options))
    scene.there("authors", author_item("a1", name=s("Ada"), bio=s("...")), author_item("mute"))
    return scene


@pytest.mark.parametrize(
    ("options", "book", "drift", "paths"),
    [
        ({}, {**RIGHT, "author_name": s("x")}, Drift.WRONG, ["author_name"]),
        ({}, {**BARE, "author_bio": s("...")}, Drift.MISSING, ["author_name"]),
        ({}, BARE, Drift.MISSING, ["author_name", "author_bio"]),
        ({}, {**RIGHT, "author_id": s("mute")}, Drift.EXTRA, ["author_name", "author_bio"]),
        ({"on_delete": "clear"}, {**RIGHT, "author_id": s("gone")}, Drift.EXTRA, ["author_name", "author_bio"]),
        ({"on_delete": "delete"}, {**RIGHT, "author_id": s("gone")}, Drift.ORPHAN, []),
    ],
)
def test_compare_names_the_kind_of_drift(options, book, drift, paths):
    """Wrong, missing, extra and orphan are told apart, with the paths that differ and no value."""
    scene = with_author(**options)
    scene.there("books", book)
    (found,) = sweep(scene).different
    assert (found.drift, ["".join(path) for path in found.paths]) == (drift, paths)
    assert found.rule == RULE
    assert scene.tap.writes == []


@pytest.mark.parametrize(
    ("options", "book"),
    [
        ({"on_delete": "keep"}, {**RIGHT, "author_id": s("gone")}),
        ({"mode": "snapshot"}, {**RIGHT, "author_name": s("as it was")}),
        ({"mode": "snapshot"}, {**BARE, "author_id": s("gone")}),
    ],
)
def test_compare_has_no_opinion_where_the_rule_says_nothing(options, book):
    """A kept copy of a source that is gone, and a snapshot once taken, are neither right nor drift."""
    scene = with_author(**options)
    scene.there("books", book)
    comparison = sweep(scene)
    assert comparison.kept == {RULE: 1}
    assert comparison.different == []


def test_compare_looks_for_a_snapshot_that_was_never_taken():
    """A snapshot that is missing although its source is there is drift."""
    scene = with_author(mode="snapshot")
    scene.there("books", BARE)
    assert [found.drift for found in sweep(scene).different] == [Drift.MISSING]


def test_compare_second_look_takes_images_first():
    """The second look reads targets and then sources, and forgets what is right or gone by then."""
    scene = with_author()
    for number in range(3):
        scene.there("books", {**BARE, "book_id": s(f"b{number}")})
    found = sweep(scene).different
    scene.there("books", {**RIGHT, "book_id": s("b0")})
    scene.memory.delete(found[1].target)
    scene.tap.requests.clear()
    comparison = scene.drive(look_again(found, scene.rules))
    assert [difference.target for difference in comparison.different] == [found[2].target]
    assert [request.keys[0].table for request in scene.tap.requests] == ["books", "authors"]


def test_compare_leaves_other_rules_and_entities_alone():
    """Items of no rule that is asked for are not looked at, and cost no read."""
    scene = with_author()
    scene.there("books", BARE)
    comparison = sweep(scene, frozenset())
    assert (comparison.different, comparison.right, comparison.kept) == ([], {}, {})
    assert len(scene.tap.requests) == 1
    authors = scene.rules.tables["authors"]
    assert not ask(author_item("a1"), authors, scene.rules, frozenset({RULE}), Asked())
    assert scene.drive(compare(Asked())).different == []


def test_compare_calls_no_orphan_what_where_does_not_speak_of():
    """A closed order whose user is gone is not the business of a rule for open ones."""
    scene = with_author(on_delete="delete", where=compile_where("status == 'OPEN'", "author"))
    scene.there("books", {**BARE, "author_id": s("gone"), "status": s("CLOSED")})
    assert sweep(scene).different == []


@pytest.mark.parametrize(
    ("meanwhile", "verdict"),
    [
        ({}, Verdict.DRIFT),
        ({"books": {**BARE, "author_name": s("x"), "note": s("other attributes do not count")}}, Verdict.DRIFT),
        ({"authors": author_item("a1", name=s("Ada"), bio=s("..."), age=s("36"))}, Verdict.DRIFT),
        ({"authors": author_item("a1", name=s("Bea"), bio=s("..."))}, Verdict.UNSURE),
        ({"books": {**BARE, "author_name": s("x"), "author_id": s("a2")}}, Verdict.UNSURE),
        ({"books": {**BARE, "author_name": s("y")}}, Verdict.LAG),
        ({"books": {**BARE, "author_name": s("Ada")}}, Verdict.LAG),
        ({"books": BARE, "authors": author_item("a1", name=s("Bea"))}, Verdict.LAG),
    ],
)
def test_compare_judges_by_what_happened_between_two_looks(meanwhile, verdict):
    """The same wrong copy is drift; with another source it is unsure; another wrong copy is lag."""
    scene = with_author()
    scene.there("authors", author_item("a2", name=s("Ada"), bio=s("...")))
    scene.there("books", {**BARE, "author_name": s("x")})
    (before,) = sweep(scene).different
    for table, item in meanwhile.items():
        scene.put(table, item)
    (now,) = scene.drive(look_again([before], scene.rules)).different
    assert judge(before, now) is verdict


def test_compare_takes_sets_and_maps_without_their_order():
    """A copy that comes back in another order was not touched."""
    scene = with_author()
    digests = set()
    for names in (["x", "y"], ["y", "x"]):
        scene.there(
            "books", {**BARE, "author_name": m(**{name: s(name) for name in names}), "author_bio": {"SS": names}}
        )
        digests.add(sweep(scene).different[0].held)
    assert len(digests) == 1


def test_compare_an_orphan_is_not_saved_by_a_new_copy():
    """An orphan whose copies somebody writes is as much an orphan as before."""
    scene = with_author(on_delete="delete")
    scene.there("books", {**RIGHT, "author_id": s("gone")})
    (before,) = sweep(scene).different
    scene.put("books", {**RIGHT, "author_id": s("gone"), "author_name": s("y")})
    (now,) = scene.drive(look_again([before], scene.rules)).different
    assert judge(before, now) is Verdict.DRIFT


def test_compare_keeps_no_value_in_a_difference():
    """A difference holds keys, paths and short digests, and shows no digest."""
    scene = with_author()
    scene.there("books", {**RIGHT, "author_name": s("SECRET")})
    (found,) = sweep(scene).different
    assert "SECRET" not in f"{found!r} {found.held} {found.truth}"
    assert (len(found.held), len(found.truth)) == (16, 16)
    assert found.held not in repr(found)
