"""`MoverPublisher`: publishes the events of moving objects, except those that match nothing.

The server answers an event with a safe region: while the object stays in it and its attributes do
not change, its events match nothing, so the client need not send them. The server withdraws regions
over the same WebSocket, so a region is valid only while the WebSocket is open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fencepost.client.network_effects import (
    ConnectionLost,
    OpenSocket,
    ReceiveFrame,
    SendFrame,
    Steps,
)
from fencepost.client.publish_batches import json_line
from fencepost.client.retry_policy import Backoff, RetryPolicy, wait_before_reconnect
from fencepost.errors import RequestRefused
from fencepost.saferegion.client_rule import SafeClient

PATH = "/v1/publish/socket"


class MoverPublisher:
    """The moving objects of a client, published over one WebSocket.

    The client sends frames `{"id", "key", "event"}`; the server answers each with a frame of the
    same id. The server withdraws regions with frames `{"withdrawn": key, "version"}` at any time.
    """

    def __init__(self, server: str, retry_policy: RetryPolicy) -> None:
        self._server, self._retry_policy = server, retry_policy
        self._safe_clients: dict[str, SafeClient] = {}
        self._frames = 0

    def send(self, key: str, event: Mapping[str, Any]) -> Steps[bool]:
        """Publish an event of an object unless it matches nothing. Return whether it was sent."""
        body = json_line(event, 0).decode()
        backoff = Backoff(self._retry_policy)
        while True:
            lost: ConnectionLost | None = yield from self._read_waiting_frames()
            if lost is not None:
                self._safe_clients.clear()
                lost = yield OpenSocket(PATH)
            if lost is None:
                if not self._safe_clients.setdefault(key, SafeClient()).should_send(event):
                    return False
                lost = yield from self._publish(key, body)
            if lost is None:
                return True
            self._safe_clients.clear()
            yield from wait_before_reconnect(backoff, lost, self._server)

    def forget(self, key: str) -> Steps[None]:
        """Remove an object, here and on the server."""
        if self._safe_clients.pop(key, None) is not None:
            yield SendFrame(json.dumps({"forget": key}))

    def _read_waiting_frames(self) -> Steps[ConnectionLost | None]:
        """Process the frames that have arrived since the last read."""
        while True:
            frame: str | ConnectionLost | None = yield ReceiveFrame(wait=False)
            if frame is None or isinstance(frame, ConnectionLost):
                return frame
            self._withdraw(json.loads(frame))

    def _publish(self, key: str, body: str) -> Steps[ConnectionLost | None]:
        """Send an event, and process the server's answer."""
        self._frames += 1
        header = json.dumps({"id": self._frames, "key": key})
        lost: ConnectionLost | None = yield SendFrame(f'{header[:-1]}, "event": {body}}}')
        if lost is not None:
            return lost
        while True:
            frame: str | ConnectionLost = yield ReceiveFrame()
            if isinstance(frame, ConnectionLost):
                return frame
            answer = json.loads(frame)
            if answer.get("id") == self._frames:
                break
            self._withdraw(answer)
        if "problem" in answer:
            problem = answer["problem"]
            raise RequestRefused(problem["detail"], problem["status"], problem)
        if answer.get("region") is not None:
            self._safe_clients[key].accept(json.dumps(answer["region"]))
        return None

    def _withdraw(self, frame: Mapping[str, Any]) -> None:
        """Withdraw a region if the frame says so."""
        safe_client = self._safe_clients.get(frame.get("withdrawn", ""))
        if safe_client is not None:
            safe_client.withdraw(frame["version"])
