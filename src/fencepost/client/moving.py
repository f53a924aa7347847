"""Things that move and are published only when somebody may want to know.

The server answers an event with a safe region: as long as the thing is in it and its attributes
are what they were, its events match nothing. Regions are taken back over the same WebSocket, so
they count only while it is open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fencepost.client.effects import Lost, Open, Receive, Steps, Transmit, Wait
from fencepost.client.publishing import json_line
from fencepost.client.retrying import Backoff, Patience, logger, may_be_tried_again
from fencepost.client.values import error_of, refused
from fencepost.saferegion.client import SafeClient

PATH = "/v1/publish/socket"


class Movers:
    """The things that a client publishes about, over one WebSocket.

    One frame is under way at a time, so that the next one with a position is the answer to it.
    """

    def __init__(self, server: str, patience: Patience) -> None:
        self._server, self._patience = server, patience
        self._safe: dict[str, SafeClient] = {}

    def region_of(self, key: str) -> SafeClient:
        """What is known about a thing."""
        return self._safe.setdefault(key, SafeClient())

    def forget(self, key: str) -> None:
        """Know nothing of a thing any more."""
        self._safe.pop(key, None)

    def send(self, key: str, event: Mapping[str, Any]) -> Steps[bool]:
        """Publish an event of a thing if it may matter to anybody; whether it was sent."""
        body = json_line(event, 0).decode()
        backoff = Backoff(self._patience)
        while True:
            lost: Lost | None = yield from self._caught_up()
            if lost is not None:
                self._safe.clear()
                lost = yield Open(PATH)
            if lost is None:
                if not self.region_of(key).should_send(event):
                    return False
                lost = yield Transmit(f'{{"key":{json.dumps(key)},"event":{body}}}')
            if lost is None:
                lost = yield from self._answered(key)
            if lost is None:
                return True
            self._safe.clear()
            wait = backoff.failed() if may_be_tried_again(lost) else None
            error = error_of(lost, self._server)
            if wait is None:
                raise error
            logger.warning("%s; trying again in %.1f s", error, wait)
            yield Wait(wait)

    def _caught_up(self) -> Steps[Lost | None]:
        """Take what the server has said in the meantime."""
        while True:
            frame: str | Lost | None = yield Receive(wait=False)
            if frame is None or isinstance(frame, Lost):
                return frame
            self._heard(json.loads(frame))

    def _answered(self, key: str) -> Steps[Lost | None]:
        """Wait for the answer to an event."""
        while True:
            frame: str | Lost = yield Receive()
            if isinstance(frame, Lost):
                return frame
            given = json.loads(frame)
            if self._heard(given):
                continue
            if "detail" in given:
                raise refused(int(given.get("status", 422)), given["detail"])
            region = given.get("region")
            if region is not None:
                text = region if isinstance(region, str) else json.dumps(region)
                self.region_of(key).accept(text)
            return None

    def _heard(self, frame: Mapping[str, Any]) -> bool:
        """Take back a region if a frame says so; whether it does."""
        if "withdraw" not in frame:
            return False
        known = self._safe.get(frame["key"])
        if known is not None:
            known.withdraw(frame["withdraw"])
        return True
