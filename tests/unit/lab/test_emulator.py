"""The embedded engine: starts, stops, dies with its parent, and explains a failed start."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from sync_rules.adapters import aws
from sync_rules.lab.emulator import LOOPBACK, Server, answers, free_port, ministack, running
from sync_rules.model.errors import UserError

ROOT = Path(__file__).resolve().parents[3]
PARENT = """
import os, sys
from sync_rules.lab.emulator import ministack
with ministack() as url:
    print(url, flush=True)
    os.kill(os.getpid(), 9)
"""


def port_of(url):
    return int(url.rpartition(":")[2])


def wait_until(fact, seconds=20):
    Retrying(retry=retry_if_result(lambda done: not done), stop=stop_after_delay(seconds), wait=wait_fixed(0.02))(fact)


def test_engine_serves_while_it_is_needed():
    """The engine serves on the loopback interface inside the block, and is gone afterwards."""
    with ministack() as url:
        assert url.startswith(f"http://{LOOPBACK}:")
        assert aws.dynamodb(url).list_tables()["TableNames"] == []
    assert not answers(port_of(url), "/")


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
    wait_until(lambda: not answers(port_of(parent.stdout.strip()), "/"))
    wait_until(lambda: not list(tmp_path.iterdir()))


def test_engine_that_is_not_installed_says_how(monkeypatch):
    """The cure is one command."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"pip install 'sync-rules\[demo\]'"), ministack():
        pass


def server(directory, program):
    return Server("a server", [sys.executable, "-c", program], free_port(), "/", directory, {})


def test_engine_that_ends_at_once_shows_its_words(tmp_path):
    """Exit code and output are the reason."""
    broken = server(tmp_path, "import sys; print('no such module'); sys.exit(3)")
    with pytest.raises(UserError, match=r"(?s)exit code 3 .*no such module"), running(broken):
        pass


def test_engine_that_stays_silent_is_given_up(tmp_path):
    """After the deadline, with what it said."""
    silent = server(tmp_path, "import sys; print('thinking', flush=True); sys.stdin.read()")
    with pytest.raises(UserError, match=r"(?s)did not answer .* within 0.5 s.*thinking"), running(silent, 0.5):
        pass
