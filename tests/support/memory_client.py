"""A client of DynamoDB for tables in memory that reads as the service does: key conditions, projections, pages, keys.

A request that the service would refuse fails as an assertion. A page ends after `page_items` items.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sync_rules.model.entities import KEY_MAX_BYTES, Index, Table
from sync_rules.model.semantics import list_key_values, make_identity
from sync_rules.model.sizes import count_item_bytes, count_read_units
from sync_rules.model.templates import is_possible
from sync_rules.model.values import Item, nest

TERM = re.compile(
    r"begins_with\((?P<b>#\w+), (?P<bv>:\w+)\)|(?P<r>#\w+) BETWEEN (?P<lo>:\w+) AND (?P<hi>:\w+)"
    r"|(?P<n>#\w+) (?P<op>=|>=|<=) (?P<v>:\w+)"
)
ATTRIBUTES = {
    "query": {
        "TableName", "IndexName", "KeyConditionExpression", "ScanIndexForward", "ExpressionAttributeNames",
        "ExpressionAttributeValues", "ConsistentRead", "Limit", "ExclusiveStartKey", "ProjectionExpression", "Select",
        "ReturnConsumedCapacity",
    },
}  # fmt: skip


class MemoryClient:
    """A client with Query, GetItem, BatchGetItem and Scan."""

    def __init__(self, tables: Iterable[Table], items: Mapping[str, Iterable[Item]], page_items: int = 1000) -> None:
        self.tables = {table.physical_name: table for table in tables}
        self.items = {table.physical_name: [*items.get(table.name, ())] for table in self.tables.values()}
        self.page_items = page_items

    def query(self, **p: Any) -> dict[str, Any]:
        assert p.keys() <= ATTRIBUTES["query"]
        table, index = self._place(p)
        assert index is None or index.local or not p.get("ConsistentRead"), "an index has no consistent reads"
        keys = table.key if index is None else index.attributes
        tests = self._tests(p, keys, table if index is None else index)
        rows = [item for item in self.items[p["TableName"]] if list_key_values(item, keys) is not None]
        rows = [row for row in rows if all(test(row) for test in tests)]
        place = (*(table.key[1:] if index is None else index.sort), *table.key)

        def order(item: Item) -> Any:
            return list_key_values(item, place)

        rows.sort(key=order, reverse=not p["ScanIndexForward"])
        if "ExclusiveStartKey" in p:
            start = p["ExclusiveStartKey"]
            assert start.keys() == {one.name for one in (*keys, *table.key)}, "a start has the keys and nothing else"
            after = order(start)
            rows = [row for row in rows if (order(row) > after if p["ScanIndexForward"] else order(row) < after)]
        end = min(self.page_items, p.get("Limit", self.page_items))
        assert end > 0
        answer: dict[str, Any] = {"Items": [self._shown(p, table, index, row) for row in rows[:end]]}
        if rows[:end] and len(rows) >= end:  # the service knows the end only when it has looked
            answer["LastEvaluatedKey"] = {one.name: rows[end - 1][one.name] for one in (*keys, *table.key)}
        return {**answer, **self._capacity(p, [table.row(index, row) if index else row for row in rows[:end]])}

    def scan(self, **p: Any) -> dict[str, Any]:
        table = self.tables[p["TableName"]]
        rows = sorted(self.items[p["TableName"]], key=lambda item: list_key_values(item, table.key))  # type: ignore[arg-type,return-value]
        return {"Items": rows[: p.get("Limit")], **self._capacity(p, rows)}

    def get_item(self, **p: Any) -> dict[str, Any]:
        table = self.tables[p["TableName"]]
        found = self._read_by_key(table, p["Key"])
        shown = {} if found is None else {"Item": self._shown(p, table, None, found)}
        return {**shown, **self._capacity(p, [found] if found else [{}])}

    def batch_get_item(self, **p: Any) -> dict[str, Any]:
        ((name, request),) = p["RequestItems"].items()
        table, keys = self.tables[name], request["Keys"]
        assert 0 < len(keys) <= 100
        assert len({make_identity(table.key_of(key)) for key in keys}) == len(keys), "keys of a batch are distinct"
        found = [item for key in reversed(keys) if (item := self._read_by_key(table, key)) is not None]
        shown = [self._shown(request, table, None, item) for item in found]
        units = {"ConsistentRead": request.get("ConsistentRead"), **p}
        capacity = [self._capacity(units, [item], each=True).get("ConsumedCapacity") for item in found]
        total = (
            [{"TableName": name, "CapacityUnits": sum(one["CapacityUnits"] for one in capacity)}]
            if all(capacity)
            else []
        )
        return {"Responses": {name: shown}, "UnprocessedKeys": {}, "ConsumedCapacity": total}

    # ------------------------------------------------------------ parts
    def _place(self, p: Mapping[str, Any]) -> tuple[Table, Index | None]:
        table = self.tables[p["TableName"]]
        return table, table.index(p["IndexName"]) if "IndexName" in p else None

    def _read_by_key(self, table: Table, key: Item) -> Item | None:
        assert key.keys() == {one.name for one in table.key}
        for attribute, most in zip(table.key, KEY_MAX_BYTES, strict=False):
            assert attribute.type in key[attribute.name]
            assert is_possible(key[attribute.name], most)
        wanted = make_identity(table.key_of(key))  # type: ignore[arg-type]
        return next(
            (item for item in self.items[table.physical_name] if make_identity(table.key_of(item)) == wanted), None
        )  # type: ignore[arg-type]

    def _tests(self, p: Mapping[str, Any], keys: Any, place: Table | Index) -> list[Any]:
        names, values = p["ExpressionAttributeNames"], p["ExpressionAttributeValues"]
        types = {one.name: one.type for one in keys}
        partition = {place.partition.name} if isinstance(place, Table) else {one.name for one in place.partition}
        used: list[str] = []
        tests = []

        def value(name: str, mark: str) -> Any:
            (kind,) = values[mark]
            assert kind == types[names[name]], "a key condition has the key's type"
            assert is_possible(values[mark], 2048 if names[name] in partition else 1024), "a key that no item can have"
            return list_key_values({names[name]: values[mark]}, [one for one in keys if one.name == names[name]])

        def of(item: Item, name: str) -> Any:
            return list_key_values(item, [one for one in keys if one.name == names[name]])

        text = p["KeyConditionExpression"]
        matches = [*TERM.finditer(text)]
        assert " AND ".join(match[0] for match in matches) == text
        for match in matches:
            if match["b"]:
                assert types[names[match["b"]]] == "S"
                (prefix,) = value(match["b"], match["bv"])
                tests.append(lambda item, n=match["b"], v=prefix: of(item, n)[0].startswith(v))
                used.append("range")
            elif match["r"]:
                low, high = value(match["r"], match["lo"]), value(match["r"], match["hi"])
                assert low <= high
                tests.append(lambda item, n=match["r"], a=low, b=high: a <= of(item, n) <= b)
                used.append("range")
            else:
                wanted, sign = value(match["n"], match["v"]), match["op"]
                compare = {"=": lambda a, b: a == b, ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b}[sign]
                tests.append(lambda item, n=match["n"], v=wanted, c=compare: c(of(item, n), v))
                used.append(names[match["n"]] if sign == "=" else "range")
        assert partition <= {*used}, "the whole partition key is given"
        assert used.count("range") <= 1
        return tests

    def _shown(self, p: Mapping[str, Any], table: Table, index: Index | None, item: Item) -> Item:
        names = p.get("ExpressionAttributeNames", {})
        projected = item if index is None else table.row(index, item)
        if index is not None and index.local and (p.get("Select") == "ALL_ATTRIBUTES" or "ProjectionExpression" in p):
            projected = item
        assert "Select" not in p or index is None or index.local or index.projection in ("all", None)
        if "ProjectionExpression" not in p:
            return projected
        paths = [tuple(names[mark] for mark in one.split(".")) for one in p["ProjectionExpression"].split(", ")]
        assert len({*paths}) == len(paths), "no path twice"
        assert not any(one != other and other[: len(one)] == one for one in paths for other in paths), "no overlap"
        if index is not None and not index.local and index.projection not in ("all", None):
            listed = {*index.projection} if isinstance(index.projection, tuple) else set()
            known = listed | {one.name for one in (*table.key, *index.attributes)}
            assert {path[0] for path in paths} <= known, "an index does not project that"
        shown: dict[str, Any] = {}
        for path in paths:
            _merge(shown, projected, path)
        return shown

    def _capacity(self, p: Mapping[str, Any], rows: list[Any], *, each: bool = False) -> dict[str, Any]:
        if p.get("ReturnConsumedCapacity") != "TOTAL":
            return {}
        size = max(1, sum(map(count_item_bytes, rows)))
        units = count_read_units(size, consistent=bool(p.get("ConsistentRead")))
        assert not each or len(rows) == 1
        return {"ConsumedCapacity": {"TableName": p.get("TableName"), "CapacityUnits": units}}


def _merge(shown: dict[str, Any], item: Item, path: tuple[str, ...]) -> None:
    value: Any = item.get(path[0])
    for name in path[1:]:
        value = None if value is None or "M" not in value else value["M"].get(name)
    if value is None:
        return
    made = dict(nest(path[1:], value)) if len(path) > 1 else value
    before = shown.get(path[0])
    shown[path[0]] = made if before is None or len(path) == 1 else {"M": {**before["M"], **made["M"]}}
