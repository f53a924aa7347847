"""`alternate`: times several methods by turns in one process, so that noise affects all equally."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import numpy as np

_ROUND_S = 0.05


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds an item: best round, and median, mean and deviation of all rounds."""

    min_ms: float
    median_ms: float
    mean_ms: float
    std_ms: float
    rounds: int

    def __str__(self) -> str:
        spread = f" ({figure(self.mean_ms)} ± {figure(self.std_ms)})" if self.rounds > 1 else ""
        return figure(self.min_ms) + spread

    def plain(self) -> dict[str, float]:
        """Return the numbers for JSON."""
        return asdict(self)


def alternate(
    methods: Mapping[str, Callable[[], object]],
    *,
    items: int | Mapping[str, int],
    rounds: int,
    budget_s: float,
) -> dict[str, Timing]:
    """Time methods in turn, round after round, and return the timing of each by name.

    In a round, a method runs repeatedly for at least `_ROUND_S`. A short first run is not counted:
    it brings the method's data into the processor's caches.

    Parameters
    ----------
    methods : mapping of str to callable
        A call processes all items of the method.
    items : int or mapping of str to int
        The number of items, of all methods or of each.
    rounds : int
        Rounds after a warm-up round.
    budget_s : float
        A method whose rounds would take longer in total has fewer of them, but at least one.
    """
    affordable = {}
    for name, method in methods.items():
        warm_up_s = _seconds(method)
        affordable[name] = int(np.clip(budget_s / max(warm_up_s, 1e-9), 1, rounds))
    times: dict[str, list[float]] = {name: [] for name in methods}
    for turn in range(rounds):
        for name, method in methods.items():
            if turn < affordable[name]:
                item_count = items if isinstance(items, int) else items[name]
                times[name].append(_seconds(method) / item_count * 1e3)
    return {name: _timing(item_times) for name, item_times in times.items()}


def _seconds(method: Callable[[], object]) -> float:
    """Return the seconds of a run."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        method()
        took = time.perf_counter() - start
        if took >= _ROUND_S:
            return took
        runs = 0
        start = time.perf_counter()
        while took < _ROUND_S:
            method()
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
    """Return a number as text, with three significant digits."""
    if value == 0 or not np.isfinite(value):
        return f"{value:.0f}"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{value:,.{digits}f}"


def ratio(slow: float, fast: float) -> str:
    """Return how many times as long `slow` takes as `fast`, as text."""
    factor = slow / fast
    return (
        f"{factor:,.0f}x" if factor >= 20 else f"{factor:.1f}x" if factor >= 1 else f"{factor:.2f}x"
    )
