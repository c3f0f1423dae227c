"""`fresh` and `fresh_page`: items with their copies as they must be now, from strongly consistent reads.

Invariant: the rules judge in memory, and nothing is written. A repair is a look of the pipeline, under its guards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.plain_client import client_of, is_converting, table_name
from sync_rules.model.entities import Table
from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.python_values import raw_of
from sync_rules.model.semantics import place_of, same_item
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
    """The items of a page, and the key after which the next one begins, as the client returned it: its
    ExclusiveStartKey. None: it was the last.
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
    """The item of this entity as the rules that keep something on it want it now; None where there is none.

    `item` has the fields of its key. With all that names its sources, such as the item as it was read before, one
    request reads all; else what names them is read first. `repair` writes what differs, under guard.

    Raises:
        WriteError: when no key can be made of the fields.
        StoreError: when a request failed.
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
    """The items of a page as the rules that keep something on them want them now, each source read once.

    `page` has the parameters of a Query, as the client takes them, or of a Scan if there is no key condition. Of a
    base table it is then read strongly consistently, and the items are not read again. It may also be items that were
    read before, of the `table` of this name in DynamoDB: they are read again, with their sources. Items that are there
    no more are left out, and items of no entity stay as they are.

    Raises:
        WriteError: when the items cannot be judged as they are asked for.
        StoreError: when a request for items or sources failed; the error of the client when its Query did.
    """
    actions = Actions(rules, raw=raw)
    view = _View(rules, client, actions, Deadline(deadline_seconds), store)
    if not isinstance(page, Mapping):
        of = view.table(table or table_name(client) or "")
        values = [actions.values(item) for item in page]
        view.guesses = dict(zip(_keys(of, values), values, strict=True))
        return FreshPage(view.judge(list(view.guesses), repair=repair))
    query = {**({} if (name := table_name(client)) is None else {"TableName": name}), **page}
    of = view.table(str(query.get("TableName", "")))
    for part in IN_PART:
        if part in query:
            raise WriteError(f"a page with {part} has items in part", f"leave {part} out: rules judge whole items")
    at_base = "IndexName" not in query
    if at_base:
        query["ConsistentRead"] = True
    found, last = _query_page(client, query)
    keys = _keys(of, found)
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
        likely = (one for key, item in self.guesses.items() for one in judgement.sources_of(key, item, self._rules))
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
            before = self.seen.before[place_of(key)]
            if not same_item(before, item):
                bounds = Bounds(judgement.REPAIRING, self._deadline.is_over)
                judgement.repair(key, before, self._rules, self._store, left=found.left, bounds=bounds)
        items = (found.items[key] for key in keys)
        return [self._actions.output(item) for item in items if item is not None]


def _query_page(client: Any, query: Mapping[str, Any]) -> tuple[list[Item], Mapping[str, Any] | None]:
    """A page of the application's own Query or Scan, in attribute values."""
    own = client_of(client)
    asks = own.query if {"KeyConditionExpression", "KeyConditions"} & query.keys() else own.scan
    answer = asks(**query)
    found = answer["Items"]
    if is_converting(own):
        found = [{name: raw_of(value) for name, value in item.items()} for item in found]
    return found, answer.get(LAST) or None


def _keys(table: Table, items: Iterable[Item]) -> list[ItemKey]:
    keys = [table.key_of(item) for item in items]
    if any(key is None for key in keys):
        names = ", ".join(f"{one.name} ({one.type})" for one in table.key)
        raise WriteError(f"an item has no key of table {table.physical_name}", f"give each with {names}")
    return [key for key in keys if key is not None]
