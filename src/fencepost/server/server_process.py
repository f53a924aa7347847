"""Running a server until it is told to stop.

`HeaderTimeoutProtocol` bounds how long a connection may take to say what it wants, and how much it may
say before that: uvicorn waits for the headers of a request as long as it takes, and takes as many
as come.
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
    """HTTP whose headers must come in time, and are bounded."""

    _deadline: asyncio.TimerHandle | None = None
    _size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Wait for the rest of the headers; the next request on a connection, too."""
        super().on_message_begin()
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came, unless there are headers without end."""
        if self._deadline is not None:
            self._size += len(data)
            if self._size > MAX_HEADER_BYTES and not self._has_end(data):
                self._give_up()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().on_headers_complete()

    @staticmethod
    def _has_end(data: bytes) -> bool:
        return b"\r\n\r\n" in data[:MAX_HEADER_BYTES]

    def _wait(self) -> None:
        self._stop_waiting()
        self._size = 0
        self._deadline = self.loop.call_later(HEADER_TIMEOUT_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.abort()


_SHUTDOWN_S = 10
_SWITCH_S = 0.0005


def is_loopback(host: str) -> bool:
    """Whether a host can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_access(service: Service, host: str) -> None:
    """Refuse to be reached from elsewhere by everybody."""
    if is_loopback(host):
        return
    any_key = bool(service.database.read(api_keys.keys))
    if service.settings.open_access or not any_key:
        raise FencepostError(
            f"{host} can be reached from other machines, and that needs keys; make one with "
            f"`fencepost keys add --data {service.settings.folder} --scope admin`, or use "
            "--host 127.0.0.1"
        )


def serve(
    settings: Settings, host: str, port: int, ready: Callable[[str], None] | None = None
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    ready : callable, optional
        Called with the address once requests are taken.
    """
    # The thread that writes gives Python's lock away at every statement and wants it back soon.
    sys.setswitchinterval(_SWITCH_S)
    service = Service(settings)
    try:
        check_access(service, host)
        server = Server(service, ready)
        listening = listen(host, port)
    except BaseException:
        service.close()
        raise
    _prepare(service)
    server.run(sockets=[listening])


def _prepare(service: Service) -> None:
    """Load what the first event would load, and look at none of it when looking for garbage.

    Modules and kernels are 200,000 objects, and Python stops for a tenth of a second to look at
    them, again and again.
    """
    matcher = Matcher(service.settings.space)
    matcher.subscribe("a", "S_INTERSECTS(geometry, BBOX(0, 0, 1, 1)) AND kind = 'a'")
    event = {"geometry": {"type": "Point", "coordinates": [0.5, 0.5]}, "kind": "a"}
    matcher.match_batch([event])
    gc.collect()
    gc.freeze()


class Server(uvicorn.Server):
    """A service on the network; closed with it."""

    def __init__(self, service: Service, ready: Callable[[str], None] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(service),
                log_config=None,
                access_log=False,
                lifespan="on",
                http=HeaderTimeoutProtocol,
                timeout_graceful_shutdown=_SHUTDOWN_S,
                ws_max_size=1 << 16,
                ws_per_message_deflate=False,  # costs more than sending does
                ws_ping_interval=20,
                ws_ping_timeout=20,
                server_header=False,
            )
        )
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self._ready = ready
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests, and say so."""
        await super().startup(sockets)
        if self._ready is not None and sockets and not self.should_exit:
            self._ready(address(sockets[0]))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, which would go on for ever, and wait for the requests under way."""
        self._service.hub.close_all()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise FencepostError(
            f"{host}:{port} cannot be served: {error.strerror}; name another with --port"
        ) from error
    return listening


def address(listening: socket.socket) -> str:
    """The address of a socket, for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
