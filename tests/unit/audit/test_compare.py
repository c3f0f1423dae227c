"""Compare: reports which copies differ and how. It writes nothing, and looks twice before it reports."""

from __future__ import annotations

import pytest

from sync_rules.audit.compare import (
    Comparison,
    Drift,
    Verdict,
    judge_second_look,
    recheck,
    sweep_page,
)
from sync_rules.language.load import parse_rules
from sync_rules.model.where import compile_where
from sync_rules.pipeline.requests import Scan
from tests.support.builders import author_item, book_item, library, m, s
from tests.support.every_kind import RULES, order, part, text_of, user
from tests.support.worlds import Scene

RULE = "author-on-books"
RIGHT = book_item("b1", "a1", author_name=s("Ada"), author_bio=s("..."))
BARE = book_item("b1", "a1")
BY_DEFAULT = {("author_name",): s("nobody")}


def sweep(scene: Scene, only: frozenset[str] = frozenset({RULE})):
    return scene.drive(sweep_page(Scan("books", 100), scene.rules, only)).comparison


def with_author(**options) -> Scene:
    scene = Scene(library(**options))
    scene.there("authors", author_item("a1", name=s("Ada"), bio=s("...")), author_item("mute"))
    return scene


@pytest.mark.parametrize(
    ("options", "book", "drift", "paths"),
    [
        ({}, {**BARE, "author_bio": s("...")}, Drift.MISSING, ["author_name"]),
        ({"on_delete": "clear"}, {**RIGHT, "author_id": s("mute")}, Drift.EXTRA, ["author_name", "author_bio"]),
        ({"on_delete": "clear"}, {**RIGHT, "author_id": s("gone")}, Drift.ORPHAN, ["author_name", "author_bio"]),
        ({"on_delete": "clear"}, {"book_id": s("b1"), "author_name": s("x")}, Drift.ORPHAN, ["author_name"]),
        ({"defaults": BY_DEFAULT}, {"book_id": s("b1")}, Drift.MISSING, ["author_name"]),
        (
            {"defaults": BY_DEFAULT, "on_delete": "clear"},
            {**RIGHT, "author_id": s("gone")},
            Drift.WRONG,
            ["author_name", "author_bio"],
        ),
        (
            {"defaults": BY_DEFAULT, "on_delete": "delete"},
            {**BARE, "author_id": s("gone")},
            Drift.MISSING,
            ["author_name"],
        ),
        ({"defaults": BY_DEFAULT, "on_delete": "restrict"}, {**RIGHT, "author_id": s("gone")}, Drift.ORPHAN, []),
        ({"on_delete": "delete"}, {**RIGHT, "author_id": s("gone")}, Drift.ORPHAN, []),
    ],
)
def test_compare_names_the_kind_of_drift(options, book, drift, paths):
    """Each difference is called wrong, missing, extra or orphan, with the paths that differ and no value."""
    scene = with_author(**options)
    scene.there("books", book)
    (found,) = sweep(scene).different
    assert (found.drift, ["".join(path) for path in found.paths]) == (drift, paths)
    assert found.rule == RULE
    assert scene.tap.writes == []


def test_compare_second_look_takes_images_first():
    """The second look reads targets and then sources, and forgets what is right or gone by then."""
    scene = with_author()
    for number in range(3):
        scene.there("books", {**BARE, "book_id": s(f"b{number}")})
    found = sweep(scene).different
    scene.there("books", {**RIGHT, "book_id": s("b0")})
    scene.memory.delete(found[1].target)
    scene.tap.requests.clear()
    comparison = scene.drive(recheck(found, scene.rules))
    assert [difference.target for difference in comparison.different] == [found[2].target]
    assert [request.keys[0].table for request in scene.tap.requests] == ["books", "authors"]


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
    (now,) = scene.drive(recheck([before], scene.rules)).different
    assert judge_second_look(before, now) is verdict


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


# ---------------------------------------------------------------- every kind
def kinds(*names: str, **more: str) -> Scene:
    return Scene(parse_rules(text_of({name: RULES[name] for name in names} | more)))


def swept(scene: Scene) -> Comparison:
    """One look at all tables, by all rules, an item at a time."""
    total = Comparison()
    for table in scene.rules.tables.values():
        cursor = None
        while True:
            page = scene.drive(sweep_page(Scan(table.name, 1, cursor), scene.rules, frozenset(scene.rules.rules)))
            total.right.update(page.comparison.right)
            total.kept.update(page.comparison.kept)
            total.different += page.comparison.different
            cursor = page.cursor
            if cursor is None:
                break
    return total


ADA = user("1", name=s("Ada"), email=s("a@x"))


def an_orphan() -> Scene:
    scene = with_author(on_delete="delete")
    scene.there("books", {**RIGHT, "author_id": s("gone")})
    return scene


