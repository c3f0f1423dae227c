"""A process that is killed and started again, behind a network of its own.

All are forked from one server, which has imported what they need: a life costs no start of an interpreter. They end with
this process, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.processes.network import Network

SERVER = multiprocessing.get_context("forkserver")


def preload(modules: list[str]) -> None:
    """Name what the server imports when the first process starts."""
    SERVER.set_forkserver_preload(["tests.processes.installed_clock", "tests.processes.world", *modules])


def _enter(folder: Path, name: str, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    os.chdir(folder)
    log = os.open(f"{name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.setsid()  # Ctrl-C is for the parent
    for variable in [variable for variable in os.environ if variable.startswith(("AWS_", "SYNC_RULES_"))]:
        del os.environ[variable]
    os.environ["SYNC_RULES_WRITES"] = "batch"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@dataclass
class Process:
    """`arguments` of `function` are those of a life, by its number."""

    name: str
    function: Callable[..., None]
    arguments: Callable[[int], tuple[Any, ...]]
    network: Network
    folder: Path
    lives: int = 0
    running: ForkServerProcess | None = None

    def start(self, dies_at: int = 0) -> None:
        """Start it, to be killed at one of its requests; 0: to live."""
        assert not self.is_alive()
        self.lives += 1
        self.network.requests, self.network.dies_at = 0, dies_at
        given = (self.folder, self.name, self.function, self.arguments(self.lives))
        self.running = SERVER.Process(target=_enter, args=given, daemon=True)
        self.running.start()

    def is_alive(self) -> bool:
        return self.running is not None and self.running.is_alive()

    def ended_well(self) -> bool:
        return self.running is not None and self.running.exitcode == 0

    def kill(self) -> None:
        if self.running is not None:
            self.running.kill()
            self.running.join()

    def wait(self, max_seconds: float) -> int | None:
        """Wait for its exit code; None while it runs."""
        assert self.running is not None
        self.running.join(max_seconds)
        return self.running.exitcode

    def pause(self, seconds: float) -> None:
        if self.is_alive() and self.running is not None and self.running.pid is not None:
            with suppress(ProcessLookupError):  # one of its requests may kill it meanwhile
                os.kill(self.running.pid, signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(self.running.pid, signal.SIGCONT)
