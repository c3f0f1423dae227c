"""States of all tables, and how two of them, or a state and an expectation, differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import make_jmespath_value
from sync_rules.model.values import AttributeValue, Item, Path, get, is_same_value
from sync_rules.pipeline.requests import Scan
from tests.peers.bench import Bench, State
from tests.peers.scenarios import ABSENT, NO_ITEM, Expectation, key_of
from tests.support.builders import attribute_value

SCAN_PAGE_ITEMS: Final = 100


class MismatchError(AssertionError):
    """An expectation of a scenario does not hold. Carries the first difference."""


def state_of(bench: Bench) -> State:
    """Every item of every table."""
    return {key: item for table in bench.rules.tables.values() for key, item in _items(bench, table)}


def _items(bench: Bench, table: Table) -> Iterator[tuple[ItemKey, Item]]:
    cursor: Item | None = None
    while True:
        page = bench.store.scan(Scan(table.name, SCAN_PAGE_ITEMS, cursor))
        for item in page.items:
            key = table.key_of(item)
            assert key is not None, "a scanned item has its key"
            yield key, item
        cursor = page.cursor
        if cursor is None:
            return


def unmet(expectation: Expectation, state: State, tables: Mapping[str, Table]) -> str | None:
    """Why an expectation does not hold of a state, None when it does."""
    item = state.get(key_of(tables[expectation.table], expectation.key))
    if not expectation.path:
        missing = expectation.value == NO_ITEM
        return None if missing == (item is None) else f"expected {'no' if missing else 'an'} item"
    if item is None:
        return f"expected {show_plain(expectation.value)}, found no item"
    found = get(item, expectation.path)
    absent = isinstance(expectation.value, str) and expectation.value == ABSENT
    wanted = None if absent else attribute_value(expectation.value)
    return None if is_same_value(found, wanted) else f"expected {show(wanted)}, found {show(found)}"


def changed_item(item: Item, changes: Mapping[Path, AttributeValue | None]) -> Item:
    """The item with paths set, or removed where None. Maps on the way are made, as the peers' databases do."""
    new = dict(item)
    for path, value in changes.items():
        inner = new
        if value is None and get(item, path) is None:
            continue
        for name in path[:-1]:
            inner[name] = {"M": dict(inner.get(name, {}).get("M", {}))}
            inner = inner[name]["M"]
        if value is None:
            inner.pop(path[-1], None)
        else:
            inner[path[-1]] = value
    return new


def without_empty_maps(item: Item, copies: Iterable[Path]) -> Item:
    """The item without maps on the way to a copy that hold nothing."""
    for copy in copies:
        for length in range(len(copy) - 1, 0, -1):
            if get(item, copy[:length]) == {"M": {}}:
                item = changed_item(item, {copy[:length]: None})
    return item


def something(item: Item | None, key: ItemKey) -> Item | None:
    """The item, or None for a total of zero, which counts as absent.

    The version of a total does not count, because the number of additions depends on the delivery.
    """
    if item is not None and "/T/" in str(key.values[0][2]):
        item = {name: value for name, value in item.items() if name != "v"}
    values = [] if item is None else [value for name, value in item.items() if name not in key.attributes()]
    return None if values and all(is_same_value(value, {"N": "0"}) for value in values) else item


def show(value: AttributeValue | None) -> str:
    """A value in a message of a test."""
    return ABSENT if value is None else show_plain(make_jmespath_value(value))


def show_plain(value: Any) -> str:
    return repr(value)
