"""CloudFormation's requests about the books of a stack: always answered, well, and as it wants to be answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from handlers import backfill
from sync_rules.functions.books_resource import AFTER, KEPT, answer_stack
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.books import list_rules_by_identity, read_incomplete_books
from tests.support.builders import s
from tests.support.operated import printed, quiet
from tests.support.worlds import Scene, context

RULES = parse_rules("""
tables: {users: {key: {user: S}}, orders: {key: {order: S}}, ledger: {key: {PK: S, SK: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules: {orders: {count: order, into: user.orders}}
""")
BOOKS = "Custom::SyncRulesBooks"
OWN = [*list_rules_by_identity(RULES)]


@contextmanager
def stack() -> Iterator[tuple[dict[str, object], list[tuple[str, object]]]]:
    """A request of CloudFormation, and the answers to it: their content type and body."""
    answers: list[tuple[str, object]] = []

    class Bucket(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answers.append((self.headers["Content-Type"], json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Bucket)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    names = {"StackId": "arn:stack", "RequestId": "one", "LogicalResourceId": "Books"}
    try:
        yield {"ResponseURL": f"http://127.0.0.1:{server.server_port}/signed?x=1", **names}, answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


WELL = {
    "Status": "SUCCESS",
    "PhysicalResourceId": "books",
    "StackId": "arn:stack",
    "RequestId": "one",
    "LogicalResourceId": "Books",
}


@pytest.mark.parametrize(("asks", "times"), [("Create", 1), ("Update", 1), ("Delete", 0)])
def test_stack_is_answered_with_success_and_nothing_is_done_when_it_goes(asks: str, times: int):
    scene = Scene(RULES, complete=False)
    done: list[None] = []

    def place():
        done.append(None)
        return RULES, scene.world

    with stack() as (event, answers):
        answer_stack({**event, "RequestType": asks, "ResourceType": AFTER}, place)
    assert answers == [("", WELL)]
    assert len(done) == times
    assert bool(scene.drive(read_incomplete_books(RULES))) is (times == 0)


@pytest.mark.parametrize(
    ("asks", "resource", "before", "restarted"),
    [
        ("Create", BOOKS, None, True),  # a stack before this one may have left a mark that says complete
        ("Create", AFTER, None, False),  # the stream function has counted since `Books` asked
        ("Update", BOOKS, [], True),
        ("Update", AFTER, ["another rule's"], True),
        ("Update", BOOKS, OWN, False),
        ("Update", BOOKS, None, False),
        ("Delete", BOOKS, [], False),
    ],
)
def test_stack_restarts_books_that_the_deployment_before_did_not_keep(asks, resource, before, restarted, monkeypatch):
    """Books that are new in the list are not taken for complete. Those of a version that lists none are."""
    quiet(monkeypatch)
    scene = Scene(RULES)
    scene.there("orders", {"order": s("1"), "user": s("u")})
    lists = {"ResourceProperties": {KEPT: OWN}, "OldResourceProperties": None if before is None else {KEPT: before}}
    with stack() as (event, answers):
        answer_stack({**event, **lists, "RequestType": asks, "ResourceType": resource}, lambda: (RULES, scene.world))
    assert answers == [("", WELL)]
    assert bool(scene.drive(read_incomplete_books(RULES))) is restarted


@pytest.mark.parametrize("error", [StoreError("TableNotFound", "ledger"), KeyError("x"), None])
def test_stack_never_fails_because_of_a_number(error, monkeypatch, capsys):
    """Whatever goes wrong, and where there are items already: it is logged, and the rule waits for its backfill."""
    quiet(monkeypatch)

    scene = Scene(RULES, complete=False)
    scene.there("orders", {"order": s("1"), "user": s("u")})

    def place():
        if error is not None:
            raise error
        return RULES, scene.world

    with stack() as (event, answers):
        answer_stack({**event, "RequestType": "Create", "ResourceType": AFTER}, place)
    assert answers == [("", WELL)]
    (line,) = printed(capsys)
    if error is None:
        assert (line["message"], line["rule"]) == ("waits for a backfill", "orders")
        assert line["cure"] == "sync-rules backfill --remote --rule orders"
    else:
        assert (line["message"], line["error"]) == ("books were not checked", type(error).__name__)


def test_backfill_handler_tells_a_stack_from_its_machine(monkeypatch):
    """One function, two callers."""
    scene = Scene(RULES)
    monkeypatch.setattr(backfill, "_make_rules_and_world", lambda: (RULES, scene.world))
    with stack() as (event, answers):
        assert backfill.handler({**event, "RequestType": "Create"}, context()) == {}
    assert answers == [("", WELL)]
