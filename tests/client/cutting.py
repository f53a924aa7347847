"""A line to a server that can be cut: a real TCP proxy in this process."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Cutting:
    """Passes bytes on, both ways, until it is told to cut."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = parts.hostname or "", parts.port or 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cuts = 0
        self._wanted = b""
        self._times = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after_request(self, start: bytes, times: int) -> None:
        """Let requests that begin so reach the server, and lose the answers."""
        self._wanted, self._times = start, times

    def cut_all(self) -> None:
        """Cut every connection that is open."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(self._target)
                self._open += [near, far]
                lost = threading.Event()
                for one, other, watched in ((near, far, True), (far, near, False)):
                    pump = threading.Thread(
                        target=self._pump, args=(one, other, watched, lost), daemon=True
                    )
                    pump.start()

    def _pump(
        self, one: socket.socket, other: socket.socket, watched: bool, lost: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                if watched and self._times and data.startswith(self._wanted):
                    self._times -= 1
                    lost.set()
                if not watched and lost.is_set():  # the server has answered, so it has worked
                    self.cuts += 1
                    break
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Cutting:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self.cut_all()
        for one in self._open:
            one.close()
