"""How often a key may ask: a bucket of tokens each."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from fencepost.server.problems import Refusal
from fencepost.server.settings import Limits

_MOST_REMEMBERED = 10_000


class Rates:
    """Counts requests by key; the oldest are forgotten beyond a bound."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, key: str) -> None:
        """Count a request; a Refusal where it is one too many."""
        rate, burst = self._limits.requests_per_s, self._limits.burst
        if rate <= 0:
            return
        now = self._clock()
        left, then = self._left.pop(key, (float(burst), now))
        left = min(burst, left + (now - then) * rate)
        allowed = left >= 1
        self._left[key] = (left - 1 if allowed else left), now
        if len(self._left) > _MOST_REMEMBERED:
            self._left.popitem(last=False)
        if not allowed:
            wait = (1 - left) / rate
            raise Refusal(
                429,
                f"more than {rate:g} requests a second; try again in {wait:.3g} s",
                {"retry-after": str(max(1, round(wait)))},
            )
