"""The database of the joins: sync-rules says in its own words why a query ends."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.search import propose
from sync_rules.model.errors import UserError
from tests.support.gathering import PlainTable, gathered

ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"


def test_database_is_interrupted_like_python(tmp_path):
    """Ctrl-C during a query is a KeyboardInterrupt, and no bug."""
    database = Database(tmp_path, threads=1, memory="200MB")
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def asked() -> None:
        timer.start()
        database.rows(ENDLESS)

    with pytest.raises(KeyboardInterrupt):
        asked()
    timer.join()
    assert database.row("SELECT 1") == (1,)
    database.close()


def test_database_that_is_full_says_what_to_give(tmp_path):
    """Too little memory for what cannot be spilled is the user's to cure; no value is quoted."""
    database = Database(tmp_path, threads=1, memory="5MB")
    with pytest.raises(UserError, match="give more with --memory, or another --workspace") as full:
        database.rows("SELECT list(range::VARCHAR || 'secret') FROM range(3000000)")
    assert "secret" not in str(full.value)
    database.close()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file may be larger: to who writes, the disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [1 << 10, 100 << 10, 1 << 20])
def test_database_on_a_full_disk_says_what_to_give(tmp_path, size):
    """The disk is full when the database is made, when items are staged, or when they are loaded: no bug of ours."""
    rows = [{"id": f"u{number}", "text": f"{number:0200}"} for number in range(4_000)]
    tables = gathered(tmp_path / "in", PlainTable("users", {"id": "S"}, rows))
    with files_of_at_most(size), pytest.raises(UserError) as full:
        propose(tables, tmp_path / "work")
    assert "another --workspace" in str(full.value)
