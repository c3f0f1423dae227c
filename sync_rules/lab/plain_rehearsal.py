"""A rehearsal in plain Python values, for users' own tests: put, update, delete, rest, and read.

Values are exact both ways: numbers come back as Decimal, sets as sets, binary as bytes; a float is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sync_rules.lab.delivery import Delivery
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import Expire
from sync_rules.lab.trial import describe_drifts
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.item_change import ItemChange, make_item_change
from sync_rules.model.items import Call, ItemKey
from sync_rules.model.python_values import make_plain_value, make_raw_value
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Item, parse_path
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.ruleset import Rules

Plain = Mapping[str, Any]
Function = Callable[[ItemChange], object]


class PlainRehearsal:
    """Tables in memory and the pipeline behind them. `call` replaces the functions of all `call` rules; without it,
    calls are only counted. Tables have their names in the rules file; keys and items are dictionaries.

    Raises UserError for an unknown table, an incomplete key, and a value without a DynamoDB type; StoreError for a
    write that DynamoDB would reject.
    """

    def __init__(self, rules: Rules, delivery: Delivery | None = None, call: Function | None = None) -> None:
        self.rules = rules
        self.rehearsal = Rehearsal(rules, None if call is None else _Direct(call), delivery)

    def put(self, table: str, *items: Plain) -> None:
        """Write whole items."""
        for item in items:
            raw = {name: make_raw_value(value) for name, value in item.items()}
            self.rehearsal.do(Put(self._key(table, item), raw, ()))

    def update(self, table: str, key: Plain, set: Plain | None = None, remove: Iterable[str] = ()) -> None:  # noqa: A002
        """Change an item at some paths (`a.b`), or create it."""
        sets = tuple((parse_path(path), make_raw_value(value)) for path, value in (set or {}).items())
        self.rehearsal.do(Update(self._key(table, key), sets, tuple(map(parse_path, remove)), ()))

    def delete(self, table: str, key: Plain) -> None:
        """Delete an item, if it exists."""
        self.rehearsal.do(Delete(self._key(table, key), ()))

    def expire(self, table: str, key: Plain) -> None:
        """Delete an item as Time to Live does."""
        self.rehearsal.do(Expire(self._key(table, key)))

    def rest(self) -> None:
        """Let the pipeline work until nothing is left to do.

        Raises:
            AssertionError: if the pipeline does not finish, or a copy is wrong in the end.
        """
        assert self.rehearsal.rest(), "the pipeline did not come to rest"
        wrong = [*describe_drifts(self.rules, self.rehearsal.world)]
        assert not wrong, "\n".join(["expected every copy to be right, found", *wrong])

    def item(self, table: str, key: Plain) -> dict[str, Any] | None:
        """Return an item as it is now; None if it does not exist."""
        item = self.rehearsal.item(self._key(table, key))
        return None if item is None else _make_plain_item(item)

    def items(self, table: str) -> list[dict[str, Any]]:
        return [_make_plain_item(item) for item in self.rehearsal.store.items(self._table(table).name)]

    def calls(self, rule: str) -> int:
        """Count the changes that made a call rule call its function."""
        return self.rehearsal.calls(rule)

    def failures(self) -> list[tuple[str, str]]:
        """List the rule and the reason of each failure record, oldest first."""
        return list(self.rehearsal.reports())

    def _table(self, name: str) -> Table:
        if name not in self.rules.tables:
            raise UserError(explain_unknown_name("table", name, self.rules.tables))
        return self.rules.tables[name]

    def _key(self, table: str, given: Plain) -> ItemKey:
        known = self._table(table)
        names = [attribute.name for attribute in known.key]
        key = known.key_of({name: make_raw_value(given[name]) for name in names if name in given})
        if key is None:
            expected = ", ".join(f"{attribute.name} ({attribute.type})" for attribute in known.key)
            raise UserError(f"table {table}: expected the key {expected}; found {', '.join(given) or 'nothing'}")
        return key


def _make_plain_item(item: Item) -> dict[str, Any]:
    return {name: make_plain_value(value) for name, value in item.items()}


class _Direct:
    """A Caller of one function. An exception is a failure, with its class name as the reason."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def call(self, call: Call) -> None:
        try:
            self._function(make_item_change(call))
        except Exception as error:
            raise StoreError(type(error).__name__, f"rule {call.rule}: the function raised") from error
