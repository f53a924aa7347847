"""Times single matches while subscriptions change; half of the changes are removals.

One thread alternates between the changes that are due and matching an event. So a match never
waits for a change, but it searches new segments, and changes evict the index from the caches.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.peers import ours
from bench.peers.contest import pairs_of_lists
from bench.peers.figure_reports import Goal, at_most, goal_table
from bench.peers.figures.growth import SMALLER, Boxes, draw
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import figure
from fencepost import Matcher

QUANTILES = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
MAX_SLOWDOWN = 2.0  # of the median match, relative to matching at rest
MAX_P99_9_MS = 50.0
MAX_MEMORY_GROWTH = 1.25  # of the peak in the second half, relative to the first
_MEMORY_SAMPLES = 40  # many, because a merge holds old and new segments for a while
_NS_PER_US = 1e3


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the figure; `verify` events are compared with every subscription."""

    subscriptions: int
    changes_a_second: int
    seconds: float
    events: int
    verify: int


FULL = Sizes(1_000_000, 10_000, 60.0, 50_000, 50)
QUICK = Sizes(20_000, 2_000, 2.0, 2_000, 20)


@dataclass(frozen=True, slots=True)
class ChurnTimes:
    """The nanoseconds of each match and each change, and samples of the memory in bytes."""

    matches: NDArray[np.int64]
    changes: NDArray[np.int64]
    seconds: float
    memory: list[int]


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure matches at rest and during changes, and compare answers."""
    progress.expect(4)
    progress.step(f"subscribing {sizes.subscriptions:,}")
    rng = np.random.default_rng([seed, 43, sizes.subscriptions])
    added_count = round(sizes.changes_a_second * sizes.seconds) // 2
    drawn = draw(rng, sizes.subscriptions + added_count, SMALLER)
    base = Boxes(drawn.boxes[: sizes.subscriptions], drawn.strings[: sizes.subscriptions])
    matcher = ours.build_matcher(base.subscribe)
    events = _events(rng, drawn, sizes.events)
    matcher.subscribe("first", _text(drawn, 0))  # warms up adding and removing
    matcher.unsubscribe("first")
    matcher.compact()
    for event in events[:200]:
        matcher.match(event)
    progress.step("matching at rest")
    at_rest_ns = _match_times_ns(matcher, events)
    progress.step(f"{sizes.changes_a_second:,} changes a second for {sizes.seconds:g} s")
    removed = rng.permutation(sizes.subscriptions)[:added_count]
    churn = _match_during_changes(matcher, drawn, removed, events, sizes)
    progress.step("checking")
    changed = len(churn.changes) // 2
    is_live = np.ones(len(drawn.boxes), bool)
    is_live[removed[:changed]] = False
    is_live[sizes.subscriptions + changed :] = False
    wrong_ids = _count_wrong_ids(matcher, drawn, is_live, events[: sizes.verify])
    return _report(sizes, seed, at_rest_ns, churn, wrong_ids)


def _events(rng: np.random.Generator, drawn: Boxes, count: int) -> list[dict[str, Any]]:
    points = rng.uniform(0.1, 0.9, (count, 2)).tolist()
    strings = rng.choice(drawn.strings, count).tolist()
    return [
        {ours.GEOMETRY: {"type": "Point", "coordinates": xy}, "name": f"name-{number}"}
        for xy, number in zip(points, strings, strict=True)
    ]


def _match_times_ns(matcher: Matcher, events: Sequence[dict[str, Any]]) -> NDArray[np.int64]:
    """Return the nanoseconds of each match."""
    times_ns = np.empty(len(events), np.int64)
    for k, event in enumerate(events):
        begin = time.perf_counter_ns()
        matcher.match(event)
        times_ns[k] = time.perf_counter_ns() - begin
    return times_ns


def _match_during_changes(
    matcher: Matcher,
    drawn: Boxes,
    removed: NDArray[np.int64],
    events: Sequence[dict[str, Any]],
    sizes: Sizes,
) -> ChurnTimes:
    """Match events, and in between add rows after the initial ones, and remove initial rows."""
    texts = [_text(drawn, sizes.subscriptions + k) for k in range(len(removed))]
    removed_rows = removed.tolist()
    matches: list[int] = []
    changes: list[int] = []
    memory: list[int] = []
    clock = time.perf_counter_ns
    begin = now = clock()
    while len(changes) < 2 * len(removed_rows):
        due = min(int((now - begin) * 1e-9 * sizes.changes_a_second), 2 * len(removed_rows))
        while len(changes) < due:
            k, adds = len(changes) // 2, len(changes) % 2 == 0
            before = clock()
            if adds:
                matcher.subscribe(str(sizes.subscriptions + k), texts[k])
            else:
                matcher.unsubscribe(str(removed_rows[k]))
            changes.append(clock() - before)
            if len(changes) * _MEMORY_SAMPLES >= (len(memory) + 1) * 2 * len(removed_rows):
                memory.append(_resident())
        before = clock()
        matcher.match(events[len(matches) % len(events)])
        now = clock()
        matches.append(now - before)
    return ChurnTimes(np.array(matches), np.array(changes), (now - begin) * 1e-9, memory)


def _text(drawn: Boxes, row: int) -> str:
    x0, y0, x1, y1 = drawn.boxes[row].tolist()
    region = f"S_INTERSECTS({ours.GEOMETRY}, BBOX({x0}, {y0}, {x1}, {y1}))"
    return f"{region} AND name = 'name-{drawn.strings[row]}'"


def _resident() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def _count_wrong_ids(
    matcher: Matcher, drawn: Boxes, is_live: NDArray[np.bool_], events: Sequence[dict[str, Any]]
) -> int:
    """Return the number of ids that are missing or wrong in the matches of some events."""
    expected = []
    for event in events:
        rows = drawn.matching_rows(
            event[ours.GEOMETRY]["coordinates"], int(event["name"].removeprefix("name-"))
        )
        expected.append(rows[is_live[rows]])
    matches = [list(map(int, matcher.match(event))) for event in events]
    return len(np.setxor1d(pairs_of_lists(matches), pairs_of_lists(expected)))


def _report(
    sizes: Sizes, seed: int, at_rest_ns: NDArray[np.int64], churn: ChurnTimes, wrong_ids: int
) -> Report:
    times_ns = {"at rest": at_rest_ns, "during changes": churn.matches, "changes": churn.changes}
    quantiles_us = {
        name: {label: float(np.percentile(ns, q)) / _NS_PER_US for label, q in QUANTILES.items()}
        for name, ns in times_ns.items()
    }
    changes_per_s = len(churn.changes) / churn.seconds
    during = quantiles_us["during changes"]
    goals = [
        Goal(
            "changes a second",
            f"{sizes.changes_a_second:,}",
            f"{changes_per_s:,.0f}",
            changes_per_s >= 0.99 * sizes.changes_a_second,
        ),
        at_most(
            "median of a match, relative to matching at rest",
            MAX_SLOWDOWN,
            during["p50"] / quantiles_us["at rest"]["p50"],
            "x",
        ),
        at_most("p99.9 of a match", MAX_P99_9_MS, during["p99.9"] / 1e3, "ms"),
        at_most(
            "peak memory in the second half, relative to the first",
            MAX_MEMORY_GROWTH,
            max(churn.memory[_MEMORY_SAMPLES // 2 :]) / max(churn.memory[: _MEMORY_SAMPLES // 2]),
            "x",
        ),
    ]
    title = (
        f"{sizes.changes_a_second:,} changes a second over {sizes.subscriptions:,} "
        f"subscriptions, for {sizes.seconds:g} s"
    )
    return Report(
        "churn",
        title,
        {
            "seed": seed,
            "subscriptions": sizes.subscriptions,
            "seconds": churn.seconds,
            "changes": len(churn.changes),
            "matches": len(churn.matches),
            "microseconds": quantiles_us,
            "memory": churn.memory,
            "goals": [goal.plain() for goal in goals],
            "wrong_ids": wrong_ids,
        },
        [goal_table(goals), _table(times_ns, quantiles_us), _memory_table(churn.memory)],
        lambda picture: _draw(picture, title, times_ns),
        size=(10.0, 5.0),
        notes=[
            "A subscription is a box and a string, added as a text; every second change removes "
            "an initial subscription. One thread makes the changes that are due, one by one, and "
            "then matches one event, a GeoJSON point and a string.",
            f"Wrong ids after all changes: {wrong_ids}, of {sizes.verify} events compared with "
            "every subscription.",
        ],
    )


def _table(
    times_ns: dict[str, NDArray[np.int64]], quantiles_us: dict[str, dict[str, float]]
) -> Table:
    rows = [
        [name, f"{len(times_ns[name]):,}", *(figure(value) for value in values.values())]
        for name, values in quantiles_us.items()
    ]
    return Table("Microseconds", ["matches or changes", "count", *QUANTILES], rows)


def _memory_table(memory: Sequence[int]) -> Table:
    quarters = np.array(memory).reshape(4, -1) / 1e9
    rows = [
        [f"quarter {k + 1}", figure(samples.min()), figure(samples.max())]
        for k, samples in enumerate(quarters)
    ]
    return Table("Memory of the process, GB", ["time", "minimum", "maximum"], rows)


def _draw(picture: Any, title: str, times_ns: dict[str, NDArray[np.int64]]) -> None:
    axes = picture.subplots()
    colours = ("#0b6e4f", "#6bbf8a", "#e0a100")
    for (name, ns), colour in zip(times_ns.items(), colours, strict=True):
        fraction_as_slow = 1.0 - np.arange(len(ns)) / len(ns)
        axes.plot(np.sort(ns) / _NS_PER_US, fraction_as_slow, color=colour, label=name)
    log_axis(axes.xaxis)
    axes.set_yscale("log")
    axes.set_xlabel("microseconds")
    axes.set_ylabel("fraction that took at least as long")
    axes.set_title(title)
    picture.legend(loc="outside lower center", ncols=3, fontsize=10)
