"""The embedded engine: starts, stops, dies with its parent, and explains a failed start."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.lab import engine_process
from sync_rules.lab.embedded_engine import Server, find_free_port, is_answering, run_engine, run_server
from sync_rules.model.errors import UserError
from sync_rules.pipeline.requests import Apply
from tests.support.builders import key, s, table, update
from tests.support.engines import create, stream_records, unique_prefix, with_prefix

ROOT = Path(__file__).resolve().parents[3]
PARENT = """
import os, sys
from sync_rules.lab.embedded_engine import run_engine
with run_engine() as engine:
    print(engine.url, flush=True)
    os.kill(os.getpid(), 9)
"""


def port_of(url):
    return int(url.rpartition(":")[2])


def wait_until(fact, seconds=20):
    Retrying(retry=retry_if_result(lambda done: not done), stop=stop_after_delay(seconds), wait=wait_fixed(0.02))(fact)


def test_engine_dies_with_its_parent(tmp_path):
    """Even when the parent is killed and cleans nothing up; its temporary directory goes too."""
    pytest.importorskip("ministack")
    parent = subprocess.run(
        [sys.executable, "-c", PARENT],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert parent.returncode == -9, parent.stderr
    wait_until(lambda: not is_answering(port_of(parent.stdout.strip()), "/"))
    wait_until(lambda: not list(tmp_path.iterdir()))


THINGS = table("things", {"id": "S"})


@pytest.fixture
def things(engine):
    """A table of its own on the engine."""
    made = with_prefix({"things": THINGS}, unique_prefix())
    create(engine, made)
    return made["things"]


def test_engine_records_what_statements_change(engine, things):
    """Insert, update and delete by PartiQL leave one record each; a transaction with a part that fails leaves none."""
    client, name = aws.dynamodb(engine), things.physical_name
    insert = f"INSERT INTO \"{name}\" VALUE {{'id': '1', 'a': 'x'}}"
    change = f"UPDATE \"{name}\" SET a='y' WHERE id='1'"
    for statement in (insert, change, change, f"UPDATE \"{name}\" SET a='z' WHERE id='404'"):
        with suppress(client.exceptions.ConditionalCheckFailedException):
            client.execute_statement(Statement=statement)
    parts = [f"UPDATE \"{name}\" SET a='{value}' WHERE id='1' AND a='{seen}'" for value, seen in ("zy", "kx")]
    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.execute_transaction(TransactStatements=[{"Statement": one} for one in parts])
    client.execute_transaction(TransactStatements=[{"Statement": f"DELETE FROM \"{name}\" WHERE id='1'"}])
    first, second = {"id": s("1"), "a": s("x")}, {"id": s("1"), "a": s("y")}
    assert [(one.old, one.new) for one in stream_records(engine, things)] == [
        (None, first), (first, second), (second, None),
    ]  # fmt: skip


def test_engine_gets_updates_in_batches_once_it_has_answered(engine, things):
    """Its answers say that statements leave records, so the store sends many updates in one request."""
    aws._recording.discard(engine)
    client = aws.dynamodb(engine)
    assert not aws.is_recording_statements(client)
    for number in range(3):
        client.put_item(TableName=things.physical_name, Item={"id": s(str(number))})
    assert aws.is_recording_statements(client)
    sent = []
    client.meta.events.register("before-call.dynamodb", lambda model, **_: sent.append(model.name), "sent")
    try:
        writes = tuple(update(THINGS, key(THINGS, str(number)), a=s("x")) for number in range(3))
        results = DynamoStore(client, {"things": things}).apply(Apply(writes))
    finally:
        client.meta.events.unregister("before-call.dynamodb", unique_id="sent")
    assert sent == ["BatchExecuteStatement"]
    assert [one.status.name for one in results] == ["WRITTEN"] * 3


def test_engine_process_is_written_for_the_engine_that_is_installed():
    """The extra `demo` pins the version whose functions the process replaces, and both sides know one header."""
    assert f'demo = ["ministack=={engine_process.WRITTEN_FOR}"]' in (ROOT / "pyproject.toml").read_text()
    assert engine_process.STATEMENTS == aws.STATEMENTS


def test_engine_that_is_not_installed_says_how(monkeypatch):
    """The cure is one command."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"pip install 'sync-rules\[demo\]'"), run_engine():
        pass


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; print('no such module'); sys.exit(3)", r"(?s)exit code 3 .*no such module"),
        ("import sys; print('busy', flush=True); sys.stdin.read()", r"(?s)did not answer .* within 0.5 s.*busy"),
    ],
    ids=["ends", "is silent"],
)
def test_engine_that_does_not_serve_shows_its_words(tmp_path, program, said):
    """Exit code and output are the reason, and after the deadline the output alone."""
    server = Server("a server", [sys.executable, "-c", program], find_free_port(), "/", tmp_path, {})
    with pytest.raises(UserError, match=said), run_server(server, 0.5 if "stdin" in program else 20):
        pass
