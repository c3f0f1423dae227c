"""A small Lambda Runtime API on loopback, and AWS's own runtime client driven by it.

Invariant: a process of the function has one invocation at a time, as on Lambda; with `processes`, as on Managed
Instances, several begin together. A function is known by its answers alone. Its output goes to
a file, because a pipe without a reader would block it.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from sync_rules.lab import embedded_engine as emulator
from tests.deploy.tools import REGION, environment, tool

ANSWER_MAX_SECONDS: Final = 300  # on a busy machine
ARN: Final = f"arn:aws:lambda:{REGION}:111122223333:function:stream"
VERSION: Final = "/2018-06-01/runtime/"


@dataclass(frozen=True)
class Said:
    """A function's answer to an invocation or its start. `way` is response, error or init/error."""

    way: str
    body: Any


class RuntimeApi(ThreadingHTTPServer):
    """The server side. It hands out the first invocation of each of the `processes` once all of them ask."""

    def __init__(self, processes: int) -> None:
        super().__init__((emulator.LOOPBACK, 0), Handler)
        self.together = threading.Barrier(processes)
        self.waiting: queue.Queue[tuple[str, float, bytes] | None] = queue.Queue()
        self.said: queue.Queue[Said] = queue.Queue()


class Handler(BaseHTTPRequestHandler):
    """One connection of a runtime client."""

    protocol_version = "HTTP/1.1"
    server: RuntimeApi

    def do_GET(self) -> None:
        assert self.path == f"{VERSION}invocation/next", self.path
        invocation = self.server.waiting.get()
        if invocation is None:
            self.close_connection = True
            return
        self.server.together.wait()
        name, deadline, body = invocation
        headers = {"Aws-Request-Id": name, "Deadline-Ms": str(int(deadline * 1000)), "Invoked-Function-Arn": ARN}
        self._answer(200, body, {f"Lambda-Runtime-{header}": value for header, value in headers.items()})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        way = self.path.removeprefix(VERSION)
        self.server.said.put(Said(way if way == "init/error" else way.rpartition("/")[2], body))
        self._answer(202, b'{"status": "OK"}', {})

    def handle(self) -> None:
        with suppress(ConnectionResetError):  # a function that is stopped while it waits
            super().handle()

    def log_message(self, *_args: Any) -> None:
        pass

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@dataclass(frozen=True)
class Function:
    """A function in a process of its own, that the runtime client drives."""

    api: RuntimeApi
    process: subprocess.Popen[bytes]
    output: Path

    def invoke(self, event: Any, timeout_seconds: float = 60.0) -> Said:
        """The function's answer to one invocation."""
        self.put(event, timeout_seconds)
        return self.heard()

    def put(self, event: Any, timeout_seconds: float = 60.0) -> None:
        """An invocation, for a process that asks for one."""
        self.api.waiting.put((str(uuid.uuid4()), time.time() + timeout_seconds, json.dumps(event).encode()))

    def heard(self) -> Said:
        """The function's next answer."""
        try:
            return self.api.said.get(timeout=ANSWER_MAX_SECONDS)
        except queue.Empty:
            raise AssertionError(f"the function says nothing. It printed:\n{self.printed}") from None

    @property
    def printed(self) -> str:
        """The function's output: its log and its metrics."""
        return self.output.read_text()


@contextmanager
def function(code: Path, handler: str, output: Path, processes: int = 1, **variables: str) -> Iterator[Function]:
    """A function as Lambda starts it: its code and boto3 are all there is. With `processes`, as on Managed Instances."""
    python = tool("lambda", "bin", "python")
    api = RuntimeApi(processes)
    served = threading.Thread(target=api.serve_forever, daemon=True)
    served.start()
    given = {
        "AWS_LAMBDA_RUNTIME_API": f"{emulator.LOOPBACK}:{api.server_port}",
        "AWS_LAMBDA_FUNCTION_NAME": "stream",
        "AWS_REGION": REGION,
        "LAMBDA_TASK_ROOT": str(code),
        "TZ": ":UTC",
        **({} if processes == 1 else {"AWS_LAMBDA_MAX_CONCURRENCY": str(processes)}),
        **variables,
    }
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [python, "-m", "awslambdaric", handler],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            cwd=code,
            env=environment(**given),
            start_new_session=True,
        )
    try:
        yield Function(api, process, output)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the processes that it forked
        process.wait()
        for _ in range(processes):
            api.waiting.put(None)
        api.shutdown()
        api.server_close()
        served.join()
