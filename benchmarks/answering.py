"""An engine that answers DynamoDB's calls at once, or after a set latency, and stores nothing: so a measure against it
shows the client alone. It runs in its own process, on loopback, counts requests, and ends with its parent.

Invariant: an answer has the shape that DynamoDB gives it, as far as the measured clients look. The engine keeps nothing
but counts and a byte per target.

A user is the source, any number of orders of 1 KB, which cost one unit to write, are its targets. In table `together`
the orders are in the user's partition, in table `apart` each has its own and index GSI1, which projects keys only,
lists them. Their copy of the user's name is wrong before each pass, or right if so set. `POST /settings` resets the
counts, `GET /counts` returns them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from sync_rules.model.sizes import count_item_bytes, count_read_units

PAGE_MAX_BYTES: Final = 2**20  # of Query and Scan
BATCH_MAX_STATEMENTS: Final = 25  # of BatchExecuteStatement
BATCH_GET_MAX_KEYS: Final = 100  # of BatchGetItem
TYPE: Final = "com.amazonaws.dynamodb.v20120810#"
STATUS: Final = {200: "OK", 400: "Bad Request"}
NUMBER: Final = "\0"  # where the number of a target goes
BEFORE, AFTER = "Grace Brewster", "Grace Hopper"
KEYS: Final = {
    "together": {"PK": {"S": "U#1"}, "SK": {"S": f"O#{NUMBER}"}},
    "apart": {"PK": {"S": f"O#{NUMBER}"}, "SK": {"S": "ORDER"}},
}
LISTED: Final = {"GSI1PK": {"S": "U#1"}, "GSI1SK": {"S": f"O#{NUMBER}"}}
SOURCE: Final = {"PK": {"S": "U#1"}, "SK": {"S": "USER"}, "user_id": {"S": "1"}, "name": {"S": AFTER}}
BODY: Final = {
    "user_id": {"S": "1"}, "order_id": {"S": NUMBER}, "status": {"S": "OPEN"}, "amount": {"N": "12.50"},
    "paid": {"BOOL": True}, "lines": {"L": [{"S": "first"}, {"S": "second"}]}, "note": {"S": "x" * 880},
}  # fmt: skip
THROTTLED: Final = {"Code": "ProvisionedThroughputExceeded", "Message": "The level of configured throughput ..."}


def target(table: str, number: int, name: str = BEFORE) -> dict[str, Any]:
    """A target, as an item."""
    item: dict[str, Any] = json.loads(_filled(_item(table, name, ()), number))
    return item


@lru_cache(maxsize=64)
def _item(table: str, name: str, projected: tuple[str, ...]) -> str:
    """The text of a target with these attributes, () for all of them, but for its number."""
    whole: dict[str, Any] = {**KEYS[table], **LISTED, **BODY, "user_name": {"S": name}}
    return json.dumps({at: whole[at] for at in projected or whole if at in whole})


@lru_cache(maxsize=8)
def _bytes(table: str, indexed: bool) -> int:  # noqa: FBT001 -- part of what is kept
    """The size by which DynamoDB bills a target, or its row in the index, and ends a page."""
    whole = target(table, 0, AFTER)
    return count_item_bytes({at: whole[at] for at in KEYS[table] | LISTED} if indexed else whole)


def _filled(text: str, number: int) -> str:
    return text.replace(json.dumps(NUMBER)[1:-1], f"{number:09}")


def number_in(values: Any) -> int | None:
    """The number of the target whose key is among these attribute values; None for the source."""
    numbers = [int(text[2:]) for value in values if (text := value.get("S", "")).startswith("O#")]
    return numbers[0] if numbers else None


@lru_cache(maxsize=32)
def _page(text: str, cursor: str, start: int, end: int, count: int) -> bytes:
    rows = ",".join(_filled(text, number) for number in range(start, end))
    last = f',"LastEvaluatedKey":{_filled(cursor, end - 1)}' if end < count else ""
    return f'{{"Items":[{rows}],"Count":{end - start},"ScannedCount":{end - start}{last}}}'.encode()


class Bucket:
    """A token bucket of writes, full at first; none is refused when the rate is 0."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._tokens, self._clock = rate, rate, clock
        self._at = clock()

    def take(self, tokens: float = 1) -> bool:
        """Take tokens. True if the request is accepted, False if it is throttled; one that costs more than there is
        left is accepted while a whole token is, and those after it wait.
        """
        if not self._rate:
            return True
        now = self._clock()
        self._tokens = min(self._rate, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= tokens
        return True


class RefusedError(Exception):
    """An error answer, by its name."""


class Engine:
    """Answers operations. `latency` is in seconds; the connection waits it out before it answers."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.latency = 0.0
        self.set()

    def set(
        self,
        *,
        targets: int = 0,
        latency_ms: float = 0,
        writes_per_second: float = 0,
        partitions: int = 1,
        right: bool = False,
    ) -> None:
        """Reset the counts. `writes_per_second` is the limit of each partition, 0 for none."""
        self.latency = latency_ms / 1000
        self.counts.clear()
        self._targets = targets
        self._name = AFTER if right else BEFORE
        self._buckets = [Bucket(writes_per_second) for _ in range(partitions)]
        self._written = bytearray(targets)

    def report(self) -> dict[str, int]:
        """The counts. `fan_outs` are listings begun, `distinct` targets written at least once."""
        return {**self.counts, "distinct": sum(self._written)}

    def answer(self, operation: str, body: bytes) -> tuple[int, bytes]:
        """The status and body of an answer."""
        self.counts[operation] += 1
        handler = getattr(self, f"_{operation}", _unknown)
        try:
            return 200, handler(json.loads(body))
        except RefusedError as error:
            return 400, json.dumps({"__type": f"{TYPE}{error}", "message": ""}).encode()

    def _Query(self, asked: dict[str, Any]) -> bytes:  # noqa: N802 -- as DynamoDB names it
        self.counts["fan_outs"] += "ExclusiveStartKey" not in asked
        return self._listed(asked)

    def _Scan(self, asked: dict[str, Any]) -> bytes:  # noqa: N802
        return self._listed(asked)

    def _listed(self, asked: dict[str, Any]) -> bytes:
        table = asked["TableName"]
        indexed = "IndexName" in asked
        cursor = json.dumps(KEYS[table] | LISTED if indexed else KEYS[table])
        text = cursor if indexed else _item(table, self._name, _projected(asked))
        size = _bytes(table, indexed)  # what is read is what counts, whatever is asked for of it
        after = number_in(asked.get("ExclusiveStartKey", {}).values())
        start = 0 if after is None else after + 1
        end = min(start + min(asked.get("Limit", self._targets), PAGE_MAX_BYTES // size), self._targets)
        self._read((end - start) * size, asked)
        return _page(text, cursor, start, end, self._targets)

    def _GetItem(self, asked: dict[str, Any]) -> bytes:  # noqa: N802
        return f'{{"Item":{self._got(asked["TableName"], asked["Key"], asked)}}}'.encode()

    def _read(self, size: int, asked: dict[str, Any]) -> None:
        self.counts["read_units"] += count_read_units(size, consistent=asked.get("ConsistentRead", False))  # type: ignore[assignment]

    def _BatchGetItem(self, asked: dict[str, Any]) -> bytes:  # noqa: N802
        if sum(len(some["Keys"]) for some in asked["RequestItems"].values()) > BATCH_GET_MAX_KEYS:
            raise RefusedError("ValidationException")
        found = (
            f'"{table}":[{",".join(self._got(table, key, some) for key in some["Keys"])}]'
            for table, some in asked["RequestItems"].items()
        )
        return f'{{"Responses":{{{",".join(found)}}},"UnprocessedKeys":{{}}}}'.encode()

    def _got(self, table: str, key: dict[str, Any], asked: dict[str, Any]) -> str:
        number = number_in(key.values())
        self._read(count_item_bytes(SOURCE) if number is None else _bytes(table, indexed=False), asked)
        return json.dumps(SOURCE) if number is None else _filled(_item(table, self._name, _projected(asked)), number)

    def _UpdateItem(self, asked: dict[str, Any]) -> bytes:  # noqa: N802
        if not self._write(number_in(asked["Key"].values())):
            raise RefusedError("ProvisionedThroughputExceededException")
        return b"{}"

    def _BatchExecuteStatement(self, asked: dict[str, Any]) -> bytes:  # noqa: N802
        numbers = [number_in(statement["Parameters"]) for statement in asked["Statements"]]
        if len(numbers) > BATCH_MAX_STATEMENTS or len(set(numbers)) < len(numbers):
            raise RefusedError("ValidationException")
        table = asked["Statements"][0]["Statement"].split('"')[1]
        answers = [{"TableName": table} if self._write(number) else {"Error": THROTTLED} for number in numbers]
        return json.dumps({"Responses": answers}).encode()

    def _write(self, number: int | None) -> bool:
        if number is None or number >= self._targets:
            raise RefusedError("ValidationException")
        taken = self._buckets[number % len(self._buckets)].take()
        self.counts["written" if taken else "throttled"] += 1
        self._written[number] |= taken
        return taken


def _unknown(_asked: dict[str, Any]) -> bytes:
    raise RefusedError("UnknownOperationException")


def _projected(asked: dict[str, Any]) -> tuple[str, ...]:
    """The names in a projection, () for all attributes."""
    names = asked.get("ExpressionAttributeNames", {})
    text = asked.get("ProjectionExpression", "")
    return tuple(names.get(name.strip(), name.strip()) for name in text.split(",")) if text else ()


class Connection(asyncio.Protocol):
    """One connection, kept alive: a request, then its answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
        if len(rest) < int(headers.get("content-length", 0)):
            return
        self._buffer = b""
        if first.startswith("GET /counts"):
            self._reply(200, json.dumps(self._engine.report()).encode())
        elif first.startswith("POST /settings"):
            self._engine.set(**json.loads(rest))
            self._reply(200, b"{}")
        else:
            self._engine.counts["requests"] += 1
            self._engine.counts["bytes"] += len(head) + len(end) + len(rest)
            self._engine.counts["with_token"] += "x-amz-security-token" in headers
            answer = self._engine.answer(headers.get("x-amz-target", "").rpartition(".")[2], rest)
            if self._engine.latency:
                asyncio.get_running_loop().call_later(self._engine.latency, self._reply, *answer)
            else:
                self._reply(*answer)

    def _reply(self, status: int, body: bytes) -> None:
        start = f"HTTP/1.1 {status} {STATUS[status]}\r\nContent-Type: application/x-amz-json-1.0\r\n"
        self._transport.write(f"{start}Content-Length: {len(body)}\r\nx-amzn-RequestId: 0\r\n\r\n".encode() + body)


async def main() -> None:
    """Serve until standard input closes, which the parent process holds open."""
    engine = Engine()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(engine), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
