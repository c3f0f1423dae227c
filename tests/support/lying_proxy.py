"""A proxy before an engine, on the loopback interface, that changes what is asked or answered.

A lie is a function: it is given a request and the engine, and gives the answer. Lies are put before each other, as
corrections of an engine's gaps are put behind them. A request that no lie is about goes through as it is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

ENGINE_SECONDS = 60
HOP_BY_HOP = {"connection", "content-length", "expect", "host", "transfer-encoding", "keep-alive"}
CHECKED = {"x-amz-crc32"}  # of an answer that may have been changed


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @cached_property
    def operation(self) -> str:
        """PutItem, SendMessage, Invoke, PUT (of S3)."""
        target = self.headers.get("x-amz-target", "")
        if target:
            return target.rpartition(".")[2]
        if self.path.endswith("/invocations"):
            return "Invoke"
        if "/event-source-mappings/" in self.path:
            return "EventSourceMapping"
        if self.method == "POST" and self.body.startswith(b"Action="):
            return parse_qs(self.body.decode())["Action"][0]
        return self.method

    @cached_property
    def json(self) -> Any:
        """The body of a request in JSON."""
        return json.loads(self.body or b"{}")

    def saying(self, body: Any) -> Asked:
        """The same request with another body."""
        return replace(self, body=json.dumps(body).encode())


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    def saying(self, body: Any, status: int | None = None) -> Answer:
        """The same answer with another body."""
        return replace(self, body=json.dumps(body).encode(), status=status or self.status)


Engine = Callable[[Asked], Answer]
Lie = Callable[[Asked, Engine], Answer]


def before(first: Lie, then: Lie | None) -> Lie:
    """Two lies as one: the first sees the other as its engine."""
    return first if then is None else lambda asked, engine: first(asked, lambda passed: then(passed, engine))


class Watched:
    """A lie that records its effect: `told` is true once it has changed a request or an answer."""

    def __init__(self, lie: Lie) -> None:
        self._lie = lie
        self.told = False

    def __call__(self, asked: Asked, engine: Engine) -> Answer:
        true: list[Any] = []

        def watched(passed: Asked) -> Answer:
            answer = engine(passed)
            true.append((_said(passed.body), dict(passed.headers), answer.status, _said(answer.body)))
            return answer

        body, headers = _said(asked.body), dict(asked.headers)
        answer = self._lie(asked, watched)
        self.told |= (body, headers, answer.status, _said(answer.body)) not in true
        return answer


def _said(body: bytes) -> Any:
    """A body to compare with others, parsed if it is JSON. A lie may have written the same JSON again."""
    try:
        return json.loads(body)
    except ValueError:
        return body


class Proxy:
    """The running proxy. `lie` is the one in force; `counts` are the requests by operation."""

    def __init__(self, engine_url: str) -> None:
        self._engine = urlsplit(engine_url)
        self._lock = Lock()
        self.lie: Lie | None = None
        self.counts: Counter[str] = Counter()

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.counts[asked.operation] += 1
        return self._forward(asked) if self.lie is None else self.lie(asked, self._forward)

    def _forward(self, asked: Asked) -> Answer:
        connection = HTTPConnection(self._engine.hostname or "", self._engine.port, timeout=ENGINE_SECONDS)
        headers = {name: value for name, value in asked.headers.items() if name not in HOP_BY_HOP}
        try:
            connection.request(asked.method, asked.path, asked.body, headers)
            found = connection.getresponse()
            kept = tuple((n, v) for n, v in found.getheaders() if n.lower() not in HOP_BY_HOP | CHECKED)
            return Answer(found.status, found.read(), kept)
        finally:
            connection.close()


@contextmanager
def lying_proxy(engine_url: str) -> Iterator[tuple[str, Proxy]]:
    """Run a proxy; gives its URL, and the proxy to give lies to."""
    proxy = Proxy(engine_url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = proxy.answer(Asked(self.command, self.path, headers, body))
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else answer.body)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: Any) -> None:
            """Say nothing of a client that was killed in the middle of a request."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
