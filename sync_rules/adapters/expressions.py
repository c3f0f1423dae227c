"""Guards and updates as DynamoDB expressions.

Invariant: names and values are sent as placeholders only, whatever characters they hold. `model/semantics.py` evaluates
the same guards and updates in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sync_rules.model.lookups import KeyConditions
from sync_rules.model.values import AttributeValue, Path
from sync_rules.model.writes import Condition, Test, Update

FUNCTIONS = {
    Test.EQUALS: "{path} = {value}",
    Test.EXISTS: "attribute_exists({path})",
    Test.ABSENT: "attribute_not_exists({path})",
    Test.IS_MAP: "attribute_type({path}, {value})",
}
MAP_TYPE: AttributeValue = {"S": "M"}


@dataclass
class Expressions:
    """The placeholders of one request, assigned while its expressions are rendered."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, AttributeValue] = field(default_factory=dict)

    def path(self, path: Path) -> str:
        return ".".join(self.names.setdefault(name, f"#n{len(self.names)}") for name in path)

    def value(self, value: AttributeValue) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def guard(self, guard: Sequence[Condition]) -> str:
        """Render a ConditionExpression. Every write has a guard: without a guard it could create an item."""
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

    def key_terms(self, conditions: KeyConditions) -> list[str]:
        """Render the terms of a KeyConditionExpression."""
        terms = [f"{self.path((name,))} = {self.value(value)}" for name, value in conditions.equals]
        if conditions.begins_with is not None:
            name, prefix = conditions.begins_with
            terms.append(f"begins_with({self.path((name,))}, {self.value({'S': prefix})})")
        return terms

    def projection(self, paths: Iterable[Path]) -> dict[str, str]:
        """Return the parameter that restricts an answer to these paths. No two paths may overlap."""
        return {"ProjectionExpression": ", ".join(map(self.path, paths))}

    def update(self, change: Update) -> str:
        """Render an UpdateExpression."""
        clauses = (
            ("SET ", [f"{self.path(path)} = {self.value(value)}" for path, value in change.sets]),
            ("REMOVE ", [self.path(path) for path in change.removes]),
            ("ADD ", [f"{self.path(path)} {self.value(value)}" for path, value in change.adds]),
            ("DELETE ", [f"{self.path(path)} {self.value(value)}" for path, value in change.discards]),
        )
        return " ".join(verb + ", ".join(parts) for verb, parts in clauses if parts)

    def parameters(self) -> dict[str, Any]:
        """Return the placeholders as request parameters. An empty map is left out, because DynamoDB refuses it."""
        parameters: dict[str, Any] = {}
        if self.names:
            parameters["ExpressionAttributeNames"] = {mark: name for name, mark in self.names.items()}
        if self.values:
            parameters["ExpressionAttributeValues"] = self.values
        return parameters
