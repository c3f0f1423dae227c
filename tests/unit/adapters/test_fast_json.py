"""The json fast path sends and reads exactly what botocore does; errors and binaries are left to botocore."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sync_rules.adapters.fast_json import READ, WRITTEN, use_json

PARAMETERS: dict[str, dict[str, Any]] = {
    "Query": {"TableName": "t", "KeyConditionExpression": "x"},
    "Scan": {"TableName": "t"},
    "GetItem": {"TableName": "t", "Key": {}},
    "BatchGetItem": {"RequestItems": {}},
    "BatchExecuteStatement": {"Statements": []},
}
METHODS = {name: "".join(f"_{c.lower()}" if c.isupper() else c for c in name).strip("_") for name in READ}
SCALARS = (
    st.builds(lambda text: {"S": text}, st.text(max_size=5))
    | st.builds(lambda number: {"N": str(number)}, st.integers())
    | st.sampled_from(
        [{"BOOL": True}, {"NULL": True}, {"SS": ["a", "b"]}, {"NS": ["1"]}, {"B": "AP8="}, {"BS": ["AA=="]}]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(lambda some: {"L": some}, st.lists(inner, max_size=3))
        | st.builds(lambda some: {"M": some}, st.dictionaries(st.sampled_from(["a", "B", "S"]), inner, max_size=3))
    ),
    max_leaves=6,
)
ITEMS = st.dictionaries(st.sampled_from(["PK", "B", "BS", "name", "x.y"]), VALUES, max_size=4)


class Wire:
    """A client without a network that gets prepared answers."""

    def __init__(self, *, by_json: bool) -> None:
        self.client = boto3.session.Session("x", "y", region_name="us-east-1").client(
            "dynamodb", config=Config(parameter_validation=False, retries={"total_max_attempts": 1})
        )
        if by_json:
            use_json(self.client)
        self.client.meta.events.register("before-send.dynamodb", self._answer)
        self.status, self.body = 200, b"{}"
        self.sent: dict[str, Any] = {}

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        self.sent = json.loads(request.body)

        class Raw:
            def stream(_self) -> list[bytes]:  # noqa: N805 -- an urllib3 response, as far as it is asked
                return [self.body]

        return AWSResponse(request.url, self.status, {"x-amzn-RequestId": "1"}, Raw())

    def ask(self, operation: str, status: int, body: bytes) -> Any:
        self.status, self.body = status, body
        answer = getattr(self.client, METHODS[operation])(**PARAMETERS[operation])
        del answer["ResponseMetadata"]
        return answer


@pytest.fixture(scope="module")
def wires() -> tuple[Wire, Wire]:
    return Wire(by_json=False), Wire(by_json=True)


def answers(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Answers that each operation may give with these items."""
    listed = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
    error = {"Code": "ConditionalCheckFailed", "Message": "no", **({"Item": items[0]} if items else {})}
    return {
        "Query": listed,
        "Scan": {**listed, **({"LastEvaluatedKey": items[0]} if items else {})},
        "GetItem": {"Item": items[0]} if items else {},
        "BatchGetItem": {"Responses": {"t": items}, "UnprocessedKeys": {}},
        "BatchExecuteStatement": {"Responses": [{"TableName": "t"}, {"Error": error, "TableName": "t"}]},
    }


@pytest.mark.parametrize("operation", READ)
def test_fast_json_reads_what_botocore_reads(wires, operation):
    """Any answer is read as botocore reads it."""

    @settings(max_examples=60, deadline=None)
    @given(st.lists(ITEMS, max_size=3))
    @example([{"PK": {"B": "AP8="}}])
    @example([{"PK": {"BS": ["AA=="]}}])
    def check(items):
        body = json.dumps(answers(items)[operation]).encode()
        slow, quick = (wire.ask(operation, 200, body) for wire in wires)
        assert quick == slow

    check()


