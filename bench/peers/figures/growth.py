"""Times an event with a constant number of matches, among one to ten million subscriptions.

The number of subscriptions grows in two ways: boxes become smaller while the number of strings
stays, or strings become more while boxes stay, so that more and more boxes contain a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.peers import ours
from bench.peers.contest import pairs_of_first, pairs_of_lists, timed
from bench.peers.figure_reports import at_most, goal_table, microseconds
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import Timing, alternate, figure
from fencepost import Matcher

MATCHES = 4  # of an event
STRINGS = 50
SMALLER, MORE_STRINGS = "smaller boxes", "more strings"
BATCH, SINGLE = "in bulk", "one at a time"
_COVER = MATCHES * STRINGS  # boxes that contain a point, if the number of strings stays
_MIN_EVENTS = 50
_BOX_AREA = 0.004  # mean, in a unit square, if boxes stay


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the figure; `verify` events are compared with every subscription."""

    subscriptions: tuple[int, ...]
    events: int
    rounds: int
    budget_s: float
    verify: int


FULL = Sizes((1_000_000, 2_000_000, 5_000_000, 10_000_000), 5_000, 9, 10.0, 20)
QUICK = Sizes((10_000, 30_000, 100_000), 500, 3, 1.0, 10)


@dataclass(frozen=True, slots=True)
class Point:
    """The measurements at one number of subscriptions."""

    mode: str
    subscriptions: int
    build_s: float
    bytes: int
    events: int
    answers: int
    times: dict[str, Timing]
    wrong_ids: int


@dataclass(frozen=True, slots=True)
class Boxes:
    """Subscriptions: a box and a string each."""

    boxes: NDArray[np.float64]
    strings: NDArray[np.int64]

    def subscribe(self, matcher: Matcher) -> None:
        """Add all subscriptions to a matcher."""
        matcher.subscribe_columns(
            ours.ids(len(self.boxes)),
            regions={ours.GEOMETRY: (self.boxes, "S_INTERSECTS")},
            equals={"name": names(self.strings)},
        )

    def matching_rows(self, point: Sequence[float], string: int) -> NDArray[np.int64]:
        """Return the rows that match an event, by comparing all of them."""
        (x, y), (x0, y0, x1, y1) = point, self.boxes.T
        contains = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
        return np.flatnonzero(contains & (self.strings == string))


def names(strings: NDArray[np.int64]) -> pa.Array:
    """Return the strings with these numbers."""
    texts = pa.array([f"name-{number}" for number in range(int(strings.max(initial=0)) + 1)])
    return pa.DictionaryArray.from_arrays(pa.array(strings), texts).cast(pa.string())


