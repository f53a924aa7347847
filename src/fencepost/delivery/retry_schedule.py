"""`RetrySchedule`: how long to wait between retries, and when to give up.

The server, Spark jobs and clients share it.
"""

from __future__ import annotations

import email.utils
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """Waits that grow exponentially, with full jitter, and limits on retries.

    Attributes
    ----------
    initial_wait_s, max_wait_s : float
        A wait is random between 0 and a bound. The bound is `initial_wait_s` after the first
        failure, doubles with each consecutive failure, and is at most `max_wait_s`. Endpoints that
        failed together are therefore not retried together.
    max_retry_after_s : float
        The longest wait that a `Retry-After` header may demand.
    max_rejections : int
        A message that was rejected this often becomes a dead letter.
    max_failures : int
    max_age_s : float
        A message of this age becomes a dead letter after `max_failures` consecutive failures.
    """

    initial_wait_s: float = 1.0
    max_wait_s: float = 300.0
    max_retry_after_s: float = 3_600.0
    max_rejections: int = 8
    max_failures: int = 10
    max_age_s: float = 86_400.0

    def wait_s(self, failures: int, retry_after_s: float, jitter: float) -> float:
        """Return the seconds to wait after a number of consecutive failures.

        Parameters
        ----------
        retry_after_s : float
            What the endpoint's `Retry-After` header asked for; 0 if it had none.
        jitter : float
            A random factor in [0, 1].
        """
        bound_s = min(self.max_wait_s, self.initial_wait_s * 2.0 ** min(failures - 1, 60))
        return max(jitter * bound_s, min(retry_after_s, self.max_retry_after_s))

    def should_give_up(self, failures: int, rejections: int, age_s: float) -> bool:
        """Return whether a message becomes a dead letter."""
        is_too_old = failures >= self.max_failures and age_s >= self.max_age_s
        return rejections >= self.max_rejections or is_too_old


def parse_retry_after(header: str, now_s: float) -> float:
    """Return the seconds that a `Retry-After` header asks to wait: a number or a date; else 0."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError):
        return 0.0
