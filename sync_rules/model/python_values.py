"""Attribute values as plain Python values, and back.

Invariant: `make_plain_value` and `make_raw_value` are exact. A number is a Decimal of just the digits that are stored,
binary is bytes, a set is a set; a float is refused. `make_jmespath_value` is not exact, and only for conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, Final

from sync_rules.model.errors import UserError
from sync_rules.model.json_bytes import is_encodable
from sync_rules.model.numbers import normalize_number, parse_number
from sync_rules.model.values import AttributeValue

HALF_PAIR: Final = "a text or a name has half a surrogate pair"
HALF_PAIR_CURE: Final = "give text that UTF-8 can hold: an emoji may have been cut in two"


def make_plain_value(value: AttributeValue) -> Any:
    """Return an attribute value as plain Python: Decimal, bytes, set, list, dict, None."""
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return Decimal(content)  # exact: contexts round results of arithmetic only
        case "B":
            return bytes(content)
        case "NULL":
            return None
        case "SS":
            return set(content)
        case "NS":
            return {Decimal(number) for number in content}
        case "BS":
            return {bytes(entry) for entry in content}
        case "L":
            return [make_plain_value(inner) for inner in content]
        case "M":
            return {name: make_plain_value(inner) for name, inner in content.items()}
    return content


def make_jmespath_value(value: AttributeValue) -> Any:
    """Return an attribute value in a form that JMESPath can compare: numbers become int or float, sets become sorted
    lists.

    Raises:
        ValueError: for a number that DynamoDB cannot hold. The message has no value.
    """
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return _parse_comparable(content)
        case "NS":
            return sorted(_parse_comparable(number) for number in content)
        case "SS" | "BS":
            return sorted(content)
        case "M":
            return {name: make_jmespath_value(inner) for name, inner in content.items()}
        case "L":
            return [make_jmespath_value(inner) for inner in content]
        case "NULL":
            return None
    return content


def _parse_comparable(text: str) -> int | float:
    number = parse_number(text)
    if number is None:
        raise ValueError("a number that DynamoDB cannot hold")
    return int(number) if number == number.to_integral_value() else float(number)


def has_encodable_texts(value: AttributeValue) -> bool:
    """True if UTF-8 can hold every text and every name in an attribute value."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return is_encodable(content)
        case "SS":
            return all(map(is_encodable, content))
        case "M":
            return all(map(is_encodable, content)) and all(map(has_encodable_texts, content.values()))
        case "L":
            return all(map(has_encodable_texts, content))
    return True


def make_raw_value(value: Any) -> AttributeValue:
    """Return a plain Python value as an attribute value, as the client takes it.

    Raises:
        UserError: if DynamoDB has no such type, as for a float, which is not exact, or if a text or a name has half
            a surrogate pair.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": _require_encodable(value)}
        case int() | Decimal():
            return {"N": _format_number(Decimal(value))}
        case bytes() | bytearray():
            return {"B": bytes(value)}
        case object(value=bytes() | bytearray() as content) if type(value).__name__ == "Binary":  # of a boto3 resource
            return {"B": bytes(content)}
        case Mapping() if all(isinstance(name, str) for name in value):
            return {"M": {_require_encodable(name): make_raw_value(inner) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [make_raw_value(inner) for inner in value]}
        case AbstractSet() if value:
            return _make_raw_set([make_raw_value(entry) for entry in value])
    raise UserError(
        f"DynamoDB cannot store a value of type {type(value).__name__}: expected str, int, Decimal, bytes, "
        "a set that is not empty, a list, or a dict whose names are text"
    )


def _require_encodable(text: str) -> str:
    if not is_encodable(text):
        raise UserError(f"{HALF_PAIR}: {HALF_PAIR_CURE}")
    return text


def _make_raw_set(entries: list[AttributeValue]) -> AttributeValue:
    kinds = {kind for entry in entries for kind in entry}
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        raise UserError("a set has one type only: give only str, only numbers, or only bytes")
    (kind,) = kinds
    return {f"{kind}S": [entry[kind] for entry in entries]}


def _format_number(number: Decimal) -> str:
    text = normalize_number(str(number)) if number.is_finite() else None
    if text is None:
        raise UserError("DynamoDB cannot store this number: round it to 38 digits, or give it as text")
    return text