def a_wrong_mirror() -> Scene:
    scene = kinds("mails")
    scene.put("shop", ADA)
    scene.rest()
    scene.there("shop", {**scene.item(scene.at("shop", "EMAIL#a@x", "EMAIL")), "name": s("wrong")})
    return scene


def a_missing_element() -> Scene:
    scene = kinds("tags")
    scene.there("shop", ADA, order("1", "a", 1))
    return scene


def an_extra_element() -> Scene:
    scene = kinds("tags")
    scene.there("shop", {**ADA, "orders": {"SS": ["a"]}}, order("1", "a", 1, status=s("VOID")))
    return scene


def on_the_mirror(scene: Scene, **values) -> None:
    scene.there("shop", {**scene.item(scene.at("shop", "EMAIL#a@x", "EMAIL")), **values})


@pytest.mark.parametrize(
    ("wrong", "meanwhile", "verdict"),
    [
        (an_orphan, lambda c: c.put("books", {**RIGHT, "author_id": s("gone"), "author_name": s("y")}), Verdict.DRIFT),
        (a_wrong_mirror, lambda c: on_the_mirror(c, note=s("the application's")), Verdict.DRIFT),
        (a_wrong_mirror, lambda c: on_the_mirror(c, name=s("another one")), Verdict.LAG),
        (a_missing_element, lambda _: None, Verdict.DRIFT),
        (a_missing_element, lambda c: c.there("shop", {**ADA, "orders": {"SS": ["other"]}}), Verdict.DRIFT),
        (a_missing_element, lambda c: c.there("shop", order("1", "a", 2)), Verdict.UNSURE),
        (an_extra_element, lambda c: c.memory.delete(c.at("shop", "USER#1", "ORDER#a")), Verdict.UNSURE),
    ],
)
def test_compare_judges_each_sort_of_target_by_what_it_is_made_of(wrong, meanwhile, verdict):
    """An orphan is not saved by a new copy. A mirror is kept up if an attribute of the rule changes between two looks, and
    by no other. An element is judged apart from other elements; a change of its edge makes the verdict unsure.
    """
    scene = wrong()
    before = swept(scene).different[0]
    meanwhile(scene)
    now = [one for one in scene.drive(recheck([before], scene.rules)).different if one.subject == before.subject]
    assert [judge_second_look(before, one) for one in now] == [verdict]


@pytest.mark.parametrize("of", ["copy", "path"])
@pytest.mark.parametrize(
    ("on_delete", "repairable"), [("keep", False), ("restrict", False), ("delete", False), ("clear", True)]
)
def test_compare_says_which_orphans_a_repair_removes(of, on_delete, repairable):
    """An orphan is repairable only if its rule clears copies; with `delete`, `restrict` or `keep` it is left to people.
    What a copy keeps is no drift.
    """
    scene = with_author(on_delete=on_delete)
    scene.there("books", {**RIGHT, "author_id": s("gone")})
    found = sweep(scene).different if of == "copy" else []
    if of == "path":
        scene = kinds(paths=RULES["paths"].replace("depth:", f"on_delete: {on_delete}, via: by_parent, depth:"))
        scene.there("parts", part("a"), part("b", "gone") | {"path": s("gone|b")})
        found = [one for one in swept(scene).different if str(one.target) == "parts[b]"]
    expected = [] if (of, on_delete) == ("copy", "keep") else [(Drift.ORPHAN, repairable)]
    assert [(one.drift, one.repairable) for one in found] == expected


@pytest.mark.parametrize(
    ("options", "book", "orphaned"),
    [
        ({}, {**RIGHT, "author_id": s("gone")}, 1),
        ({}, {**BARE, "author_id": s("gone"), "author_bio": s("a part of it")}, 1),
        ({}, {**BARE, "author_id": s("gone")}, 0),
        ({}, {"book_id": s("b1"), "author_name": s("x")}, 0),
        ({"mode": "snapshot"}, {**RIGHT, "author_id": s("gone")}, 0),
        ({"defaults": BY_DEFAULT}, {**BARE, "author_id": s("gone"), "author_name": s("nobody")}, 0),
        ({"defaults": BY_DEFAULT}, {**RIGHT, "author_id": s("gone")}, 1),
        ({"where": compile_where("status == 'OPEN'", "author")}, {**RIGHT, "author_id": s("gone")}, 0),
    ],
)
def test_compare_counts_the_copies_that_outlive_their_source(options, book, orphaned):
    """A kept copy whose source is deleted counts as orphaned; a missing copy, a snapshot or an unlinked one does not."""
    scene = with_author(**options)
    scene.there("books", book)
    comparison = sweep(scene)
    assert (comparison.different, comparison.kept[RULE], comparison.orphaned[RULE]) == ([], 1, orphaned)
