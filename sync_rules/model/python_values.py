"""Attribute values as plain Python values, and back.

Invariant: `plain_of` and `raw_of` are exact. A number is a Decimal of just the digits that are stored, binary is bytes,
a set is a set; a float is refused. `jmespath_value` is not exact, and only for conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, Final

from sync_rules.model.errors import UserError
from sync_rules.model.json_bytes import is_encodable
from sync_rules.model.numbers import parse_number, respell
from sync_rules.model.values import AttributeValue

HALF_PAIR: Final = "a text or a name has half a surrogate pair"
HALF_PAIR_CURE: Final = "give text that UTF-8 can hold: an emoji may have been cut in two"


def plain_of(value: AttributeValue) -> Any:
    """A raw value as plain Python: Decimal, bytes, set, list, dict, None."""
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
            return [plain_of(inner) for inner in content]
        case "M":
            return {name: plain_of(inner) for name, inner in content.items()}
    return content


def jmespath_value(value: AttributeValue) -> Any:
    """A raw value as JMESPath can compare it: numbers become int or float, sets become sorted lists.

    Raises:
        ValueError: for a number that DynamoDB cannot hold. Names no value.
    """
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return _comparable(content)
        case "NS":
            return sorted(_comparable(number) for number in content)
        case "SS" | "BS":
            return sorted(content)
        case "M":
            return {name: jmespath_value(inner) for name, inner in content.items()}
        case "L":
            return [jmespath_value(inner) for inner in content]
        case "NULL":
            return None
    return content


def _comparable(text: str) -> int | float:
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


def raw_of(value: Any) -> AttributeValue:
    """A plain value as the client takes it.

    Raises:
        UserError: for what DynamoDB has no type for; a float is not exact, so it is none either. Also for half a
            surrogate pair in a text or a name.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": _text(value)}
        case int() | Decimal():
            return {"N": _number(Decimal(value))}
        case bytes() | bytearray():
            return {"B": bytes(value)}
        case object(value=bytes() | bytearray() as content) if type(value).__name__ == "Binary":  # of a boto3 resource
            return {"B": bytes(content)}
        case Mapping() if all(isinstance(name, str) for name in value):
            return {"M": {_text(name): raw_of(inner) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [raw_of(inner) for inner in value]}
        case AbstractSet() if value:
            return _raw_set([raw_of(entry) for entry in value])
    raise UserError(
        f"a {type(value).__name__} is no value of DynamoDB: expected str, int, Decimal, bytes, or a set that is not "
        "empty, list, or dict with names of text, of such"
    )


def _text(text: str) -> str:
    if not is_encodable(text):
        raise UserError(f"{HALF_PAIR}: {HALF_PAIR_CURE}")
    return text


def _raw_set(entries: list[AttributeValue]) -> AttributeValue:
    kinds = {kind for entry in entries for kind in entry}
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        raise UserError("a set holds one type only: str, numbers or bytes")
    (kind,) = kinds
    return {f"{kind}S": [entry[kind] for entry in entries]}


def _number(number: Decimal) -> str:
    text = respell(str(number)) if number.is_finite() else None
    if text is None:
        raise UserError("DynamoDB cannot hold a number of more than 38 digits, or out of range")
    return text
