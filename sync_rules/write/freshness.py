"""`fresh` and `fresh_page`: items with their copies as they must be now, from strongly consistent reads.

Invariant: the rules compute in memory, and nothing is written. A repair is a pull of the pipeline, under its guards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.plain_client import find_table_name, is_converting, unwrap_client
from sync_rules.model.entities import Table
from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.python_values import make_raw_value
from sync_rules.model.semantics import is_same_item, make_place
from sync_rules.model.sizes import is_possible_key
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Store
from sync_rules.rules.ruleset import Rules
from sync_rules.write import judgement
from sync_rules.write.actions import Actions, Given
from sync_rules.write.deadline import DEADLINE_SECONDS, Deadline
from sync_rules.write.errors import WriteError
from sync_rules.write.read_through import ReadThrough

IN_PART: Final = ("ProjectionExpression", "AttributesToGet", "Select")  # an item that is shown in part is not judged
LAST: Final = "LastEvaluatedKey"


@dataclass(frozen=True, slots=True)
class FreshPage:
    """The items of a page, and the key after which the next page begins: its ExclusiveStartKey, in the client's form.
    None after the last page.
    """

    items: list[dict[str, Any]]
    last_evaluated_key: Mapping[str, Any] | None = None


def fresh(
    rules: Rules,
    client: Any,
    entity: str,
    item: Given,
    *,
    raw: bool = False,
    repair: bool = False,
    deadline_seconds: float = DEADLINE_SECONDS,
    store: Store | None = None,
) -> dict[str, Any] | None:
    """Return the item of this entity with its copies as its rules require them now; None if it does not exist. `item`
    has the fields of its key. If it also names its sources, such as an item that was read before, one request reads
    everything. Otherwise the item is read first. `repair` writes what differs, under guard.

    Raises:
        WriteError: if the fields make no key.
        StoreError: if a request failed.
    """
    actions = Actions(rules, raw=raw)
    values = actions.values(item)
    _, key = actions.key_of(entity, values)
    view = _View(rules, client, actions, Deadline(deadline_seconds), store)
    view.guesses = {key: {**values, **key.attributes()}}
    return next(iter(view.judge([key], repair=repair)), None)


def fresh_page(
    rules: Rules,
    client: Any,
    page: Mapping[str, Any] | Iterable[Given],
    *,
    table: str | None = None,
    raw: bool = False,
    repair: bool = False,
    deadline_seconds: float = DEADLINE_SECONDS,
    store: Store | None = None,
) -> FreshPage:
    """Return the items of a page with their copies as their rules require them now; each source is read once. `page`
    holds the parameters of a Query or, without a key condition, of a Scan, in the client's form. A page of a base
    table is read strongly consistently, and its items are not read again. `page` may also be items that were read
    before, of the `table` of this name in DynamoDB: they are read again, with their sources. Deleted items are left
    out, and items of no entity stay unchanged.

    Raises:
        WriteError: if the rules cannot judge the items in this form.
        StoreError: if a request for items or sources failed; the client's own error if its Query failed.
    """
    actions = Actions(rules, raw=raw)
    view = _View(rules, client, actions, Deadline(deadline_seconds), store)
    if not isinstance(page, Mapping):
        of = view.table(table or find_table_name(client) or "")
        values = [actions.values(item) for item in page]
        view.guesses = dict(zip(_list_keys(of, values), values, strict=True))
        return FreshPage(view.judge(list(view.guesses), repair=repair))
    query = {**({} if (name := find_table_name(client)) is None else {"TableName": name}), **page}
    of = view.table(str(query.get("TableName", "")))
    for part in IN_PART:
        if part in query:
            raise WriteError(f"a page with {part} has items in part", f"leave {part} out: rules judge whole items")
    at_base = "IndexName" not in query
    if at_base:
        query["ConsistentRead"] = True
    found, last = _query_page(client, query)
    keys = _list_keys(of, found)
    if at_base:
        for key, item in zip(keys, found, strict=True):
            view.seen.know(key, item)
    else:
        view.guesses = dict(zip(keys, found, strict=True))
    return FreshPage(view.judge(keys, repair=repair), last)


class _View:
    """The store that one call reads before its deadline, and its images. `guesses` are images that name the
    sources which will most likely be read; they decide nothing.
    """

    def __init__(self, rules: Rules, client: Any, actions: Actions, deadline: Deadline, store: Store | None) -> None:
        self._rules = rules
        self._actions = actions
        self._deadline = deadline
        self._store = store or deadline.store(client, rules)
        self.seen = ReadThrough(self._store, rules.tables)
        self.guesses: Mapping[ItemKey, Item] = {}

    def table(self, physical_name: str) -> Table:
        """The table of this name in DynamoDB."""
        for table in self._rules.tables.values():
            if table.physical_name == physical_name.rpartition("/")[2]:  # an ARN is good too
                return table
        known = ", ".join(sorted(table.physical_name for table in self._rules.tables.values()))
        raise WriteError(f"no table of the rules is named {physical_name!r}", f"name one of {known}")

    def judge(self, keys: Sequence[ItemKey], *, repair: bool) -> list[dict[str, Any]]:
        """The items of these keys as they must be now, for the application, without those that are gone."""
        likely = (one for key, item in self.guesses.items() for one in judgement.list_sources(key, item, self._rules))
        self.seen.load(one for one in (*keys, *likely) if is_possible_key(one))
        try:
            found = judgement.judge(keys, self._rules, self.seen, self._deadline.is_over)
        except StoreError as error:
            if error.reason == OUT_OF_TIME:
                raise WriteError(
                    "there was no time left to judge the items", "give it more: deadline_seconds="
                ) from error
            raise
        for key, item in found.items.items() if repair else ():
            before = self.seen.before[make_place(key)]
            if not is_same_item(before, item):
                bounds = Bounds(judgement.REPAIRING, self._deadline.is_over)
                judgement.repair(key, before, self._rules, self._store, left=found.left, bounds=bounds)
        items = (found.items[key] for key in keys)
        return [self._actions.output(item) for item in items if item is not None]


def _query_page(client: Any, query: Mapping[str, Any]) -> tuple[list[Item], Mapping[str, Any] | None]:
    """A page of the application's own Query or Scan, in attribute values."""
    own = unwrap_client(client)
    asks = own.query if {"KeyConditionExpression", "KeyConditions"} & query.keys() else own.scan
    answer = asks(**query)
    found = answer["Items"]
    if is_converting(own):
        found = [{name: make_raw_value(value) for name, value in item.items()} for item in found]
    return found, answer.get(LAST) or None


def _list_keys(table: Table, items: Iterable[Item]) -> list[ItemKey]:
    keys = [table.key_of(item) for item in items]
    if any(key is None for key in keys):
        names = ", ".join(f"{one.name} ({one.type})" for one in table.key)
        raise WriteError(f"an item has no key of table {table.physical_name}", f"give each with {names}")
    return [key for key in keys if key is not None]