def test_fast_json_leaves_errors_to_botocore(wires):
    """Errors are raised by botocore, without any data of the answer before."""
    _, quick = wires
    assert quick.ask("Query", 200, b'{"Items": [{"a": {"S": "x"}}]}')["Items"]
    with pytest.raises(ClientError) as raised:
        quick.ask("Query", 400, b'{"__type": "x#ValidationException", "message": "no"}')
    assert raised.value.response["Error"]["Code"] == "ValidationException"
    assert "Items" not in raised.value.response
    assert quick.ask("Scan", 200, b"{}") == Wire(by_json=False).ask("Scan", 200, b"{}")


def test_fast_json_leaves_what_is_no_json_to_botocore(wires):
    """An answer cut short is what botocore makes of it."""
    slow, quick = wires
    for body in (b"", b'{"Items": [{"a": {"S'):
        assert outcome(slow, body) == outcome(quick, body)


def outcome(wire: Wire, body: bytes) -> Any:
    try:
        return wire.ask("Query", 200, body)
    except Exception as error:  # noqa: BLE001 -- whichever it is
        return type(error)


# ---------------------------------------------------------------- requests
BYTES = st.binary(min_size=1, max_size=4)
SENT = st.recursive(
    st.builds(lambda text: {"S": text}, st.text(max_size=5))
    | st.builds(lambda content: {"B": content}, BYTES)
    | st.builds(lambda some: {"BS": some}, st.lists(BYTES, min_size=1, max_size=3))
    | st.sampled_from([{"BOOL": False}, {"NULL": True}, {"N": "1.50"}, {"NS": ["1", "2"]}, {"SS": ["\u00e9"]}]),
    lambda inner: (
        st.builds(lambda some: {"L": some}, st.lists(inner, max_size=3))
        | st.builds(lambda some: {"M": some}, st.dictionaries(st.text(max_size=3), inner, max_size=3))
    ),
    max_leaves=6,
)
REQUESTS: dict[str, Any] = {
    "BatchGetItem": lambda values: {"RequestItems": {"t": {"Keys": [{"PK": one} for one in values]}}},
    "BatchExecuteStatement": lambda values: {
        "Statements": [{"Statement": 'UPDATE "t" SET "a"=?', "Parameters": values}, {"Statement": "x"}]
    },
}


@pytest.mark.parametrize("operation", WRITTEN)
def test_fast_json_sends_what_botocore_sends(wires, operation):
    """Any request is sent as botocore sends it, from the first one on."""

    @settings(max_examples=60, deadline=None)
    @given(st.lists(SENT, min_size=1, max_size=3))
    def check(values):
        for wire in wires:
            wire.status, wire.body = 200, b"{}"
            getattr(wire.client, METHODS[operation])(**REQUESTS[operation](values))
        slow, quick = wires
        assert quick.sent == slow.sent

    check()


def test_fast_json_writes_by_json_once_it_was_seen_to_be_the_same():
    """botocore writes the first request of an operation, and is given nothing to write from the second on."""
    wire, given_to_write = Wire(by_json=True), []
    wire.client.meta.events.register(
        "before-parameter-build.dynamodb.BatchGetItem", lambda params, **_: given_to_write.append(dict(params))
    )
    request = REQUESTS["BatchGetItem"]([{"S": "a"}])
    for _ in range(3):
        wire.client.batch_get_item(**request)
        assert wire.sent == request
    assert given_to_write == [request, *[{"RequestItems": {}}] * 2]


def test_fast_json_leaves_requests_to_a_botocore_that_writes_otherwise(monkeypatch):
    """Requests are left to botocore if its encoding of binaries differs from ours."""
    monkeypatch.setattr("sync_rules.adapters.fast_json.base64_of", lambda value: value.hex())
    wire, usual = Wire(by_json=True), Wire(by_json=False)
    for _ in range(2):
        for one in (wire, usual):
            one.client.batch_get_item(**REQUESTS["BatchGetItem"]([{"B": b"\xff"}]))
        assert wire.sent == usual.sent
