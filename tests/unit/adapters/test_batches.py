"""Updates that share a request: the result of each answer of BatchExecuteStatement.

The effect of a statement on an item is in the contract suite, on engines whose PartiQL is sound.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.partiql import BATCHED_MAX_BYTES, STATEMENT_MAX_CHARACTERS, make_statement
from sync_rules.model.errors import UserError
from sync_rules.model.writes import WRITTEN, Condition, Put, Result, Status, Test, Transaction, Update
from sync_rules.pipeline.requests import Apply
from tests.support.builders import exists, key, n, s, shop, update
from tests.unit.adapters.test_dynamodb import OK, Client, failed

TABLES = shop(prefix="real-").tables
SHOP = TABLES["shop"]


def order(number):
    return key(SHOP, "USER#1", f"ORDER#{number}")


def store_on(client, **options):
    waits = []
    return DynamoStore(client, TABLES, sleep=waits.append, **{"workers": 1, "write_mode": "batch", **options}), waits


def updates(count):
    return tuple(update(SHOP, order(i), exists(SHOP), a=n(i)) for i in range(count))


def answers(*each):
    """An answer for each statement: "" is written, a code an error; a pair comes with the item."""
    return {"Responses": [{} if one == "" else {"Error": error(one)} for one in each]}


def error(one):
    code, item = one if isinstance(one, tuple) else (one, None)
    return {"Code": code, "Message": "said", **({"Item": item} if item else {})}


STOOD = {"PK": s("USER#1"), "SK": s("ORDER#0"), "a": n(9)}
PASSING = {
    "ProvisionedThroughputExceeded": "ProvisionedThroughputExceededException",
    "ThrottlingError": "ThrottlingException",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "TransactionConflict": "TransactionConflict",
    "InternalServerError": "InternalServerError",
}


def test_refusal_with_the_item_counts_and_one_without_is_tried_alone():
    """A guard's refusal is an answer if it shows the item; else, an item that is gone or an engine that is silent, the
    UpdateItem says which.
    """
    alone = failed("ConditionalCheckFailedException")
    client = Client(answers(("ConditionalCheckFailed", STOOD), "", "ConditionalCheckFailed"), alone)
    store, waits = store_on(client)
    first, second, third = store.apply(Apply(updates(3)))
    assert (first, second) == (Result(Status.REFUSED, STOOD), WRITTEN)
    assert (third.status, third.item) == (Status.REFUSED, None)
    assert [operation for operation, _ in client.calls] == ["batch_execute_statement", "update_item"]
    assert waits == []


@pytest.mark.parametrize(("code", "reason"), PASSING.items())
def test_statement_that_is_throttled_each_time_fails_alone(code, reason):
    """A statement with a transient error each time fails alone, with the reason that a single write would give."""
    client = Client(answers("", code), *[answers(code)] * 3)
    store, waits = store_on(client, attempts_max=3)
    assert store.apply(Apply(updates(2))) == (WRITTEN, Result(Status.FAILED, reason=reason))
    assert len(waits) == 3


@pytest.mark.parametrize(
    "code", ["ValidationError", "AccessDenied", "DuplicateItem", "ResourceNotFound", "SomethingNew"]
)
def test_statement_with_another_error_is_tried_alone(code):
    """A statement with any other error is sent again alone as an UpdateItem, whose answer counts."""
    client = Client(answers(code, ""), failed("ValidationException"))
    store, _ = store_on(client)
    rejected, written = store.apply(Apply(updates(2)))
    assert (rejected.status, rejected.reason, written) == (Status.REJECTED, "ValidationException", WRITTEN)


@pytest.mark.parametrize(
    ("code", "begins", "advice"),
    [
        ("AccessDeniedException", "updates may not be sent in batches (AccessDeniedException)", "PartiQLUpdate"),
        (
            "UnknownOperationException",
            "updates fail in batches (UnknownOperationException)",
            "SYNC_RULES_WRITES=update",
        ),
    ],
)
def test_batch_that_is_refused_as_a_whole_is_written_one_by_one(caplog, code, begins, advice):
    """Such as where the role lacks PartiQLUpdate, or in an emulator that does not know the operation: said once."""
    client = Client(*[failed(code), OK, OK] * 2)
    store, waits = store_on(client)
    for _ in range(2):
        assert store.apply(Apply(updates(2))) == (WRITTEN, WRITTEN)
    assert waits == []
    (told,) = [record.getMessage() for record in caplog.records]
    assert told.startswith(begins)
    assert advice in told
    assert ("permission" in told) == (code == "AccessDeniedException")


class OneInvalid(Client):
    """DynamoDB that refuses a request with an invalid statement as a whole, and accepts the same as an UpdateItem."""

    def __init__(self, number, *, alone=None, endpoint="http://127.0.0.1:8000"):
        super().__init__()
        self.meta = SimpleNamespace(endpoint_url=endpoint)
        self.number, self.alone = n(number), alone

    def batch_execute_statement(self, **call):
        self.calls.append(("batch_execute_statement", call))
        values = [entry["Parameters"][0] for entry in call["Statements"]]
        if self.number in values:
            raise failed("ValidationException")
        return answers(*[""] * len(values))

    def update_item(self, **call):
        self.calls.append(("update_item", call))
        if self.alone is not None:
            raise self.alone
        return OK


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("https://dynamodb.eu-west-1.amazonaws.com", "a bug in sync-rules"),
        ("http://127.0.0.1:8000", "The emulator lacks this form of PartiQL: set SYNC_RULES_WRITES=update"),
    ],
)
def test_invalid_statement_costs_its_neighbours_nothing_and_is_not_sent_again(endpoint, words, caplog):
    """The other 24 share requests, and the invalid one is an UpdateItem. All updates of a rule have one form: the next
    batch would be refused for the same reason. Many emulators lack a form of PartiQL: the warning then names the setting
    that avoids it.
    """
    client = OneInvalid(7, endpoint=endpoint)
    store, _ = store_on(client)
    assert store.apply(Apply(updates(25))) == (WRITTEN,) * 25
    assert [operation for operation, _ in client.calls].count("update_item") == 1
    assert len(client.calls) < 13
    client.calls.clear()
    assert store.apply(Apply(updates(3))) == (WRITTEN,) * 3
    assert {operation for operation, _ in client.calls} == {"update_item"}
    (told,) = [record.getMessage() for record in caplog.records]
    assert "a statement is refused as invalid" in told
    assert words in told
    assert "PartiQLUpdate" not in told
    assert ("bug" in told) == ("amazonaws" in endpoint)


def test_value_that_is_refused_keeps_its_rule_in_batches(caplog):
    """The UpdateItem is refused too: not the form of the statement is wrong, and the next batch is one request."""
    client = OneInvalid(7, alone=failed("ValidationException"))
    store, _ = store_on(client)
    results = store.apply(Apply(updates(25)))
    assert [place for place, result in enumerate(results) if result != WRITTEN] == [7]
    assert results[7].status is Status.REJECTED
    client.calls.clear()
    store.apply(Apply(updates(3)))
    assert [operation for operation, _ in client.calls] == ["batch_execute_statement"]
    assert not caplog.records


@pytest.mark.parametrize(("given", "operation"), [("update", "update_item"), ("", "batch_execute_statement")])
def test_batches_are_switched_by_a_variable(monkeypatch, given, operation):
    """Off on AWS, in an emergency; an empty variable says nothing."""
    monkeypatch.setenv("SYNC_RULES_WRITES", given)
    client = Client(OK, OK) if given else Client(answers("", ""))
    client.meta = SimpleNamespace(endpoint_url="https://dynamodb.eu-west-1.amazonaws.com")
    assert DynamoStore(client, TABLES, workers=1).apply(Apply(updates(2))) == (WRITTEN, WRITTEN)
    assert {called for called, _ in client.calls} == {operation}


def test_variable_of_writes_is_one_of_two_words(monkeypatch):
    """A misspelt switch must not be taken for the default."""
    monkeypatch.setenv("SYNC_RULES_WRITES", "updates")
    with pytest.raises(UserError, match="SYNC_RULES_WRITES is 'updates': expected batch or update"):
        store_on(Client(), write_mode=None)


@pytest.mark.parametrize("answer", [{}, {"Responses": [{}]}], ids=["none", "fewer"])
def test_batch_whose_answers_are_not_as_many_is_written_one_by_one(answer):
    """A batch with another number of answers than statements is written one by one."""
    store, _ = store_on(Client(answer, OK, OK))
    assert store.apply(Apply(updates(2))) == (WRITTEN, WRITTEN)


def test_statement_of_large_values_is_none():
    """An update is kept out of batches if its values, set and compared together, are too large for 25 in one request."""
    half = s("x" * (BATCHED_MAX_BYTES // 2))
    assert make_statement(update(SHOP, order(1), exists(SHOP), a=half), SHOP) is not None
    was = Condition(Test.EQUALS, ("a",), half)
    assert make_statement(update(SHOP, order(1), exists(SHOP), was, a=half, b=n(1)), SHOP) is None


def test_puts_and_transactions_are_sent_alone_beside_a_batch():
    """Each result stands in its place."""
    put = Put(order(7), {"PK": s("USER#1"), "SK": s("ORDER#7")}, (exists(SHOP),))
    transaction = Transaction((update(SHOP, order(8), exists(SHOP), a=n(1)),))
    client = Client(answers("", ("ConditionalCheckFailed", STOOD)), OK, OK)
    store, _ = store_on(client)
    first, second = updates(2)
    results = store.apply(Apply((put, first, transaction, second)))
    assert results == (WRITTEN, WRITTEN, WRITTEN, Result(Status.REFUSED, STOOD))
    assert [operation for operation, _ in client.calls] == [
        "batch_execute_statement", "put_item", "transact_write_items",
    ]  # fmt: skip


WHOLE = Update(
    order(1),
    ((("a",), n(1)), (("m", 'odd "name"'), s("x"))),
    (("gone",), ("m", "too")),
    (
        exists(SHOP),
        Condition(Test.EQUALS, ("a",), n(0)),
        Condition(Test.ABSENT, ("b",)),
        Condition(Test.EXISTS, ("c",)),
    ),
)


def test_statement_says_what_the_update_does():
    """Names quoted, values as parameters, the guard after the whole key. SET has commas; REMOVE repeats the verb, which is
    the only form that its page shows.
    """
    statement = make_statement(WHOLE, SHOP)
    assert statement is not None
    assert statement.text == (
        'UPDATE "real-shop" SET "a"=?, "m"."odd ""name"""=? REMOVE "gone" REMOVE "m"."too"'
        ' WHERE "PK"=? AND "SK"=? AND "a"=? AND "b" IS MISSING AND "c" IS NOT MISSING'
    )
    assert statement.parameters == (n(1), s("x"), s("USER#1"), s("ORDER#1"), n(0))


