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
    """The number that a text spells; None for one that DynamoDB cannot hold."""
    number = Decimal(text) if SPELLING.fullmatch(text) else None
    return number if number is not None and is_holdable(number) else None


def number_of(value: AttributeValue | None) -> Decimal | None:
    """The number in an attribute; None for other types, including text that looks like a number."""
    text = value.get("N") if value is not None else None
    return parse_number(text) if isinstance(text, str) else None


def is_holdable(number: Decimal) -> bool:
    if not number.is_finite():
        return False
    return not number or (EXPONENT_MIN <= number.adjusted() <= EXPONENT_MAX and len(digits_of(number)) <= DIGITS_MAX)


def digits_of(number: Decimal) -> str:
    return "".join(map(str, number.as_tuple().digits)).strip("0")


def spell(number: Decimal) -> str:
    """The canonical text of a number: no exponent, no needless zero."""
    return format(number.normalize(EXACT), "f") if number else "0"


def respell(text: str) -> str | None:
    """The canonical text of a number's text, 1 for 1.0 and 1E0; None if it spells no number."""
    number = parse_number(text)
    return None if number is None else spell(number)


def respell_in(value: AttributeValue) -> AttributeValue:
    """The value as DynamoDB stores it: each number in its canonical text."""
    match value:
        case {"N": str() as text}:
            return {"N": respell(text) or text}
        case {"NS": list() | tuple() as texts}:
            return {"NS": [respell(text) or text for text in texts]}
        case {"M": inner}:
            return {"M": {name: respell_in(one) for name, one in inner.items()}}
        case {"L": inner}:
            return {"L": [respell_in(one) for one in inner]}
    return value


def total_of(numbers: Iterable[Decimal]) -> Decimal:
    total = Decimal(0)
    for number in numbers:
        total = EXACT.add(total, number)
    return total


def mean_of(total: Decimal, count: Decimal, places: int) -> Decimal:
    """The quotient, rounded once to `places` decimal places; a half goes away from zero."""
    return EXACT.divide(total, count).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, EXACT)


def text_of(value: AttributeValue | None) -> str | None:
    """The text of a string or a number; None for anything else."""
    if value is None:
        return None
    return respell(value["N"]) if "N" in value else value.get("S")


def word_of(value: AttributeValue | None) -> str | None:
    """The word of a truth value or NULL: true, false or null; None for anything else."""
    if value is None:
        return None
    return str(value["BOOL"]).lower() if "BOOL" in value else "null" if "NULL" in value else None
