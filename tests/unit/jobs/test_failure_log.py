"""Failure records in a file: one line each, keys but no values, and an error when a line is not on disk."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest

from sync_rules.jobs.failure_log import FailedLines, JsonLines
from sync_rules.model.errors import StoreError, UserError


def test_failure_log_takes_back_a_line_that_does_not_fit(tmp_path, monkeypatch):
    """A disk that is full in the middle of a line: nothing of it stays, and the line is whole when it comes again."""
    log = filled(tmp_path / "f.jsonl", 1)
    real, written = os.write, []

    def part(file, line):
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(real(file, line[:5]))
        return written[0]

    monkeypatch.setattr(os, "write", part)
    with pytest.raises(StoreError, match="FileNotWritten"):
        log.append({"n": "again"})
    monkeypatch.setattr(os, "write", real)
    assert written == [5]
    log.append({"n": "again"})
    assert lines(log.path) == [{"n": 0}, {"n": "again"}]


def test_failure_log_begins_a_line_after_a_torn_one(tmp_path):
    """A line cut short by a power cut stays a line of its own, and the next record begins a new line."""
    log = filled(tmp_path / "f.jsonl", 2)
    log.path.write_bytes(log.path.read_bytes()[:-4])
    log.append({"n": "later"})
    assert log.written == 3
    assert [entry.text for entry in FailedLines(log.path).entries()] == [b'{"n":0}\n', b'{"n"\n', b'{"n":"later"}\n']


# ---------------------------------------------------------------- as a place
def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def filled(path, count: int) -> JsonLines:
    """A file of `count` lines, each with its number."""
    log = JsonLines(path)
    for number in range(count):
        log.append({"n": number})
    return log


def test_failed_lines_removes_what_is_done_and_replaces_what_failed_again(tmp_path):
    """The rest stays as it was, in its order, an equal line too; nothing changes before the end."""
    path = tmp_path / "f.jsonl"
    filled(path, 5)
    filled(path, 2)
    place = FailedLines(path)
    entries = [*place.entries()]
    assert [json.loads(entry.text)["n"] for entry in entries] == [0, 1, 2, 3, 4, 0, 1]
    assert entries[2].where == f"{path}:3"
    place.remove(entries[1])
    place.replace(entries[3], '{"n":"three"}')
    assert [line["n"] for line in lines(path)] == [0, 1, 2, 3, 4, 0, 1]
    for _ in range(2):
        place.close()
        assert [line["n"] for line in lines(path)] == [0, 2, "three", 4, 0, 1]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_failed_lines_loses_nothing_that_is_appended_meanwhile(tmp_path):
    """Runs of several threads and processes append while redrives rewrite the file: every line is there once."""
    path = tmp_path / "f.jsonl"
    filled(path, 50)
    script = (
        "import sys; from pathlib import Path; from sync_rules.jobs.failure_log import JsonLines\n"
        "log = JsonLines(Path(sys.argv[1]))\n"
        "for n in range(150): log.append({'n': f'process-{n}'})"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(path)])
    removed: list[str] = []

    def append(thread: int) -> None:
        log = JsonLines(path)
        for number in range(100):
            log.append({"n": f"{thread}-{number}"})

    def rewrite() -> None:
        place = FailedLines(path)
        for entry in islice(place.entries(), 3):
            removed.append(json.loads(entry.text)["n"])
            place.remove(entry)
        place.close()

    with ThreadPoolExecutor(3) as pool:
        busy = [pool.submit(append, thread) for thread in range(3)]
        while other.poll() is None or not all(one.done() for one in busy):
            rewrite()
        for one in busy:
            one.result()
    assert other.returncode == 0
    written = [*range(50), *(f"{t}-{n}" for t in range(3) for n in range(100)), *(f"process-{n}" for n in range(150))]
    assert len(removed) > 3
    assert Counter([*removed, *(line["n"] for line in lines(path))]) == Counter(written)


def test_failed_lines_leaves_the_file_to_whom_it_belongs(tmp_path, monkeypatch):
    """A rewritten file keeps owner, group and mode; if it may not keep the group, the group's rights are dropped."""
    path = tmp_path / "f.jsonl"
    asked: list[tuple[int, int]] = []
    refused = False

    def fchown(_file, user, group):
        asked.append((user, group))
        if refused:
            raise PermissionError

    filled(path, 3)
    path.chmod(0o640)
    before = path.stat()
    monkeypatch.setattr(os, "fchown", fchown)
    for refused in (False, True):  # noqa: B007 -- read by fchown
        place = FailedLines(path)
        place.remove(next(place.entries()))
        place.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert asked == [(before.st_uid, before.st_gid)] * 2 + [(-1, before.st_gid)]


def test_failed_lines_that_cannot_be_read_is_the_users_mistake(tmp_path):
    """The file is named, and not made by asking."""
    with pytest.raises(UserError, match="nowhere"):
        next(FailedLines(tmp_path / "nowhere").entries())
    assert not (tmp_path / "nowhere").exists()


def test_failed_lines_that_cannot_be_rewritten_stay(tmp_path):
    """When the new file cannot be written the old one is there, whole."""
    path = tmp_path / "f.jsonl"
    filled(path, 3)
    place = FailedLines(path)
    for entry in place.entries():
        place.remove(entry)
    (tmp_path / "f.jsonl.new").mkdir()
    with pytest.raises(StoreError, match="FileNotWritten"):
        place.close()
    assert len(lines(path)) == 3
