"""Planned actions as the parameters of TransactWriteItems.

Invariant: the application's condition is sent as it was given. The rules' guard is joined to it, under its own
placeholders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sync_rules.adapters.expressions import Expressions
from sync_rules.adapters.writer import VERBS
from sync_rules.model.entities import Table
from sync_rules.model.values import AttributeValue, Path
from sync_rules.model.writes import Check, Condition, Put, Test, Update
from sync_rules.write.composer import Planned
from sync_rules.write.conditions import OwnCondition, has_or
from sync_rules.write.errors import WriteError

RETURN_ITEM: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


class _Marks(Expressions):
    """Placeholders that no application chooses by chance."""

    def path(self, path: Path) -> str:
        return ".".join(self.names.setdefault(name, f"#sync_{len(self.names)}") for name in path)

    def value(self, value: AttributeValue) -> str:
        placeholder = f":sync_{len(self.values)}"
        self.values[placeholder] = value
        return placeholder


def make_transact_items(planned: Iterable[Planned], tables: Mapping[str, Table]) -> list[dict[str, Any]]:
    return [_make_action(one, tables) for one in planned]


def _make_action(one: Planned, tables: Mapping[str, Table]) -> dict[str, Any]:
    action, marks = one.action, _Marks()
    parameters: dict[str, Any] = {"TableName": tables[action.key.table].physical_name}
    if isinstance(action, Put):
        parameters["Item"] = action.item
    else:
        parameters["Key"] = action.key.attributes()
    if isinstance(action, Update):
        parameters["UpdateExpression"] = marks.update(action)
    own = None if one.own is None else one.own.condition
    guard: tuple[Condition, ...] = action.guard
    if isinstance(action, Check) and not guard and own is None:
        guard = (Condition(Test.EXISTS, (action.key.values[0][0],)),)
    own_text = () if own is None else (f"({own.text})" if guard and has_or(own.text) else own.text,)
    texts = [*own_text, *((marks.guard(guard),) if guard else ())]
    if texts:
        parameters["ConditionExpression"] = " AND ".join(texts)
    if own is not None or (one.own is not None and one.own.returns):
        parameters |= RETURN_ITEM
    return {VERBS[type(action)]: {**parameters, **_merge_parameters(marks, own)}}


def _merge_parameters(marks: _Marks, own: OwnCondition | None) -> dict[str, Any]:
    parameters = marks.parameters()
    for name, given in (
        ("ExpressionAttributeNames", {} if own is None else own.names),
        ("ExpressionAttributeValues", {} if own is None else own.values),
    ):
        ours = parameters.get(name, {})
        if both := ours.keys() & given.keys():
            raise WriteError(f"the placeholder {min(both)} of a condition is one of sync-rules", "give it another name")
        if given:
            parameters[name] = {**ours, **given}
    return parameters
