"""The store on DynamoDB: consistent reads, queries, scans, and writes through the writer.

Invariant: callers name tables as the rules file does, requests by their physical names; names and values are sent as
placeholders only; every item is returned as the service sent it. An error names table and index, never a value.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.adapters.batch_reader import make_batch_gets
from sync_rules.adapters.expressions import Expressions
from sync_rules.adapters.writer import MODES, Mode, Writer
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.semantics import make_identity
from sync_rules.model.values import Item, Names
from sync_rules.model.writes import Result
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PROJECTED_MAX_ATTRIBUTES: Final = 100  # keeps the expression far below its limit of 4 KB
WORKERS: Final = 4
INDEX_CURE: Final = "create the index, or correct it in the rules file"
CURES: Final = {
    "TableNotFound": "create it with `sync-rules tables create`, or correct its `name`, the Region or the endpoint",
    "ValidationException": "the rules file and the table disagree about a key or an index; compare them with `check`",
}

WRITES: Final = "SYNC_RULES_WRITES"  # batch: updates share requests; update: each is an UpdateItem


def read_mode() -> Mode | None:
    """Read from the environment how updates are sent; None if it does not say. Raises UserError."""
    given = os.environ.get(WRITES, "")
    if given not in ("", *MODES):
        raise UserError(f"{WRITES} is {given!r}: expected {' or '.join(MODES)}")
    return cast("Mode", given) if given else None


class DynamoStore:
    """A store on one DynamoDB client.

    `remaining_seconds` returns how long retries may still wait; `workers` is the number of parallel writing requests;
    `on_throttle` is called with the kind of each throttle. `write_mode` "batch" lets updates share a request. Without
    it the variable SYNC_RULES_WRITES decides, else "batch" on AWS, and on the embedded engine once it has answered:
    many emulators have another PartiQL.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        tables: Mapping[str, Table],
        *,
        remaining_seconds: retries.RemainingSeconds = lambda: math.inf,
        attempts_max: int = retries.ATTEMPTS_MAX,
        workers: int = WORKERS,
        write_mode: Mode | None = None,
        sleep: Callable[[float], None] = time.sleep,
        on_throttle: Callable[[str], object] = lambda _kind: None,
    ) -> None:
        self._client = client
        self._answered = False  # any call so far
        self._tables = tables
        self._retrying = retries.make_retry(remaining_seconds, attempts_max, sleep, on_throttle=on_throttle)
        mode = write_mode or read_mode() or ("batch" if aws.is_recording_statements(client) else "update")
        self._writer = Writer(client, tables, self._retrying, workers, mode=mode)
        self.share = self._writer.share  # for a World: several reading requests at a time

    # ------------------------------------------------------------ reads
    def read(self, request: Read) -> tuple[Item | None, ...]:
        """Read items, strongly consistent: by GetItem for one key, else by BatchGetItem in chunks of 100."""
        names = [(key.table, make_identity(key)) for key in request.keys]  # equal for equal numbers of another spelling
        distinct = list(dict(zip(names, request.keys, strict=True)).values())
        get = self._get if len(distinct) == 1 else self._batch_get
        found = {(key.table, make_identity(key)): item for key, item in get(distinct, request.attributes)}
        return tuple([found.get(name) for name in names])

    def _get(self, keys: Sequence[ItemKey], attributes: Mapping[str, Names]) -> list[tuple[ItemKey, Item]]:
        (key,) = keys
        parameters = {"TableName": self._physical(key.table), "Key": key.attributes(), "ConsistentRead": True}
        parameters |= self._projection(key.table, attributes.get(key.table))
        item = self._ask(self._client.get_item, f"table {self._physical(key.table)}", parameters).get("Item")
        return [(key, item)] if item else []

    def _batch_get(self, keys: Sequence[ItemKey], attributes: Mapping[str, Names]) -> list[tuple[ItemKey, Item]]:
        found: list[tuple[ItemKey, Item]] = []

        def parameters(table: Table) -> Mapping[str, Any]:
            return {"ConsistentRead": True, **self._projection(table.name, attributes.get(table.name))}

        for batch in make_batch_gets(self._client, self._tables, keys, parameters, lambda *one: found.append(one)):
            self._ask(batch, batch.where, {})
        return found

    # ------------------------------------------------------------ pages
    def list(self, request: List) -> Page:
        expressions = Expressions()
        terms = expressions.key_terms(request.conditions)
        where = f"table {self._physical(request.table)}"
        projection = self._projection(request.table, request.attributes, expressions)
        parameters: dict[str, Any] = {"KeyConditionExpression": " AND ".join(terms), **projection}
        parameters |= expressions.parameters()
        if request.index is None:
            parameters["ConsistentRead"] = True
        else:
            parameters["IndexName"] = request.index
            where = f"index {request.index} of {where}"
        if request.backward:
            parameters["ScanIndexForward"] = False
        return self._page(self._client.query, where, request, parameters)

    def _projection(self, table: str, attributes: Names, expressions: Expressions | None = None) -> dict[str, Any]:
        """The parameters that restrict an answer to these attributes and the key. A read costs the same, but less is
        sent and parsed. With `expressions`, the placeholders are added to those.
        """
        if attributes is None or len(attributes) > PROJECTED_MAX_ATTRIBUTES:
            return {}
        names = sorted(attributes.union(attribute.name for attribute in self._tables[table].key))
        own = Expressions() if expressions is None else expressions
        projection = own.projection((name,) for name in names)
        return projection if expressions is not None else {**projection, **own.parameters()}

    def scan(self, request: Scan) -> Page:
        parameters: dict[str, Any] = {"Segment": request.segment, "TotalSegments": request.total_segments}
        if request.consistent:
            parameters["ConsistentRead"] = True
        return self._page(self._client.scan, f"table {self._physical(request.table)}", request, parameters)

    def _page(self, call: Callable[..., Any], where: str, request: List | Scan, parameters: Mapping[str, Any]) -> Page:
        parameters = {**parameters, "TableName": self._physical(request.table), "Limit": request.limit}
        if request.cursor is not None:
            parameters["ExclusiveStartKey"] = request.cursor
        answer = self._ask(call, where, parameters)
        return Page(tuple(answer["Items"]), answer.get("LastEvaluatedKey") or None)

    # ------------------------------------------------------------ writes
    def apply(self, request: Apply) -> tuple[Result, ...]:
        return self._writer.write_all(request.writes)

    def _physical(self, table: str) -> str:
        return self._tables[table].physical_name

    def _ask(self, call: Callable[..., Any], where: str, parameters: Mapping[str, Any]) -> Any:
        try:
            answer = self._retrying(call, **parameters)
        except aws_errors.ERRORS as error:
            if aws_errors.read_code(error) == "ValidationException" and "specified index" in aws_errors.read_message(
                error
            ):
                raise StoreError("IndexNotFound", f"{where}: {INDEX_CURE}") from error
            client = None if self._answered else self._client
            raise aws_errors.make_store_error(error, where, CURES, client=client) from error
        self._answered = True
        return answer
