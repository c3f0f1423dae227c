"""Item sizes by the arithmetic of the Developer Guide."""

from __future__ import annotations

import pytest

from sync_rules.model.sizes import (
    count_item_bytes,
    count_value_bytes,
    describe_impossible,
    find_index_key_limits,
    fit_value,
    is_possible_key,
    is_possible_row,
)
from tests.support.builders import index, key, n, s, table

THINGS = table("things", {"PK": "S", "SK": "S"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"S": ""}, 0),
        ({"S": "é😀"}, 6),
        ({"N": "1"}, 2),
        ({"N": "-12"}, 3),
        ({"N": "1200"}, 2),
        ({"N": "0.0012"}, 2),
        ({"N": "12345678901234567890123456789012345678"}, 20),
        ({"B": b"\x00\x01"}, 2),
        ({"BOOL": False}, 1),
        ({"L": [{"S": "ab"}, {"NULL": True}]}, 3 + 3 + 2),
        ({"M": {"name": {"S": "ab"}}}, 3 + 1 + 4 + 2),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "23"]}, 4),
        ({"BS": [b"a", b"bc"]}, 3),
    ],
)
def test_value_bytes_follow_the_guide(value, expected):
    """UTF-8 for text, two digits a byte for numbers, three for a document and one for each element."""
    assert count_value_bytes(value) == expected


def test_item_bytes_count_the_names():
    """Attribute names are part of an item's size, in UTF-8."""
    assert count_item_bytes({"é": {"S": "abc"}, "b": {"NULL": True}}) == 2 + 3 + 1 + 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("x" * 2048, "1"), True),
        (("x" * 2049, "1"), False),
        (("p", "x" * 1024), True),
        (("p", "x" * 1025), False),
        (("p", "é" * 513), False),
        (("", "1"), False),
    ],
)
def test_sizes_of_keys(values, expected):
    """A partition key holds 2,048 bytes and a sort key 1,024, in UTF-8; neither may be empty."""
    assert is_possible_key(key(THINGS, *values)) is expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, True),
        ({"link": s("x" * 2048), "rank": n(1)}, True),
        ({"link": s("x" * 2049)}, False),
        ({"link": n(1)}, False),
        ({"rank": n("9" * 39)}, False),
    ],
)
def test_sizes_of_index_keys(values, expected):
    """An item may lack the keys of an index; those it has are of their type and not too long."""
    by_link = index("by_link", {"link": "S"}, {"rank": "N"})
    assert is_possible_row(values, by_link.partition, by_link.sort) is expected


def test_sizes_of_an_item_that_nobody_knows_are_possible():
    """An unknown item is not reported as impossible."""
    assert describe_impossible(THINGS, None) == ""
    assert describe_impossible(THINGS, {"PK": s("a"), "SK": s("b"), "text": s("x" * 409_600)}) == "ItemTooLarge"


def test_indexkeys_of_several_uses_the_one_that_takes_least():
    """A partition key has 2048 bytes and a sort key 1024, wherever they stand; the table's own key is not asked."""
    some = index("a", {"x": "S", "y": "N"}, {"z": "S"}), index("b", {"z": "S"}, {"x": "S"}), index("c", {"w": "B"})
    asked = {"x": ("S", 1024), "y": ("N", 2048), "z": ("S", 1024), "w": ("B", 2048)}
    assert find_index_key_limits(table("t", {"PK": "S"}, *some)) == asked


@pytest.mark.parametrize(
    ("value", "fits"),
    [(s("x" * 9), True), (s("x" * 10), False), (s("ß" * 5), False), (s(""), False), (n("1E-200"), False), (n(1), True)],
)
def test_indexkeys_what_does_not_fit_is_nothing(value, fits):
    """Too long, empty, or a number that DynamoDB does not have."""
    assert fit_value(value, 9) == (value if fits else None)
    assert fit_value(None, 9) is None
