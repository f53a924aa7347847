"""Timing several ways to do one thing, by turns in one process, so that noise hits all alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

_ROUND_S = 0.05


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds for one item: the best round; median, mean and deviation of all rounds."""

    min_ms: float
    median_ms: float
    mean_ms: float
    std_ms: float
    rounds: int

    def __str__(self) -> str:
        spread = f" ({figure(self.mean_ms)} ± {figure(self.std_ms)})" if self.rounds > 1 else ""
        return figure(self.min_ms) + spread

    def plain(self) -> dict[str, float]:
        """The numbers, for JSON."""
        return asdict(self)


def alternate(
    ways: Mapping[str, Callable[[], object]],
    *,
    items: int | Mapping[str, int],
    rounds: int,
    budget_s: float,
) -> dict[str, Timing]:
    """Time each way in turn, round after round; each has worked through `items` when it returns.

    `items` may differ from way to way.

    One round more comes first and is not counted. A way whose rounds would take more than
    `budget_s` together has fewer of them, but at least one. In a round a way runs again and again
    for `_ROUND_S` at least, after one run that is not counted if that is short: what is timed is a
    way at work, not how long its data takes to come back into the processor's caches.
    """
    turns = {}
    for name, way in ways.items():
        first = _seconds(way)
        turns[name] = int(np.clip(budget_s / max(first, 1e-9), 1, rounds))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name, way in ways.items():
            if turn < turns[name]:
                own = items if isinstance(items, int) else items[name]
                times[name].append(_seconds(way) / own * 1e3)
    return {name: _timing(own) for name, own in times.items()}


def _seconds(way: Callable[[], object]) -> float:
    """The time of one run."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        way()
        took = time.perf_counter() - start
        if took >= _ROUND_S:
            return took
        runs = 0
        start = time.perf_counter()
        while took < _ROUND_S:
            way()
            runs += 1
            took = time.perf_counter() - start
        return took / runs
    finally:
        if collecting:
            gc.enable()


def _timing(times: list[float]) -> Timing:
    mean, deviation = float(np.mean(times)), float(np.std(times))
    return Timing(min(times), float(np.median(times)), mean, deviation, len(times))


def figure(value: float) -> str:
    """A number with three significant digits."""
    if value == 0 or not np.isfinite(value):
        return f"{value:.0f}"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{digits}f}"


def ratio(slow: float, fast: float) -> str:
    """How many times faster, for a table."""
    times = slow / fast
    return f"{times:,.0f}x" if times >= 20 else f"{times:.1f}x" if times >= 1 else f"{times:.2f}x"
