"""The DynamoDB store's dealings with a service that fails; what it does when all is well is in the contract suite."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, NoCredentialsError, ReadTimeoutError

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import PROJECTED_MAX_ATTRIBUTES, DynamoStore
from sync_rules.model.errors import StoreError
from sync_rules.model.writes import Check, Condition, Result, Status, Test, Transaction
from sync_rules.pipeline.requests import Apply, List, Read
from tests.support.builders import key, n, of_partition, order_item, s, shop, update

TABLES = shop(prefix="real-").tables
SHOP = TABLES["shop"]
ONE = key(SHOP, "USER#1", "ORDER#1")
TWO = key(SHOP, "USER#1", "ORDER#2")
TIMEOUT = ReadTimeoutError(endpoint_url="http://127.0.0.1")
OK: dict = {}


def failed(code, message="", status=400, operation="call", **response):
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}, **response},
        operation,
    )


def cancelled(*reasons):
    entries = [{"Code": reason} if isinstance(reason, str) else reason for reason in reasons]
    return failed("TransactionCanceledException", CancellationReasons=entries)


class Client:
    """Answers each call from a script: an error is raised, a function called, anything else returned."""

    meta = aws.dynamodb("http://127.0.0.1:1").meta

    class exceptions:  # noqa: N801 -- as botocore names it
        class TransactionCanceledException(ClientError):  # noqa: N818 -- as botocore names it
            """Raised by the real client for this code."""

    def __init__(self, *script):
        self.script = list(script)
        self.calls = []
        self.lock = Lock()

    def __getattr__(self, operation):
        def call(**parameters):
            with self.lock:
                self.calls.append((operation, parameters))
                answer = self.script.pop(0)
            if isinstance(answer, Callable):
                answer = answer(**parameters)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


def store_on(client, **options):
    waits = []
    store = DynamoStore(client, TABLES, sleep=waits.append, **{"workers": 1, "write_mode": "update", **options})
    return store, waits


def result_of(*script, write=None) -> Result:
    store, _ = store_on(Client(*script))
    (result,) = store.apply(Apply((write or update(SHOP, ONE, a=n(1)),)))
    return result


# ---------------------------------------------------------------- writes
@pytest.mark.parametrize(
    "error",
    [
        failed("ProvisionedThroughputExceededException"),
        failed("ThrottlingException"),
        failed("RequestLimitExceeded"),
        failed("TransactionConflictException"),
        failed("InternalServerError", status=500),
        failed("whatever", status=503),
        TIMEOUT,
        ConnectTimeoutError(endpoint_url="http://127.0.0.1"),
    ],
    ids=str,
)
def test_write_is_tried_again_after(error):
    """Throttles, conflicts, server errors and time-outs pass; the write is made in the end."""
    assert result_of(error, error, OK).status is Status.WRITTEN


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (failed("ConditionalCheckFailedException"), Result(Status.REFUSED)),
        (failed("ConditionalCheckFailedException", Item={}), Result(Status.REFUSED)),
        (
            failed("ConditionalCheckFailedException", Item=order_item("1", "1")),
            Result(Status.REFUSED, order_item("1", "1")),
        ),
        (
            failed("ValidationException", "Item size to update has exceeded the maximum allowed size"),
            Result(Status.REJECTED, reason="ItemTooLarge"),
        ),
        (
            failed("ValidationException", "Invalid: Expression size has exceeded the maximum allowed size"),
            Result(Status.REJECTED, reason="ValidationException"),
        ),
        (failed("ValidationException", "secret"), Result(Status.REJECTED, reason="ValidationException")),
        (
            failed("ItemCollectionSizeLimitExceededException"),
            Result(Status.REJECTED, reason="ItemCollectionSizeLimitExceededException"),
        ),
        (failed("ResourceNotFoundException"), Result(Status.FAILED, reason="TableNotFound")),
        (failed("AccessDeniedException"), Result(Status.FAILED, reason="AccessDeniedException")),
        (NoCredentialsError(), Result(Status.FAILED, reason="NoCredentialsError")),
    ],
    ids=str,
)
def test_write_is_not_tried_again_after(error, expected):
    """An answer on the merits is final, and its reason holds no value."""
    assert result_of(error) == expected


def test_write_waits_with_full_jitter_within_its_attempts_and_the_deadline():
    """Each wait is below 25 ms doubled per attempt, at most 2 s; none is begun that the deadline would cut off."""
    store, waits = store_on(Client(*[failed("ThrottlingException")] * 20), attempts_max=20)
    assert store.apply(Apply((update(SHOP, ONE, a=n(1)),))) == (Result(Status.FAILED, reason="ThrottlingException"),)
    assert len(waits) == 19
    assert all(0 <= wait <= min(2.0, 0.025 * 2**i) for i, wait in enumerate(waits))
    store, waits = store_on(Client(TIMEOUT), remaining_seconds=lambda: -math.inf)
    (result,) = store.apply(Apply((update(SHOP, ONE, a=n(1)),)))
    assert (result.status, waits) == (Status.FAILED, [])


def test_write_whose_answer_was_lost_is_refused_with_its_own_values():
    """The first call was applied; the second finds our value there, and the item says so."""
    ours = order_item("1", "1", user_name=s("ours"))
    refused = result_of(TIMEOUT, failed("ConditionalCheckFailedException", Item=ours))
    assert refused == Result(Status.REFUSED, ours)


# ---------------------------------------------------------------- transactions
CHECK = Check(key(SHOP, "USER#1", "PROFILE"), (Condition(Test.EQUALS, ("name",), s("x")),))
STRICT = Transaction((CHECK, update(SHOP, ONE, user_name=s("x"))))
TARGET = order_item("1", "1", user_name=s("other"))


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (("ConditionalCheckFailed", "None"), Result(Status.REFUSED, None, frozenset({0}))),
        (
            ("None", {"Code": "ConditionalCheckFailed", "Item": TARGET}),
            Result(Status.REFUSED, TARGET, frozenset({1})),
        ),
        (
            ({"Code": "ConditionalCheckFailed", "Item": order_item("1", "9")}, "TransactionConflict"),
            Result(Status.REFUSED, None, frozenset({0})),
        ),
        (
            (
                "None",
                {"Code": "ValidationError", "Message": "Item size to update has exceeded the maximum allowed size"},
            ),
            Result(Status.REJECTED, reason="ItemTooLarge"),
        ),
        (
            ("None", {"Code": "ValidationError", "Message": "secret"}),
            Result(Status.REJECTED, reason="ValidationException"),
        ),
        (
            ("None", "ItemCollectionSizeLimitExceeded"),
            Result(Status.REJECTED, reason="ItemCollectionSizeLimitExceeded"),
        ),
    ],
)
def test_transaction_is_decided_by_its_reasons(reasons, expected):
    """A refused guard counts before anything else; then what can never be; neither is tried again."""
    assert result_of(cancelled(*reasons), write=STRICT) == expected


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_transaction_is_tried_again_after_conflicts_and_throttles(code):
    """A transaction is retried after a conflict or a throttle, as long as no guard failed."""
    assert result_of(cancelled("None", code), cancelled(code, "None"), OK, write=STRICT).status is Status.WRITTEN


def test_transaction_keeps_its_token_only_while_undecided():
    """After a lost answer the same token makes a second call harmless; after a cancellation it is a new transaction."""

    class Cancelled(Client.exceptions.TransactionCanceledException):
        pass

    conflict = Cancelled(cancelled("None", "TransactionConflict").response, "call")
    client = Client(TIMEOUT, conflict, OK)
    store, _ = store_on(client)
    store.apply(Apply((STRICT,)))
    first, second, third = (parameters["ClientRequestToken"] for _, parameters in client.calls)
    assert first == second != third


# ---------------------------------------------------------------- reads
def test_read_of_one_key_is_a_consistent_get():
    """A read of one key is a consistent GetItem on the physical table name."""
    client = Client({"Item": TARGET})
    assert store_on(client)[0].read(Read((ONE,))) == (TARGET,)
    assert client.calls == [("get_item", {"TableName": "real-shop", "Key": ONE.attributes(), "ConsistentRead": True})]


def test_read_asks_again_for_unprocessed_keys_only():
    """A throttle may come as an answer that lacks some keys."""
    rest = {"real-shop": {"Keys": [TWO.attributes()], "ConsistentRead": True}}
    client = Client(
        {"Responses": {"real-shop": [order_item("1", "1")]}, "UnprocessedKeys": rest},
        failed("ThrottlingException"),
        {"Responses": {"real-shop": [order_item("1", "2")]}, "UnprocessedKeys": {}},
    )
    store, waits = store_on(client)
    assert store.read(Read((TWO, ONE))) == (order_item("1", "2"), order_item("1", "1"))
    assert [parameters["RequestItems"] for _, parameters in client.calls[1:]] == [rest, rest]
    both = {"Keys": [TWO.attributes(), ONE.attributes()], "ConsistentRead": True}
    assert client.calls[0][1]["RequestItems"] == {"real-shop": both}
    assert len(waits) == 2


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            failed("ResourceNotFoundException"),
            "TableNotFound: .*table real-shop: create it with `sync-rules tables create`",
        ),
        (failed("AccessDeniedException"), "AccessDeniedException: .*real-shop"),
        (failed("ValidationException", "secret"), "ValidationException: index by_x of table real-shop"),
        (
            failed("ValidationException", "The table does not have the specified index: by_x"),
            "IndexNotFound: index by_x",
        ),
        (TIMEOUT, "ReadTimeoutError: no answer from http://127.0.0.1:1 .*is DynamoDB running there"),
    ],
    ids=str,
)
def test_list_that_fails_says_where_and_what_to_do(error, message):
    """Table and index by name, no values, and a cure where there is one."""
    store, _ = store_on(Client(*[error] * 8))
    with pytest.raises(StoreError, match=message) as caught:
        store.list(List("shop", "by_x", of_partition("x", s("secret")), 10))
    assert "secret" not in str(caught.value)


def test_list_is_consistent_on_a_base_table_only():
    """An index cannot be read consistently."""
    client = Client({"Items": []}, {"Items": []})
    store, _ = store_on(client)
    for index in (None, "by_x"):
        store.list(List("shop", index, of_partition("PK", s("p"), ("SK", "O#")), 10, backward=index is not None))
    base, of_index = (parameters for _, parameters in client.calls)
    assert (base.get("ScanIndexForward"), of_index.get("ScanIndexForward")) == (None, False)
    assert (base.get("ConsistentRead"), base.get("IndexName")) == (True, None)
    assert (of_index.get("ConsistentRead"), of_index.get("IndexName")) == (None, "by_x")
    assert base["KeyConditionExpression"] == "#n0 = :v0 AND begins_with(#n1, :v1)"


@pytest.mark.parametrize(("more", "named"), [(0, PROJECTED_MAX_ATTRIBUTES + 2), (1, 0)])
def test_more_attributes_than_a_projection_may_name_are_all_read(more, named):
    """The key beside them; one more, and the whole item is asked for, so that no expression is longer than 4 KB."""
    names = frozenset(f"a{number}" for number in range(PROJECTED_MAX_ATTRIBUTES + more))
    client = Client({}, {"Responses": {"real-shop": []}}, {"Items": []})
    store, _ = store_on(client)
    store.read(Read((ONE,), {"shop": names}))
    store.read(Read((ONE, TWO), {"shop": names}))
    store.list(List("shop", None, of_partition("PK", s("USER#1")), 10, attributes=names))
    (_, got), (_, batch), (_, query) = client.calls
    for asked in (got, batch["RequestItems"]["real-shop"], query):
        places = [place for place in asked.get("ProjectionExpression", "").split(", ") if place]
        assert {asked["ExpressionAttributeNames"][place] for place in places} == (
            names | {"PK", "SK"} if named else set()
        )
        assert len(places) == named
        assert len(asked.get("ProjectionExpression", "")) < 4_096


# ---------------------------------------------------------------- clients
def test_client_is_made_once_and_tries_once():
    """tenacity is the one retry mechanism."""
    client = aws.dynamodb("http://127.0.0.1:1")
    assert client is aws.dynamodb("http://127.0.0.1:1")
    assert client.meta.config.retries["total_max_attempts"] == 1
    assert client.meta.config.user_agent.startswith("sync-rules/")
