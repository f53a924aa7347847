"""Single matches while subscriptions change all the time, half of the changes removals.

One thread does both: it makes the changes that are due, and then matches an event, again and again.
So a match waits for nobody, but finds new segments, and what was in the caches is no longer there.
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
from bench.peers.figures.growth import SMALLER, Boxes, draw
from bench.peers.showing import Goal, at_most, goal_table
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import figure
from fencepost import Matcher

QUANTILES = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}
MOST_SLOWER = 2.0  # the median while subscriptions change, beside that at rest
MOST_MS = 50.0  # of one match in a thousand
MOST_MEMORY = 1.25  # the most in the second half of the time, beside the most in the first
_PARTS = 40  # of the time, after each of which memory is looked at; a merge holds old and new
_NS_PER_US = 1e3


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; `verify` events are compared with all subscriptions, one by one."""

    subscriptions: int
    changes_a_second: int
    seconds: float
    events: int
    verify: int


FULL = Sizes(1_000_000, 10_000, 60.0, 50_000, 50)
QUICK = Sizes(20_000, 2_000, 2.0, 2_000, 20)


@dataclass(frozen=True, slots=True)
class Course:
    """What came of it: nanoseconds of each match and each change, and bytes after each part."""

    matches: NDArray[np.int64]
    changes: NDArray[np.int64]
    seconds: float
    memory: list[int]


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure and check."""
    progress.expect(4)
    progress.step(f"subscribing {sizes.subscriptions:,}")
    rng = np.random.default_rng([seed, 43, sizes.subscriptions])
    most = round(sizes.changes_a_second * sizes.seconds) // 2
    given = draw(rng, sizes.subscriptions + most, SMALLER)
    base = Boxes(given.boxes[: sizes.subscriptions], given.strings[: sizes.subscriptions])
    matcher = ours.subscribed(base.subscribe)
    events = _events(rng, given, sizes.events)
    matcher.subscribe("first", _text(given, 0))  # loads what adds and removes
    matcher.unsubscribe("first")
    matcher.compact()
    for event in events[:200]:
        matcher.match(event)
    progress.step("matching at rest")
    at_rest = _matched(matcher, events)
    progress.step(f"{sizes.changes_a_second:,} changes a second for {sizes.seconds:g} s")
    removed = rng.permutation(sizes.subscriptions)[:most]
    course = _change(matcher, given, removed, events, sizes)
    progress.step("checking")
    changed = len(course.changes) // 2
    there = np.ones(len(given.boxes), bool)
    there[removed[:changed]] = False
    there[sizes.subscriptions + changed :] = False
    wrong = _wrong(matcher, given, there, events[: sizes.verify])
    return _report(sizes, seed, at_rest, course, wrong)


def _events(rng: np.random.Generator, given: Boxes, count: int) -> list[dict[str, Any]]:
    places = rng.uniform(0.1, 0.9, (count, 2)).tolist()
    strings = rng.choice(given.strings, count).tolist()
    return [
        {ours.PLACE: {"type": "Point", "coordinates": xy}, "name": f"name-{number}"}
        for xy, number in zip(places, strings, strict=True)
    ]


def _matched(matcher: Matcher, events: Sequence[dict[str, Any]]) -> NDArray[np.int64]:
    """Nanoseconds of each match."""
    spent = np.empty(len(events), np.int64)
    for k, event in enumerate(events):
        begin = time.perf_counter_ns()
        matcher.match(event)
        spent[k] = time.perf_counter_ns() - begin
    return spent


def _change(
    matcher: Matcher,
    given: Boxes,
    removed: NDArray[np.int64],
    events: Sequence[dict[str, Any]],
    sizes: Sizes,
) -> Course:
    """Add the subscriptions behind the first ones, and remove some of these, as they are due."""
    texts = [_text(given, sizes.subscriptions + k) for k in range(len(removed))]
    numbers = removed.tolist()
    matches: list[int] = []
    changes: list[int] = []
    memory: list[int] = []
    clock = time.perf_counter_ns
    begin = now = clock()
    while len(changes) < 2 * len(numbers):
        due = min(int((now - begin) * 1e-9 * sizes.changes_a_second), 2 * len(numbers))
        while len(changes) < due:
            k, adds = len(changes) // 2, len(changes) % 2 == 0
            before = clock()
            if adds:
                matcher.subscribe(str(sizes.subscriptions + k), texts[k])
            else:
                matcher.unsubscribe(str(numbers[k]))
            changes.append(clock() - before)
            if len(changes) * _PARTS >= (len(memory) + 1) * 2 * len(numbers):
                memory.append(_resident())
        before = clock()
        matcher.match(events[len(matches) % len(events)])
        now = clock()
        matches.append(now - before)
    return Course(np.array(matches), np.array(changes), (now - begin) * 1e-9, memory)


def _text(given: Boxes, row: int) -> str:
    x0, y0, x1, y1 = given.boxes[row].tolist()
    where = f"S_INTERSECTS({ours.PLACE}, BBOX({x0}, {y0}, {x1}, {y1}))"
    return f"{where} AND name = 'name-{given.strings[row]}'"


def _resident() -> int:
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def _wrong(
    matcher: Matcher, given: Boxes, there: NDArray[np.bool_], events: Sequence[dict[str, Any]]
) -> int:
    """In how many ids the answers to some events differ from those found one by one."""
    right = []
    for event in events:
        rows = given.answers(
            event[ours.PLACE]["coordinates"], int(event["name"].removeprefix("name-"))
        )
        right.append(rows[there[rows]])
    found = [list(map(int, matcher.match(event))) for event in events]
    return len(np.setxor1d(pairs_of_lists(found), pairs_of_lists(right)))


def _report(
    sizes: Sizes, seed: int, at_rest: NDArray[np.int64], course: Course, wrong: int
) -> Report:
    every = {"at rest": at_rest, "while they change": course.matches, "changes": course.changes}
    shown = {
        name: {label: float(np.percentile(own, q)) / _NS_PER_US for label, q in QUANTILES.items()}
        for name, own in every.items()
    }
    reached = len(course.changes) / course.seconds
    during = shown["while they change"]
    goals = [
        Goal(
            "changes a second",
            f"{sizes.changes_a_second:,}",
            f"{reached:,.0f}",
            reached >= 0.99 * sizes.changes_a_second,
        ),
        at_most(
            "median of a match beside that at rest",
            MOST_SLOWER,
            during["p50"] / shown["at rest"]["p50"],
            "x",
        ),
        at_most("p99.9 of a match", MOST_MS, during["p99.9"] / 1e3, "ms"),
        at_most(
            "most memory in the second half beside the first",
            MOST_MEMORY,
            max(course.memory[_PARTS // 2 :]) / max(course.memory[: _PARTS // 2]),
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
            "seconds": course.seconds,
            "changes": len(course.changes),
            "matches": len(course.matches),
            "microseconds": shown,
            "memory": course.memory,
            "goals": [goal.plain() for goal in goals],
            "wrong_ids": wrong,
        },
        [goal_table(goals), _table(every, shown), _memory_table(course.memory)],
        lambda picture: _draw(picture, title, every),
        size=(10.0, 5.0),
        notes=[
            "A subscription is a box and a string, added as a text; every second change removes "
            "one of those that were there at first. One thread makes the changes that are due, "
            "one by one, and then matches one event, a GeoJSON point and a string.",
            f"Wrong ids after all changes: {wrong}, of {sizes.verify} events compared with all "
            "subscriptions one by one.",
        ],
    )


def _table(every: dict[str, NDArray[np.int64]], shown: dict[str, dict[str, float]]) -> Table:
    rows = [
        [name, f"{len(every[name]):,}", *(figure(value) for value in own.values())]
        for name, own in shown.items()
    ]
    return Table("Microseconds", ["what", "how many", *QUANTILES], rows)


def _memory_table(memory: Sequence[int]) -> Table:
    quarters = np.array(memory).reshape(4, -1) / 1e9
    rows = [
        [f"quarter {k + 1}", figure(own.min()), figure(own.max())] for k, own in enumerate(quarters)
    ]
    return Table("Memory of the process, GB", ["time", "least", "most"], rows)


def _draw(picture: Any, title: str, every: dict[str, NDArray[np.int64]]) -> None:
    axes = picture.subplots()
    colours = ("#0b6e4f", "#6bbf8a", "#e0a100")
    for (name, own), colour in zip(every.items(), colours, strict=True):
        left = 1.0 - np.arange(len(own)) / len(own)  # so many took as long, or longer
        axes.plot(np.sort(own) / _NS_PER_US, left, color=colour, label=name)
    log_axis(axes.xaxis)
    axes.set_yscale("log")
    axes.set_xlabel("microseconds")
    axes.set_ylabel("share that took longer")
    axes.set_title(title)
    picture.legend(loc="outside lower center", ncols=3, fontsize=10)
