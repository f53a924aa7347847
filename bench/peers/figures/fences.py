"""Points in polygons: Fencepost beside Shapely, geoindex-rs and a compiled packed R-tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.peers import optional, ours, packed_rtree, trees
from bench.peers.contest import Effort, Outcome, measure
from bench.peers.figure_reports import Goal, at_most, report, times_faster
from bench.peers.polygons import spread, stars
from bench.progress import Progress
from bench.report import Report
from bench.timing import figure
from fencepost import Matcher
from fencepost.testing import Geometries

FENCE_POINTS = (10, 60)  # minimum and maximum
COVER = 2.0  # fences that a point is in, on average


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the figure."""

    fences: tuple[int, ...]
    points: int
    effort: Effort


FULL = Sizes((10_000, 1_000_000), 100_000, Effort(7, 20.0))
QUICK = Sizes((1_000, 10_000), 10_000, Effort(3, 2.0))


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure all methods, and compare their answers."""
    outcomes: dict[str, Outcome] = {}
    absent: dict[str, str] = {}
    progress.expect(5 * len(sizes.fences))
    for count in sizes.fences:
        label = f"{count:,} fences"
        outcomes[label], absent = _measure(count, sizes, seed, progress)
    goals = [goal for label, outcome in outcomes.items() for goal in _goals(label, outcome)]
    title = f"{sizes.points:,} points in {' and '.join(f'{n:,}' for n in sizes.fences)} polygons"
    return report(
        "fences",
        title,
        {
            "seed": seed,
            "points": sizes.points,
            "versions": optional.versions("shapely", "geoindex-rs"),
        },
        outcomes,
        goals,
        absent,
        size=(14.0, 6.0),
        notes=[
            f"Polygons of {FENCE_POINTS[0]} to {FENCE_POINTS[1]} points, spread over a square; a "
            "point is in "
            + " and ".join(figure(outcome.answers) for outcome in outcomes.values())
            + " of them.",
            "Fencepost gets WKB, GeoArrow, Shapely points or GeoJSON and returns ids, which are "
            "texts. Shapely gets Shapely points, the other methods x and y; these return row "
            "numbers.",
        ],
    )


def _measure(
    count: int, sizes: Sizes, seed: int, progress: Progress
) -> tuple[Outcome, dict[str, str]]:
    rng = np.random.default_rng([seed, count])
    polygons = stars(rng, rng.random((count, 2)), spread(rng, count, COVER), FENCE_POINTS)
    points = rng.random((sizes.points, 2))
    methods, absent = optional.gather(
        {
            "Fencepost": partial(ours.methods, partial(_subscribe, polygons), points, {}),
            "Shapely": partial(trees.strtree, polygons, points),
            "geoindex-rs": partial(trees.geoindex, polygons, points),
            "a packed R-tree": partial(packed_rtree.methods, polygons, points),
        },
        progress,
    )
    progress.step(f"matching {len(points):,} points with {count:,} fences")
    return measure(methods, len(points), sizes.effort, trees.STRTREE_BULK), absent


def _subscribe(polygons: Geometries, matcher: Matcher) -> None:
    matcher.subscribe_columns(
        ours.ids(len(polygons)), regions={ours.GEOMETRY: (polygons, "S_INTERSECTS")}
    )


def _goals(label: str, outcome: Outcome) -> list[Goal]:
    bulk, single = outcome.best_us(*ours.IN_BULK), outcome.best_us(*ours.ONE_BY_ONE)
    packed = outcome.best_us(trees.GEOINDEX, packed_rtree.SINGLE_NAME)
    return [
        times_faster(
            f"{label}: in bulk, beside Shapely's bulk query",
            4,
            bulk,
            outcome.best_us(trees.STRTREE_BULK),
        ),
        at_most(f"{label}: one at a time", 6, single, "us"),
        times_faster(f"{label}: one at a time, beside the faster packed R-tree", 1, single, packed),
    ]
