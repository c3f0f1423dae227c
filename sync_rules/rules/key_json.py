"""Reads the key of one item as a user gives it on the command line: JSON with plain values.

Invariant: a key is typed by the key schema of its table; numbers are exact. Where several tables have these key
attributes, the entities decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from sync_rules.model import json_bytes
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.sizes import is_possible_key
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import AttributeValue
from sync_rules.rules.ruleset import Rules

SHOWN_MAX_CHARACTERS: Final = 80  # of what is not a key


def parse_key(text: str, table: str | None, rules: Rules) -> ItemKey:
    """Parse a key that a user gave as JSON, typed by the key schema of its table.

    Raises:
        UserError: if it is not JSON, if its attributes fit no table, or if they fit several tables, and not exactly
            one has an entity with such a key; or if DynamoDB cannot hold the key.
    """
    try:
        given = json_bytes.parse_json(text, parse_float=Decimal)  # a float would lose digits
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given:
        shown = repr(text) if len(text) <= SHOWN_MAX_CHARACTERS else f"{text[:SHOWN_MAX_CHARACTERS]!r}..."
        raise UserError(f'{shown} is not a key: expected a JSON object of key attributes, such as {{"book_id": "b1"}}')
    if table is not None and table not in rules.tables:
        raise UserError(explain_unknown_name("table", table, rules.tables))
    candidates = [rules.tables[table]] if table is not None else list(rules.tables.values())
    fitting = [one for one in candidates if {attribute.name for attribute in one.key} == given.keys()]
    if not fitting:
        keys = "; ".join(f"{one.name}: {', '.join(a.name for a in one.key)}" for one in candidates)
        raise UserError(f"no table has a key with {', '.join(given)}: the keys are {keys}")
    if len(fitting) == 1:
        return _require_possible(type_key(given, fitting[0]))
    of_entity = [key for one in fitting if (key := _match_table(given, one)) is not None and rules.entity_of(key)]
    if len(of_entity) != 1:
        names = ", ".join(one.name for one in fitting)
        raise UserError(f"a key with {', '.join(given)} is of several tables ({names}): say which with --table")
    return _require_possible(of_entity[0])


def _require_possible(key: ItemKey) -> ItemKey:
    if not is_possible_key(key):
        raise UserError(f"no item of table {key.table} can have this key: a value is empty, too long or out of range")
    return key


def _match_table(given: dict[str, Any], table: Table) -> ItemKey | None:
    """Return the key, or None if the values do not have the types of this table's key."""
    try:
        return type_key(given, table)
    except UserError:
        return None


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _require_number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal) or not Decimal(str(value)).is_finite():
        raise TypeError
    return str(value)


AS_KEY: Final[Mapping[str, Callable[[Any], str | bytes]]] = {
    "S": _require_text,
    "N": _require_number,
    "B": bytes.fromhex,
}
EXPECTED: Final = {"S": "text", "N": "a number", "B": "hexadecimal digits"}


def type_key(given: Mapping[str, Any], table: Table) -> ItemKey:
    """Make a key of a table from plain values, one for each key attribute. Binary is given in hexadecimal digits.

    Raises:
        UserError: when a value has another type. The message contains no value.
    """
    item: dict[str, AttributeValue] = {}
    for attribute in table.key:
        try:
            item[attribute.name] = {attribute.type: AS_KEY[attribute.type](given[attribute.name])}
        except (TypeError, ValueError, ArithmeticError) as error:
            raise UserError(
                f"{attribute.name} is of type {attribute.type}: expected {EXPECTED[attribute.type]}"
            ) from error
    key = table.key_of(item)
    assert key is not None
    return key
