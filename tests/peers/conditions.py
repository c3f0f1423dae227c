"""`where` of a scenario, as JMESPath: equal values, `null` for what is absent, and operators such as {gt: 0}."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

from sync_rules.model.values import Path
from tests.peers.builder import UnsupportedError, path_of
from tests.peers.scenarios import ABSENT

Test = Callable[[str], str]  # given the name of an attribute, a condition on it
COMPARED: Final = {
    "gt": ">", "gte": ">=", "ge": ">=", "lt": "<", "lte": "<=", "le": "<=", "eq": "==", "ne": "!=", "not": "!=",
    ">": ">", ">=": ">=", "<": "<", "<=": "<=", "==": "==", "=": "==", "!=": "!=",
}  # fmt: skip
NULL: Final = "`null`"
PRESENCE: Final = {"exists": True, "present": True, "absent": False, "missing": False, "null": False}


def read(where: Any) -> list[tuple[Path, Test]]:
    """The attributes of a condition, and how each is tested. Raises UnsupportedError."""
    if not isinstance(where, Mapping):
        raise UnsupportedError(f"`where` that is a {type(where).__name__}")
    return [(path_of(name), test) for name, value in where.items() for test in _tests(value)]


def name_of(path: Path) -> str:
    """An attribute's name in JMESPath."""
    return ".".join(name if name.isidentifier() and name.isascii() else json.dumps(name) for name in path)


def _tests(value: Any) -> list[Test]:
    if isinstance(value, Mapping) and value and value.keys() <= {*COMPARED, *PRESENCE, *OTHERS}:
        return [_operated(operator, operand) for operator, operand in value.items()]
    if isinstance(value, list):
        return [_operated("in", value)]
    return [_operated("eq", None if value == ABSENT else value)]


def _operated(operator: str, operand: Any) -> Test:
    if operator in OTHERS:
        return OTHERS[operator](operand)
    if operator in PRESENCE:
        sign = "!=" if PRESENCE[operator] is bool(operand) else "=="
        return lambda name: f"{name} {sign} {NULL}"
    sign, other = COMPARED[operator], literal(None if operand == ABSENT else operand)
    return lambda name: f"{name} {sign} {other}"


def _in(operand: Any) -> Test:
    return lambda name: f"contains({literal(operand)}, {name})"


def _not_in(operand: Any) -> Test:
    return lambda name: f"!contains({literal(operand)}, {name})"


def _between(operand: Any) -> Test:
    low, high = operand
    return lambda name: f"{name} >= {literal(low)} && {name} <= {literal(high)}"


def _prefix(operand: Any) -> Test:
    return lambda name: f"{name} && starts_with({name}, {literal(operand)})"


def _contains(operand: Any) -> Test:
    return lambda name: f"{name} && contains({name}, {literal(operand)})"


OTHERS: Final[Mapping[str, Callable[[Any], Test]]] = {
    "in": _in, "not_in": _not_in, "nin": _not_in, "between": _between, "prefix": _prefix, "starts_with": _prefix,
    "begins_with": _prefix, "contains": _contains, "like": _contains,
}  # fmt: skip


def literal(value: Any) -> str:
    """A plain value as a literal of JMESPath."""
    return "`" + json.dumps(_plain(value)).replace("`", r"\`") + "`"


def _plain(value: Any) -> Any:
    match value:
        case date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
    return value
