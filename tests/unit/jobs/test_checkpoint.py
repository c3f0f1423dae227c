"""The checkpoint file: whole or not at all, refused when it is another's, held by one run at a time."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters.files import lock_file
from sync_rules.adapters.kept_calls import CallsInFolder
from sync_rules.jobs.consume import checkpoint
from sync_rules.jobs.consume.checkpoint import Checkpoint, load, save
from sync_rules.jobs.consume.queue import Pending
from sync_rules.jobs.consume.shards import ShardProgress
from sync_rules.jobs.failure_log import FailureLog, JsonLines
from sync_rules.jobs.local_files import Files
from sync_rules.model.errors import UserError
from sync_rules.model.items import Change, ItemKey
from sync_rules.pipeline.messages import CallMessage, PullMessage, PushMessage
from tests.support.builders import s
from tests.support.fake_stream import ARN

KEY = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "B", b"\x00\xff")))
PENDING = (Pending(PullMessage(KEY), 5, 1), Pending(PushMessage(("r",), KEY, cursor={"PK": {"B": b"\x01"}}), 900_000))
SHARDS = [ShardProgress("shard-0", None, "123", done=True), ShardProgress("shard-1", "shard-0", None)]
FULL = Checkpoint("f1", {ARN: SHARDS}, checkpoint.pack_messages(PENDING), parked=3)


def test_checkpoint_stays_whole_when_a_save_fails(tmp_path, monkeypatch):
    """A save that dies before the rename leaves the old checkpoint."""
    path = tmp_path / "c.json"
    save(path, FULL)
    monkeypatch.setattr(os, "fsync", lambda _file: (_ for _ in ()).throw(OSError("power cut")))
    with pytest.raises(OSError, match="power cut"):
        save(path, Checkpoint("f2", {}, []))
    assert load(path, [ARN]) == FULL


@given(cut=st.integers(0, 400))
def test_checkpoint_refuses_a_file_that_is_not_one(tmp_path_factory, cut):
    """Anything else in the file is a mistake of the user's with a cure, never a crash or a silent new start."""
    path = tmp_path_factory.mktemp("c") / "c.json"
    save(path, FULL)
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole) - 1)])
    with pytest.raises(UserError, match="--checkpoint"):
        load(path, [ARN])


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"version":2}', "\x00", '{"messages":[{"due_ms":1,"receives":0,"body":"x"}]}']
)
def test_checkpoint_refuses_other_json(tmp_path, text):
    """JSON of another shape or version is refused too."""
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(UserError, match="expected a checkpoint"):
        load(path, [ARN])


def test_checkpoint_refuses_the_streams_of_another_table(tmp_path):
    """A checkpoint that has no table in common with the rules is another's: both are named."""
    path = tmp_path / "c.json"
    save(path, FULL)
    with pytest.raises(UserError, match=r"table/other.*table/shop"):
        load(path, [ARN.replace("table/shop", "table/other")])


def test_checkpoint_accepts_rules_with_a_table_in_common(tmp_path):
    """The checkpoint is ours, whatever table came or went, so that a deployment of new rules can resume, and whatever label the stream
    of a table has by now.
    """
    path = tmp_path / "c.json"
    more = {**FULL.streams, ARN.replace("table/shop", "table/gone"): []}
    save(path, replace(FULL, streams=more))
    for arns in ([ARN], [ARN[:-4] + "9.99", ARN.replace("table/shop", "table/more")]):
        assert load(path, arns).streams.keys() == more.keys()


def test_checkpoint_is_held_by_one_run_at_a_time(tmp_path):
    """A second process is refused while the first has the checkpoint, and welcome after it died."""
    path = tmp_path / "c.json"
    code = f"from pathlib import Path; from sync_rules.adapters.files import lock_file\nwith lock_file(Path({str(path)!r})): pass"
    with lock_file(path):
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "another `sync-rules run` uses this checkpoint" in second.stderr
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_checkpoint_and_what_else_holds_items_is_read_by_its_owner_only(tmp_path):
    """Whatever the umask: the checkpoint with a failed call, kept calls, batches that were given up, failures."""
    files, value = Files(tmp_path / "c.json", tmp_path / "failures.jsonl"), "SECRETVALUE"
    call = CallMessage("told", "f.g", Change(KEY, None, {"name": s(value)}, None, "1", 0))
    umask = os.umask(0)
    try:
        save(files.checkpoint, Checkpoint("f1", {}, checkpoint.pack_messages([Pending(call, 0, 0)])))
        CallsInFolder(files.calls).keep_call(call)
        JsonLines(files.batches).append({"Records": [value]})
        FailureLog(files.failures, lambda: 0).keep(call)
    finally:
        os.umask(umask)
    holding = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [value in path.read_text() for path in holding] == [True] * 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in holding} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_dir()} == {0o700}
