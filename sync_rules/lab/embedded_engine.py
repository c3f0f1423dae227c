"""Runs the embedded engine: ministack as a subprocess with DynamoDB, Streams, SQS and S3, for the demo and for tests.

Invariant: it listens on the loopback interface only, keeps its files in a temporary directory, does not use docker, and
ends with its parent, whose end closes its standard input.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from sync_rules.model.errors import UserError

LOOPBACK: Final = "127.0.0.1"
START_MAX_SECONDS: Final = 60.0  # it usually starts in two or three seconds; a loaded machine takes longer
STOP_MAX_SECONDS: Final = 5.0
HEALTH_CHECK_SECONDS: Final = 0.05
HEALTH_TIMEOUT_SECONDS: Final = 5.0
OUTPUT_SHOWN_CHARACTERS: Final = 2000
HEALTH_PATH: Final = "/_ministack/health"
INHERITED: Final = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "SYSTEMROOT", "VIRTUAL_ENV")
PORT_CURE: Final = "Give another one with --port, or --port 0 for any that is free"
PORT_PROBLEMS: Final = {
    errno.EADDRINUSE: f"another program listens there. {PORT_CURE}",
    errno.EACCES: f"ports below 1024 need special rights. {PORT_CURE}",
}
ENGINE: Final = ("-P", str(Path(__file__).with_name("engine_process.py")))  # -P: the modules beside it are not its own


@dataclass(frozen=True)
class Server:
    """A server to run: it ends when its standard input closes, and answers at `health_path` once it is ready."""

    name: str
    command: Sequence[str]
    port: int
    health_path: str
    directory: Path
    environment: Mapping[str, str]

    @property
    def output(self) -> Path:
        """The file with its output, for error messages."""
        return self.directory / "output"


@dataclass(frozen=True)
class Engine:
    """A running server: its endpoint URL, and its process."""

    url: str
    server: Server
    process: subprocess.Popen[bytes]

    def require(self) -> None:
        """Check that the server still runs. Raises UserError with its output if it has ended by itself."""
        if self.process.poll() is not None:
            said = _read_tail(self.server.output)
            raise UserError(f"{self.server.name} ended by itself, with exit code {self.process.returncode}.{said}")


@contextmanager
def run_engine(port: int = 0) -> Iterator[Engine]:
    """Run the embedded engine on a port; 0 means any free port.

    Raises:
        UserError: if it is not installed, the port is taken, or it does not start, with its output.
    """
    if importlib.util.find_spec("ministack") is None:
        raise UserError("the embedded engine is not installed: run pip install 'sync-rules[demo]'")
    command = [sys.executable, *ENGINE]
    with tempfile.TemporaryDirectory(prefix="sync-rules-engine-", ignore_cleanup_errors=True) as directory:
        port = find_free_port(port)
        environment = _make_environment(port, directory)
        server = Server("the embedded engine", command, port, HEALTH_PATH, Path(directory), environment)
        with run_server(server) as engine:
            yield engine


def _make_environment(port: int, directory: str) -> dict[str, str]:
    """A minimal environment: settings for another ministack, and real credentials, must not leak into this one."""
    return {
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": str(port),
        "LOG_LEVEL": "WARNING",
        "PERSIST_STATE": "0",
        "TMPDIR": directory,
        "STATE_DIR": directory,
        "S3_DATA_DIR": directory,
        "DOCKER_HOST": f"unix://{directory}/no-docker.sock",  # it would remove containers that another one left
        "IOT_MTLS_ENABLED": "0",  # listeners of their own, not on the loopback interface
        "SFTP_ENABLED": "0",
    }


@contextmanager
def run_server(server: Server, start_max_seconds: float = START_MAX_SECONDS) -> Iterator[Engine]:
    """Run a server until the block ends. The block begins once the server answers. Raises UserError if it ends or stays
    silent.
    """
    with server.output.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603 -- a fixed command, no shell
            server.command,
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            cwd=server.directory,
            env=server.environment,
            start_new_session=True,  # Ctrl-C is for the parent, which may still need the server to finish
        )
    try:
        _wait_until_healthy(server, process, start_max_seconds)
        yield Engine(f"http://{LOOPBACK}:{server.port}", server, process)
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None, "started with a pipe"
    process.stdin.close()
    try:
        process.wait(STOP_MAX_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the group is its own: it, and the programs that it started
        process.wait()


def _wait_until_healthy(server: Server, process: subprocess.Popen[bytes], max_seconds: float) -> None:
    def healthy() -> bool:
        if process.poll() is not None:
            code = process.returncode
            raise UserError(
                f"{server.name} ended with exit code {code} instead of starting.{_read_tail(server.output)}"
            )
        return is_answering(server.port, server.health_path)

    waiting = Retrying(
        retry=retry_if_result(lambda ready: not ready),
        stop=stop_after_delay(max_seconds),
        wait=wait_fixed(HEALTH_CHECK_SECONDS),
    )
    try:
        waiting(healthy)
    except RetryError as error:
        raise UserError(
            f"{server.name} did not answer on port {server.port} within {max_seconds:g} s. "
            f"If the machine is busy, try again.{_read_tail(server.output)}"
        ) from error


def is_answering(port: int, path: str) -> bool:
    """True if a server on the loopback interface answers."""
    connection = HTTPConnection(LOOPBACK, port, timeout=HEALTH_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500  # noqa: PLR2004 -- server errors begin at 500
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def find_free_port(wanted: int = 0) -> int:
    """Find a free port: the wanted port, or any for 0.

    Raises:
        UserError: if the wanted port cannot be used.
    """
    try:
        with socket.create_server((LOOPBACK, wanted)) as server:
            port: int = server.getsockname()[1]
    except OSError as error:
        raise UserError(
            f"port {wanted} cannot be used: {PORT_PROBLEMS.get(error.errno or 0, error.strerror)}"
        ) from error
    return port


def _read_tail(output: Path) -> str:
    text = output.read_text(errors="replace").strip()[-OUTPUT_SHOWN_CHARACTERS:]
    return f" Its output:\n{text}" if text else ""
