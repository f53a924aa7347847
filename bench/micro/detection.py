"""What an event costs a `Detector` while many others are live.

Taxis and riders, uniformly spread so that an event finds about one partner within reach however
many are live: what grows with the number of members, then, is the index and not the answers. Times
are of the thread; of `push` it is the median of blocks, and the search is of the index alone.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
from rich.table import Table

from fencepost.composite.detector import Detector
from fencepost.composite.model import Composite
from fencepost.kernels.members import Asked

REACH = 100.0
MEASURED = 2_000
BLOCK = 50  # events timed together, as the clock of a thread is coarse
_START = 1_700_000_000_000_000_000
_STEP = 1_000_000  # one event a millisecond


def run(
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000), seed: int = 0
) -> list[dict[str, Any]]:
    """For each number of live members, microseconds by event."""
    return [_measured(size, np.random.default_rng(seed)) for size in sizes]


def _measured(size: int, rng: np.random.Generator) -> dict[str, Any]:
    # One rider for each taxi, and one of either in a disc of the reach on average.
    side = float(np.sqrt(size / 2 * np.pi * REACH**2))
    within_s = size * _STEP / 1e9
    detector = Detector(
        [
            Composite(
                "pick-up",
                {"taxi": "kind = 'taxi'", "rider": "kind = 'rider'"},
                [f"DIST(taxi, rider) < {REACH}"],
                within_s,
            )
        ]
    )
    began = time.thread_time()
    found = 0
    for first in range(0, size, 50_000):
        found += len(detector.push_batch(_events(rng, first, min(50_000, size - first), side)))
    filling = time.thread_time() - began
    events = _events(rng, size, MEASURED, side).to_pylist()
    costs, answers = [], 0
    for first in range(0, MEASURED, BLOCK):
        began = time.thread_time()
        for event in events[first : first + BLOCK]:
            answers += len(detector.push(event))
        costs.append((time.thread_time() - began) / BLOCK)
    stats = detector.stats()
    live = detector._live
    rows = rng.integers(0, len(live.keys), MEASURED)
    times = live.arrays.items["latest"][rows]
    asked = Asked(0, False, REACH, int(within_s * 1e9), 0)
    live.find(asked, rows, times, times)
    began = time.thread_time()
    live.find(asked, rows, times, times)
    search = time.thread_time() - began
    return {
        "search_us": search / MEASURED * 1e6,
        "live": stats["live"],
        "batch_us": filling / size * 1e6,
        "push_us": float(np.median(costs)) * 1e6,
        "slowest_us": max(costs) * 1e6,
        "found": answers / MEASURED,
        "bytes": stats["bytes"] / max(stats["live"], 1),
    }


def _events(rng: np.random.Generator, first: int, count: int, side: float) -> pa.Table:
    numbers = np.arange(first, first + count)
    places = rng.uniform(0, side, (count, 2))
    return pa.table(
        {
            "id": numbers,
            "kind": np.where(numbers % 2, "taxi", "rider"),
            "time": (_START + numbers * _STEP).astype("datetime64[ns]"),
            "geometry": [f"POINT ({x!r} {y!r})" for x, y in places.tolist()],
        }
    )


def render(found: list[dict[str, Any]]) -> Table:
    """A line for each number of live members."""
    table = Table(
        "live members",
        "search, us",
        "push, us",
        "slowest block",
        "batch, us",
        "found",
        "bytes a member",
    )
    for row in found:
        table.add_row(
            f"{row['live']:,}",
            f"{row['search_us']:.2f}",
            f"{row['push_us']:.1f}",
            f"{row['slowest_us']:.1f}",
            f"{row['batch_us']:.1f}",
            f"{row['found']:.2f}",
            f"{row['bytes']:.0f}",
        )
    return table