def draw(rng: np.random.Generator, count: int, mode: str) -> Boxes:
    """Draw subscriptions of which about `MATCHES` match an event."""
    area = min(_COVER / count, 0.25) if mode == SMALLER else _BOX_AREA
    strings = STRINGS if mode == SMALLER else max(1, round(count * _BOX_AREA / MATCHES))
    low = rng.random((count, 2))
    sides = np.sqrt(area) * rng.uniform(0.5, 1.5, (count, 2))
    return Boxes(np.hstack((low - sides / 2, low + sides / 2)), rng.integers(0, strings, count))


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure both kinds of growth, and compare answers."""
    progress.expect(2 * len(sizes.subscriptions))
    points = []
    for mode in (SMALLER, MORE_STRINGS):
        for count in sizes.subscriptions:
            progress.step(f"{count:,} subscriptions, {mode}")
            points.append(_measure(mode, count, sizes, seed))
    few, many = sizes.subscriptions[0], sizes.subscriptions[-1]
    goals = [
        at_most(
            f"{mode}, {batching}: time at {many:,} / at {few:,}",
            2,
            _growth(points, mode, batching),
            "x",
        )
        for mode in (SMALLER, MORE_STRINGS)
        for batching in (SINGLE, BATCH)
    ]
    title = f"An event with {MATCHES} matches among {few:,} to {many:,} subscriptions"
    return Report(
        "growth",
        title,
        {
            "seed": seed,
            "points": [_plain(point) for point in points],
            "goals": [goal.plain() for goal in goals],
            "wrong_ids": sum(point.wrong_ids for point in points),
        },
        [goal_table(goals), _table(points)],
        lambda picture: _draw(picture, title, points),
        size=(11.0, 5.0),
        notes=[
            f"A subscription is a box and a string. Smaller boxes: {STRINGS} strings, a point is "
            f"in {_COVER:,} boxes. More strings: boxes of {_BOX_AREA:.1%} of the square, "
            f"{MATCHES / _BOX_AREA:,.0f} subscriptions for each string.",
            "There are as many different events as the budget allows, so that the index does not "
            "stay in the caches; all of them have the same number of matches. One at a time: a "
            "GeoJSON point and a string. In bulk: a table of GeoArrow points and strings.",
            f"Wrong ids: {sizes.verify} events, compared with every subscription.",
        ],
    )


def _measure(mode: str, count: int, sizes: Sizes, seed: int) -> Point:
    rng = np.random.default_rng([seed, 41, count])
    boxes = draw(rng, count, mode)
    matcher, build_s = timed(lambda: ours.build_matcher(boxes.subscribe))
    points, strings = _draw_events(rng, matcher, boxes, sizes)
    table = _table_of(points, strings)
    events = ours.events(
        [{"type": "Point", "coordinates": xy} for xy in points.tolist()],
        {"name": names(strings).to_pylist()},
    )
    matches = matcher.match_batch(table)
    verified = min(sizes.verify, len(events))
    sample = zip(points[:verified].tolist(), strings[:verified].tolist(), strict=True)
    expected = pairs_of_lists([boxes.matching_rows(point, string) for point, string in sample])
    single = pairs_of_lists([list(map(int, matcher.match(event))) for event in events[:verified]])
    bulk = pairs_of_first(ours.pairs_of_table(matches), verified)
    times = alternate(
        {
            SINGLE: lambda: [matcher.match(event) for event in events],
            BATCH: lambda: matcher.match_batch(table),
        },
        items=len(events),
        rounds=sizes.rounds,
        budget_s=sizes.budget_s,
    )
    return Point(
        mode,
        count,
        build_s,
        int(matcher.stats()["bytes"]),
        len(events),
        matches.num_rows,
        times,
        len(np.setxor1d(single, expected)) + len(np.setxor1d(bulk, expected)),
    )


def _draw_events(
    rng: np.random.Generator, matcher: Matcher, boxes: Boxes, sizes: Sizes
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points and strings of events with exactly `MATCHES` matches, a fifth of all events.

    There are as many as the budget allows, but at least `_MIN_EVENTS`.
    """

    def draw_some(count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        points = rng.uniform(0.1, 0.9, (count, 2))
        strings = rng.integers(0, int(boxes.strings.max()) + 1, count)
        matches = matcher.match_batch(_table_of(points, strings))
        chosen = np.bincount(matches["event"].to_numpy(), minlength=count) == MATCHES
        return points[chosen], strings[chosen]

    draw_some(_MIN_EVENTS)  # compiles
    first_part, seconds = timed(lambda: draw_some(_MIN_EVENTS))
    affordable = sizes.budget_s / (sizes.rounds + 2) / (seconds / _MIN_EVENTS)
    count = int(np.clip(affordable, _MIN_EVENTS, max(_MIN_EVENTS, sizes.events)))
    parts = [first_part]
    while sum(len(strings) for _, strings in parts) < count:
        parts.append(draw_some(count))
    points, strings = (np.concatenate(column)[:count] for column in zip(*parts, strict=True))
    return points, strings


def _table_of(points: NDArray[np.float64], strings: NDArray[np.int64]) -> pa.Table:
    return pa.table({ours.GEOMETRY: ours.geoarrow_points(points), "name": names(strings)})


def _plain(point: Point) -> dict[str, Any]:
    times = {batching: timing.plain() for batching, timing in point.times.items()}
    return {**asdict(point), "times": times}


def _points_of_mode(points: Sequence[Point], mode: str) -> list[Point]:
    return [point for point in points if point.mode == mode]


def _growth(points: Sequence[Point], mode: str, batching: str) -> float:
    times_ms = [point.times[batching].min_ms for point in _points_of_mode(points, mode)]
    return times_ms[-1] / times_ms[0]


def _table(points: Sequence[Point]) -> Table:
    rows = [
        [
            p.mode,
            f"{p.subscriptions:,}",
            microseconds(p.times[SINGLE]),
            microseconds(p.times[BATCH]),
            f"{p.events:,}",
            f"{p.answers:,}",
            figure(p.build_s),
            figure(p.bytes / p.subscriptions),
            f"{p.wrong_ids}",
        ]
        for p in points
    ]
    return Table(
        "Microseconds an event: best round (mean ± deviation)",
        [
            "grows by",
            "subscriptions",
            f"us, {SINGLE}",
            f"us, {BATCH}",
            "events",
            "matches of all",
            "built in, s",
            "bytes a subscription",
            "wrong ids",
        ],
        rows,
    )


def _draw(picture: Any, title: str, points: Sequence[Point]) -> None:
    axes = picture.subplots()
    for mode, line in ((SMALLER, "-"), (MORE_STRINGS, "--")):
        mode_points = _points_of_mode(points, mode)
        counts = [point.subscriptions for point in mode_points]
        for batching, colour in ((SINGLE, "#0b6e4f"), (BATCH, "#6bbf8a")):
            times_us = [point.times[batching].min_ms * 1e3 for point in mode_points]
            label = f"{batching}, {mode}"
            axes.plot(counts, times_us, line, marker="o", color=colour, label=label)
    log_axis(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("microseconds an event")
    axes.set_title(title)
    picture.legend(loc="outside lower center", ncols=4, fontsize=10)