UNSAYABLE = {
    "adds": Update(order(1), (), (), (exists(SHOP),), adds=((("a",), {"SS": ["x"]}),)),
    "discards": Update(order(1), (), (), (exists(SHOP),), discards=((("a",), {"SS": ["x"]}),)),
    "is-map": update(SHOP, order(1), Condition(Test.IS_MAP, ("m",)), a=n(1)),
    "null": update(SHOP, order(1), Condition(Test.EQUALS, ("m",), {"NULL": True}), a=n(1)),
    "null-inside": update(
        SHOP, order(1), Condition(Test.EQUALS, ("m",), {"L": [n(1), {"M": {"x": {"NULL": True}, "y": n(1)}}]}), a=n(1)
    ),
    "dotted-name": Update(order(1), ((("a.b",), n(1)),), (), (exists(SHOP),)),
    "dotted-name-beside-others": Update(
        order(1), ((("a",), n(1)),), (("b",), ("c.d",)), (exists(SHOP), Condition(Test.EQUALS, ("e",), n(1)))
    ),
    "dotted-name-in-a-map": Update(order(1), ((("m", "a.b"), n(1)),), (), (exists(SHOP),)),
    "index-in-name": Update(order(1), ((("a[0]",), n(1)),), (), (exists(SHOP),)),
    "too-long": Update(
        order(1), tuple(((f"{i:0200}",), n(1)) for i in range(STATEMENT_MAX_CHARACTERS // 200)), (), (exists(SHOP),)
    ),
}


@pytest.mark.parametrize("write", UNSAYABLE.values(), ids=UNSAYABLE)
def test_what_a_statement_cannot_say_is_an_update_item(write):
    """Or what is not known to mean the same in PartiQL."""
    assert make_statement(write, SHOP) is None
    client = Client(OK, OK)
    store, _ = store_on(client)
    assert store.apply(Apply((write, write))) == (WRITTEN, WRITTEN)
    assert {operation for operation, _ in client.calls} == {"update_item"}


def test_table_named_by_its_arn_has_no_statement():
    """No page says that an ARN can be quoted: updates of such a table go one by one."""
    arn = "arn:aws:dynamodb:eu-central-1:000000000000:table/real-shop"
    assert make_statement(WHOLE, replace(SHOP, physical_name=arn)) is None


@pytest.mark.parametrize(
    ("endpoint", "on_aws"),
    [
        ("https://dynamodb.eu-central-1.amazonaws.com", True),
        ("https://dynamodb.cn-north-1.amazonaws.com.cn", True),
        ("https://dynamodb.eu-central-1.api.aws", True),
        ("https://vpce-1-dynamodb.us-east-1.vpce.amazonaws.com", True),
        (None, True),
        ("http://localhost:8000/dynamodb.eu-central-1.amazonaws.com", False),
        ("https://dynamodb.eu-central-1.amazonaws.com.example.org", False),
        ("https://dynamodb.eu-central-1.notamazonaws.com", False),
    ],
)
def test_batches_are_the_default_on_aws_alone(endpoint, on_aws, monkeypatch):
    """Batches by PartiQL are the default on AWS only, because emulators report writes that they did not make."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    assert aws.is_aws(aws.dynamodb(endpoint, "eu-central-1")) is on_aws
