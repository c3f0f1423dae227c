"""Numbers: exact to 38 digits, one spelling for each, and no text that only looks like one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.numbers import (
    compute_total,
    format_number,
    is_holdable,
    list_digits,
    normalize_number,
    parse_number,
    read_number,
    read_text,
)

HELD = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-(10**38) + 1, 10**38 - 1), st.integers(-90, 80)
)  # fmt: skip


@given(HELD)
def test_numbers_have_one_spelling(number):
    """However a number is spelt, its canonical text is the same, is exact, and has no exponent and no needless zero."""
    text = format_number(number)
    assert Fraction(Decimal(text)) == Fraction(number)
    assert text == normalize_number(f"{number:e}") == normalize_number(text)
    assert "E" not in text.upper()
    assert not ("." in text and text.endswith(("0", ".")))


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("1" * 38, True),
        ("1" * 39, False),
        ("1" * 38 + "0" * 10, True),
        ("0." + "0" * 50 + "1" * 38, True),
        ("1E+125", True),
        ("1E+126", False),
        ("1E-130", True),
        ("1E-131", False),
        ("-0", True),
        (".5", True),
        ("5.", True),
        ("", False),
        ("1_000", False),
        (" 1", False),
        ("NaN", False),
        ("１", False),  # noqa: RUF001 -- a digit, and none of ASCII
        ("1E9999", False),
    ],
)
def test_numbers_are_those_that_dynamodb_holds(text, held):
    """38 digits, from 1E-130 to 9.9E+125, in ASCII; nothing else is a number."""
    assert (parse_number(text) is not None) == held
    assert read_number({"N": text}) == parse_number(text)
    assert read_text({"N": text}) == normalize_number(text)


def test_numbers_of_other_attributes_are_none():
    """Text is no number, however it looks; text of a number or a string is its text, of anything else none."""
    assert read_number({"S": "1"}) is None
    assert read_number({"N": 1}) is None
    assert read_number(None) is None
    assert not is_holdable(Decimal("NaN"))
    assert not is_holdable(Decimal("Infinity"))
    assert [read_text(value) for value in ({"S": "x"}, {"N": "1.0"}, {"B": b"x"}, {"N": "x"}, None)] == [
        "x",
        "1",
        None,
        None,
        None,
    ]


@given(st.lists(HELD, max_size=6))
def test_numbers_add_up_exactly(numbers):
    """A sum is exact whatever the sizes of its numbers; the digits are those that count."""
    assert Fraction(compute_total(numbers)) == sum(map(Fraction, numbers))
    for number in numbers:
        assert is_holdable(number) == (len(list_digits(number)) <= 38)
