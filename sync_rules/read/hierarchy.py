"""Read a hierarchy: ancestors by key, children and levels by the index on the parent, subtrees by the index on the
path. Ids are compared whole, so CM1 never matches CM10.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any

from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.python_values import make_raw_value
from sync_rules.model.semantics import make_identity
from sync_rules.model.templates import SORT_KEY_MAX_BYTES, is_possible
from sync_rules.model.values import AttributeValue, Item, get
from sync_rules.read.listing import Listing
from sync_rules.read.reader import Client, Reader, find_rule, make_reader
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.ruleset import Rules

Of = str | int | Decimal | Mapping[str, Any]  # an id, or an item, or the identity fields of one
PATH_NOT_WRITTEN = "PathNotWritten"


class Hierarchy:
    """A hierarchy whose paths a `path` rule keeps. Paths follow the parents level by level, and an index lags behind
    its table. For moments after a move, part of a subtree may be found at its old place, or be missing. Rows of an
    index hold the projected attributes; `items` reads whole items.
    """

    def __init__(self, client: Client | Reader, rule: TreeRule, by_path: str | None) -> None:
        self._reader = make_reader(client)
        self._rule = rule
        self._entity = rule.target
        self._table = rule.target.table
        self._by_path = by_path

    @classmethod
    def of(cls, rules: Rules, name: str, client: Client | Reader) -> Hierarchy:
        """Return the hierarchy that the `path` rule of this name keeps.
        `descendants` uses the index whose partition key is the rule's `graph` and whose sort key is its path.

        Raises:
            UserError: if no such rule exists.
        """
        rule = find_rule(rules, name, TreeRule)
        index = rule.find_index()
        return cls(client, rule, None if index is None else index.name)

    # ------------------------------------------------------------ by key
    def items(self, of: Iterable[Of]) -> list[dict[str, Any] | None]:
        """Return the whole items of these ids, or of these rows of an index, in their order; None for a missing item.

        Raises:
            UnprocessedKeysError: if DynamoDB leaves keys unprocessed after all retries.
        """
        if isinstance(of, str | Mapping):  # its letters or names would be taken for ids
            raise UserError("a list of ids was expected, found one: items([id])")
        return self._reader.outputs(self._reader.get(self._table, [self._make_key(one) for one in of]))

    def ancestors(self, item: Mapping[str, Any]) -> list[dict[str, Any] | None]:
        """Return the items above this item by its path, the root first; none for a root. A deleted item is None.

        Raises:
            StoreError: PathNotWritten, if the item has no path yet.
            UnprocessedKeysError: if DynamoDB leaves keys unprocessed after all retries.
        """
        return self._reader.outputs(self._reader.get(self._table, self.keys_above(item)))

    def keys_above(self, item: Mapping[str, Any]) -> list[ItemKey | None]:
        """Return the keys of the items above this item by its path, the root's first. Raises StoreError:
        PathNotWritten.
        """
        *above, _ = self._require_path(item).split(self._rule.separator)
        fields = self._require_fields(self._make_key(item))
        return [self._entity.key_of({**fields, self._own: {"S": segment}}) for segment in above]

    # ------------------------------------------------------------ by parent
    def children(self, of: Of, *, backward: bool = False) -> Listing:
        """Return the items one level below, in the order of the index on the parent.

        Raises:
            UserError: if the rule names no index on the parent.
        """
        return self._children(self._make_key(of), backward=backward)

    def _children(self, key: ItemKey, *, backward: bool = False) -> Listing:
        find = self._rule.find
        if find is None:
            raise UserError("no index lists the children of a parent: name one as `via` of the rule")

        def is_child(row: Item) -> bool:
            parent = self._rule.pointer(row)
            # an attribute that the index does not project cannot be compared; the index key names the parent already
            return self._is_ours(row) and (parent is None or make_identity(parent) == make_identity(key))

        return Listing(self._reader, self._table, self._rule.conditions(key), find.index, backward, is_child)

    def levels(self, of: Of, max_depth: int | None = None) -> Iterator[list[dict[str, Any]]]:
        """Yield all items below, level by level: the children, their children, and so on, at most `max_depth` levels.
        Each item on the way costs one Query. Each item comes once, even if its ancestors form a circle.
        """
        level = [self._make_key(of)]
        seen = {make_identity(level[0])}
        depth = 0
        while level and (max_depth is None or depth < max_depth):
            below: dict[ItemKey, Item] = {}
            for row in (row for key in level for row in self._children(key).rows()):
                key = self._require_row_key(row)
                if make_identity(key) not in seen:
                    seen.add(make_identity(key))
                    below[key] = row
            if below:
                yield [self._reader.output(row) for row in below.values()]
            level, depth = list(below), depth + 1

    # ------------------------------------------------------------ by path
    def descendants(self, item: Mapping[str, Any], *, itself: bool = False) -> Iterator[dict[str, Any]]:
        """Yield all items below by their paths, of every shard, in the order of the paths: each after its ancestors.
        With `itself` the given item comes first. Each shard costs one Query, and another for each further 1 MB.

        Raises:
            StoreError: PathNotWritten, if the item has no path yet.
            UserError: if no index has the graph and the path as its keys.
        """
        rule, path = self._rule, self._require_path(item)
        if self._by_path is None or rule.graph is None:
            raise UserError("no index has the rule's `graph` and path as its keys: add one, or use `levels`")
        graph, under = rule.graph[0], path + rule.separator
        root, _, _ = path.partition(rule.separator)
        shared = self._select_shared_fields(self._require_fields(self._make_key(item)))
        fits = is_possible({"S": under}, SORT_KEY_MAX_BYTES)  # else no index can hold a path below

        def is_below(row: Item) -> bool:
            return (
                self._is_ours(row)
                and self._select_shared_fields(self._require_fields(self._require_row_key(row))) == shared
            )

        shards = [
            Listing(
                self._reader,
                self._table,
                KeyConditions(((graph, {"S": f"{root}#{n}"}),), (rule.path[0], under)) if fits else None,
                self._by_path,
                keep=is_below,
            ).rows()
            for n in range(1, rule.shards + 1)
        ]
        below = heapq.merge(*shards, key=lambda row: str(row[rule.path[0]]["S"]))
        return chain([dict(item)] if itself else [], map(self._reader.output, below))

    # ------------------------------------------------------------ names
    @property
    def _own(self) -> str:
        return self._rule.link[0][0]

    def _select_shared_fields(self, fields: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
        return {field: value for field, value in fields.items() if field != self._own}

    def _require_fields(self, key: ItemKey) -> Mapping[str, AttributeValue]:
        fields = self._entity.fields(key)
        if fields is None:
            raise UserError(f"the item of table {self._table.physical_name} is not of entity {self._entity.name!r}")
        return fields

    def _require_row_key(self, row: Item) -> ItemKey:
        key = self._table.key_of(row)
        assert key is not None, "an item of an index has the key of its table"
        return key

    def _is_ours(self, row: Item) -> bool:
        return self._entity.fields(self._require_row_key(row)) is not None

    def _make_key(self, of: Of) -> ItemKey:
        if isinstance(of, Mapping) and all(attribute.name in of for attribute in self._table.key):
            return self._reader.key_of(self._table, of)
        if isinstance(of, Mapping):
            fields = self._reader.raw_attributes(of, self._entity.identity)
        else:
            fields = {self._own: make_raw_value(of) if isinstance(of, str) else {"S": make_raw_value(of)["N"]}}
        key = self._entity.key_of(fields)
        if key is None:
            needed = ", ".join(self._entity.identity)
            raise UserError(f"an item of table {self._table.physical_name} is named by {needed}: give all of them")
        return key

    def _require_path(self, item: Mapping[str, Any]) -> str:
        if not isinstance(item, Mapping):
            raise UserError(f"an item was expected, found {type(item).__name__}: read it first, items([id])")
        value = get(self._reader.raw_attributes(item, self._rule.path[:1]), self._rule.path)
        text = None if value is None else value.get("S")
        if not isinstance(text, str) or not text:
            raise StoreError(
                PATH_NOT_WRITTEN,
                f"an item of table {self._table.physical_name} has no path: the rule writes it soon after the item, "
                "and an index that does not project it lacks it",
            )
        return text
