"""The messages of a subscriber as they come, from wherever the last connection broke off."""

from __future__ import annotations

import json

from fencepost.client.addresses import quoted
from fencepost.client.effects import (
    Hand,
    Lost,
    Open,
    Receive,
    Request,
    Steps,
    Stopped,
    Transmit,
    Wait,
)
from fencepost.client.retrying import Backoff, Patience, logger, may_be_tried_again
from fencepost.client.values import error_of, messages_of

_DONE_AT_MOST = 100


class Following:
    """What is known of a subscriber's messages: which was handed out last, which are done with.

    A message is done with when the next one is asked for. That is told to the server once all
    that came together are, or a hundred.
    """

    def __init__(
        self, server: str, patience: Patience, subscriber: str, since: int | None, tell: bool
    ) -> None:
        self._server, self._patience = server, patience
        self._subscriber = subscriber
        self._path = f"/v1/subscribers/{quoted(subscriber)}/socket"
        self._last = since  # handed out; None where the server knows it
        self._tell = tell
        self._done: int | None = None  # up to here, what is not told yet
        self._untold = 0

    def steps(self) -> Steps[None]:
        """Connect, hand out, connect again."""
        backoff = Backoff(self._patience)
        while True:
            query = {} if self._last is None else {"since": str(self._last)}
            lost: Lost | None = yield Open(self._path, query)
            if lost is None:
                if backoff.forever:
                    logger.warning("%s is reached again", self._server)
                backoff.forever = True  # who was there once comes back
                try:
                    lost = yield from self._read(backoff)
                except Stopped:
                    # As a request: a socket that is closed may take frames along that were sent.
                    if self._tell and self._done is not None:
                        yield acknowledging(self._subscriber, self._done)
                    return
            wait = backoff.failed() if may_be_tried_again(lost) else None
            error = error_of(lost, self._server)
            if wait is None:
                raise error
            logger.warning("%s; trying again in %.1f s", error, wait)
            yield Wait(wait)

    def _read(self, backoff: Backoff) -> Steps[Lost]:
        lost: Lost | None = yield from self._acknowledged()  # as the last one may not have arrived
        while lost is None:
            frame: str | Lost = yield Receive()
            if isinstance(frame, Lost):
                return frame
            backoff.succeeded()
            for message in messages_of(frame):
                if self._last is not None and message.position <= self._last:
                    continue
                yield Hand(message)
                self._last = self._done = message.position
                self._untold += 1
                if self._untold == _DONE_AT_MOST:
                    yield from self._acknowledged()
            lost = yield from self._acknowledged()
        return lost

    def _acknowledged(self) -> Steps[Lost | None]:
        self._untold = 0
        if not self._tell or self._done is None:
            return None
        lost: Lost | None = yield Transmit(json.dumps({"position": self._done}))
        return lost


def acknowledging(subscriber: str, position: int) -> Request:
    """What tells the server that all messages up to a position are read."""
    path = f"/v1/subscribers/{quoted(subscriber)}/acknowledgement"
    content = json.dumps({"position": position}).encode()
    return Request("POST", path, headers={"content-type": "application/json"}, content=content)
