"""Read and write units, by the examples and sentences of the Developer Guide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters.meter import count_base_units, count_index_units
from sync_rules.model.sizes import count_read_units
from tests.support.builders import index, n, s, table

KB = 1_024
SHOWN = index("shown", {"kind": "S"}, projection="all")


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [
        (1, True, 1),
        (4 * KB, True, 1),
        (4 * KB + 1, True, 2),
        (8 * KB, True, 2),
        (8 * KB, False, 1),
        (1, False, 0.5),
        (0, True, 1),
        (0, False, 0.5),
    ],
)
def test_units_of_a_read(size, consistent, units):
    """A unit is up to 4 KB strongly consistent; eventually consistent it costs half; nothing found costs the least."""
    assert count_read_units(size, consistent=consistent) == units


@pytest.mark.parametrize(
    ("before", "now", "units"),
    [
        (None, None, 0),
        ({"id": s("1")}, {"id": s("1"), "name": s("x")}, 0),
        (None, {"id": s("1"), "kind": s("a")}, 1),
        ({"id": s("1"), "kind": s("a")}, {"id": s("1")}, 1),
        ({"id": s("1"), "kind": s("a")}, {"id": s("1"), "kind": s("a"), "name": s("x")}, 1),
        ({"id": s("1"), "kind": s("a")}, {"id": s("1"), "kind": s("b")}, 2),
        ({"id": s("1"), "kind": s("a"), "n": n("1.0")}, {"id": s("1"), "kind": s("a"), "n": n("1")}, 0),
    ],
)
def test_units_of_an_index(before, now, units):
    """An index costs nothing where the item is in it neither before nor after, or what it shows stays; one where a row
    comes, goes or changes; two where its key changes.
    """
    assert count_index_units(table("t", {"id": "S"}, SHOWN), SHOWN, before, now) == units


@given(st.integers(0, 5 * KB), st.integers(0, 5 * KB))
def test_units_of_an_item_go_by_the_larger(before, now):
    """An item written costs the larger of its sizes before and after."""
    sizes = [{"id": s("1"), "text": s("x" * size)} for size in (before, now)]
    largest = max(before, now) + len("id") + 1 + len("text")
    assert count_base_units(*sizes) == -(-largest // KB)
