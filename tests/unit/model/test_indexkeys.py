"""What indexes ask of the attributes that their keys are made of."""

from __future__ import annotations

import pytest

from sync_rules.model.sizes import fitting, index_key_limits
from tests.builders import index, n, s, table


def test_indexkeys_of_several_uses_the_one_that_takes_least():
    """A partition key has 2048 bytes and a sort key 1024, wherever they stand; the table's own key is not asked."""
    some = index("a", {"x": "S", "y": "N"}, {"z": "S"}), index("b", {"z": "S"}, {"x": "S"}), index("c", {"w": "B"})
    asked = {"x": ("S", 1024), "y": ("N", 2048), "z": ("S", 1024), "w": ("B", 2048)}
    assert index_key_limits(table("t", {"PK": "S"}, *some)) == asked


@pytest.mark.parametrize(
    ("value", "fits"),
    [(s("x" * 9), True), (s("x" * 10), False), (s("ß" * 5), False), (s(""), False), (n("1E-200"), False), (n(1), True)],
)
def test_indexkeys_what_does_not_fit_is_nothing(value, fits):
    """Too long, empty, or a number that DynamoDB does not have."""
    assert fitting(value, 9) == (value if fits else None)
    assert fitting(None, 9) is None
