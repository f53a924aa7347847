"""When to try again, and when to give up; for servers, jobs and clients alike."""

from __future__ import annotations

import email.utils
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """How patient one is with the other side.

    Attributes
    ----------
    first_s, longest_s : float
        A wait is at random between 0 and `first_s`, doubled at each failure in a row, up to
        `longest_s` ("full jitter": endpoints that failed together do not come back together).
    longest_asked_s : float
        How long an endpoint may ask for in `Retry-After`.
    refusals : int
        After so many refusals a message is a dead letter.
    failures : int
    age_s : float
        After so many failures in a row, a message of this age is a dead letter.
    """

    first_s: float = 1.0
    longest_s: float = 300.0
    longest_asked_s: float = 3_600.0
    refusals: int = 8
    failures: int = 10
    age_s: float = 86_400.0

    def wait_s(self, failures: int, asked_s: float, chance: float) -> float:
        """How long to wait after so many failures in a row.

        Parameters
        ----------
        asked_s : float
            What the endpoint asked for; 0 where it did not.
        chance : float
            At random, from 0 to 1.
        """
        most = min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 60))
        return max(chance * most, min(asked_s, self.longest_asked_s))

    def gives_up(self, failures: int, refusals: int, age_s: float) -> bool:
        """Whether a message becomes a dead letter."""
        too_old = failures >= self.failures and age_s >= self.age_s
        return refusals >= self.refusals or too_old


def parse_retry_after(given: str, now_s: float) -> float:
    """How long the header `Retry-After` asks to wait: seconds, or a date; else 0."""
    text = given.strip()
    if text.isascii() and text.isdigit():
        return float(text[:10])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError):
        return 0.0
