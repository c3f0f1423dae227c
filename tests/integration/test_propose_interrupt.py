"""Ctrl-C while several processes read items: one line, one exit code, nothing left running, and nothing lost."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys

from sync_rules.extras.discover.propose.frame_loader import PARALLEL_MIN
from tests.support.engines import ROOT
from tests.unit.lab.test_emulator import wait_until


def test_propose_is_interrupted_while_processes_work(tmp_path):
    """A terminal signals all of them: only the first says so, and the others end without a word."""
    files = 4
    (tmp_path / "shop").mkdir()
    for number in range(files):
        lines = (
            json.dumps({"Item": {"PK": {"S": f"USER#{number}-{one}"}, "SK": {"S": "PROFILE"}, "age": {"N": str(one)}}})
            for one in range(PARALLEL_MIN // files + 1)
        )
        text = gzip.compress("\n".join(lines).encode() + b"\n", 1)
        (tmp_path / "shop" / f"{number}.json.gz").write_bytes(text)
    command = [sys.executable, "-m", "sync_rules", "propose", "--from-export", "shop", "--key", "shop=PK,SK"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    spool = tmp_path / ".sync-rules-propose" / "stage"
    wait_until(lambda: process.poll() is not None or any(one.is_file() for one in spool.rglob("*")), 120)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    said = [line for line in err.splitlines() if not line.startswith("reading")]
    assert process.returncode == 130, err
    kept = "what was read is kept, and the same command goes on; without the folder of --workspace it reads all again"
    assert said == [f"sync-rules: interrupted: {kept}"]
    assert not spool.exists()
