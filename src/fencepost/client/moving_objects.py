"""Things that move and are published only when somebody may want to know.

The server answers an event with a safe region: as long as the thing is in it and its attributes
are what they were, its events match nothing. Regions are taken back over the same WebSocket, so
they count only while it is open.
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
    """The things that a client publishes about, over one WebSocket.

    A frame out is `{"id", "key", "event"}`, and answered by one with the same id. What is taken
    back comes unasked, as `{"withdrawn": key, "version"}`.
    """

    def __init__(self, server: str, retry_policy: RetryPolicy) -> None:
        self._server, self._retry_policy = server, patience
        self._safe: dict[str, SafeClient] = {}
        self._frames = 0

    def send(self, key: str, event: Mapping[str, Any]) -> Steps[bool]:
        """Publish an event of a thing if it may matter to anybody; whether it was sent."""
        body = json_line(event, 0).decode()
        backoff = Backoff(self._retry_policy)
        while True:
            lost: ConnectionLost | None = yield from self._caught_up()
            if lost is not None:
                self._safe.clear()
                lost = yield OpenSocket(PATH)
            if lost is None:
                if not self._safe.setdefault(key, SafeClient()).should_send(event):
                    return False
                lost = yield from self._published(key, body)
            if lost is None:
                return True
            self._safe.clear()
            yield from wait_before_reconnect(backoff, lost, self._server)

    def forget(self, key: str) -> Steps[None]:
        """Know nothing of a thing any more, here and on the server."""
        if self._safe.pop(key, None) is not None:
            yield SendFrame(json.dumps({"forget": key}))

    def _caught_up(self) -> Steps[ConnectionLost | None]:
        """Take what the server has said in the meantime."""
        while True:
            frame: str | ConnectionLost | None = yield ReceiveFrame(wait=False)
            if frame is None or isinstance(frame, ConnectionLost):
                return frame
            self._heard(json.loads(frame))

    def _published(self, key: str, body: str) -> Steps[ConnectionLost | None]:
        """Send an event and take the answer to it."""
        self._frames += 1
        about = json.dumps({"id": self._frames, "key": key})
        lost: ConnectionLost | None = yield SendFrame(f'{about[:-1]}, "event": {body}}}')
        if lost is not None:
            return lost
        while True:
            frame: str | ConnectionLost = yield ReceiveFrame()
            if isinstance(frame, ConnectionLost):
                return frame
            given = json.loads(frame)
            if given.get("id") == self._frames:
                break
            self._heard(given)
        if "problem" in given:
            problem = given["problem"]
            raise RequestRefused(problem["detail"], problem["status"], problem)
        if given.get("region") is not None:
            self._safe[key].accept(json.dumps(given["region"]))
        return None

    def _heard(self, frame: Mapping[str, Any]) -> None:
        """Take back a region if a frame says so."""
        known = self._safe.get(frame.get("withdrawn", ""))
        if known is not None:
            known.withdraw(frame["version"])
