"""`serve`: runs a server until it is interrupted.

`HeaderTimeoutProtocol` limits the time and the size of the headers of a request; uvicorn limits
neither.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fencepost.engine.matcher import Matcher
from fencepost.errors import FencepostError
from fencepost.server.http.app import create_app
from fencepost.server.service import Service
from fencepost.server.settings import Settings
from fencepost.store import api_keys

HEADER_TIMEOUT_S = 10.0
MAX_HEADER_BYTES = 65_536


class HeaderTimeoutProtocol(HttpToolsProtocol):
    """HTTP that aborts a connection whose headers take too long or are too large."""

    _deadline: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._start_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeout."""
        self._stop_timeout()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the timeout of a request; a connection may have several, one after another."""
        super().on_message_begin()
        self._start_timeout()

    def data_received(self, data: bytes) -> None:
        """Pass data on, unless the headers are too large."""
        if self._deadline is not None:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES and not self._ends_headers(data):
                self._abort()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Stop the timeout."""
        self._stop_timeout()
        super().on_headers_complete()

    @staticmethod
    def _ends_headers(data: bytes) -> bool:
        return b"\r\n\r\n" in data[:MAX_HEADER_BYTES]

    def _start_timeout(self) -> None:
        self._stop_timeout()
        self._header_bytes = 0
        self._deadline = self.loop.call_later(HEADER_TIMEOUT_S, self._abort)

    def _stop_timeout(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort(self) -> None:
        self._stop_timeout()
        if not self.transport.is_closing():
            self.transport.abort()


_SHUTDOWN_TIMEOUT_S = 10
_SWITCH_INTERVAL_S = 0.0005


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_access(service: Service, host: str) -> None:
    """Raise a `FencepostError` if other machines could use the server without a key."""
    if is_loopback(host):
        return
    has_keys = bool(service.database.read(api_keys.keys))
    if service.settings.open_access or not has_keys:
        raise FencepostError(
            f"{host} can be reached from other machines, so the server needs keys; make one with "
            f"`fencepost keys add --data {service.settings.folder} --scope admin` and serve "
            "without --open, or use --host 127.0.0.1"
        )


def serve(
    settings: Settings, host: str, port: int, ready: Callable[[str], None] | None = None
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    settings : Settings
    host : str
    port : int
        0 for a free port.
    ready : callable, optional
        Called with the address once the server accepts requests.
    """
    # SQLite releases the GIL at every statement; a short interval gives it back to the broker's
    # thread soon.
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    service = Service(settings)
    try:
        check_access(service, host)
        server = Server(service, ready)
        listener = listen(host, port)
    except BaseException:
        service.close()
        raise
    _warm_up(service)
    server.run(sockets=[listener])


def _warm_up(service: Service) -> None:
    """Load what the first event needs, and exclude it from garbage collection.

    Modules and kernels are 200,000 objects; each full collection would visit them, which takes a
    tenth of a second.
    """
    matcher = Matcher(service.settings.space)
    matcher.subscribe("a", "S_INTERSECTS(geometry, BBOX(0, 0, 1, 1)) AND kind = 'a'")
    event = {"geometry": {"type": "Point", "coordinates": [0.5, 0.5]}, "kind": "a"}
    matcher.match_batch([event])
    gc.collect()
    gc.freeze()


class Server(uvicorn.Server):
    """A service on the network; the service is closed when the server stops."""

    def __init__(self, service: Service, ready: Callable[[str], None] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(service),
                log_config=None,
                access_log=False,
                lifespan="on",
                http=HeaderTimeoutProtocol,
                timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT_S,
                ws_max_size=1 << 16,
                ws_per_message_deflate=False,  # compressing takes longer than sending
                ws_ping_interval=20,
                ws_ping_timeout=20,
                server_header=False,
            )
        )
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self._ready = ready
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting requests, and call `ready`."""
        await super().startup(sockets)
        if self._ready is not None and sockets and not self.should_exit:
            self._ready(address(sockets[0]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close streams, which would never end, and wait for the other requests."""
        self._service.hub.close_all()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 takes a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise FencepostError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another port with --port"
        ) from error
    return listener


def address(listener: socket.socket) -> str:
    """Return the URL of a socket, for a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
