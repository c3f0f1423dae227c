"""Numbers as DynamoDB has them: decimal, exact to 38 digits, from 1E-130 to 9.9E+125, and one spelling for each.

Invariant: nothing but a mean is rounded, and a value that DynamoDB could not hold is not a number.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from sync_rules.model.values import AttributeValue

DIGITS_MAX: Final = 38
EXPONENT_MIN, EXPONENT_MAX = -130, 125
EXACT: Final = Context(prec=400)  # from the first digit of the largest to the last of the smallest, and sums of many
SPELLING: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def parse_number(text: str) -> Decimal | None:
    """Parse a number; None if the text is not a number, or DynamoDB cannot hold it."""
    if text.isdecimal() and text.isascii() and len(text) <= DIGITS_MAX:  # as most are
        return Decimal(text)
    number = Decimal(text) if SPELLING.fullmatch(text) else None
    return number if number is not None and is_holdable(number) else None


def read_number(value: AttributeValue | None) -> Decimal | None:
    """Read the number in an attribute; None for other types, including text that looks like a number."""
    text = value.get("N") if value is not None else None
    return parse_number(text) if isinstance(text, str) else None


def is_holdable(number: Decimal) -> bool:
    if not number.is_finite():
        return False
    if number and not EXPONENT_MIN <= number.adjusted() <= EXPONENT_MAX:
        return False
    return len(number.as_tuple().digits) <= DIGITS_MAX or len(list_digits(number)) <= DIGITS_MAX


def list_digits(number: Decimal) -> str:
    return "".join(map(str, number.as_tuple().digits)).strip("0")


def format_number(number: Decimal) -> str:
    """Format a number in its canonical text: no exponent, no needless zero."""
    return format(number.normalize(EXACT), "f") if number else "0"


def normalize_number(text: str) -> str | None:
    """Return the canonical text of a number's text, 1 for 1.0 and 1E0; None if it is not a number."""
    number = parse_number(text)
    return None if number is None else format_number(number)


def normalize_numbers(value: AttributeValue) -> AttributeValue:
    """Return the value as DynamoDB stores it: each number in its canonical text."""
    match value:
        case {"N": str() as text}:
            return {"N": normalize_number(text) or text}
        case {"NS": list() | tuple() as texts}:
            return {"NS": [normalize_number(text) or text for text in texts]}
        case {"M": inner}:
            return {"M": {name: normalize_numbers(one) for name, one in inner.items()}}
        case {"L": inner}:
            return {"L": [normalize_numbers(one) for one in inner]}
    return value


def compute_total(numbers: Iterable[Decimal]) -> Decimal:
    total = Decimal(0)
    for number in numbers:
        total = EXACT.add(total, number)
    return total


def compute_mean(total: Decimal, count: Decimal, places: int) -> Decimal:
    """Compute total / count, rounded once to `places` decimal places. A half is rounded away from zero."""
    return EXACT.divide(total, count).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, EXACT)


def read_text(value: AttributeValue | None) -> str | None:
    """Read the text of a string or a number; None for other types."""
    if value is None:
        return None
    return normalize_number(value["N"]) if "N" in value else value.get("S")


def read_word(value: AttributeValue | None) -> str | None:
    """Read true, false or null as a word from a BOOL or NULL value; None for other types."""
    if value is None:
        return None
    return str(value["BOOL"]).lower() if "BOOL" in value else "null" if "NULL" in value else None
