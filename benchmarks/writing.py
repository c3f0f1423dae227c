"""The cost of an order that is put with all that three rules say of it, beside the same requests by hand.

Invariant: all contenders send to the same answers, without a network, so what is measured is the client alone. By hand
means that the actions are known already: nobody decides what they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import uuid4

import boto3
from botocore.awsrequest import AWSResponse

from benchmarks.bench import Bench, works
from benchmarks.figures import Figure, ratios
from sync_rules.language.load import parse_rules
from sync_rules.pipeline.books import list_books
from sync_rules.write import transact

TIMES: Final = 100  # of a round
RULES: Final = """
tables:
  shop:   {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.user_name
  ids: {collect: order, into: user.orders, as: "{order_id}"}
  orders: count order into user.order_count
"""
ORDER: Final = {"PK": {"S": "USER#7"}, "SK": {"S": "ORDER#9"}, "total": {"N": "12"}}
USER: Final = {
    "PK": {"S": "USER#7"}, "SK": {"S": "PROFILE"}, "name": {"S": "Ada"}, "order_count": {"N": "4"},
    "orders": {"SS": ["1", "2", "3", "4"]},
}  # fmt: skip


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content


def transaction(bench: Bench) -> Iterator[Figure]:
    """A transaction that the rules complete, and the same by hand."""
    rules = parse_rules(RULES)
    (mark,) = (books.finish(None, 1).item for books in list_books(rules).values())
    total = {"PK": {"S": "orders/T/USER#7"}, "SK": {"S": "PROFILE"}, "n": {"N": "4"}, "v": {"N": "4"}}
    read = {"Responses": {"shop": [USER], "ledger": [mark, total]}, "UnprocessedKeys": {}}
    answers = {"BatchGetItem": json.dumps(read).encode(), "TransactWriteItems": b"{}"}
    sent: dict[str, Any] = {}
    requests = 0

    def send(request: Any, **_: Any) -> AWSResponse:
        nonlocal requests
        requests += 1
        target = request.headers["X-Amz-Target"]
        operation = (target.decode() if isinstance(target, bytes) else target).split(".")[1]
        sent[operation] = request.body
        return AWSResponse(request.url, 200, {}, _Body(answers[operation]))  # type: ignore[arg-type]

    client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    client.meta.events.register("before-send.dynamodb", send)

    def ours() -> None:
        with transact(rules, client, raw=True) as tx:
            tx.put("order", ORDER)

    ours()
    yield Figure(
        "requests of an order with 3 rules, in one transaction", (requests,), "", "counted", at_most=2, gated=True
    )
    actions = json.loads(sent["TransactWriteItems"])["TransactItems"]
    keys = json.loads(sent["BatchGetItem"])

    def by_hand() -> None:
        client.transact_write_items(TransactItems=actions, ClientRequestToken=str(uuid4()))

    def with_its_read() -> None:
        client.batch_get_item(**keys)
        by_hand()

    def often(work: Callable[[], None]) -> Callable[[], Any]:
        return lambda: bench.counters.cost(lambda: [work() for _ in range(TIMES)]).per(TIMES)

    contenders = {"ours": ours, "by hand": by_hand, "with its read": with_its_read}
    costs = bench.in_turns({name: often(work) for name, work in contenders.items()}, rounds=9)
    mine, kind = works(costs["ours"]), bench.counters.kind
    yield Figure(
        "that transaction, against its TransactWriteItems by hand",
        ratios(mine, works(costs["by hand"])), "x", kind,
    )  # fmt: skip
    yield Figure(
        "that transaction, against its two requests by hand",
        ratios(mine, works(costs["with its read"])), "x", kind, at_most=2,
    )  # fmt: skip
