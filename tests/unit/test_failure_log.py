"""Failure records in a file: one line each, keys but no values, and an error when a line is not on disk."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from sync_rules.errors import StoreError, UserError
from sync_rules.failure_log import FailureLog, JsonLines, require_writable
from sync_rules.model import Failure, ItemKey
from tests.fake_stream import NOON_MS

KEY = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "B", b"\x00\xff")))


def test_failure_log_names_rule_table_key_and_reason(tmp_path):
    """A line says which rule, which item, why, where in the stream and when; nothing else."""
    log = FailureLog(tmp_path / "f.jsonl", lambda: NOON_MS)
    log.park(Failure("names", KEY, "ItemTooLarge", "123"))
    log.park(Failure("names", None, "RecordNotUnderstood"))
    first, second = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    assert first == {
        "at": "2027-01-15T08:00:00.000+00:00",
        "rule": "names",
        "table": "shop",
        "key": {"PK": "USER#1", "SK": "00ff"},
        "reason": "ItemTooLarge",
        "position": "123",
        "member": None,
    }
    assert (second["table"], second["key"], log.parked) == (None, None, 2)


def test_failure_log_says_when_a_line_is_not_safe(tmp_path):
    """A file that cannot be written is an error of the world: the work comes again."""
    log = FailureLog(tmp_path / "missing" / "f.jsonl", lambda: NOON_MS)
    with pytest.raises(StoreError, match="FileNotWritten"):
        log.park(Failure("names", KEY, "ItemTooLarge"))
    assert log.parked == 0


def test_failure_log_keeps_lines_whole_when_threads_write(tmp_path):
    """Lines of several threads do not mix."""
    lines = JsonLines(tmp_path / "f.jsonl")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: lines.append({"n": n, "text": "x" * 5_000}), range(100)))
    found = [json.loads(line)["n"] for line in lines.path.read_text().splitlines()]
    assert sorted(found) == list(range(100))


def test_failure_log_is_read_by_its_owner_only(tmp_path):
    """Given-up batches hold items, so nobody else may read the file."""
    lines = JsonLines(tmp_path / "f.jsonl")
    lines.append({})
    assert stat.S_IMODE(lines.path.stat().st_mode) == 0o600


def test_failure_log_is_tried_before_it_is_needed(tmp_path):
    """A directory, or a place that is not there, is refused by name; nothing is made by asking."""
    for bad in (tmp_path, tmp_path / "nowhere" / "failures.jsonl"):
        with pytest.raises(UserError, match=str(bad)):
            require_writable(bad)
    require_writable(tmp_path / "failures.jsonl")
    assert list(tmp_path.iterdir()) == []
