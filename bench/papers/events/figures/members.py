"""The cost of an event in a `Detector` over the number of live members.

Taxis and riders are spread so that an event finds about one partner within reach, however many
members are live: the index grows with the number of members, the answers do not. Times are CPU
times of the thread. That of `push` is the median of blocks; that of the search is the index alone.
The baseline is a scan of all live members in NumPy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from bench.peers.figure_reports import at_most
from bench.progress import Progress
from bench.report import Report, Table
from bench.timing import figure
from fencepost.composite.detector import Detector
from fencepost.composite.model import Composite
from fencepost.kernels.detect.member_grid import PartnerQuery

REACH = 100.0
MEASURED = 2_000
SCANNED = 50
BLOCK = 50  # events timed together, as the clock of a thread is coarse
GROWS = 3.0  # the goal: the cost of an event grows at most by this factor
_START = 1_700_000_000_000_000_000
_STEP = 1_000_000  # one event a millisecond


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of live members."""

    live: tuple[int, ...]


FULL = Sizes((1_000, 10_000, 100_000, 1_000_000))
QUICK = Sizes((1_000, 5_000))


def run(sizes: Sizes, *, seed: int, source: str | None, progress: Progress) -> Report:
    """Measure at each number of live members; the data are always made up."""
    progress.expect(len(sizes.live))
    results = []
    for size in sizes.live:
        progress.step(f"{size:,} live members")
        results.append(_measured(size, np.random.default_rng(seed)))
    return _report(results, seed)


def _measured(size: int, rng: np.random.Generator) -> dict[str, Any]:
    # As many riders as taxis; a disc of the reach has one of each on average.
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
        ],
        space="planar",
    )
    began = time.thread_time()
    found = 0
    for first in range(0, size, 50_000):
        found += len(detector.push_batch(_events(rng, first, min(50_000, size - first), side)))
    filling_s = time.thread_time() - began
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
    query = PartnerQuery(0, False, REACH, int(within_s * 1e9), 0)
    live.find(query, rows, times, times)
    began = time.thread_time()
    live.find(query, rows, times, times)
    search_s = time.thread_time() - began
    return {
        "scan_us": _scanned(rng, size, side) * 1e6,
        "search_us": search_s / MEASURED * 1e6,
        "live": stats["live"],
        "batch_us": filling_s / size * 1e6,
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


def _scanned(rng: np.random.Generator, size: int, side: float) -> float:
    """Return the seconds of a scan of all live members, each with a location and a time."""
    x, y = rng.uniform(0, side, (2, size))
    times = _START + np.arange(size) * _STEP
    places = rng.uniform(0, side, (SCANNED, 2)).tolist()
    began = time.thread_time()
    for px, py in places:
        np.flatnonzero((times >= _START) & ((x - px) ** 2 + (y - py) ** 2 < REACH**2))
    return (time.thread_time() - began) / SCANNED


def _report(results: list[dict[str, Any]], seed: int) -> Report:
    smallest, largest = results[0], results[-1]
    goal = at_most(
        f"push with {largest['live']:,} live members / with {smallest['live']:,}",
        GROWS,
        largest["push_us"] / smallest["push_us"],
        "x",
    )
    met = {True: "yes", False: "NO", None: "-"}[goal.met]
    rows = [
        [
            f"{row['live']:,}",
            *(figure(row[name]) for name in ("search_us", "push_us", "slowest_us", "batch_us")),
            figure(row["scan_us"]),
            f"{row['found']:.2f}",
            f"{row['bytes']:.0f}",
        ]
        for row in results
    ]
    columns = ["live members", "search", "push", "slowest block", "batch", "scan by NumPy"]
    return Report(
        "members",
        "What an event costs while many others are live",
        {"seed": seed, "sizes": results, "goals": [goal.plain()]},
        [
            Table(
                "What was asked for",
                ["goal", "target", "measured", "met"],
                [[goal.what, goal.target, goal.measured, met]],
            ),
            Table("Microseconds an event", [*columns, "found", "bytes a member"], rows),
        ],
        lambda picture: _draw(picture, results),
        notes=[
            "Pairs of a taxi and a rider within a distance and a window, about one for each event "
            "at every size. Search: the index of live members alone, as `push` asks it. Push: one "
            "event in Python, read, matched, joined and kept; batch: `push_batch` of a table, "
            "which also fills the window.",
            f"Scan: distances to all live members in NumPy, mean of {SCANNED}.",
        ],
    )


def _draw(picture: Figure, results: list[dict[str, Any]]) -> None:
    axes = picture.subplots()
    live = [row["live"] for row in results]
    for name, label, colour in (
        ("search_us", "search of the index", "#6bbf8a"),
        ("push_us", "push, one event", "#0b6e4f"),
        ("scan_us", "scan by NumPy", "#e0a100"),
    ):
        axes.plot(live, [row[name] for row in results], "o-", color=colour, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("live members")
    axes.set_ylabel("microseconds an event")
    axes.legend()
