"""A self-test in a process that is there at once: forked from a server that has all imported and its clients tried.

It is a process of its own, because it is to be killed: `python -m sync_rules` would spend most of its time on imports.
"""

from __future__ import annotations

import os
import sys
from multiprocessing import forkserver, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from sync_rules.__main__ import main
from sync_rules.adapters import aws
from sync_rules.cli import main as commands  # noqa: F401 - for the processes that are forked from the server
from sync_rules.extras.proof.commands import selftest  # noqa: F401
from sync_rules.extras.proof.commands import selftest as running

LOOK_SECONDS = 0.05  # between two looks at a stack, which an emulator has at once
NOWHERE = "http://127.0.0.1:1"

for service in (aws.cloudformation, aws.dynamodb, aws.s3):
    service(NOWHERE)  # reads the model of the service, for all clients of this process, and of those that it forks


def serve() -> None:
    """Start the server, if it does not run yet. It finds this module only from the folder where the tests started."""
    forkserver.set_forkserver_preload([__name__])
    forkserver.ensure_running()


def started(folder: Path, url: str) -> BaseProcess:
    """The command with one probe, in a process and a folder of its own."""
    process = get_context("forkserver").Process(target=_one_probe, args=(folder, url))
    process.start()
    return process


def _one_probe(folder: Path, url: str) -> None:
    os.chdir(folder)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, sys.stdout.fileno())
    os.dup2(silent, sys.stderr.fileno())
    running.STACK_LOOK_SECONDS = LOOK_SECONDS  # type: ignore[misc]
    sys.argv = ["sync-rules", "selftest", "--yes", "--only", "21", "--endpoint-url", url]
    sys.exit(main())
