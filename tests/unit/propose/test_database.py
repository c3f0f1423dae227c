"""The database of the joins: what ends a query is said in our words."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sync_rules.model.errors import UserError
from sync_rules.propose.database import Database

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
