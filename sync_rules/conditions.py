"""What guards and updates mean: evaluated on an item in memory, and rendered as DynamoDB expressions.

Law: both read the same data, so the memory store and the service cannot drift apart unnoticed (a differential test
compares them). Names and values only ever travel as placeholders, whatever characters they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sync_rules.attributes import AttributeValue, Item, Path, get, overlaps, same
from sync_rules.entities import KeyAttribute
from sync_rules.model import Condition, ItemKey, Test

Sets = Iterable[tuple[Path, AttributeValue]]


class InvalidUpdateError(Exception):
    """DynamoDB would refuse this update whatever the guard says: a ValidationException."""


# ---------------------------------------------------------------- evaluated
def holds(guard: Iterable[Condition], item: Item | None) -> bool:
    """Whether every condition holds of the item; of a missing item only ABSENT can."""
    return all(_holds(condition, item) for condition in guard)


def _holds(condition: Condition, item: Item | None) -> bool:
    value = get(item, condition.path)
    match condition.test:
        case Test.EQUALS:
            return value is not None and same(value, condition.value)
        case Test.EXISTS:
            return value is not None
        case Test.ABSENT:
            return value is None
        case Test.IS_MAP:
            return value is not None and "M" in value


def updated(item: Item, sets: Sets, removes: Iterable[Path]) -> Item:
    """The item with paths set and removed, as a new value that shares what did not change.

    Raises:
        InvalidUpdateError: when two paths overlap or the parent of a nested path is not a map.
    """
    sets, removes = tuple(sets), tuple(removes)
    paths = [*(path for path, _ in sets), *removes]
    if any(overlaps(path, other) for i, path in enumerate(paths) for other in paths[:i]):
        raise InvalidUpdateError("two paths overlap")
    attributes = dict(item)
    for path, value in sets:
        _put(attributes, path, value)
    for path in removes:
        _put(attributes, path, None)
    return attributes


def _put(attributes: dict[str, AttributeValue], path: Path, value: AttributeValue | None) -> None:
    for name in path[:-1]:
        parent = attributes.get(name)
        if parent is None or "M" not in parent:
            raise InvalidUpdateError("the parent of a nested path is not a map")
        inner = dict(parent["M"])
        attributes[name] = {"M": inner}
        attributes = inner
    if value is None:
        attributes.pop(path[-1], None)
    else:
        attributes[path[-1]] = value


def comparable(kind: str, value: str | bytes) -> str | bytes | Decimal:
    """A key value as DynamoDB compares and sorts it: numbers by value, strings by code point (as UTF-8 does)."""
    return Decimal(value) if kind == "N" and isinstance(value, str) else value


def identity(key: ItemKey) -> tuple[str | bytes | Decimal, ...]:
    """The key's values such that two keys of one table are of the same item if, and only if, these are equal."""
    return tuple(comparable(kind, value) for _, kind, value in key.values)


def key_values(item: Item, attributes: Iterable[KeyAttribute]) -> tuple[str | bytes | Decimal, ...] | None:
    """The values of key attributes as they sort; None when one is missing or of another type."""
    values = []
    for attribute in attributes:
        value = item.get(attribute.name)
        if value is None or attribute.type not in value:
            return None
        values.append(comparable(attribute.type, value[attribute.type]))
    return tuple(values)


# ---------------------------------------------------------------- rendered
FUNCTIONS = {
    Test.EQUALS: "{path} = {value}",
    Test.EXISTS: "attribute_exists({path})",
    Test.ABSENT: "attribute_not_exists({path})",
    Test.IS_MAP: "attribute_type({path}, {value})",
}
MAP_TYPE: AttributeValue = {"S": "M"}


@dataclass
class Expressions:
    """The placeholders of one request, handed out while its expressions are rendered."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, AttributeValue] = field(default_factory=dict)

    def path(self, path: Path) -> str:
        return ".".join(self.names.setdefault(name, f"#n{len(self.names)}") for name in path)

    def value(self, value: AttributeValue) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def guard(self, guard: Sequence[Condition]) -> str:
        """A ConditionExpression. A write without a guard is our own mistake: it could create an item."""
        assert guard, "every write has a guard"
        return " AND ".join(self._condition(condition) for condition in guard)

    def _condition(self, condition: Condition) -> str:
        path = self.path(condition.path)
        match condition.test:
            case Test.EQUALS:
                assert condition.value is not None, "EQUALS compares with a value"
                value = self.value(condition.value)
            case Test.IS_MAP:
                value = self.value(MAP_TYPE)
            case Test.EXISTS | Test.ABSENT:
                value = ""
        return FUNCTIONS[condition.test].format(path=path, value=value)

    def update(self, sets: Sets, removes: Iterable[Path]) -> str:
        """An UpdateExpression."""
        clauses = (
            ("SET ", [f"{self.path(path)} = {self.value(value)}" for path, value in sets]),
            ("REMOVE ", [self.path(path) for path in removes]),
        )
        return " ".join(verb + ", ".join(parts) for verb, parts in clauses if parts)

    def parameters(self) -> dict[str, Any]:
        """The placeholders as request parameters; DynamoDB refuses empty ones."""
        parameters: dict[str, Any] = {}
        if self.names:
            parameters["ExpressionAttributeNames"] = {mark: name for name, mark in self.names.items()}
        if self.values:
            parameters["ExpressionAttributeValues"] = self.values
        return parameters
