"""How long a connection may take to say what it wants, and how much it may say before that.

uvicorn waits for the headers of a request as long as it takes, and takes as many as come.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 10.0
HEADER_BYTES = 65_536


class PatientProtocol(HttpToolsProtocol):
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
            if self._size > HEADER_BYTES and not self._has_end(data):
                self._give_up()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().on_headers_complete()

    @staticmethod
    def _has_end(data: bytes) -> bool:
        return b"\r\n\r\n" in data[:HEADER_BYTES]

    def _wait(self) -> None:
        self._stop_waiting()
        self._size = 0
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.abort()
