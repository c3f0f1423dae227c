"""`sync-rules playground`: it serves a folder on this machine alone, until it is stopped."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from sync_rules.cli.exit_codes import ExitCode
from sync_rules.cli.main import main
from tests.test_house import ROOT


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command in a process of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sync_rules", "playground", str(folder), "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found
        yield found[0], process
    finally:
        process.kill()
        process.communicate()


def test_playground_serves_files_by_their_types(tmp_path):
    """A browser compiles WebAssembly while it comes only if its type is right. A signal ends the command well."""
    (tmp_path / "index.html").write_text("the page")
    (tmp_path / "python.wasm").write_bytes(b"\0asm")
    with serve(tmp_path) as (url, process):
        assert url.startswith("http://127.0.0.1:")
        with urlopen(url, timeout=30) as answer:
            assert answer.read() == b"the page"
        with urlopen(f"{url}python.wasm", timeout=30) as answer:
            assert answer.headers["Content-Type"] == "application/wasm"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == ExitCode.WELL


def test_playground_says_how_to_build_it(tmp_path, capsys):
    """Without a folder it says what makes one."""
    assert main(["playground", str(tmp_path)]) == ExitCode.MISTAKE
    assert "make playground" in capsys.readouterr().err
