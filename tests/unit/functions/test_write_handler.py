"""The write function: a document in, a transaction made, an answer out; by a direct call and by a Function URL."""

from __future__ import annotations

import base64
import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handlers import write
from sync_rules.functions import runtime
from sync_rules.model.errors import UserError
from sync_rules.write import Transact
from tests.support.builders import n, s
from tests.support.operated import figures, printed, quiet
from tests.support.transacting import failed
from tests.support.worlds import context
from tests.unit.write.test_transact import RULES, made

PUT = {"put": {"entity": "order", "item": {"user_id": "7", "order_id": "9", "total": 12.5}}}
ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3),
    max_leaves=6,
)
SPELT = ANY | ANY.map(json.dumps)
REQUESTS = st.fixed_dictionaries(
    {
        "requestContext": SPELT
        | st.fixed_dictionaries({"http": SPELT | st.fixed_dictionaries({"method": SPELT | st.just("POST")})})
    },
    optional={"body": SPELT, "isBase64Encoded": SPELT, "version": SPELT},
)
OPTIONS = dict.fromkeys(("sources", "raw", "require", "token", "deadline_seconds", "version"), ANY)
ACTION = ANY | st.dictionaries(st.sampled_from(["put", "update", "delete", "check"]), ANY | st.just(PUT["put"]))
DOCUMENTS = st.fixed_dictionaries({"actions": ANY | st.lists(ACTION, max_size=2)}, optional=OPTIONS)
NEVER = {"check": {"entity": "user", "key": {"user_id": "8"}, "condition": "attribute_exists(PK)"}}


@pytest.fixture
def shop(monkeypatch):
    """A shop whose write function this is."""
    quiet(monkeypatch)
    shop = made()
    monkeypatch.setattr(write, "read_rules", lambda: RULES)
    monkeypatch.setattr(write.aws, "dynamodb", lambda _endpoint: shop.client)
    monkeypatch.setattr(write, "Transact", partial(Transact, store=shop.scene.memory, sleep=shop.slept.append))
    return shop


def by_url(body, method="POST", **more):
    """An event of a Function URL, payload 2.0."""
    return {"version": "2.0", "requestContext": {"http": {"method": method, "path": "/"}}, "body": body, **more}


def order_of(shop):
    return shop.scene.memory.item(shop.scene.at("shop", "USER#7", "ORDER#9"))


def test_write_handler_makes_the_transaction(shop, capsys):
    """A direct call: the order with its copy; a line with entities and counts, and without a value."""
    answer = write.handler({"actions": [PUT]}, context())
    assert answer == {"left": [], "actions": 4, "attempts": 1}
    assert (order_of(shop)["user_name"], order_of(shop)["total"]) == (s("Ada"), n("12.5"))
    (line,) = [line for line in printed(capsys) if line.get("message") == "transaction written"]
    assert (line["asked"], line["actions"]) == ({"put order": 1}, 4)
    assert "Ada" not in json.dumps(line)


@pytest.mark.parametrize("encoded", [False, True])
def test_write_handler_answers_a_function_url(shop, encoded):
    """The body is the document, base64 or not; the answer is JSON with its status."""
    text = json.dumps({"actions": [PUT]})
    body = base64.b64encode(text.encode()).decode() if encoded else text
    answer = write.handler(by_url(body, isBase64Encoded=encoded), context())
    assert (answer["statusCode"], json.loads(answer["body"])["attempts"]) == (200, 1)
    assert order_of(shop)["total"] == n("12.5")


@pytest.mark.parametrize(
    ("event", "status", "error"),
    [
        (by_url("{"), 400, ("WriteError", "not JSON")),
        (by_url(None), 400, ("WriteError", "not JSON")),
        (by_url("é", isBase64Encoded=True), 400, ("WriteError", "not JSON")),
        (by_url('{"actions": []}'), 400, ("WriteError", "at least one action")),
        (by_url("", method="GET"), 405, ("WriteError", "not POST")),
        (by_url(json.dumps({"actions": [PUT, NEVER]})), 409, ("TransactionCanceled", "action 1")),
        ({"actions": [PUT, NEVER]}, None, ("TransactionCanceled", "action 1")),
        ({"action": [PUT]}, None, ("WriteError", "Did you mean 'actions'")),
        ({}, None, ("WriteError", "actions is missing")),
    ],
)
def test_write_handler_answers_with_the_error(shop, capsys, event, status, error):
    """A mistake of the caller is an answer with its type, and nothing is written."""
    type_of, said = error
    answer = write.handler(event, context())
    if status is not None:
        assert answer["statusCode"] == status
        answer = json.loads(answer["body"])
    assert answer["error"]["type"] == type_of
    assert said in answer["error"]["message"]
    assert order_of(shop) is None
    assert "12.5" not in capsys.readouterr().out


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(event=ANY | REQUESTS | DOCUMENTS | DOCUMENTS.map(lambda one: by_url(json.dumps(one))))
def test_write_handler_answers_an_event_of_any_shape(shop, event):
    """An event that is wrong anywhere has an answer: what is wrong, and a cure; by a Function URL with its status."""
    answer = write.handler(event, context())
    if "statusCode" in answer:
        assert answer["statusCode"] in (200, 400, 405)
        answer = json.loads(answer["body"])
    assert "attempts" in answer or answer["error"]["type"] == "WriteError"


def test_write_handler_tells_a_failed_request_and_counts_what_an_operator_must_mend(shop, capsys):
    """The service's code is in the answer, and a missing permission is an error of the setup."""

    def refuse(_items):
        raise failed("AccessDeniedException")

    shop.client.before = refuse
    answer = write.handler(by_url(json.dumps({"actions": [PUT]})), context())
    error = json.loads(answer["body"])["error"]
    assert (answer["statusCode"], error["type"], error["reason"]) == (503, "StoreError", "AccessDeniedException")
    assert figures(printed(capsys))["SetupErrors"] == 1


def test_write_handler_ends_in_time_to_answer(shop):
    """Whatever deadline is asked for, the function answers before its own end, and says that it may be tried again."""
    answer = write.handler(by_url(json.dumps({"actions": [PUT], "deadline_seconds": 600})), context(2_000))
    error = json.loads(answer["body"])["error"]
    assert (answer["statusCode"], error["type"], error["again"]) == (503, "WriteError", True)
    assert order_of(shop) is None


def test_write_handler_raises_what_is_wrong_with_the_deployment(shop, monkeypatch):
    """Rules that cannot be loaded are an error of the function, which an alarm sees, and no mistake of the caller."""

    def broken():
        raise UserError("rules.compiled: no such file")

    monkeypatch.setattr(write, "read_rules", broken)
    with pytest.raises(UserError):
        write.handler({"actions": [PUT]}, context())
    assert runtime.deadline.context is not None
