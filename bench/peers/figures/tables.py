"""Points in zones, table by table: Fencepost beside `geopandas.sjoin`, subscription included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from bench import data
from bench.peers import optional
from bench.peers.figure_reports import Goal, goal_table
from bench.peers.polygons import spread, stars
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import Timing, alternate, figure, ratio
from fencepost import Matcher
from fencepost.testing import Geometries

OURS, SJOIN = "Fencepost: subscribe_frame, match_frame", "geopandas.sjoin"
_LAYER = "us_census_tracts_2019_500k"
_MIDDLE = (-73.98, 40.75)  # of the zones: Manhattan
_FASTER_FROM = 200  # zones
_COLOURS = {OURS: "#0b6e4f", SJOIN: "#e0a100"}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the figure."""

    zones: tuple[int, ...]
    points: int
    rounds: int
    budget_s: float


FULL = Sizes((20, 200, 2_000, 20_000), 200_000, 7, 20.0)
QUICK = Sizes((20, 200), 20_000, 3, 2.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """The measurements with one number of zones."""

    zones: int
    pairs: int
    differing: int
    times: dict[str, Timing]

    def plain(self) -> dict[str, Any]:
        """Return the values for JSON."""
        times = {name: timing.plain() for name, timing in self.times.items()}
        return {
            "zones": self.zones,
            "pairs": self.pairs,
            "differing": self.differing,
            "times": times,
        }


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure both ways with each number of zones, and compare their pairs."""
    geopandas = optional.load("geopandas", "geopandas")
    is_real = data.exists(_LAYER)
    all_zones = data.read(_LAYER) if is_real else None
    settings = []
    progress.expect(len(sizes.zones))
    for count in sizes.zones:
        progress.step(f"{sizes.points:,} points in {count:,} zones")
        settings.append(_measure(geopandas, all_zones, count, sizes, seed))
    source = "census tracts of the USA" if is_real else "generated polygons"
    goals = [_goal(setting) for setting in settings if setting.zones >= _FASTER_FROM]
    title = f"{sizes.points:,} points in zones, as tables"
    return Report(
        "tables",
        title,
        {
            "seed": seed,
            "points": sizes.points,
            "zones": source,
            "versions": optional.versions("geopandas", "shapely"),
            "settings": [setting.plain() for setting in settings],
            "goals": [goal.plain() for goal in goals],
            "differing": sum(setting.differing for setting in settings),
        },
        [goal_table(goals), _table(settings)],
        lambda picture: _draw(picture, title, settings),
        notes=[
            f"Zones are {source}, those nearest to Manhattan; points are uniform in the box of the "
            "zones.",
            "Both ways take a GeoDataFrame of zones and one of points, and return a joined "
            "GeoDataFrame. Each run includes everything: the index of the zones, too.",
            "Pairs that differ are pairs of a point and a zone that only one of the two returns.",
        ],
    )


def _measure(
    geopandas: Any, all_zones: Geometries | None, count: int, sizes: Sizes, seed: int
) -> Setting:
    rng = np.random.default_rng([seed, count])
    if all_zones is None:
        middles = rng.random((count, 2))
        polygons = stars(rng, middles, spread(rng, count, 1.0), (10, 120))
    else:
        nearest = np.argsort(shapely.distance(all_zones, shapely.Point(_MIDDLE)))
        polygons = all_zones[nearest[:count]]
    names = [f"zone-{number}" for number in range(len(polygons))]
    zones = geopandas.GeoDataFrame({"name": names}, geometry=polygons, crs="OGC:CRS84")
    x0, y0, x1, y1 = shapely.total_bounds(polygons)
    places = rng.uniform((x0, y0), (x1, y1), (sizes.points, 2))
    points = geopandas.GeoDataFrame(geometry=shapely.points(places), crs="OGC:CRS84")

    def ours() -> Any:
        matcher = Matcher()
        matcher.subscribe_frame(zones, id="name", relation="S_INTERSECTS")
        return matcher.match_frame(points)

    def sjoin() -> Any:
        return geopandas.sjoin(points, zones, predicate="intersects")

    times = alternate(
        {OURS: ours, SJOIN: sjoin}, items=1, rounds=sizes.rounds, budget_s=sizes.budget_s
    )
    our_frame, their_frame = ours(), sjoin()
    our_pairs = set(zip(our_frame.index, our_frame["subscription"], strict=True))
    their_pairs = set(zip(their_frame.index, their_frame["name"], strict=True))
    return Setting(len(polygons), len(their_pairs), len(our_pairs ^ their_pairs), times)


def _goal(setting: Setting) -> Goal:
    our_ms, their_ms = (setting.times[name].min_ms for name in (OURS, SJOIN))
    return Goal(
        f"{setting.zones:,} zones: faster than geopandas.sjoin",
        "1x or more",
        ratio(their_ms, our_ms),
        their_ms >= our_ms,
    )


def _table(settings: list[Setting]) -> Table:
    columns = ["zones", OURS, SJOIN, "pairs", "pairs that differ"]
    rows = [
        [
            f"{setting.zones:,}",
            str(setting.times[OURS]),
            str(setting.times[SJOIN]),
            f"{setting.pairs:,}",
            f"{setting.differing:,}",
        ]
        for setting in settings
    ]
    return Table("Milliseconds of a join: best round (mean ± deviation)", columns, rows)


def _draw(picture: Any, title: str, settings: list[Setting]) -> None:
    axes = picture.subplots()
    zones = [setting.zones for setting in settings]
    for name, colour in _COLOURS.items():
        values = [setting.times[name].min_ms for setting in settings]
        axes.plot(zones, values, marker="o", color=colour, label=name)
        for count, value in zip(zones, values, strict=True):
            axes.annotate(
                figure(value), (count, value), xytext=(0, 8), textcoords="offset points",
                ha="center", fontsize=10,
            )  # fmt: skip
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)
    axes.set_xlabel("zones")
    axes.set_ylabel("milliseconds of a join")
    axes.set_title(title)
    axes.legend()
