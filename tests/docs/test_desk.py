"""docs/desk.md and docs/drift.md are followed word by word: files, commands and outputs, in an empty folder.

Changed are only the port, which may be taken, and what needs docker, which is named and not run.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sync_rules.lab.embedded_engine import find_free_port
from tests.docs.test_docs import Block, blocks
from tests.integration.test_emulator_command import READY
from tests.support.depth import spread_over_night
from tests.test_house import ROOT

# Each page, what of it needs docker, and what it makes in the folder beside its files.
PAGES: dict[str, tuple[set[str], set[str]]] = {
    "docs/drift.md": (set(), {"proposed.yaml"}),
    "docs/desk.md": ({"amazon/dynamodb-local", "localstack/localstack"}, set()),
}
PORT = "8000"
FILES = {"yaml": "rules.yaml", "python": "app.py"}
STEP_MAX_SECONDS = 120


class Desk:
    """A folder, and terminals with sync-rules installed. Later commands have each variable that a command exports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = str(find_free_port())
        self.exported = ""
        programs = folder.parent / "bin"
        programs.mkdir()
        for name, words in {"sync-rules": ("-m", "sync_rules"), "python3": ()}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *words])} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(folder.parent),
        }  # fmt: skip

    def words(self, text: str) -> str:
        """A text of the page, with the port of this desk."""
        return text.replace(f":{PORT}", f":{self.port}")

    def run(self, block: Block) -> str:
        """Run the commands of a block; gives what the last one printed."""
        printed = ""
        for line in block.body.splitlines():
            if line.startswith("export "):
                self.exported += f"{line}\n"
                continue
            done = subprocess.run(
                ["bash", "-c", self.exported + self.words(line)], cwd=self.folder, env=self.environment,
                capture_output=True, text=True, check=False, timeout=STEP_MAX_SECONDS,
            )  # fmt: skip
            assert done.returncode == 0, f"{block}: {line}\n{done.stdout}{done.stderr}"
            printed = done.stdout
        return printed

    def start(self, block: Block) -> tuple[subprocess.Popen[str], str]:
        """Run the one command of a block, which stays; gives what it printed until it was ready."""
        command = f"{self.exported}exec {block.body.strip()} --port {self.port}"
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            if line.startswith(READY):
                break
        return process, "".join(printed)


def steps(page: str) -> Iterator[tuple[Block, str | None]]:
    """The blocks of the page, each with the output that follows it, if one does."""
    found = blocks(page)
    for block, after in zip(found, [*found[1:], None], strict=True):
        if block.language != "text":
            yield block, after.body if after is not None and after.language == "text" else None


@pytest.mark.parametrize("page", spread_over_night(PAGES))
def test_desk_page_is_true_from_start_to_finish(page, tmp_path):
    """Each file, command and output, in the order of the page; Ctrl-C ends the engine at the end."""
    pytest.importorskip("ministack")
    folder = tmp_path / "desk"
    folder.mkdir()
    desk, engine, docker = Desk(folder), None, set()
    needs_docker, made = PAGES[page]
    try:
        for block, expected in steps(page):
            if block.language in FILES:
                (folder / FILES[block.language]).write_text(desk.words(block.body))
                continue
            if block.body.startswith("docker "):
                docker |= {name for name in needs_docker if name in block.body}
                continue
            if block.body.startswith("sync-rules emulator"):
                engine, printed = desk.start(block)
            else:
                printed = desk.run(block)
            if expected is not None:
                assert printed == desk.words(expected), str(block)
        assert docker == needs_docker
        assert {path.name for path in folder.iterdir()} == {*FILES.values(), *made}
        assert engine is not None
        engine.send_signal(signal.SIGINT)
        assert engine.wait(STEP_MAX_SECONDS) == 0
    finally:
        if engine is not None:
            engine.kill()
            engine.communicate()
