"""Retries of a client: which failures are retried, how long to wait, when to give up."""

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
_SCHEDULE = RetrySchedule(initial_wait_s=0.25, max_wait_s=10.0, max_retry_after_s=float("inf"))
_RESET_AFTER_S = 60.0
_RETRYABLE_STATUSES = (429, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a client retries.

    Attributes
    ----------
    timeout_s : float
        Seconds from the first failure until the client gives up.
    clock_s : callable
        A monotonic clock, in seconds.
    jitter : callable
        Returns a random factor in [0, 1), so that clients do not retry in step.
    """

    timeout_s: float
    clock_s: Callable[[], float]
    jitter: Callable[[], float] = random.random


class Backoff:
    """Waits between the retries of one operation; a minute without a failure resets them.

    Parameters
    ----------
    retry_policy : RetryPolicy
    forever : bool
        Whether to ignore the policy's timeout.
    """

    def __init__(self, retry_policy: RetryPolicy, *, forever: bool = False) -> None:
        self._retry_policy = retry_policy
        self.forever = forever
        self._first_failure_s = self._last_retry_s = -float("inf")
        self._failures = 0

    def failed(self, requested_wait_s: float = 0.0) -> float | None:
        """Return the seconds to wait after a failure, or None to give up.

        The wait is at least what the server requested.
        """
        now_s = self._retry_policy.clock_s()
        if now_s - self._last_retry_s > _RESET_AFTER_S:
            self._first_failure_s, self._failures = now_s, 0
        left_s = self._first_failure_s + self._retry_policy.timeout_s - now_s
        if not self.forever and left_s <= requested_wait_s:
            return None
        self._failures += 1
        wait_s = _SCHEDULE.wait_s(self._failures, requested_wait_s, self._retry_policy.jitter())
        self._last_retry_s = now_s + wait_s
        return wait_s if self.forever else min(wait_s, left_s)

    def succeeded(self) -> None:
        """Reset the waits and the timeout."""
        self._last_retry_s = -float("inf")


def is_retryable(result: Response | ConnectionLost) -> bool:
    """Return whether a failed request may succeed later."""
    if isinstance(result, ConnectionLost):
        return result.status == 0 or result.status in _RETRYABLE_STATUSES
    return result.status in _RETRYABLE_STATUSES


def requested_wait_s(result: Response | ConnectionLost) -> float:
    """Return the seconds that the header `Retry-After` asks to wait, or 0."""
    header = result.headers.get("retry-after", "") if isinstance(result, Response) else ""
    return parse_retry_after(header, time.time())


def wait_before_reconnect(backoff: Backoff, lost: ConnectionLost, server: str) -> Steps[None]:
    """Wait before a lost connection is opened again; raise where retrying is of no use."""
    wait_s = backoff.failed() if is_retryable(lost) else None
    error = error_of(lost, server)
    if wait_s is None:
        raise error
    logger.warning("%s; trying again in %.1f s", error, wait_s)
    yield Sleep(wait_s)
