"""A publishing socket whose safe regions may be wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.websockets import WebSocket

from fencepost.server import Service, Settings
from fencepost.server.http.publish_socket import Publishers
from fencepost.server.service import Caller

TURNS = 100  # of the event loop; the test involves no other thread


class Frames:
    """A recorder of sent frames."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def socket(self) -> WebSocket:
        """Return an accepted socket."""

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            if message["type"] == "websocket.send":
                self.sent.append(msgspec.json.decode(message["text"]))

        socket = WebSocket({"type": "websocket", "headers": []}, receive, send)
        await socket.accept()
        return socket


@pytest.mark.parametrize("is_void", [False, True], ids=["open", "void"])
def test_nothing_is_sent_once_regions_may_be_wrong(tmp_path: Path, is_void: bool) -> None:
    """A reply implies that earlier withdrawals were sent, which fails after a failed commit."""
    service = Service(Settings(tmp_path, space="planar"))

    async def run() -> None:
        frames, caller = Frames(), Caller(1, "default", frozenset({"publish"}), "")
        publishers = Publishers(service)
        socket = await frames.socket()
        publisher = publishers.open(socket, caller, await publishers.regions(1))
        await publisher.receive('{"ping": 7}')
        if is_void:
            publishers.close_all()
        replies, withdrawals = map(asyncio.ensure_future, publisher.senders())
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert frames.sent == ([] if is_void else [{"pong": 7}])
        assert not replies.done()
        assert withdrawals.done() == is_void
        if is_void:
            assert withdrawals.result() == (1012, "subscriptions were reloaded; connect again")
        for task in (replies, withdrawals):
            task.cancel()
        publisher.close()

    asyncio.run(run())
    service.close()
