"""`sync-rules emulator`: it serves until it is stopped, leaves nothing behind, and says what keeps it from starting."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sync_rules.adapters import aws
from sync_rules.lab.embedded_engine import LOOPBACK, is_answering
from tests.support.depth import spread_over_night
from tests.test_house import ROOT
from tests.unit.lab.test_emulator import wait_until
from tests.unit.lab.test_trial import RULES

READY = "Ctrl-C stops it."


class Emulator:
    """The command in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.rest = folder / "rest"
        self.rest.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sync_rules", "emulator", *arguments],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.rest)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def started(self) -> str:
        """The lines up to the last one of the start."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith(READY):
                return "".join(lines)
        pytest.fail(f"it ended with {self.process.wait()}: {self.process.stderr and self.process.stderr.read()}")

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it said after its start, once it has ended by itself."""
        out, said = self.process.communicate(timeout=60)
        return self.process.returncode, out + said


@pytest.fixture
def run(tmp_path):
    """Starts the command; whatever still runs is killed in the end."""
    pytest.importorskip("ministack")
    made: list[Emulator] = []

    def run(*arguments: str) -> Emulator:
        made.append(Emulator(tmp_path, *arguments))
        return made[-1]

    yield run
    for one in made:
        one.process.kill()
        one.process.communicate()


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    """False also for a process that ended, and whose parent has not asked for its exit code."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    "number", spread_over_night([pytest.param(signal.SIGTERM, id="sigterm"), pytest.param(signal.SIGINT, id="ctrl-c")])
)
def test_emulator_serves_until_it_is_stopped(run, tmp_path, number):
    """The command prints its endpoint and the next command, has the tables of the rules file, and leaves nothing behind."""
    (tmp_path / "rules.yaml").write_text(RULES)
    emulator = run("--port", "0", "--rules", "rules.yaml")
    said = emulator.started()
    (url,) = set(re.findall(rf"http://{re.escape(LOOPBACK)}:\d+", said))
    assert "table shop created (key PK (S), SK (S); stream with both images)" in said
    assert f"  sync-rules run --endpoint-url {url}\n" in said
    assert aws.dynamodb(url).list_tables()["TableNames"] == ["shop"]
    emulator.process.send_signal(number)
    assert emulator.ended() == (0, "stopped\n")
    assert not is_answering(int(url.rpartition(":")[2]), "/")
    assert not list(emulator.rest.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="it looks for children in /proc")
def test_emulator_that_is_interrupted_during_its_start_leaves_nothing(run):
    """Ctrl-C ends it with 130, and its engine with it."""
    emulator = run("--port", "0")
    wait_until(lambda: children(emulator.process.pid), seconds=60)
    (engine,) = children(emulator.process.pid)
    emulator.process.send_signal(signal.SIGINT)
    assert emulator.ended() == (130, "sync-rules: interrupted\n")
    wait_until(lambda: not is_running(engine))
    wait_until(lambda: not list(emulator.rest.iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="it looks for children in /proc")
def test_emulator_whose_engine_ends_says_so(run):
    """A command beside a dead engine does not wait for Ctrl-C."""
    emulator = run("--port", "0")
    emulator.started()
    (engine,) = children(emulator.process.pid)
    os.kill(engine, signal.SIGKILL)
    code, said = emulator.ended()
    assert code == 2
    assert "the embedded engine ended by itself" in said
