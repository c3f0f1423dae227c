"""State documents: whole or not at all, in a file or a table; which rules were applied."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from sync_rules.adapters import state
from sync_rules.adapters.state import (
    FileState,
    LeasedState,
    MemoryState,
    TableState,
    read_applied_fingerprints,
)
from sync_rules.jobs.backfill.progress import load_unfinished_head
from sync_rules.model.errors import StoreError, UserError
from tests.unit.adapters.test_dynamodb import Client, failed

CURSOR = {"cursor": {"id": {"B": b"\x00\xff"}, "n": {"N": "1"}}, "done": False}


@pytest.fixture(params=["memory", "file", "table"])
def documents(request, tmp_path, table_of_ids):
    if request.param == "table":
        return TableState(table_of_ids("state"), "state")
    return MemoryState() if request.param == "memory" else FileState(tmp_path / "state.json")


def test_state_gives_back_what_was_saved(documents):
    """A document comes back as it was, binary keys too; the newest; None before it was saved and after its removal."""
    assert documents.load("backfill/a") is None
    documents.save("backfill/a", CURSOR)
    documents.save("backfill", {"done": True})
    assert documents.load("backfill/a") == CURSOR
    documents.save("backfill/a", {"done": True})
    assert documents.load("backfill/a") == {"done": True}
    documents.remove("backfill/a")
    documents.remove("backfill/a")
    assert documents.load("backfill/a") is None
    assert documents.load("backfill") == {"done": True}


def test_state_file_is_whole_at_every_moment(tmp_path, monkeypatch):
    """A save that fails leaves the file as it was, and says why."""
    path = tmp_path / "state.json"
    documents = FileState(path)
    documents.save("a", {"n": 1})

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"StateNotWritten: .*No space left on device"):
            documents.save("a", {"n": 2})
    assert FileState(path).load("a") == {"n": 1}
    documents.save("b", {"n": 3})
    assert json.loads(path.read_text())["b"] == {"n": 3}


def test_state_file_may_be_saved_by_several_threads(tmp_path):
    """No document of one thread is lost to that of another."""
    documents = FileState(tmp_path / "state.json")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: documents.save(f"backfill/{i}", {"i": i}), range(64)))
    again = FileState(tmp_path / "state.json")
    assert [again.load(f"backfill/{i}") for i in range(64)] == [{"i": i} for i in range(64)]


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "{", "\x00"])
def test_state_file_of_something_else_is_refused(tmp_path, text):
    """A file that is no state is named, with what to do, and is left alone."""
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"state\.json: expected a state file of sync-rules"):
        FileState(path)
    assert path.read_text() == text


def test_state_file_that_cannot_be_read_is_named(tmp_path):
    """A folder in its place is no state file."""
    with pytest.raises(UserError, match="expected a state file to read"):
        FileState(tmp_path)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "ResourceNotFoundException",
            r"TableNotFound: state table t at http://127.0.0.1:1 \(Region us-east-1\): create it with the string key 'id'",
        ),
        ("ValidationException", "ValidationException: state table t: its key must be the string 'id'"),
        ("AccessDeniedException", "AccessDeniedException: GetItem of state table t: these credentials may not do this"),
    ],
)
def test_state_table_that_does_not_answer_is_named(code, words):
    """The error says which table, why, and what cures it."""
    with pytest.raises(StoreError, match=words):
        TableState(Client(failed(code, operation="GetItem")), "t").load("backfill")


@pytest.mark.parametrize("documents", ["table"], indirect=True)
def test_state_swaps_a_document_only_over_what_was_read(documents):
    """A document is saved over nothing, or over the one that was read, in whatever order its keys are."""
    assert documents.swap("unit", None, {"done": False, "by": "a"})
    assert not documents.swap("unit", None, {"done": False, "by": "b"})
    assert not documents.swap("unit", {"done": False, "by": "b"}, {"done": True})
    assert documents.swap("unit", {"by": "a", "done": False}, {"done": True})
    assert documents.swap("unit", {"by": "a", "done": False}, {"done": True})  # the answer to the first was lost
    assert documents.load("unit") == {"done": True}
    with pytest.raises(StoreError, match="AccessDenied"):
        TableState(Client(failed("AccessDeniedException")), "t").swap("unit", None, {})


@pytest.mark.parametrize("documents", ["table"], indirect=True)
@pytest.mark.parametrize(
    "damaged", [{"document": {"S": text}} for text in ("{", "", "5", "[]", "null")] + [{}, {"document": {"N": "5"}}]
)
def test_state_document_that_is_damaged_is_not_absent(documents, damaged):
    """Each way to read a damaged document is an error that names it, so that no job begins over it."""
    documents.save("whole", {"run": "1"})
    documents.client.put_item(TableName="state", Item={**documents._key("backfill"), **damaged})
    reads = (
        lambda: documents.load("backfill"),
        lambda: documents.load_many(["whole", "backfill"]),
        lambda: LeasedState(documents).load("backfill"),
        lambda: LeasedState(documents).fetch(["backfill"]),
        lambda: LeasedState(documents).claim("backfill", "me"),
        lambda: read_applied_fingerprints(documents) or load_unfinished_head(documents),
    )
    for read in reads:
        with pytest.raises(StoreError, match=f"StateUnreadable: .*{state.PREFIX}backfill.*Delete it"):
            read()


@pytest.mark.parametrize("documents", ["table"], indirect=True)
def test_state_of_one_invocation_gives_up_what_it_claimed(documents):
    """A released document has no holder, and says why its work is not done; the next claim does not find it broken."""
    for _ in range(2):
        leased = LeasedState(documents)
        leased.claim("unit", "me")
        leased.release("unit", "no time")
        assert documents.load("unit") == {"holder": None, "broken": False, "reason": "no time"}
