"""The engine in its own process, and the environment of the measured clients.

Invariant: nothing of the machine's own AWS settings reaches a measured client, and requests go to loopback only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
LOOPBACK: Final = "127.0.0.1"
STOP_MAX_SECONDS: Final = 10
OF_ITS_OWN: Final = 0  # process group of children: a terminal's interrupt reaches only this process
# As long as in Lambda: the token is most of what the hand-written loop sends.
ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "ASIA" + "X" * 16,
    "AWS_SECRET_ACCESS_KEY": "x" * 40,
    "AWS_SESSION_TOKEN": "t" * 717,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "NO_PROXY": LOOPBACK,
    "no_proxy": LOOPBACK,
}


class Answering:
    """The engine that runs on a port."""

    def __init__(self, port: int) -> None:
        self.url = f"http://{LOOPBACK}:{port}"
        self._port = port

    def set(self, **settings: Any) -> None:
        """Reset the counts to 0. The settings are those of `Engine.set`."""
        self._call("POST", "/settings", json.dumps(settings))

    def counts(self) -> Counter[str]:
        """The counts since the last `set`."""
        return Counter(json.loads(self._call("GET", "/counts")))

    def _call(self, method: str, path: str, body: str = "") -> bytes:
        connection = HTTPConnection(LOOPBACK, self._port, timeout=30)
        try:
            connection.request(method, path, body)
            return connection.getresponse().read()
        finally:
            connection.close()


@contextmanager
def answering() -> Iterator[Answering]:
    """Run the engine. Open counters inside: a counter opened earlier would count the engine's work too."""
    command = [sys.executable, "-m", "benchmarks.answering"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True, process_group=OF_ITS_OWN)
    assert process.stdin is not None, "started with pipes"
    assert process.stdout is not None, "started with pipes"
    try:
        yield Answering(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        process.wait(STOP_MAX_SECONDS)
        process.stdout.close()


def child(*arguments: str, **environment: str) -> str:
    """Run a fresh interpreter, which finds the packages that this one finds. Returns its output."""
    packages = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    found = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": packages, **ENVIRONMENT, **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=found, stdout=subprocess.PIPE, text=True, check=True, process_group=OF_ITS_OWN
    ).stdout
