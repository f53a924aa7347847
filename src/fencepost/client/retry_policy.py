"""When to try again what failed, and when to give up."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from fencepost.client.network_effects import ConnectionLost, Response, Sleep, Steps
from fencepost.client.results import error_of
from fencepost.delivery.retry_schedule import RetrySchedule, parse_retry_after

logger = logging.getLogger("fencepost.client")
_SCHEDULE = RetrySchedule(first_s=0.25, longest_s=10.0, longest_asked_s=float("inf"))
_CALM_S = 60.0
_LATER = (429, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long failures are put up with.

    Attributes
    ----------
    seconds : float
        From the first failure on, after which it is given up.
    clock : callable
        Seconds that only grow.
    chance : callable
        A random number from 0 to 1, so that clients do not come back all at once.
    """

    seconds: float
    clock: Callable[[], float]
    chance: Callable[[], float] = random.random


class Backoff:
    """When to try again, and when patience ends; a minute without failure begins anew."""

    def __init__(self, retry_policy: RetryPolicy, *, forever: bool = False) -> None:
        self._retry_policy = patience
        self.forever = forever
        self._began = self._last = -float("inf")
        self._failures = 0

    def failed(self, asked_s: float = 0.0) -> float | None:
        """Seconds to wait after a failure, at least those that were asked; None to give up."""
        now = self._retry_policy.clock()
        if now - self._last > _CALM_S:
            self._began, self._failures = now, 0
        left = self._began + self._retry_policy.seconds - now
        if not self.forever and left <= asked_s:
            return None
        self._failures += 1
        wait = _SCHEDULE.wait_s(self._failures, asked_s, self._retry_policy.chance())
        self._last = now + wait
        return wait if self.forever else min(wait, left)

    def succeeded(self) -> None:
        """Begin anew."""
        self._last = -float("inf")


def is_retryable(outcome: Response | ConnectionLost) -> bool:
    """Whether a request that failed so may succeed later."""
    if isinstance(outcome, ConnectionLost):
        return outcome.status == 0 or outcome.status in _LATER
    return outcome.status in _LATER


def requested_wait_s(outcome: Response | ConnectionLost) -> float:
    """For how many seconds the server asks to be left alone."""
    given = outcome.headers.get("retry-after", "") if isinstance(outcome, Response) else ""
    return parse_retry_after(given, time.time())


def wait_before_reconnect(backoff: Backoff, lost: ConnectionLost, server: str) -> Steps[None]:
    """Sleep until a connection that was lost is opened again; raises where that is no use."""
    wait = backoff.failed() if is_retryable(lost) else None
    error = error_of(lost, server)
    if wait is None:
        raise error
    logger.warning("%s; trying again in %.1f s", error, wait)
    yield Sleep(wait)
