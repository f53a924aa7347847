"""`receiving`: runs a real receiver of webhooks on loopback, with given responses."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

from tests.waiting import WAIT_S


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was posted."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The CloudEvents of the request."""
        value = json.loads(self.body)
        return value if isinstance(value, list) else [value]


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Receiver:
    """Queues the requests that were posted."""

    def __init__(self, answer: Callable[[Request], Answer], tls: ssl.SSLContext | None) -> None:
        self.requests: Queue[Request] = Queue()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.path, headers, body)
                receiver.requests.put(request)
                response = answer(request)
                self.send_response(response.status)
                for name, value in {
                    "content-length": str(len(response.body)),
                    **response.headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(response.body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def next(self) -> Request:
        """Return the next request."""
        return self.requests.get(timeout=WAIT_S)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """Ignore errors: clients may disconnect."""


@contextmanager
def receiving(
    answer: Callable[[Request], Answer] = lambda _: Answer(), tls: ssl.SSLContext | None = None
) -> Iterator[Receiver]:
    receiver = Receiver(answer, tls)
    try:
        yield receiver
    finally:
        receiver.close()
