"""One guarded update: makes every path right on the item it was made from, and does nothing to any other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.values import Item, get, has_overlap, is_same_value
from sync_rules.model.writes import Result, Status, Update, find_differences, find_misfit, make_update
from sync_rules.pipeline.requests import Apply
from tests.support.builders import key, m, n, s, table
from tests.support.depth import deep

TABLE = table("items", {"id": "S"})
KEY = key(TABLE, "1")
NAMES = st.sampled_from("abc")
LEAVES = st.one_of(st.sampled_from("xy").map(s), st.sampled_from([1, "1.0", 2]).map(n), st.just({"NULL": True}))
VALUES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(NAMES, inner, max_size=3).map(lambda v: {"M": v}), max_leaves=6
)
ITEMS = st.dictionaries(NAMES, VALUES, max_size=3).map(lambda item: {**item, "id": s("1")})


def compute_values(depth: int) -> st.SearchStrategy:
    """Desired values of some rules: paths of which none overlaps another."""
    paths = st.lists(NAMES, min_size=1, max_size=depth).map(tuple)
    apart = st.dictionaries(paths, st.one_of(st.none(), VALUES), min_size=1, max_size=4)
    return apart.filter(lambda all_: not any(has_overlap(p, q) for p in all_ for q in all_ if p is not q))


def applied(update: Update, item: Item | None) -> tuple[Result, Item | None]:
    store = MemoryStore({"items": TABLE})
    if item is not None:
        store.put("items", item)
    (result,) = store.apply(Apply((update,)))
    return result, store.item(KEY)


def leaves(value: Item, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every path of an item that does not lead to a map with something in it."""
    for name, inner in value.items():
        if inner.get("M"):
            yield from leaves(inner["M"], (*at, name))
        else:
            yield (*at, name), inner


def made_from(image: Item, wanted) -> Update:
    changes = find_differences(image, wanted)
    assume(changes)
    assume(find_misfit(image, changes) is None)
    return make_update(KEY, image, changes, ())


@settings(max_examples=deep(150), deadline=None)
@given(ITEMS, compute_values(3))
def test_updates_make_every_path_right_and_change_nothing_else(image, wanted):
    """An update applied to the item it was made from sets every path and changes nothing else."""
    result, after = applied(made_from(image, wanted), image)
    assert result.status is Status.WRITTEN
    assert all(is_same_value(get(after, path), value) for path, value in wanted.items())
    before, now = ({p: v for p, v in leaves(i) if not any(has_overlap(p, w) for w in wanted)} for i in (image, after))
    assert before == now


@settings(max_examples=deep(300), deadline=None)
@given(ITEMS, st.one_of(st.none(), ITEMS), compute_values(3))
def test_updates_are_refused_or_harmless_on_any_other_item(image, other, wanted):
    """An update applied to a changed item is refused, unless all values it replaces are unchanged."""
    update = made_from(image, wanted)
    result, after = applied(update, other)
    if result.status is Status.REFUSED:
        assert after == other
        return
    assert result.status is Status.WRITTEN
    assert all(is_same_value(get(other, path), get(image, path)) for path in find_differences(image, wanted))


def test_updates_of_several_rules_make_one_missing_map():
    """Copies of several rules into a map that is not there yet become one map, guarded by its absence."""
    image = {"id": s("1")}
    changes = {("author", "name"): s("Ada"), ("author", "bio"): s("..."), ("author", "home", "city"): s("X")}
    update = make_update(KEY, image, changes, ())
    assert update.sets == ((("author",), m(name=s("Ada"), bio=s("..."), home=m(city=s("X")))),)
    assert applied(update, image)[0].status is Status.WRITTEN
    assert applied(update, {**image, "author": m()})[0].status is Status.REFUSED


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"a": s("x")}, "a is a string: expected a map to hold b"),
        ({"a": {"L": []}}, "a is a list: expected a map to hold b"),
        ({"a": {"NULL": True}}, "a is a null: expected a map to hold b"),
        ({"a": m(b=n(1))}, "a.b is a number: expected a map to hold c"),
        ({"a": m()}, None),
        ({}, None),
    ],
)
def test_updates_say_what_stands_in_the_way(item, reason):
    """An attribute that blocks a copy's path because it is no map is named with its type, never with its value."""
    assert find_misfit(item, [("a", "b", "c")]) == reason
