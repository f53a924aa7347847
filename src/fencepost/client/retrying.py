"""When to try again what failed, and when to give up."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass

from fencepost.client.effects import Answer, Lost

logger = logging.getLogger("fencepost.client")
_FIRST_S = 0.25
_LONGEST_S = 10.0
_CALM_S = 60.0
_LATER = (429, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Patience:
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
    """Waits of twice the length each time, up to a bound; a minute without failure begins anew."""

    def __init__(self, patience: Patience, *, forever: bool = False) -> None:
        self._patience = patience
        self.forever = forever
        self._began = self._last = -float("inf")
        self._next = _FIRST_S

    def failed(self, asked_s: float = 0.0) -> float | None:
        """Seconds to wait after a failure, at least those that were asked; None to give up."""
        now = self._patience.clock()
        if now - self._last > _CALM_S:
            self._began, self._next = now, _FIRST_S
        left = self._began + self._patience.seconds - now
        if not self.forever and left <= asked_s:
            return None
        wait = max(asked_s, self._next * (0.5 + self._patience.chance() / 2))
        self._next = min(_LONGEST_S, self._next * 2)
        self._last = now + wait
        return wait if self.forever else min(wait, left)

    def succeeded(self) -> None:
        """Begin anew."""
        self._last = -float("inf")


def may_be_tried_again(outcome: Answer | Lost) -> bool:
    """Whether a request that failed so may succeed later."""
    if isinstance(outcome, Lost):
        return outcome.status == 0 or outcome.status in _LATER
    return outcome.status in _LATER


def asked_wait(outcome: Answer | Lost) -> float:
    """For how many seconds the server asks to be left alone."""
    given = outcome.headers.get("retry-after", "") if isinstance(outcome, Answer) else ""
    return float(given) if given.isascii() and given.isdigit() else 0.0
