"""Values compared, sized and seen by conditions, as DynamoDB's and JMESPath's documentation have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.visitor import TreeInterpreter

from tests.simulation.spec import Entity, Item, Value, kind_of

EXACT = Context(prec=400)


def same(left: Value | None, right: Value | None) -> bool:
    """True if DynamoDB calls two values equal."""
    if left == right:
        return True
    if left is None or right is None or kind_of(left) != kind_of(right):
        return False
    ((kind, one),), (other,) = left.items(), right.values()
    if kind == "N":
        return Decimal(one) == Decimal(other)
    if kind in ("SS", "BS"):
        return set(one) == set(other)
    if kind == "NS":
        return set(map(Decimal, one)) == set(map(Decimal, other))
    if kind == "M":
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return kind == "L" and len(one) == len(other) and all(map(same, one, other))


def number_of(value: Value | None) -> Decimal | None:
    return Decimal(value["N"]) if value is not None and "N" in value else None


def spelt(number: Decimal) -> str:
    return format(number.normalize(EXACT), "f") if number else "0"


def word_of(value: Value | None) -> str | None:
    """The text of a string or a number, a number in its shortest form."""
    if value is None:
        return None
    return spelt(Decimal(value["N"])) if "N" in value else value.get("S")


def total(numbers: Iterable[Decimal]) -> Decimal:
    found = Decimal(0)
    for number in numbers:
        found = EXACT.add(found, number)
    return found


def bytes_of(value: Value) -> int:
    """The size of a value, by the Developer Guide's "DynamoDB item sizes and formats"."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "N":
            digits = content.lstrip("-").replace(".", "").strip("0")
            return (len(digits) + 1) // 2 + 1 + content.startswith("-")
        case "M":
            return 3 + sum(1 + len(name.encode()) + bytes_of(inner) for name, inner in content.items())
        case "L":
            return 3 + sum(1 + bytes_of(inner) for inner in content)
        case "SS" | "NS" | "BS":
            return sum(bytes_of({kind[0]: one}) for one in content)
    return 1


# ---------------------------------------------------------------- conditions
def plain(value: Value) -> Any:
    """A value as a condition sees it."""
    ((kind, content),) = value.items()
    match kind:
        case "N":
            number = Decimal(content)
            return int(number) if number == number.to_integral_value() else float(number)
        case "NS":
            return sorted(plain({"N": one}) for one in content)
        case "SS" | "BS":
            return sorted(content)
        case "M":
            return {name: plain(inner) for name, inner in content.items()}
        case "L":
            return [plain(inner) for inner in content]
        case "NULL":
            return None
    return content


class _Interpreter(TreeInterpreter):
    """A comparison of what cannot be compared is null, by itself."""

    def visit_comparator(self, node: Any, value: Any) -> Any:
        try:
            return super().visit_comparator(node, value)
        except TypeError:
            return None

    def visit_not_expression(self, node: Any, value: Any) -> bool:
        return self._is_false(self.visit(node["children"][0], value))

    def _is_false(self, value: Any) -> bool:
        return value is None or value is False or value in ("", b"", [], {})


class RaisingError(Exception):
    """A condition cannot be evaluated on this item."""


def seen(entity: Entity, item: Item) -> dict[str, Any]:
    """An item as a condition sees it: with the fields of its key."""
    found = {name: plain(value) for name, value in item.items()}
    for name in entity.inside:
        value = entity.read(item, (name,))
        if value is not None:
            found[name] = plain(value)
    return found


def holds(text: str | None, view: Mapping[str, Any]) -> bool:
    """True if a condition holds. Raises RaisingError where a function of it cannot be applied."""
    if text is None:
        return True
    try:
        interpreter = _Interpreter()
        found = interpreter.visit(jmespath.compile(text).parsed, dict(view))
    except (JMESPathError, TypeError, ValueError, ArithmeticError) as error:
        raise RaisingError(text) from error
    return not interpreter._is_false(found)
