"""`running`: runs a real server in this process, on a free port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import httpx

from fencepost.server import Server, Service, Settings, listen
from fencepost.store import api_keys
from tests.waiting import WAIT_S


@dataclass(frozen=True, slots=True)
class Running:
    """A running server."""

    url: str
    service: Service
    http: httpx.Client

    def key(self, *scopes: str, tenant: str = "default") -> str:
        """Add a key and return it."""
        future = self.service.broker.change(
            lambda transaction: api_keys.add_key(
                transaction.connection, tenant, scopes, "", transaction.now
            )
        )
        return future.result(WAIT_S)

    def client(self, key: str | None = None) -> httpx.Client:
        """Return a client that sends a key."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=WAIT_S)


@contextmanager
def running(folder: Path, port: int = 0, **settings: Any) -> Iterator[Running]:
    """Run a server on a folder, by default with `open_access`."""
    service = Service(Settings(folder, **{"open_access": True, **settings}))
    addresses: Queue[str] = Queue()
    server = Server(service, addresses.put)
    socket = listen("127.0.0.1", port)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        url = addresses.get(timeout=WAIT_S)
        with httpx.Client(base_url=url, timeout=WAIT_S) as http:
            yield Running(url, service, http)
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        assert not thread.is_alive()
