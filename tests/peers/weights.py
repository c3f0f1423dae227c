"""How much each item counts: `weight`, `weight_map` and their default, in the forms in which scenarios write them.

- `weight: 3`: each item counts 3;
- `weight: kind` with `weight_map: {gold: 3, true: 2, null: 0}`: by an attribute's value. The default is `weight_default`
  or an entry `default` of the map. Without either an item without the attribute counts as null does, and others 1.

`weight: points` alone is not weighing: each item counts as much as its attribute says, which is a sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.model.values import Path
from tests.peers.builder import UnsupportedError, path_of

WORDS: Final = {"weight", "weight_map", "weight_default"}
ATTRIBUTES: Final = ("attr", "attribute", "of", "by", "field")
MAPS: Final = ("map", "values", "weight_map")
OTHERS: Final = ("default", "else", "other", "otherwise", "*", "_")


@dataclass(frozen=True)
class Weighing:
    """The weights of an attribute's values; without an attribute, all items weigh the default."""

    attribute: Path | None
    values: Mapping[str, int | float]
    default: int | float
    absent_is_null: bool = False


def read(rule: Mapping[str, Any]) -> Weighing | None:
    """The weights of a rule; None if each item counts one. Raises UnsupportedError."""
    if not WORDS & rule.keys():
        return None
    weight, table = rule.get("weight"), rule.get("weight_map")
    default = rule.get("weight_default")
    for given in (weight, table):
        if isinstance(given, Mapping) and (inner := _first(given, MAPS)) is not None:
            weight = _first(given, ATTRIBUTES) or weight
            default = _first(given, OTHERS) if default is None else default
            table = inner
    if isinstance(weight, int | float) and table is None:
        return Weighing(None, {"-": weight}, weight)
    if isinstance(table, Mapping) and not isinstance(weight, str):
        named = _first(table, ATTRIBUTES[:2])
        if named is None and len(table) == 1 and isinstance(next(iter(table.values())), Mapping):
            ((named, table),) = table.items()
        table = {value: one for value, one in table.items() if value not in ATTRIBUTES[:2]}
        weight = named
    if not isinstance(weight, str) or not isinstance(table, Mapping):
        raise UnsupportedError(f"weights of the form {', '.join(sorted(WORDS & rule.keys()))}")
    default = _first(table, OTHERS) if default is None else default
    values = {_word(value): one for value, one in table.items() if value not in OTHERS}
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in values.values()):
        raise UnsupportedError("weights that are no numbers")
    if default is not None:
        return Weighing(path_of(weight), values, default)
    return Weighing(path_of(weight), values, 1, absent_is_null=values.get("null", 1) != 1)


def _first(given: Mapping[Any, Any], words: tuple[str, ...]) -> Any:
    return next((given[word] for word in words if word in given), None)


def _word(value: object) -> str:
    """A value as `weights` names it."""
    return (
        {True: "true", False: "false", None: "null"}[value] if value is None or isinstance(value, bool) else str(value)
    )
