"""Time of a selective event from one to ten million subscriptions, its answers held constant.

Subscriptions become more in two ways. Either places become smaller, while the strings stay as they
are; or the strings become more, while places stay as they are, so that more and more of them are
about each point. Only events with the same number of answers are timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.peers import ours
from bench.peers.contest import first, pairs_of_lists, timed
from bench.peers.showing import at_most, goal_table, microseconds
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import Timing, alternate, figure
from fencepost import Matcher

ANSWERS = 4
STRINGS = 50
SMALLER, MORE_STRINGS = "smaller places", "more strings"
BATCH, SINGLE = "in bulk", "one at a time"
_COVER = ANSWERS * STRINGS  # places that a point is in, where strings stay as they are
_LEAST_EVENTS = 50
_SHARE = 0.004  # of the square in a place, where places stay as they are


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured; `verify` events are compared with all subscriptions, one by one."""

    subscriptions: tuple[int, ...]
    events: int
    rounds: int
    budget_s: float
    verify: int


FULL = Sizes((1_000_000, 2_000_000, 5_000_000, 10_000_000), 5_000, 9, 10.0, 20)
QUICK = Sizes((10_000, 30_000, 100_000), 500, 3, 1.0, 10)


@dataclass(frozen=True, slots=True)
class Point:
    """What an event costs among so many subscriptions."""

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
        """Leave them all with a matcher."""
        matcher.subscribe_columns(
            ours.ids(len(self.boxes)),
            regions={ours.PLACE: (self.boxes, "S_INTERSECTS")},
            equals={"name": names(self.strings)},
        )

    def answers(self, place: Sequence[float], string: int) -> NDArray[np.int64]:
        """The rows that an event answers, by comparing all of them."""
        (x, y), (x0, y0, x1, y1) = place, self.boxes.T
        there = (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
        return np.flatnonzero(there & (self.strings == string))


def names(strings: NDArray[np.int64]) -> pa.Array:
    """Strings of these numbers."""
    texts = pa.array([f"name-{number}" for number in range(int(strings.max(initial=0)) + 1)])
    return pa.DictionaryArray.from_arrays(pa.array(strings), texts).cast(pa.string())


def draw(rng: np.random.Generator, count: int, mode: str) -> Boxes:
    """Subscriptions of which an event answers about `ANSWERS`."""
    share = min(_COVER / count, 0.25) if mode == SMALLER else _SHARE
    strings = STRINGS if mode == SMALLER else max(1, round(count * _SHARE / ANSWERS))
    low = rng.random((count, 2))
    sides = np.sqrt(share) * rng.uniform(0.5, 1.5, (count, 2))
    return Boxes(np.hstack((low - sides / 2, low + sides / 2)), rng.integers(0, strings, count))


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure and check."""
    progress.expect(2 * len(sizes.subscriptions))
    points = []
    for mode in (SMALLER, MORE_STRINGS):
        for count in sizes.subscriptions:
            progress.step(f"{count:,} subscriptions, {mode}")
            points.append(_measure(mode, count, sizes, seed))
    few, many = sizes.subscriptions[0], sizes.subscriptions[-1]
    goals = [
        at_most(f"{mode}, {way}: time at {many:,} / at {few:,}", 2, _growth(points, mode, way), "x")
        for mode in (SMALLER, MORE_STRINGS)
        for way in (SINGLE, BATCH)
    ]
    title = f"An event with {ANSWERS} answers among {few:,} to {many:,} subscriptions"
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
            f"A subscription is a box and a string. Smaller places: {STRINGS} strings, a point is "
            f"in {_COVER:,} boxes. More strings: boxes of {_SHARE:.1%} of the square, "
            f"{ANSWERS / _SHARE:,.0f} subscriptions for each string.",
            "Events differ, as many as the budget allows, so that the index does not stay in the "
            "caches because the same few come again; all of them have the same number of answers. "
            "One at a time: a GeoJSON point and a string. In bulk: a table of GeoArrow points and "
            "strings.",
            f"Wrong ids: {sizes.verify} events, compared with all subscriptions one by one.",
        ],
    )


def _measure(mode: str, count: int, sizes: Sizes, seed: int) -> Point:
    rng = np.random.default_rng([seed, 41, count])
    asked = draw(rng, count, mode)
    matcher, build_s = timed(lambda: ours.subscribed(asked.subscribe))
    places, strings = _selective(rng, matcher, asked, sizes)
    table = _table_of(places, strings)
    events = ours.events(
        [{"type": "Point", "coordinates": xy} for xy in places.tolist()],
        {"name": names(strings).to_pylist()},
    )
    found = matcher.match_batch(table)
    few = min(sizes.verify, len(events))
    chosen = zip(places[:few].tolist(), strings[:few].tolist(), strict=True)
    right = pairs_of_lists([asked.answers(place, string) for place, string in chosen])
    single = pairs_of_lists([list(map(int, matcher.match(event))) for event in events[:few]])
    bulk = first(ours.pairs_of_table(found), few)
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
        found.num_rows,
        times,
        len(np.setxor1d(single, right)) + len(np.setxor1d(bulk, right)),
    )


def _selective(
    rng: np.random.Generator, matcher: Matcher, asked: Boxes, sizes: Sizes
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Places and strings of events with `ANSWERS` answers; about a fifth of all have as many.

    As many as fit into the budget, but `_LEAST_EVENTS` at least.
    """

    def draw_events(count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        places = rng.uniform(0.1, 0.9, (count, 2))
        strings = rng.integers(0, int(asked.strings.max()) + 1, count)
        found = matcher.match_batch(_table_of(places, strings))
        chosen = np.bincount(found["event"].to_numpy(), minlength=count) == ANSWERS
        return places[chosen], strings[chosen]

    draw_events(_LEAST_EVENTS)  # compiles
    first_ones, seconds = timed(lambda: draw_events(_LEAST_EVENTS))
    each = sizes.budget_s / (sizes.rounds + 2) / (seconds / _LEAST_EVENTS)
    wanted = int(np.clip(each, _LEAST_EVENTS, max(_LEAST_EVENTS, sizes.events)))
    parts = [first_ones]
    while sum(len(strings) for _, strings in parts) < wanted:
        parts.append(draw_events(wanted))
    places, strings = (np.concatenate(column)[:wanted] for column in zip(*parts, strict=True))
    return places, strings


def _table_of(places: NDArray[np.float64], strings: NDArray[np.int64]) -> pa.Table:
    return pa.table({ours.PLACE: ours.geoarrow_points(places), "name": names(strings)})


def _plain(point: Point) -> dict[str, Any]:
    return {**asdict(point), "times": {way: own.plain() for way, own in point.times.items()}}


def _of(points: Sequence[Point], mode: str) -> list[Point]:
    return [point for point in points if point.mode == mode]


def _growth(points: Sequence[Point], mode: str, way: str) -> float:
    own = [point.times[way].min_ms for point in _of(points, mode)]
    return own[-1] / own[0]


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
            "answers of all",
            "built in, s",
            "bytes a subscription",
            "wrong ids",
        ],
        rows,
    )


def _draw(picture: Any, title: str, points: Sequence[Point]) -> None:
    axes = picture.subplots()
    for mode, line in ((SMALLER, "-"), (MORE_STRINGS, "--")):
        own = _of(points, mode)
        counts = [point.subscriptions for point in own]
        for way, colour in ((SINGLE, "#0b6e4f"), (BATCH, "#6bbf8a")):
            times = [point.times[way].min_ms * 1e3 for point in own]
            axes.plot(counts, times, line, marker="o", color=colour, label=f"{way}, {mode}")
    log_axis(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("microseconds an event")
    axes.set_title(title)
    picture.legend(loc="outside lower center", ncols=4, fontsize=10)
