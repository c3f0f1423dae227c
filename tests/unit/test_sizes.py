"""Item sizes by the arithmetic of the Developer Guide."""

from __future__ import annotations

import pytest

from sync_rules.sizes import item_bytes, value_bytes


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
        ({"NULL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"NULL": True}]}, 3 + 3 + 2),
        ({"M": {"name": {"S": "ab"}}}, 3 + 1 + 4 + 2),
        ({"SS": ["a", "bc"]}, 3),
        ({"NS": ["1", "23"]}, 4),
        ({"BS": [b"a", b"bc"]}, 3),
    ],
)
def test_value_bytes_follow_the_guide(value, expected):
    """UTF-8 for text, two digits a byte for numbers, three for a document and one for each element."""
    assert value_bytes(value) == expected


def test_item_bytes_count_the_names():
    """Attribute names are part of an item's size, in UTF-8."""
    assert item_bytes({"é": {"S": "abc"}, "b": {"NULL": True}}) == 2 + 3 + 1 + 1
