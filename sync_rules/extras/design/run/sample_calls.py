"""Choose the arguments for trials of declared patterns: given arguments, and others from items of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from sync_rules.extras.design.patterns.declarations import Range
from sync_rules.extras.design.run.arguments import KEY_TYPES, list_arguments
from sync_rules.extras.design.run.get_plan import GetPlan
from sync_rules.extras.design.run.graph_plan import GraphPlan
from sync_rules.extras.design.run.pattern_reader import Plan
from sync_rules.extras.design.run.projection import Sight
from sync_rules.extras.design.run.tree_plan import TreePlan
from sync_rules.model.errors import UserError
from sync_rules.model.templates import read_key_text
from sync_rules.model.values import AttributeValue, Item
from sync_rules.rules.ruleset import Rules

Arguments = dict[str, Any]
BETWEEN: Final = ".."


def list_sights(rules: Rules, plan: Plan) -> tuple[Sight, ...]:
    """List the entities whose items give the arguments of a pattern, also the mirrors through which it reads."""
    match plan:
        case GetPlan():
            own = tuple(Sight(rules, rules.entities[name]) for name in plan.pattern.entities)
            return own if plan.mirror is None else (*own, plan.row_sight)
        case GraphPlan():
            return (Sight(rules, rules.entities[plan.pattern.start]),)
        case TreePlan():
            return (Sight(rules, rules.entities[plan.pattern.entity]),)


def parse_arguments(texts: list[str]) -> dict[str, str]:
    """Return the values of options such as user_id=7. Raises UserError for an option without a name."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or not sign or not value:
            raise UserError("--key: expected NAME=VALUE, such as user_id=7")
        found[name] = value
    return found


def list_calls(
    rules: Rules, plan: Plan, items: Callable[[str], Iterable[Item]], given: Mapping[str, str], most: int
) -> list[Arguments]:
    """List at most `most` different arguments, raw, and `most` more for each mirror. Given values come before values of
    items. `items` reads the items of a table.
    """
    names, within = list_arguments(rules, plan.pattern)
    whole = (*names, *(() if within is None else (within.attribute,)))
    if whole and set(whole) <= given.keys():
        ends = {name: {"S": given[name]} for name in names}
        return [ends if within is None else {**ends, within.attribute: _parse_range(within, given[within.attribute])}]
    found: dict[tuple[str, ...], tuple[Arguments, list[AttributeValue]]] = {}
    for number, sight in enumerate(list_sights(rules, plan), 1):
        for values in _list_values(sight, items(sight.entity.table.name), whole, given):
            named = tuple(repr(values[name]) for name in names)
            if named not in found and len(found) >= most * number:
                continue
            _, ends_of = found.setdefault(named, ({name: values[name] for name in names}, []))
            if within is not None:
                ends_of.append(values[within.attribute])
    return [
        arguments if within is None else {**arguments, within.attribute: _make_range(within, values)}
        for arguments, values in found.values()
    ]


def _list_values(
    sight: Sight, items: Iterable[Item], names: tuple[str, ...], given: Mapping[str, str]
) -> Iterator[dict[str, AttributeValue]]:
    """The fields of items that have all of them, as keys can, and those that are given."""
    for item in items:
        key = sight.entity.table.key_of(item)
        if key is None or not sight.entity.has(key):
            continue
        read = {name: sight.read(item, name) for name in names}
        values = {name: value for name, value in read.items() if value is not None and KEY_TYPES & value.keys()}
        if len(values) == len(names) and all(read_key_text(values[one]) == given[one] for one in names if one in given):
            yield values


def _parse_range(within: Range, text: str) -> Any:
    if within.form != "between":
        return {"S": text}
    least, dots, greatest = text.partition(BETWEEN)
    if not dots:
        raise UserError(f"--key {within.attribute}: expected both ends, {within.attribute}=LEAST..GREATEST")
    return {"S": least}, {"S": greatest}


def _make_range(within: Range, values: list[AttributeValue]) -> Any:
    """The range that holds all of these values; of texts that begin with one, the first letter of the least."""
    texts = sorted((value for value in values if value.keys() == values[0].keys()), key=_order)
    least, greatest = texts[0], texts[-1]
    match within.form:
        case "between":
            return least, greatest
        case "at_least":
            return least
        case "at_most":
            return greatest
    return {"S": (read_key_text(least) or "")[:1]}


def _order(value: AttributeValue) -> Any:
    ((kind, content),) = value.items()
    return float(content) if kind == "N" else content
