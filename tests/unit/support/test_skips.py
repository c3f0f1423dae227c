"""A run of the tests ends with each skipped test and its reason."""

from __future__ import annotations

import subprocess
import sys

from tests.support.engines import ROOT


def test_run_ends_with_what_was_skipped_and_failed(tmp_path):
    """The options of this project name the reason of each skip beside the failures, without any option of the caller."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_one(): pytest.skip('no such engine')\ndef test_two(): assert not 'right'\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", tmp_path]
    done = subprocess.run(
        [*command, "-c", ROOT / "pyproject.toml", tmp_path], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    summary = done.stdout.partition("short test summary info")[2]
    assert ("no such engine" in summary, "FAILED" in summary) == (True, True), done.stdout + done.stderr
